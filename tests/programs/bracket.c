/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bracket.c - the kernel's own figures right before and right after checkpoints:
 *
 *   bracket still ROUNDS CHILDREN THREADS DIR  children whose threads churn memory, and stand still
 *                                              for the checkpoint
 *   bracket grow ROUNDS THREADS                threads that touch new memory all the time
 *   bracket io ROUNDS THREADS DIR              threads that read and write all the time
 *
 * gcc -O2 -Wall -Wextra -Werror bracket.c -o bracket -pthread
 *
 * Prints {"rounds": [{"before": BYTES, "after": BYTES}, ...]} of RSS, or for io {"read": [BEFORE,
 * AFTER], "write": ...} since the round before. What a profiler says of the checkpoint must lie
 * between them.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/sdt.h>
#include <sys/wait.h>

#include "truth.h"

enum {
	MAX_ROUNDS = 1000,
	MAX_CHILDREN = 64,
	AREA = 2 * 1024 * 1024, /* of each thread, of each kind */
	OPERATIONS = 400,	/* of a thread in a round */
	LONGEST = 300,		/* seconds until a tree that lost a member gives up */
};

struct bounds {
	uint64_t before, after;
};

static struct bounds rounds[MAX_ROUNDS], writes[MAX_ROUNDS];
static unsigned int n_rounds;
static const char *dir = ".";

/* ---- still */

struct board {
	pthread_barrier_t still, go;
};

static struct board *board;
static pid_t child[MAX_CHILDREN];

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

/* Some pages of an area, at random. */
struct range {
	char *at;
	size_t bytes;
};

static struct range some_of(char *area, uint32_t *random)
{
	size_t pages = AREA / TRUTH_PAGE, first = next_random(random) % pages;
	size_t most = 1 + next_random(random) % 64;

	if (most > pages - first)
		most = pages - first;
	return (struct range){area + first * TRUTH_PAGE, most * TRUTH_PAGE};
}

static void map_again(struct range r)
{
	must(mmap(r.at, r.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		  -1, 0) == r.at);
}

static void fork_one(char *anonymous)
{
	pid_t pid = fork();

	if (!pid) {
		touch(anonymous, AREA / 8);
		_exit(0);
	}
	must(pid > 0 && waitpid(pid, NULL, 0) == pid);
}

static void *churn(void *seed)
{
	uint32_t random = 1 + (uint32_t)(uintptr_t)seed * 7919;
	char *anonymous = map_anonymous(AREA);
	char *shared = map_or_die(AREA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	int fd = scratch_file(dir, AREA);
	char *file = map_or_die(AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);

	for (unsigned int round = 0; round < n_rounds; round++) {
		for (unsigned int i = 0; i < OPERATIONS; i++) {
			char *area[] = {anonymous, shared, file};
			uint32_t kind = next_random(&random) % 3;
			struct range r = some_of(area[kind], &random);

			switch (next_random(&random) % 8) {
			case 0:
				must(!madvise(r.at, r.bytes, MADV_DONTNEED));
				break;
			case 1:
				if (area[kind] == anonymous)
					map_again(r);
				break;
			case 2:
				if (next_random(&random) % 64 == 0)
					fork_one(anonymous);
				break;
			case 3:
				look(r.at, r.bytes);
				break;
			default:
				touch(r.at, r.bytes);
			}
		}
		pthread_barrier_wait(&board->still);
		pthread_barrier_wait(&board->go);
	}
	return NULL;
}

static void be_child(unsigned int threads, uintptr_t seed)
{
	pthread_t thread;

	alarm(LONGEST);
	bring_files_in();
	for (unsigned int i = 1; i < threads; i++)
		must(!pthread_create(&thread, NULL, churn, (void *)(seed + i)));
	churn((void *)seed);
	_exit(0);
}

static uint64_t sum_of_all(unsigned int children)
{
	uint64_t sum = rss_bytes(0);

	for (unsigned int i = 0; i < children; i++)
		sum += rss_bytes(child[i]);
	return sum;
}

static void shared_barrier(pthread_barrier_t *barrier, unsigned int meeting)
{
	pthread_barrierattr_t shared;

	must(!pthread_barrierattr_init(&shared));
	must(!pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED));
	must(!pthread_barrier_init(barrier, &shared, meeting));
}

static void still(unsigned int children, unsigned int threads)
{
	must(children <= MAX_CHILDREN);
	board = map_or_die(sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
	shared_barrier(&board->still, children * threads + 1);
	shared_barrier(&board->go, children * threads + 1);
	for (unsigned int i = 0; i < children; i++) {
		pid_t pid = fork();

		must(pid >= 0);
		if (!pid)
			be_child(threads, (uintptr_t)(i + 1) * 1000);
		child[i] = pid;
	}
	sum_of_all(children); /* nothing about reading is new when it counts */
	for (unsigned int i = 0; i < n_rounds; i++) {
		pthread_barrier_wait(&board->still);
		rounds[i].before = sum_of_all(children);
		DTRACE_PROBE1(qprof, mark, "still");
		rounds[i].after = sum_of_all(children);
		pthread_barrier_wait(&board->go);
	}
	for (unsigned int i = 0; i < children; i++) {
		int status;

		must(waitpid(child[i], &status, 0) == child[i]);
		if (status)
			die("a child ended with status %#x", (unsigned int)status);
	}
}

/* ---- grow */

static volatile bool stop;

static void *grow(void *unused)
{
	(void)unused;
	while (!stop) {
		char *p = map_anonymous(AREA);

		must(!madvise(p, AREA, MADV_NOHUGEPAGE));
		for (size_t at = 0; at < AREA && !stop; at += TRUTH_PAGE)
			p[at] = 1;
	}
	return NULL;
}

static void run_threads(unsigned int threads, void *(*body)(void *), void (*round)(unsigned int))
{
	pthread_t thread[MAX_CHILDREN];

	must(threads <= MAX_CHILDREN);
	for (uintptr_t i = 0; i < threads; i++)
		must(!pthread_create(&thread[i], NULL, body, (void *)i));
	for (unsigned int i = 0; i < n_rounds; i++)
		round(i);
	stop = true;
	for (unsigned int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
}

static void look_at_memory(unsigned int i)
{
	rounds[i].before = rss_bytes(0);
	DTRACE_PROBE1(qprof, mark, "grow");
	rounds[i].after = rss_bytes(0);
}

/* ---- io */

static void *read_and_write(void *seed)
{
	static char block[MAX_CHILDREN][64 * KIB];
	uint32_t random = 1 + (uint32_t)(uintptr_t)seed * 7919;
	char *mine = block[(uintptr_t)seed];
	int fd = scratch_file(dir, AREA);

	while (!stop) {
		size_t bytes = 1 + next_random(&random) % (64 * KIB);
		off_t at = next_random(&random) % (AREA - 64 * KIB);

		if (next_random(&random) % 2)
			must(pread(fd, mine, bytes, at) == (ssize_t)bytes);
		else
			must(pwrite(fd, mine, bytes, at) == (ssize_t)bytes);
	}
	close(fd);
	return NULL;
}

/* What was used between two checkpoints lies between what was used between the accounts that are
 * nearest to them on the inside and on the outside. */
static void look_at_io(unsigned int i)
{
	static struct io_account last_before, last_after;
	struct io_account before = io_account(), after;

	DTRACE_PROBE1(qprof, mark, "io");
	after = io_account();
	rounds[i] =
		(struct bounds){before.rchar - last_after.rchar, after.rchar - last_before.rchar};
	writes[i] =
		(struct bounds){before.wchar - last_after.wchar, after.wchar - last_before.wchar};
	last_before = before;
	last_after = after;
}

/* ---- */

static void print_bounds(const char *key, const struct bounds *b)
{
	printf("\"%s\": [%" PRIu64 ", %" PRIu64 "]", key, b->before, b->after);
}

static void print_rounds(bool io)
{
	printf("{\"rounds\": [");
	for (unsigned int i = 0; i < n_rounds; i++) {
		printf(i ? ", {" : "{");
		print_bounds(io ? "read" : "rss", &rounds[i]);
		if (io) {
			printf(", ");
			print_bounds("write", &writes[i]);
		}
		printf("}");
	}
	printf("]}\n");
}

int main(int argc, char **argv)
{
	unsigned int threads = argc > 3 ? (unsigned int)number(argv[3]) : 0;

	if (argc < 4) {
		fprintf(stderr, "usage: bracket still ROUNDS CHILDREN THREADS DIR | grow ROUNDS "
				"THREADS | io ROUNDS THREADS DIR\n");
		return 124;
	}
	alarm(LONGEST);
	bring_files_in();
	rss_bytes(0);
	rss_bytes(getpid());
	n_rounds = (unsigned int)number(argv[2]);
	must(n_rounds <= MAX_ROUNDS);
	if (!strcmp(argv[1], "still") && argc == 6) {
		dir = argv[5];
		still(threads, (unsigned int)number(argv[4]));
	} else if (!strcmp(argv[1], "grow")) {
		run_threads(threads, grow, look_at_memory);
	} else if (!strcmp(argv[1], "io") && argc == 5) {
		dir = argv[4];
		run_threads(threads, read_and_write, look_at_io);
	} else {
		die("no case '%s' with so many arguments", argv[1]);
	}
	print_rounds(!strcmp(argv[1], "io"));
	return 0;
}
