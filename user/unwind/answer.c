/* SPDX-License-Identifier: GPL-2.0-only */
/* The child: it is given files and stacks of others, and nothing else. */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "unwind/frame_rules.h"
#include "unwind/image.h"
#include "unwind/jit_map.h"
#include "unwind/question.h"

enum {
	MAX_MAPPINGS = 65536,
	NOBODY = 65534,
	MAX_ALL_SECONDS = 3600, /* of CPU time, for all answers */
};

/* What the child may take. */
struct bounds {
	rlim_t addresses;
	rlim_t seconds; /* of CPU time, for an answer */
	int nice;
};

static const struct bounds of_own = {.addresses = 16ull << 30, .seconds = UNWIND_SECONDS};
static const struct bounds of_others = {.addresses = 2ull << 30, .seconds = 1, .nice = 19};

/* Where a file is mapped. */
struct placed {
	uint32_t image;
	uint64_t bias, low, high;
};

struct set {
	struct placed *placed;
	size_t n, room;
	Dwfl *dwfl;	   /* made for the first sample */
	size_t n_reported; /* of placed, to it */
	bool attached;	   /* stacks can be unwound */
};

struct child {
	struct image *images;
	size_t n_images, images_room;
	struct set sets[UNWIND_MAX_SETS];
	struct jit_map jits[UNWIND_MAX_JITS];
	const struct unwind_shared *shared;
	/* The sample that is being unwound. */
	const struct unwind_question *question;
	const uint8_t *stack;
	size_t len;
	uint64_t n_samples; /* so far, this one included */
	bool beyond;	    /* it asked for memory that is not in the copy */
	uint64_t pc;	    /* of the last frame */
	struct {
		struct unwind_reply head;
		char text[UNWIND_MAX_REPLY - sizeof(struct unwind_reply)];
	} reply;
	size_t filled;		     /* of text */
	const struct bounds *bounds; /* what it may take */
	uint64_t told_cpu_ns;	     /* with the answer before */
};

/* libdw has callbacks without a context of theirs. */
static struct child child;

/* ---- What it may do --------------------------------------------------------------------------
 */

static void limit(int resource, rlim_t most)
{
	const struct rlimit limits = {most, most};

	setrlimit(resource, &limits);
}

/* Whoever is not root has nothing to give away but capabilities. */
static void drop_privileges(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}};

	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, MAX_ALL_SECONDS);
	limit(RLIMIT_FSIZE, 0);
	if (child.bounds->nice)
		setpriority(PRIO_PROCESS, 0, child.bounds->nice);
#ifndef __SANITIZE_ADDRESS__ /* which takes more by itself */
	limit(RLIMIT_AS, child.bounds->addresses);
#endif
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!geteuid() && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
			   setresuid(NOBODY, NOBODY, NOBODY)))
		_exit(1);
	if (syscall(SYS_capset, &header, none))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* another user has none */
}

/* A file that keeps libdw busy for ever ends this process, and not the waiting for it alone. */
static void begin_time(void)
{
	struct rlimit limits = {0, MAX_ALL_SECONDS};
	struct rusage used;

	if (getrusage(RUSAGE_SELF, &used))
		return;
	limits.rlim_cur =
		(rlim_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + 1 + child.bounds->seconds;
	if (limits.rlim_cur < limits.rlim_max)
		setrlimit(RLIMIT_CPU, &limits);
}

/* ---- Mappings --------------------------------------------------------------------------------
 */

/* Returns its index, or -1. Takes the descriptor. */
static ssize_t image_of(const struct unwind_question *q, const char *path, size_t len, int fd)
{
	struct image *images = child.images, *new;

	for (size_t i = 0; i < child.n_images; i++)
		if (images[i].device == q->mapping.device && images[i].inode == q->mapping.inode &&
		    images[i].changed_ns == q->mapping.changed_ns &&
		    !strncmp(images[i].path, path, len) && !images[i].path[len]) {
			if (fd >= 0)
				close(fd);
			return (ssize_t)i;
		}
	images = array_reserve(images, child.n_images + 1, &child.images_room, sizeof(*images));
	if (!images)
		return -1;
	child.images = images;
	new = &images[child.n_images];
	*new = (struct image){.device = q->mapping.device,
			      .inode = q->mapping.inode,
			      .changed_ns = q->mapping.changed_ns};
	memcpy(new->path, path, len);
	image_open(new, fd);
	return (ssize_t)child.n_images++;
}

static void add_mapping(const struct unwind_question *q, const char *path, size_t len, int fd)
{
	struct set *set = &child.sets[q->set];
	const ssize_t image = image_of(q, path, len, fd);
	struct placed place = {.image = (uint32_t)image}, *placed;

	if (image < 0 || set->n == MAX_MAPPINGS)
		return;
	if (!image_place(&child.images[image], q->mapping.start, q->mapping.offset, &place.bias,
			 &place.low, &place.high)) {
		place.bias = q->mapping.start - q->mapping.offset;
		place.low = q->mapping.start;
		place.high = q->mapping.end;
	}
	for (size_t i = 0; i < set->n; i++)
		if (set->placed[i].image == place.image && set->placed[i].low == place.low)
			return;
	placed = array_reserve(set->placed, set->n + 1, &set->room, sizeof(*placed));
	if (!placed)
		return;
	set->placed = placed;
	placed[set->n++] = place;
}

static void add_jit(const struct unwind_question *q, int fd)
{
	if (fd < 0)
		return;
	if (q->jit >= UNWIND_MAX_JITS) {
		close(fd);
		return;
	}
	jit_map_end(&child.jits[q->jit]);
	jit_map_begin(&child.jits[q->jit], fd);
}

static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		    char **file, Elf **elf)
{
	const struct image *image = &child.images[(uintptr_t)*userdata];

	(void)module, (void)name, (void)base, (void)file;
	*elf = image->elf ? elf_begin(-1, ELF_C_READ_MMAP_PRIVATE, image->elf) : NULL;
	return -1;
}

static int find_no_debuginfo(Dwfl_Module *module, void **userdata, const char *name,
			     Dwarf_Addr base, const char *file, const char *link, GElf_Word crc,
			     char **debuginfo)
{
	(void)module, (void)userdata, (void)name, (void)base, (void)file, (void)link, (void)crc;
	(void)debuginfo;
	return -1;
}

/* ---- A stack ---------------------------------------------------------------------------------
 */

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread)
{
	(void)dwfl, (void)context;
	if (*thread)
		return 0;
	*thread = &child;
	return 1;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread)
{
	(void)dwfl, (void)tid, (void)context;
	*thread = &child;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *word, void *context)
{
	const uint64_t offset = at - child.question->sample.base;

	(void)dwfl, (void)context;
	if (at < child.question->sample.base || child.len < sizeof(uint64_t) ||
	    offset > child.len - sizeof(uint64_t)) {
		child.beyond = true;
		return false;
	}
	memcpy(word, child.stack + offset, sizeof(uint64_t));
	return true;
}

#if defined(__x86_64__)
/* Where struct pt_regs has the registers, in DWARF's order; the last is the instruction. */
static const uint8_t order[] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};
enum { CODE_SEGMENT = 17, CODE_32 = 0x23, INSTRUCTION = 16 };

static bool is_narrow(const uint64_t *regs)
{
	return regs[CODE_SEGMENT] == CODE_32;
}
#elif defined(__aarch64__)
static const uint8_t order[] = {0,  1,	2,  3,	4,  5,	6,  7,	8,  9,	10, 11, 12, 13, 14, 15,
				16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
enum { STATE = 33, STATE_32 = 0x10, INSTRUCTION = 32 };

static bool is_narrow(const uint64_t *regs)
{
	return regs[STATE] & STATE_32;
}
#else
#error "say where struct pt_regs has the registers"
#endif

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	const uint64_t *regs = child.question->sample.regs;
	Dwarf_Word words[sizeof(order)];

	(void)context;
	for (size_t i = 0; i < sizeof(order); i++)
		words[i] = regs[order[i]];
	dwfl_thread_state_register_pc(thread, regs[INSTRUCTION]);
	return dwfl_thread_state_registers(thread, 0, sizeof(order), words);
}

static void put_text(const char *text)
{
	const size_t len = strnlen(text, UNWIND_MAX_NAME - 1);

	memcpy(child.reply.text + child.filled, text, len);
	child.filled += len;
	child.reply.text[child.filled++] = '\0';
}

/* Returns where the code is, or NULL. */
static const struct placed *find_place(const struct set *set, uint64_t pc)
{
	for (size_t i = 0; i < set->n; i++)
		if (pc >= set->placed[i].low && pc < set->placed[i].high)
			return &set->placed[i];
	return NULL;
}

/* Returns the name that a JIT compiler gave to the code, which may be in a file of the compiler's
 * own that it has mapped twice; or NULL. */
static const char *jit_name(const struct placed *p, uint64_t pc)
{
	const uint32_t jit = child.question->jit;

	return jit < UNWIND_MAX_JITS && !(p && child.images[p->image].elf)
		       ? jit_map_find(&child.jits[jit], pc, child.question->sample.time_ns)
		       : NULL;
}

static void put_frame(const struct set *set, uint64_t pc)
{
	const struct placed *p = find_place(set, pc);
	const char *name = jit_name(p, pc);

	if (name) {
		put_text(name);
		put_text(UNWIND_JIT);
		return;
	}
	if (p)
		image_look(&child.images[p->image], child.n_samples);
	put_text(p ? image_function(&child.images[p->image], pc - p->bias) : "");
	put_text(p ? child.images[p->image].path : "");
}

static int take_frame(Dwfl_Frame *frame, void *context)
{
	bool is_activation;
	Dwarf_Addr pc;

	if (child.reply.head.n == UNWIND_MAX_FRAMES)
		return DWARF_CB_ABORT;
	if (!dwfl_frame_pc(frame, &pc, &is_activation))
		return DWARF_CB_ABORT;
	child.beyond = false;		/* what could not be read did not matter */
	child.pc = pc - !is_activation; /* a call may be the last of its function */
	put_frame(context, child.pc);
	child.reply.head.n++;
	return DWARF_CB_OK;
}

/* Tells libdw of what was placed since the last time. */
static void report(struct set *set, Elf **any)
{
	dwfl_report_begin_add(set->dwfl);
	for (; set->n_reported < set->n; set->n_reported++) {
		const struct placed *p = &set->placed[set->n_reported];
		Dwfl_Module *module;
		void **userdata;

		if (!child.images[p->image].elf)
			continue;
		module = dwfl_report_module(set->dwfl, "file", p->low, p->high);
		if (!module)
			continue;
		dwfl_module_info(module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): it is an index */
		*userdata = (void *)(uintptr_t)p->image;
		*any = child.images[p->image].elf;
	}
	dwfl_report_end(set->dwfl, NULL, NULL);
}

/* Returns whether stacks can be unwound by it. */
static bool make_ready(struct set *set)
{
	static const Dwfl_Callbacks files = {.find_elf = find_elf,
					     .find_debuginfo = find_no_debuginfo};
	static const Dwfl_Thread_Callbacks threads = {.next_thread = next_thread,
						      .get_thread = get_thread,
						      .memory_read = read_memory,
						      .set_initial_registers = set_registers};
	Elf *any = NULL;

	if (!set->dwfl)
		set->dwfl = dwfl_begin(&files);
	if (!set->dwfl)
		return false;
	if (set->n_reported < set->n)
		report(set, &any);
	if (!set->attached && any)
		set->attached = dwfl_attach_state(set->dwfl, any, 1, &threads, NULL);
	return set->attached;
}

/* Reads a word of the copy of the stack. */
static bool read_word(uint64_t at, uint64_t *word)
{
	return read_memory(NULL, at, word, NULL);
}

/* The registers of a frame, as far as they are known. */
struct frame {
	uint64_t regs[FRAME_REGISTERS];
	uint32_t lost; /* bits: these are not */
};

/* Goes to the caller's frame. Returns false if the stack is not plain. */
static bool step(const struct frame_rule *rule, struct frame *frame)
{
	const uint64_t end = frame->regs[rule->end_at] + (uint64_t)(int64_t)rule->end;

	if (frame->lost & 1u << rule->end_at)
		return false;
	for (unsigned int i = 0; i < FRAME_KEPT; i++)
		if (rule->kept & 1u << i &&
		    !read_word(end + (uint64_t)(int64_t)rule->at[i], &frame->regs[i]))
			return false;
	frame->lost = (frame->lost | rule->lost) & ~(uint32_t)rule->kept;
	frame->regs[FRAME_RSP] = end;
	return read_word(end + (uint64_t)(int64_t)rule->return_at, &frame->regs[FRAME_RIP]);
}

/* Returns false if some frame is not plain: then nothing is known. */
static bool unwind_plain(const struct set *set)
{
	struct frame frame = {.lost = 0};
	const uint64_t *next = &frame.regs[FRAME_RIP];

	for (size_t i = 0; i < FRAME_REGISTERS; i++)
		frame.regs[i] = child.question->sample.regs[frame_registers[i]];
	for (uint64_t pc = *next; child.reply.head.n < UNWIND_MAX_FRAMES;
	     pc = *next - 1) { /* a call may be the last of its function */
		const struct placed *p = find_place(set, pc);
		const struct frame_rule *rule =
			p && image_look(&child.images[p->image], child.n_samples)
				? frame_rule_of(&child.images[p->image], p->image, pc - p->bias)
				: NULL;

		if (!rule)
			return false;
		put_frame(set, pc);
		child.reply.head.n++;
		if (rule->is_last)
			return true;
		if (!step(rule, &frame))
			return false;
		if (!*next)
			return true;
	}
	return false;
}

static enum unwind_end unwind(struct set *set)
{
	const struct placed *last;
	int result;

	if (is_narrow(child.question->sample.regs))
		return UNWIND_NARROW;
	if (unwind_plain(set))
		return UNWIND_WHOLE;
	child.reply.head.n = 0;
	child.filled = 0;
	child.beyond = false;
	if (!make_ready(set))
		return UNWIND_NO_INFO;
	result = dwfl_getthread_frames(set->dwfl, 1, take_frame, set);
	if (!result && !child.beyond)
		return UNWIND_WHOLE;
	if (child.reply.head.n == UNWIND_MAX_FRAMES)
		return UNWIND_TOO_DEEP;
	last = find_place(set, child.pc);
	if (last && image_begins_at(&child.images[last->image], child.pc - last->bias))
		return UNWIND_WHOLE;
	if (child.beyond)
		return child.len == UNWIND_MAX_STACK ? UNWIND_CUT : UNWIND_UNREADABLE;
	return last ? UNWIND_NO_INFO : UNWIND_UNKNOWN_CODE;
}

/* Returns what was used since the answer before. */
static uint64_t used_ns(void)
{
	const uint64_t now = clock_ns(CLOCK_PROCESS_CPUTIME_ID), used = now - child.told_cpu_ns;

	child.told_cpu_ns = now;
	return used;
}

static bool answer_sample(const struct unwind_question *q, int fd)
{
	size_t size;

	child.n_samples++;
	child.question = q;
	child.stack = child.shared->slots[q->sample.slot];
	child.len = q->sample.len;
	child.beyond = false;
	child.filled = 0;
	child.reply.head = (struct unwind_reply){.id = q->sample.id};
	child.reply.head.end = unwind(&child.sets[q->set]);
	child.reply.head.cpu_ns = used_ns();
	size = sizeof(child.reply.head) + child.filled;
	return send(fd, &child.reply, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* ---- Questions -------------------------------------------------------------------------------
 */

/* Returns its size, or 0: there is none any more. */
static size_t next_question(int from, void *buffer, size_t size, int *fd)
{
	struct iovec bytes = {buffer, size};
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const struct cmsghdr *header;
	ssize_t n;

	do
		n = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	*fd = -1;
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return n > 0 ? (size_t)n : 0;
}

void unwind_answer_all(void *given, int fd)
{
	const struct unwind_work *work = given;
	static union {
		struct unwind_question head;
		char bytes[UNWIND_MAX_QUESTION];
	} q;
	size_t n;
	int file;

	child.shared = work->shared;
	child.bounds = work->others ? &of_others : &of_own;
	drop_privileges();
	elf_version(EV_CURRENT);
	while ((n = next_question(fd, &q, sizeof(q), &file))) {
		const char *rest = q.bytes + sizeof(q.head);
		const size_t len = n - sizeof(q.head);

		if (n < sizeof(q.head) || q.head.set >= UNWIND_MAX_SETS)
			return;
		begin_time();
		if (q.head.asks == UNWIND_ASKS_MAPPING)
			add_mapping(&q.head, rest, len, file);
		else if (q.head.asks == UNWIND_ASKS_JIT)
			add_jit(&q.head, file);
		else if (!answer_sample(&q.head, fd))
			return;
	}
}
