/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * truth.h - what the programs with known truth share: the kernel's exact accounts of a process,
 * memory that is surely touched, and a way to fail that no test can miss.
 *
 * Nothing here allocates, and every buffer is static: reading the truth must not change it. The
 * first call of each function may fault in code or its buffer, so a program warms up what it uses
 * before it takes a baseline.
 */
#ifndef QPROF_TRUTH_H
#define QPROF_TRUTH_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

#define TRUTH_PAGE ((size_t)4096)

/* Not every program uses every helper. */
#define TRUTH_FN __attribute__((unused)) static

/* 124: no program here exits with it otherwise, and no shell gives it a meaning of its own. */
#define die(...)                                                                                   \
	do {                                                                                       \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                    \
		fprintf(stderr, __VA_ARGS__);                                                      \
		fprintf(stderr, " (%s)\n", strerror(errno));                                       \
		_exit(124);                                                                        \
	} while (0)

#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			die("%s", #condition);                                                     \
	} while (0)

TRUTH_FN uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Spins: a sleep of 200 us may well last a millisecond, and then the spike would not be that short.
 */
TRUTH_FN void hold_ns(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

TRUTH_FN void pause_ns(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u),
			     .tv_nsec = (long)(ns % 1000000000u)};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

TRUTH_FN const char *read_proc(const char *path)
{
	static char text[8192];
	size_t length = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		die("open %s", path);
	while ((n = read(fd, text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)n;
	if (n < 0)
		die("read %s", path);
	close(fd);
	text[length] = 0;
	return text;
}

TRUTH_FN uint64_t proc_field(const char *text, const char *field)
{
	const char *at = strstr(text, field);

	if (!at)
		die("no %s", field);
	return strtoull(at + strlen(field), NULL, 10);
}

/*
 * Resident bytes of a process (0: of this one). smaps_rollup walks the page tables, so it is exact
 * where VmRSS may lag behind by the per-CPU parts of the counters. (thread-self: the first thread
 * may be gone, and its files with it.)
 */
TRUTH_FN const char *read_rollup(pid_t pid)
{
	static char path[64];

	if (!pid)
		return read_proc("/proc/thread-self/smaps_rollup");
	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	return read_proc(path);
}

TRUTH_FN uint64_t rss_bytes(pid_t pid)
{
	return proc_field(read_rollup(pid), "\nRss:") * KIB;
}

/* A process's share of what cannot be reclaimed: a page that n processes map counts 1/n for each.
 */
TRUTH_FN uint64_t needed_bytes(pid_t pid)
{
	const char *rollup = read_rollup(pid);

	return (proc_field(rollup, "\nPss_Anon:") + proc_field(rollup, "\nPss_Shmem:")) * KIB;
}

/*
 * Brings in every page of the files that are mapped: code that runs for the first time after the
 * truth was read would add some, up to 16 around each fault. A child starts without them.
 */
TRUTH_FN void bring_files_in(void)
{
	const char *line = read_proc("/proc/self/maps");

	for (; *line; line = strchr(line, '\n') + 1) {
		unsigned long from, to, inode;
		char readable;

		must(sscanf(line, "%lx-%lx %c%*s %*s %*s %lu", &from, &to, &readable, &inode) == 4);
		if (readable == 'r' && inode)
			must(!madvise((void *)from, to - from, MADV_POPULATE_READ));
	}
}

/* Of hugetlb memory, which RSS has nothing of. */
TRUTH_FN uint64_t hugetlb_bytes(void)
{
	return proc_field(read_proc("/proc/self/status"), "\nHugetlbPages:") * KIB;
}

TRUTH_FN size_t huge_page_bytes(void)
{
	return proc_field(read_proc("/proc/meminfo"), "\nHugepagesize:") * KIB;
}

struct io_account {
	uint64_t rchar, wchar, read_bytes, write_bytes, cancelled;
};

/* This process with its dead threads and the children it has waited for. */
TRUTH_FN struct io_account io_account(void)
{
	const char *text = read_proc("/proc/self/io");

	return (struct io_account){
		.rchar = proc_field(text, "rchar: "),
		.wchar = proc_field(text, "wchar: "),
		.read_bytes = proc_field(text, "\nread_bytes: "),
		.write_bytes = proc_field(text, "\nwrite_bytes: "),
		.cancelled = proc_field(text, "cancelled_write_bytes: "),
	};
}

TRUTH_FN void *map_or_die(size_t bytes, int protection, int flags, int fd)
{
	void *p = mmap(NULL, bytes, protection, flags, fd, 0);

	if (p == MAP_FAILED)
		die("mmap %zu bytes", bytes);
	return p;
}

TRUTH_FN char *map_anonymous(size_t bytes)
{
	return map_or_die(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

/* Writes one byte a page, so that each is there. */
TRUTH_FN void touch(char *p, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += TRUTH_PAGE)
		*(volatile char *)(p + at) = 1;
}

/* Reads one byte a page. */
TRUTH_FN void look(const char *p, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += TRUTH_PAGE)
		(void)*(const volatile char *)(p + at);
}

/*
 * What a program does when it is given that name. CASE(name) stands where "static void name(void)"
 * would; the linker makes a table of all cases of a program.
 */
struct truth_case {
	const char *name;
	void (*run)(void);
};

#define CASE(name)                                                                                 \
	static void do_##name(void);                                                               \
	static struct truth_case case_##name                                                       \
		__attribute__((used, section("truth_cases"))) = {#name, do_##name};                \
	static void do_##name(void)

extern const struct truth_case __start_truth_cases[] __attribute__((weak));
extern const struct truth_case __stop_truth_cases[] __attribute__((weak));

TRUTH_FN void run_case(const char *name)
{
	for (const struct truth_case *c = __start_truth_cases; c < __stop_truth_cases; c++) {
		if (!strcmp(c->name, name)) {
			c->run();
			return;
		}
	}
	die("no case '%s'", name);
}

/* A text argument as a whole number, nothing before or after it. */
TRUTH_FN uint64_t number(const char *text)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-')
		die("'%s' is not a number", text);
	return value;
}

/* An unlinked file of that many bytes of data that does not compress to a hole, clean on the disk.
 */
TRUTH_FN int scratch_file(const char *dir, size_t bytes)
{
	static char block[64 * KIB];
	char path[4096]; /* of this thread */
	int fd;

	snprintf(path, sizeof(path), "%s/qprof-truth-XXXXXX", dir);
	fd = mkstemp(path);
	if (fd < 0)
		die("mkstemp %s", path);
	unlink(path);
	memset(block, 0x5a, sizeof(block));
	for (size_t at = 0; at < bytes; at += sizeof(block))
		must(pwrite(fd, block, sizeof(block), (off_t)at) == (ssize_t)sizeof(block));
	must(!fsync(fd));
	return fd;
}

/* Out of the page cache, so that the next look at it goes to the disk. */
TRUTH_FN void make_cold(int fd)
{
	must(!fdatasync(fd));
	must(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
}

#endif
