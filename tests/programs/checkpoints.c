/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * checkpoints.c - checkpoints of every kind, in a known order: checkpoints CASE [ARG...]
 *
 * gcc -O2 -Wall -Wextra -Werror checkpoints.c -o checkpoints -pthread -ldl    (systemtap-sdt-dev)
 *
 * Prints {"case", "steps": [...]}: the steps that a profile must have between Start and End, in
 * order. Names that JSON cannot hold come as hexadecimal, in "names_hex". Cases that know more say
 * so there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#ifdef __aarch64__
#define STAP_SDT_ARG_CONSTRAINT nr /* see qprof.h */
#endif
#include <sys/sdt.h>
#include <sys/wait.h>

#include "truth.h"

#define BEGIN(name)	    DTRACE_PROBE1(qprof, begin, name)
#define END(name)	    DTRACE_PROBE1(qprof, end, name)
#define MARK(name)	    DTRACE_PROBE1(qprof, mark, name)
#define METRIC(name, value) DTRACE_PROBE2(qprof, metric, name, value)

/* One place for names made at run time. */
static __attribute__((noinline)) void mark(const char *name)
{
	MARK(name);
}

/* Begin, end, mark and metric, nested. */
static void sequence(char **args)
{
	volatile double error = 0.25;

	(void)args;
	BEGIN("Model Loading");
	MARK("Header Read");
	END("Model Loading");
	BEGIN("Quantization");
	METRIC("bits", 8);
	BEGIN("Layer 0");
	METRIC("error", error);
	END("Layer 0");
	BEGIN("Layer 1");
	error /= 2;
	METRIC("error", error);
	END("Layer 1");
	END("Quantization");
	MARK("Exported");
	puts("{\"case\": \"sequence\", \"steps\": [\"Model Loading Start\", \"Header Read\", "
	     "\"Model Loading End\", \"Quantization Start\", \"Layer 0 Start\", \"Layer 0 End\", "
	     "\"Layer 1 Start\", \"Layer 1 End\", \"Quantization End\", \"Exported\"], "
	     "\"metrics\": [[\"Layer 0 Start\", \"bits\", 8], [\"Layer 0 End\", \"error\", 0.25], "
	     "[\"Layer 1 End\", \"error\", 0.125]]}");
}

/* Ends without a begin, begins without an end, and pairs that cross. */
static void unmatched(char **args)
{
	(void)args;
	END("never begun");
	BEGIN("a");
	BEGIN("b");
	END("a");
	END("b");
	BEGIN("never ended");
	puts("{\"case\": \"unmatched\", \"steps\": [\"never begun End\", \"a Start\", \"b Start\", "
	     "\"a End\", \"b End\", \"never ended Start\"]}");
}

/* Each type that a value may have, from a register, a constant and memory. */
static void metrics(char **args)
{
	static volatile double in_memory = 6.25;
	volatile int8_t tiny = -8;
	volatile uint8_t byte = 200;
	volatile int16_t small = -16000;
	volatile int32_t negative = -5;
	volatile uint32_t word = 4000000000u;
	volatile int64_t lowest = INT64_MIN;
	volatile uint64_t highest = UINT64_MAX;
	volatile float single = 1.5f;
	volatile double precise = -0.0078125;
	volatile double huge = 1e300;
	double on_stack[2] = {0.5, 0.75};

	(void)args;
	__asm__ volatile("" : : "r"(on_stack) : "memory"); /* so that it is really in memory */
	METRIC("constant", 42);
	METRIC("int8", tiny);
	METRIC("uint8", byte);
	METRIC("int16", small);
	METRIC("int32", negative);
	METRIC("uint32", word);
	METRIC("int64", lowest);
	METRIC("uint64", highest);
	METRIC("float", single);
	METRIC("double", precise);
	METRIC("huge", huge);
	METRIC("static", in_memory);
	METRIC("stack", on_stack[1]);
	MARK("Measured");
	puts("{\"case\": \"metrics\", \"steps\": [\"Measured\"], \"metrics\": {\"constant\": 42, "
	     "\"int8\": -8, \"uint8\": 200, \"int16\": -16000, \"int32\": -5, "
	     "\"uint32\": 4000000000, \"int64\": -9223372036854775808, "
	     "\"uint64\": 18446744073709551615, \"float\": 1.5, \"double\": -0.0078125, "
	     "\"huge\": 1e300, \"static\": 6.25, \"stack\": 0.75}}");
}

/* Names that break naive writers. Each stands for one step, in this order. */
static const char *const hostile_names[] = {
	"\"double\" 'single' `back`",
	"two\nlines",
	"ends in a newline\n",
	"tab\tand return\r\n",
	"\x01\x02\x1b[31mred\x7f",
	": - # ! & * ? | > % @ { } [ ] ,",
	"- step: \"forged\"\n  timestamp: 0",
	"null",
	"true",
	"1.0",
	"~",
	"---",
	"...",
	"%YAML 1.2",
	"<<",
	"=",
	" leading and trailing ",
	"back\\slash \\n \\x41",
	"Start",
	"End",
	"\xf0\x9f\xa6\x86 \xe6\xa8\xa1\xe5\x9e\x8b \xc3\xa9",
	"next\xc2\x85line and \xe2\x80\xa8 separator",
	"\357\273\277byte order mark", /* octal: \xbf would take the b as its third digit */
	/* Not UTF-8 from here on: stray bytes, a cut character, overlong, a surrogate, too great.
	 */
	"stray \xff\xfe byte",
	"cut \xe2\x82",
	"overlong \xc0\x80 nul",
	"surrogate \xed\xa0\x80 half",
	"beyond \xf4\x90\x80\x80 unicode",
	"continuation \x80\x81 alone",
	"",
};

static void print_hex(const char *bytes, size_t length)
{
	putchar('"');
	for (size_t i = 0; i < length; i++)
		printf("%02x", (unsigned char)bytes[i]);
	putchar('"');
}

static void hostile(char **args)
{
	static char letters[10001], accents[10001];
	static char at_end[256];
	const size_t names = sizeof(hostile_names) / sizeof(*hostile_names);
	char *p;

	(void)args;
	memset(letters, 'x', 10000);
	for (int i = 0; i < 10000; i += 2)
		memcpy(accents + i, "\xc3\xa9", 2);
	/* A name whose NUL is the last byte before memory that is not there. */
	p = map_anonymous(2 * TRUTH_PAGE);
	must(!munmap(p + TRUTH_PAGE, TRUTH_PAGE));
	strcpy(at_end, "at the edge");
	memcpy(p + TRUTH_PAGE - strlen(at_end) - 1, at_end, strlen(at_end) + 1);

	for (size_t i = 0; i < names; i++)
		mark(hostile_names[i]);
	mark(letters);
	mark(accents);
	mark(p + TRUTH_PAGE - strlen(at_end) - 1);

	printf("{\"case\": \"hostile\", \"names_hex\": [");
	for (size_t i = 0; i < names; i++) {
		print_hex(hostile_names[i], strlen(hostile_names[i]));
		printf(", ");
	}
	print_hex(letters, 10000);
	printf(", ");
	print_hex(accents, 10000);
	printf(", ");
	print_hex(at_end, strlen(at_end));
	puts("]}");
}

/* Pointers that no name is behind, between two that are good. */
static void unreadable(char **args)
{
	char *gone = map_anonymous(TRUTH_PAGE);
	char *no_end = map_anonymous(2 * TRUTH_PAGE);

	(void)args;
	must(!munmap(gone, TRUTH_PAGE));
	must(!munmap(no_end + TRUTH_PAGE, TRUTH_PAGE));
	memset(no_end, 'n', TRUTH_PAGE);

	mark("first");
	mark(NULL);
	mark((const char *)1);
	mark(gone);
	mark((const char *)0xffffffff81000000);
	mark((const char *)0x8000000000000000);
	mark(no_end + TRUTH_PAGE - 8);
	mark("last");
	puts("{\"case\": \"unreadable\", \"first\": \"first\", \"unreadable\": 6, \"last\": "
	     "\"last\"}");
}

/*
 * Names in constant data that nothing has touched, each far enough from its neighbours that no
 * fault-around brings it in.
 */
enum { COLD_GAP = 256 * 1024 };
static const struct cold {
	char before[COLD_GAP], first[64], between[COLD_GAP], second[64], after[COLD_GAP];
} cold_names __attribute__((aligned(4096))) = {
	.before = {1},
	.first = "Cold Name, On No Page Yet",
	.between = {1},
	.second = "Cold Name, Not Even In Memory",
	.after = {1},
};

static bool present(const void *p)
{
	uint64_t entry;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	must(fd >= 0);
	must(pread(fd, &entry, 8, (off_t)((uintptr_t)p / TRUTH_PAGE * 8)) == 8);
	close(fd);
	return entry >> 63;
}

static void cold(char **args)
{
	bool first, second;
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uintptr_t page = (uintptr_t)cold_names.second & ~(TRUTH_PAGE - 1);

	(void)args;
	must(self >= 0);
	first = present(cold_names.first);
	MARK(cold_names.first);
	/* The second is thrown out of the page cache too, as far as the kernel agrees. */
	madvise((void *)page, 2 * TRUTH_PAGE, MADV_DONTNEED);
	posix_fadvise(self, 0, 0, POSIX_FADV_DONTNEED);
	second = present(cold_names.second);
	MARK(cold_names.second);
	printf("{\"case\": \"cold\", \"steps\": [\"%s\", \"%s\"], \"was_present\": [%s, %s]}\n",
	       cold_names.first, cold_names.second, first ? "true" : "false",
	       second ? "true" : "false");
}

/* "c" and seven digits, without the price of printf. */
static void number_name(char *name, unsigned int i)
{
	name[0] = 'c';
	for (int at = 7; at > 0; at--, i /= 10)
		name[at] = (char)('0' + i % 10);
	name[8] = 0;
}

/* rate COUNT [PER_SECOND]: that many marks, paced or as fast as they go. */
static void rate(char **args)
{
	unsigned int count = (unsigned int)number(args[0]);
	uint64_t every = args[1] ? 1000000000u / number(args[1]) : 0;
	uint64_t start = now_ns();
	char name[16];

	for (unsigned int i = 0; i < count; i++) {
		while (now_ns() < start + i * every)
			;
		number_name(name, i);
		mark(name);
	}
	printf("{\"case\": \"rate\", \"count\": %u, \"elapsed_ns\": %" PRIu64 "}\n", count,
	       now_ns() - start);
}

static unsigned int marks_each;

static void *marking_thread(void *argument)
{
	char name[16];

	for (unsigned int i = 0; i < marks_each; i++) {
		number_name(name, i);
		name[0] = (char)('A' + (int)(uintptr_t)argument);
		mark(name);
	}
	return (void *)(uintptr_t)gettid();
}

/* threads THREADS COUNT: marks of each in order, named A0000000..., B0000000... */
static void threads(char **args)
{
	pthread_t thread[26];
	unsigned int count = (unsigned int)number(args[0]);

	must(count <= 26);
	marks_each = (unsigned int)number(args[1]);
	for (uintptr_t i = 0; i < count; i++)
		must(!pthread_create(&thread[i], NULL, marking_thread, (void *)i));
	printf("{\"case\": \"threads\", \"each\": %u, \"tids\": [", marks_each);
	for (unsigned int i = 0; i < count; i++) {
		void *tid;

		pthread_join(thread[i], &tid);
		printf("%s%lu", i ? ", " : "", (unsigned long)(uintptr_t)tid);
	}
	puts("]}");
}

/* children COUNT: marks from the parent and from children that are gone at once. */
static void children(char **args)
{
	unsigned int count = (unsigned int)number(args[0]);
	char name[16];

	mark("parent before");
	printf("{\"case\": \"children\", \"pids\": [");
	for (unsigned int i = 0; i < count; i++) {
		pid_t pid;

		fflush(stdout);
		pid = fork();
		must(pid >= 0);
		if (!pid) {
			number_name(name, i);
			mark(name);
			_exit(0);
		}
		must(waitpid(pid, NULL, 0) == pid);
		printf("%s%d", i ? ", " : "", (int)pid);
	}
	mark("parent after");
	puts("]}");
}

/* Probes of this provider with other names, and of another provider. */
static void others(char **args)
{
	(void)args;
	MARK("first");
	DTRACE_PROBE(qprof, tokenizer_ready);
	DTRACE_PROBE2(qprof, epoch, 3, 4);
	DTRACE_PROBE(other, plain);
	DTRACE_PROBE1(other, loaded, "an argument");
	DTRACE_PROBE(another, ignored);
	MARK("last");
	puts("{\"case\": \"others\", \"steps\": [\"first\", \"tokenizer_ready\", \"epoch\", "
	     "\"last\"], "
	     "\"other\": [\"plain\", \"loaded\"]}");
}

/*
 * A mark as sys/sdt.h makes it, but with an argument that nothing can evaluate: no compiler writes
 * this, some assembly does.
 */
#define REFUSED_PROBE                                                                              \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"                              \
			 ".balign 4\n"                                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                        \
			 "991: .asciz \"stapsdt\"\n"                                               \
			 "992: .balign 4\n"                                                        \
			 "993: .8byte 990b, _.stapsdt.base, 0\n"                                   \
			 ".asciz \"qprof\"\n"                                                      \
			 ".asciz \"mark\"\n"                                                       \
			 ".asciz \"8@%no_such_register\"\n"                                        \
			 "994: .balign 4\n"                                                        \
			 ".popsection\n")

static void refused(char **args)
{
	(void)args;
	MARK("before");
#ifdef __x86_64__
	REFUSED_PROBE;
#endif
	/* A constant double: the compiler names it by a label that is in no symbol table, as in
	 * "8f@.LC49(%rip)". */
	METRIC("constant double", 0.3);
	MARK("after");
	puts("{\"case\": \"refused\", \"before\": \"before\", \"after\": \"after\"}");
}

/*
 * Steps whose memory is known: each row gives the exact RSS at the step and the highest since the
 * one before. All rows are taken first into memory that is there.
 */
static struct row {
	const char *step;
	uint64_t rss, step_peak;
} rows[16];
static unsigned int rows_used;

static void row(const char *step, uint64_t above)
{
	uint64_t rss = rss_bytes(0);

	rows[rows_used++] = (struct row){step, rss, rss + above};
}

static void memory(char **args)
{
	char *kept, *spike, *lost;

	(void)args;
	for (int i = 0; i < 2; i++) /* the first round makes the code and the stack be there */
		row("warm", 0);
	lost = map_anonymous(MIB);
	touch(lost, MIB);
	munmap(lost, MIB);
	rows_used = 0;

	row("Base", 0);
	MARK("Base");

	row("Grow Start", 0);
	BEGIN("Grow");
	kept = map_anonymous(64 * MIB);
	touch(kept, 64 * MIB);
	row("Grow End", 0);
	END("Grow");

	row("Spike Start", 0);
	BEGIN("Spike");
	spike = map_anonymous(128 * MIB);
	touch(spike, 128 * MIB);
	munmap(spike, 128 * MIB);
	row("Spike End", 128 * MIB);
	END("Spike");

	row("Quiet", 0);
	MARK("Quiet");

	munmap(kept, 64 * MIB);
	row("Shrunk", 64 * MIB);
	MARK("Shrunk");

	printf("{\"case\": \"memory\", \"steps\": [");
	for (unsigned int i = 0; i < rows_used; i++)
		printf("%s\"%s\"", i ? ", " : "", rows[i].step);
	printf("], \"rows\": [");
	for (unsigned int i = 0; i < rows_used; i++)
		printf("%s{\"step\": \"%s\", \"rss_bytes\": %" PRIu64
		       ", \"step_peak_bytes\": %" PRIu64 "}",
		       i ? ", " : "", rows[i].step, rows[i].rss, rows[i].step_peak);
	puts("]}");
}

static void print_hugetlb(const char *step, uint64_t tree)
{
	printf("%s{\"step\": \"%s\", \"hugetlb_bytes\": %" PRIu64 "}", rows_used++ ? ", " : "",
	       step, tree);
}

/*
 * hugetlb PRIVATE SHARED: so many huge pages of its own, and as many shared with a child, which has
 * those of its own from its parent. What the tree has by /proc/PID/status at each step.
 */
static void hugetlb(char **args)
{
	const size_t page = huge_page_bytes();
	const size_t owned = number(args[0]) * page, shared = number(args[1]) * page;
	const int flags = MAP_ANONYMOUS | MAP_HUGETLB, protection = PROT_READ | PROT_WRITE;
	uint64_t before = hugetlb_bytes(), alone, both, of_child, last;
	char *private, *common;
	int status;
	pid_t child;

	MARK("None");
	private = map_or_die(owned, protection, flags | MAP_PRIVATE, -1);
	touch(private, owned);
	alone = hugetlb_bytes();
	MARK("Private");
	common = map_or_die(shared, protection, flags | MAP_SHARED, -1);
	touch(common, shared);
	both = hugetlb_bytes();
	MARK("Shared");
	child = fork();
	must(child >= 0);
	if (!child) {
		look(common, shared);
		*(volatile uint64_t *)common = hugetlb_bytes();
		MARK("Child");
		_exit(0);
	}
	must(waitpid(child, &status, 0) == child && !status);
	of_child = *(volatile uint64_t *)common;
	MARK("Alone");
	must(!munmap(private, owned));
	last = hugetlb_bytes();
	MARK("Less");
	must(!munmap(common, shared));
	MARK("Gone");
	must(!hugetlb_bytes());

	printf("{\"case\": \"hugetlb\", \"child\": %d, \"child_bytes\": %" PRIu64 ", \"rows\": [",
	       (int)child, of_child);
	print_hugetlb("None", before);
	print_hugetlb("Private", alone);
	print_hugetlb("Shared", both);
	print_hugetlb("Child", both + of_child);
	print_hugetlb("Alone", both);
	print_hugetlb("Less", last);
	print_hugetlb("Gone", 0);
	puts("]}");
}

/* plugin LIBRARY COUNT: opens it and lets it emit at once. */
static void plugin(char **args)
{
	void *library;
	void (*emit)(unsigned int count);

	MARK("before dlopen");
	library = dlopen(args[0], RTLD_NOW);
	if (!library)
		die("%s", dlerror());
	*(void **)&emit = dlsym(library, "plugin_emit");
	must(emit);
	emit((unsigned int)number(args[1]));
	MARK("after dlopen");
	printf("{\"case\": \"plugin\", \"count\": %s}\n", args[1]);
}

/* exec PROGRAM ARG...: becomes a program that emits its own. */
static void exec(char **args)
{
	MARK("before exec");
	execv(args[0], args);
	die("exec %s", args[0]);
}

static const struct checkpoint_case {
	const char *name;
	int args; /* that it needs */
	void (*run)(char **args);
} cases[] = {
	{"sequence", 0, sequence}, {"unmatched", 0, unmatched},	  {"metrics", 0, metrics},
	{"hostile", 0, hostile},   {"unreadable", 0, unreadable}, {"cold", 0, cold},
	{"rate", 1, rate},	   {"threads", 2, threads},	  {"children", 1, children},
	{"others", 0, others},	   {"refused", 0, refused},	  {"memory", 0, memory},
	{"hugetlb", 2, hugetlb},   {"plugin", 2, plugin},	  {"exec", 1, exec},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(cases[i].name, argv[1]))
			continue;
		if (argc - 2 < cases[i].args)
			die("%s needs %d arguments", argv[1], cases[i].args);
		cases[i].run(argv + 2);
		return 0;
	}
	fprintf(stderr, "usage: checkpoints CASE [ARG...]\n");
	return 124;
}
