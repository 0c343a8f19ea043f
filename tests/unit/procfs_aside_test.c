/* SPDX-License-Identifier: GPL-2.0-only */
/* What a child reads of a process, in packets, is what a read without one gives. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernel/procfs_aside.h"

enum { ENVIRON_SIZE = 100000, MAPPINGS = 1500 }; /* both are more than a packet */

/* The mappings of a walk, as text. */
struct text {
	char *bytes;
	size_t n, lines, most;
};

static int write_line(void *context, const struct procfs_mapping *m)
{
	struct text *text = context;

	if (m)
		text->n +=
			(size_t)sprintf(text->bytes + text->n, "%lx-%lx %lx %lx %lx %s\n", m->start,
					m->end, m->offset, m->device, m->inode, m->path);
	return ++text->lines == text->most ? 7 : 0;
}

/* Executes `sleep` with that many bytes of variables. */
static pid_t start_sleeper(void)
{
	static char long_one[ENVIRON_SIZE];
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	memset(long_one, 'x', sizeof(long_one) - 1);
	long_one[1] = '=';
	execle("/bin/sleep", "sleep", "1000", (char *)NULL, (char *[]){long_one, "LAST=1", NULL});
	_exit(1);
}

/* The kernel knows where the variables end after it knows the command line: create_elf_tables() in
 * fs/binfmt_elf.c goes through each of them in between. */
static void wait_for_exec(pid_t pid)
{
	char text[16];

	while (procfs_cmdline(pid, text, sizeof(text)) < 6 || memcmp(text, "sleep", 6) != 0 ||
	       procfs_environ(pid, text, sizeof(text)) <= 0)
		sched_yield();
}

static void test_texts(void **state)
{
	static char got[ENVIRON_SIZE + 100], expected[sizeof(got)];
	const pid_t pid = start_sleeper();
	ssize_t n;

	(void)state;
	wait_for_exec(pid);
	n = procfs_environ(pid, expected, sizeof(expected));
	assert_int_equal(n, ENVIRON_SIZE + sizeof("LAST=1"));
	assert_int_equal(procfs_aside_environ(pid, got, sizeof(got)), n);
	assert_memory_equal(got, expected, (size_t)n);
	assert_int_equal(procfs_aside_environ(pid, got, 5), 5);
	assert_int_equal(procfs_aside_cmdline(pid, got, sizeof(got)), sizeof("sleep\0001000"));
	assert_string_equal(got + sizeof("sleep"), "1000");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(procfs_aside_cmdline(pid, got, sizeof(got)), -ENOENT);
	procfs_aside_end();
}

/* Pages of a file, each a mapping of its own. */
static void map_many(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int fd = open("/proc/self/exe", O_RDONLY);

	assert_true(fd >= 0);
	for (int i = 0; i < MAPPINGS; i++)
		assert_ptr_not_equal(mmap(NULL, page, i % 2 ? PROT_READ : PROT_READ | PROT_EXEC,
					  MAP_PRIVATE, fd, 0),
				     MAP_FAILED);
	close(fd);
}

/* Warmed up: a walk for the first time may map memory for what it does. */
static void assert_alike(int (*direct)(pid_t, procfs_visit_fn, void *),
			 int (*aside)(pid_t, procfs_visit_fn, void *))
{
	static char room[1 << 20];
	struct text expected = {.bytes = room}, got = {.bytes = room + sizeof(room) / 2};

	assert_int_equal(aside(getpid(), write_line, &got), 0);
	assert_int_equal(direct(getpid(), write_line, &expected), 0);
	assert_true(expected.lines > MAPPINGS / 3);
	assert_int_equal(got.lines, expected.lines);
	assert_string_equal(got.bytes, expected.bytes);
}

static void test_mappings(void **state)
{
	char room[4400];
	struct text few = {.bytes = room, .most = 3};

	(void)state;
	map_many();
	assert_int_equal(procfs_aside_each_mapped(getpid(), write_line, &few), 7);
	assert_int_equal(few.lines, 3);
	assert_alike(procfs_each_executable, procfs_aside_each_executable);
	assert_alike(procfs_each_mapped, procfs_aside_each_mapped);
	procfs_aside_end();
}

static int find_own(void *context, const struct procfs_mapping *m)
{
	struct procfs_mapping *found = context;

	if (m)
		*found = *m;
	return m != NULL;
}

static void test_a_mapped_file(void **state)
{
	struct procfs_mapping m;
	char path[4200], expected[4200];
	uint64_t offset;
	struct stat st, own;
	int fd;

	(void)state;
	assert_int_equal(procfs_each_executable(getpid(), find_own, &m), 1);
	fd = procfs_aside_open_mapping(getpid(), m.start, m.end);
	if (fd == -EPERM)
		skip();
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(stat("/proc/self/exe", &own), 0);
	assert_int_equal(st.st_ino, own.st_ino);
	close(fd);
	assert_true(procfs_aside_mapping_path(getpid(), m.start, m.end, path, sizeof(path)) > 0);
	assert_true(procfs_mapping_path(getpid(), m.start, m.end, expected, sizeof(expected)) > 0);
	assert_string_equal(path, expected);
	assert_int_equal(procfs_aside_mapping_offset(getpid(), m.start, &offset), 0);
	assert_int_equal(offset, m.offset);
	assert_int_equal(procfs_aside_open_mapping(getpid(), 1, 2), -ENOENT);
	procfs_aside_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_mappings),
		cmocka_unit_test(test_a_mapped_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
