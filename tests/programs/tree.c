/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tree.c - process trees of known size: tree CASE [MIB] [COUNT]
 *
 * gcc -O2 -Wall -Wextra -Werror tree.c -o tree -pthread
 *
 * Prints {"case", "peak_bytes", "parts": [...], "children": [{"pid", "ends"}...]}. peak_bytes is
 * the greatest sum of what the page tables of all its living processes hold, read while each stands
 * still at the top; parts is that sum's terms, the first process first. "needed_bytes", of trees
 * whose children are measured by their parent, is their anonymous and shared memory then, each page
 * once. "ends" is the exit status, or minus the signal, of each child that was waited for, in order
 * of their forks.
 */
#define _GNU_SOURCE
#include <linux/sched.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "truth.h"

enum {
	MAX_CHILDREN = 4096,
	STACK = 64 * 1024,
	BOARD_FD = 100, /* where a program that was exec'ed finds the board */
	LONGEST = 120,	/* seconds until a tree that lost a member gives up */
};

/* What all processes of the tree share, through a memfd so that it can be found after an exec. */
struct board {
	pthread_barrier_t all_up;   /* everyone has touched what it touches */
	pthread_barrier_t measured; /* and may go */
	uint64_t rss[MAX_CHILDREN];
	pid_t pid[MAX_CHILDREN];
};

static struct board *board;
static size_t size;
static unsigned int count;

static uint64_t parts[MAX_CHILDREN + 1], peak, needed;
static unsigned int parts_used;
static int ends[MAX_CHILDREN];
static unsigned int ended;
static pid_t children[MAX_CHILDREN];
static unsigned int children_used;

static void set_barrier(pthread_barrier_t *barrier, unsigned int meeting)
{
	pthread_barrierattr_t shared;

	must(!pthread_barrierattr_init(&shared));
	must(!pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED));
	must(!pthread_barrier_init(barrier, &shared, meeting));
}

static void make_board(unsigned int meeting)
{
	int fd = memfd_create("board", 0);

	must(fd >= 0 && !ftruncate(fd, sizeof(*board)) && dup2(fd, BOARD_FD) == BOARD_FD);
	close(fd);
	board = map_or_die(sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, BOARD_FD);
	set_barrier(&board->all_up, meeting);
	set_barrier(&board->measured, meeting);
}

static void forked(pid_t pid)
{
	if (pid < 0)
		die("fork");
	must(children_used < MAX_CHILDREN);
	children[children_used++] = pid;
}

static void reap(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0) == pid);
	ends[ended++] = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void reap_all(void)
{
	while (ended < children_used)
		reap(children[ended]);
}

/* Adds what a standing process holds to the sum of this moment. */
static void add_part(uint64_t rss)
{
	parts[parts_used++] = rss;
	peak += rss;
}

/* The parent's half of the meeting: all are up, each is looked at, all may go. */
static void measure_children(void)
{
	pthread_barrier_wait(&board->all_up);
	add_part(rss_bytes(0));
	for (unsigned int i = 0; i < children_used; i++)
		add_part(rss_bytes(children[i]));
	needed = needed_bytes(0);
	for (unsigned int i = 0; i < children_used; i++)
		needed += needed_bytes(children[i]);
	pthread_barrier_wait(&board->measured);
}

/* A child's half. */
static void be_measured(void)
{
	alarm(LONGEST);
	pthread_barrier_wait(&board->all_up);
	pthread_barrier_wait(&board->measured);
}

static void touch_and_be_measured(void)
{
	bring_files_in();
	touch(map_anonymous(size), size);
	be_measured();
	_exit(0);
}

/* COUNT children that hold MIB each at the same time. */
CASE(overlapping)
{
	make_board(count + 1);
	for (unsigned int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid)
			touch_and_be_measured();
		forked(pid);
	}
	measure_children();
	reap_all();
}

/* COUNT children one after another: the peak is the parent with the greatest of them. */
CASE(short_lived)
{
	uint64_t greatest = 0;

	make_board(1);
	for (unsigned int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid) {
			bring_files_in();
			touch(map_anonymous(size), size);
			board->rss[i] = rss_bytes(0);
			_exit(0);
		}
		forked(pid);
		reap(pid);
		if (board->rss[i] > greatest)
			greatest = board->rss[i];
	}
	add_part(rss_bytes(0));
	add_part(greatest);
}

/* Shared memory counts in each process that has touched it, as RSS does everywhere. */
CASE(shm)
{
	char *p = map_or_die(size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);

	make_board(count + 1);
	touch(p, size);
	for (unsigned int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid) {
			bring_files_in();
			touch(p, size);
			be_measured();
			_exit(0);
		}
		forked(pid);
	}
	measure_children();
	reap_all();
}

/* What a child inherits counts in it from the fork on, whether it reads or writes. */
CASE(cow)
{
	char *p = map_anonymous(size);

	make_board(count + 1);
	touch(p, size);
	for (unsigned int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid) {
			bring_files_in();
			look(p, size / 2);
			touch(p + size / 2, size / 2);
			be_measured();
			_exit(0);
		}
		forked(pid);
	}
	measure_children();
	reap_all();
}

/*
 * A pool of forked workers, as Python's multiprocessing makes it: the parent holds MIB, each child
 * MIB more. What it inherits it only reads.
 */
CASE(pool)
{
	char *p = map_anonymous(size);

	make_board(count + 1);
	touch(p, size);
	for (unsigned int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid) {
			look(p, size);
			touch_and_be_measured();
		}
		forked(pid);
	}
	measure_children();
	reap_all();
}

static int touch_in_parents_memory(void *p)
{
	touch(p, size);
	board->rss[0] = rss_bytes(0);
	_exit(7);
}

/* A child in its parent's memory, as vfork makes it, which touches some and goes: counted once. */
CASE(vfork)
{
	char *p = map_anonymous(size), *held = map_anonymous(size);

	make_board(1);
	touch(held, size);
	forked(clone(touch_in_parents_memory, map_anonymous(STACK) + STACK,
		     CLONE_VM | CLONE_VFORK | SIGCHLD, p));
	reap_all();
	add_part(board->rss[0]);
}

static void spawn_one(char **argv)
{
	extern char **environ;
	pid_t pid;

	errno = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ);
	must(!errno);
	forked(pid);
}

/* posix_spawn (a vfork and an exec) COUNT times out of a parent that holds MIB; all overlap. */
CASE(spawn)
{
	char megabytes[32], *argv[] = {"tree", "held", megabytes, NULL};

	snprintf(megabytes, sizeof(megabytes), "%zu", size / MIB);
	make_board(count + 1);
	touch(map_anonymous(size), size);
	for (unsigned int i = 0; i < count; i++)
		spawn_one(argv);
	measure_children();
	reap_all();
}

/* What spawned() starts. */
CASE(held)
{
	board = map_or_die(sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, BOARD_FD);
	touch_and_be_measured();
}

/* A grandchild whose parent is gone is still of the tree. */
CASE(double_fork)
{
	pid_t pid, grandchild;
	struct pollfd end;

	make_board(2);
	pid = fork();
	if (!pid) {
		grandchild = fork();
		if (!grandchild)
			touch_and_be_measured();
		must(grandchild > 0);
		board->pid[0] = grandchild;
		_exit(0);
	}
	forked(pid);
	reap_all();
	grandchild = board->pid[0];
	end = (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, grandchild, 0), .events = POLLIN};
	must(end.fd >= 0);
	children[0] = grandchild; /* to be measured, not waited for: it is no child of ours */
	measure_children();
	must(poll(&end, 1, -1) == 1);
}

static void *fork_in_thread(void *out)
{
	pid_t pid = fork();

	if (!pid)
		touch_and_be_measured();
	*(pid_t *)out = pid;
	return NULL;
}

/* The children of COUNT threads are children of the process. */
CASE(thread_forks)
{
	make_board(count + 1);
	for (unsigned int i = 0; i < count; i++) {
		pthread_t thread;
		pid_t pid;

		must(!pthread_create(&thread, NULL, fork_in_thread, &pid));
		pthread_join(thread, NULL);
		forked(pid);
	}
	measure_children();
	reap_all();
}

/* COUNT children that do nothing, all there at once. */
CASE(bomb)
{
	size = TRUTH_PAGE;
	do_overlapping();
}

/* COUNT children one after another, which end in different ways: status i, and every fourth a
 * signal. */
CASE(endings)
{
	make_board(1);
	for (unsigned int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid) {
			if (i % 4 == 3)
				kill(getpid(), SIGKILL);
			_exit((int)i % 256);
		}
		forked(pid);
		reap(pid);
	}
	add_part(rss_bytes(0));
}

/* A child that gets the pid wanted (0: any), which must be free. */
static pid_t fork_as(pid_t wanted)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = wanted ? (uintptr_t)&wanted : 0,
		.set_tid_size = wanted ? 1 : 0,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* COUNT children one after another, all with the pid of the first. Child i touches (i + 1) MIB. */
CASE(reused_pid)
{
	uint64_t greatest = 0;

	make_board(1);
	for (unsigned int i = 0; i < count; i++) {
		size_t own = size * (i + 1);
		pid_t pid = fork_as(i ? children[0] : 0);

		if (!pid) {
			bring_files_in();
			touch(map_anonymous(own), own);
			board->rss[i] = rss_bytes(0);
			_exit((int)i + 1);
		}
		forked(pid);
		reap(pid);
		if (board->rss[i] > greatest)
			greatest = board->rss[i];
	}
	add_part(rss_bytes(0));
	add_part(greatest);
}

static void print_truth(const char *name)
{
	printf("{\"case\": \"%s\", \"peak_bytes\": %" PRIu64 ", \"needed_bytes\": %" PRIu64
	       ", \"parts\": [",
	       name, peak, needed);
	for (unsigned int i = 0; i < parts_used; i++)
		printf("%s%" PRIu64, i ? ", " : "", parts[i]);
	printf("], \"children\": [");
	for (unsigned int i = 0; i < children_used; i++)
		printf("%s{\"pid\": %d, \"ends\": %d}", i ? ", " : "", (int)children[i], ends[i]);
	printf("]}\n");
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: tree CASE [MIB] [COUNT]\n");
		return 124;
	}
	size = (argc > 2 ? number(argv[2]) : 32) * MIB;
	count = argc > 3 ? (unsigned int)number(argv[3]) : 3;
	must(count <= MAX_CHILDREN);
	alarm(LONGEST);
	bring_files_in();
	/* Read once, so that nothing about reading is new at the top. */
	rss_bytes(0);
	rss_bytes(getpid());
	run_case(argv[1]);
	print_truth(argv[1]);
	return 0;
}
