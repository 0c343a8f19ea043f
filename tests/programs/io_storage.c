// SPDX-License-Identifier: GPL-2.0-only
/* io_storage.c - cases of io.c: what comes from the disk, in threads and children, too. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/wait.h>

#include "io.h"

enum { WORKERS = 8 };

CALL_EACH_CHUNK(cold, cold_file(), pread(fd, buffer, CHUNK, (off_t)at),
		truth.read = truth.disk_read = size)
CALL_EACH_CHUNK(direct_read, reopen(cold_file(), O_RDONLY | O_DIRECT),
		pread(fd, buffer, CHUNK, (off_t)at), truth.read = truth.disk_read = size)
CALL_EACH_CHUNK(direct_write, reopen(full_file(), O_WRONLY | O_DIRECT),
		pwrite(fd, buffer, CHUNK, (off_t)at), wrote())

CASE(mmap_read)
{
	char *p = map_or_die(size, PROT_READ, MAP_SHARED, cold_file());

	begin();
	look(p, size);
	truth.disk_read = size;
}

CASE(mmap_write)
{
	char *p = map_or_die(size, PROT_READ | PROT_WRITE, MAP_SHARED, full_file());

	begin();
	touch(p, size);
	truth.disk_written = size;
}

static void read_all(int fd)
{
	static __thread char own[CHUNK];

	FOR_EACH_CHUNK(at)
	WHOLE(pread(fd, own, CHUNK, (off_t)at));
}

static void write_all(int fd)
{
	static __thread char own[CHUNK];

	FOR_EACH_CHUNK(at)
	WHOLE(pwrite(fd, own, CHUNK, (off_t)at));
}

static int worker_fd[WORKERS];

static void *reader(void *argument)
{
	read_all(worker_fd[(uintptr_t)argument]);
	return NULL;
}

static void *writer(void *argument)
{
	write_all(worker_fd[(uintptr_t)argument]);
	return NULL;
}

static void in_threads(void *(*work)(void *))
{
	pthread_t thread[WORKERS];

	begin();
	for (uintptr_t i = 0; i < WORKERS; i++)
		must(!pthread_create(&thread[i], NULL, work, (void *)i));
	for (int i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
}

/* Every worker reads or writes all of its own file; the kernel may drop cold pages of no other. */
CASE(threads_read)
{
	for (int i = 0; i < WORKERS; i++)
		worker_fd[i] = cold_file();
	in_threads(reader);
	truth.read = truth.disk_read = WORKERS * size;
}

CASE(threads_write)
{
	for (int i = 0; i < WORKERS; i++)
		worker_fd[i] = empty_file();
	in_threads(writer);
	truth.written = truth.disk_written = WORKERS * size;
}

static pid_t start_child(int in, int out)
{
	pid_t pid = fork();

	must(pid >= 0);
	if (pid)
		return pid;
	read_all(in);
	write_all(out);
	_exit(0);
}

static void wait_child(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0) == pid && !status);
}

static void in_children(bool together)
{
	pid_t pid[WORKERS];
	int out[WORKERS];

	for (int i = 0; i < WORKERS; i++) {
		worker_fd[i] = cold_file();
		out[i] = empty_file();
	}
	begin();
	for (int i = 0; i < WORKERS; i++) {
		pid[i] = start_child(worker_fd[i], out[i]);
		if (!together)
			wait_child(pid[i]);
	}
	for (int i = 0; together && i < WORKERS; i++)
		wait_child(pid[i]);
	truth.read = truth.disk_read = WORKERS * size;
	truth.written = truth.disk_written = WORKERS * size;
}

CASE(children)
{
	in_children(true);
}

CASE(short_children)
{
	in_children(false);
}

/* Nobody waits for a child whose parent is gone: the kernel's account of this process misses it. */
CASE(orphan)
{
	int in = cold_file(), out = empty_file(), ends[2];
	pid_t pid;
	char nothing;

	must(!pipe(ends));
	begin();
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		if (start_child(in, out))
			_exit(0);
	}
	wait_child(pid);
	close(ends[1]);
	must(!read(ends[0], &nothing, 1)); /* the orphan held the other end until it was through */
	truth.read = truth.disk_read = size;
	truth.written = truth.disk_written = size;
}
