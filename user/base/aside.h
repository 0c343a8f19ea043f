/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * aside.h - work that may hang in the kernel or in somebody's server, done by a child process.
 *
 * Who waits for a file system or a directory of users that does not answer cannot be woken up, and
 * at times not even be killed. So a child does it, and we wait for its answer only so long. A child
 * that hangs is killed; if that takes effect only later, it is left behind until then. There are
 * ASIDE_MAX children at most, those left behind included: then nothing is begun any more.
 *
 * For the main thread alone.
 */
#ifndef QPROF_ASIDE_H
#define QPROF_ASIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ASIDE_MAX = 16 };

struct aside {
	pid_t child; /* 0: none */
	int fd;	     /* our end of a socket of packets; the work has the other end */
};

/* The work; what it sends to fd is its answer. It has no other descriptors, but those it kept. */
typedef void (*aside_work_fn)(void *context, int fd);
/* Says which descriptors the work needs, by what /proc/self/fd says of each. NULL: none. */
typedef bool (*aside_keep_fn)(void *context, int fd, const char *link);

/*
 * Begins the work. Waits until the child has closed what is not its business, for a second at most.
 * Returns 0; -EAGAIN: too many hang, or it did not come so far; or -errno.
 */
int aside_begin(struct aside *a, aside_work_fn work, aside_keep_fn keep, void *context);

/*
 * Whoever forks gives away copies of all descriptors. What the parent closes next is there until
 * the child has closed its own, and it may be long before that has a CPU: probes, after the lease
 * has ended of the file that they are in. So the child says when it has, and the parent waits for
 * that: for a second at most, then aside_hear_closed() returns false.
 */
bool aside_say_closed(int socket);
bool aside_hear_closed(int socket);

/* For work that runs the code of others: that may print, and must not do so into a file that it has
 * opened itself. */
void aside_open_standard(void);

/* Returns true once there is an answer, or the child has ended without one. */
bool aside_has_answered(const struct aside *a, int timeout_ms);

/*
 * How long a child is waited for: for asleep_ms, or for busy_ms while it waits for nothing but a
 * CPU; and until it has taken so much CPU time (0: as much as it likes).
 */
struct aside_wait {
	unsigned int asleep_ms, busy_ms;
	uint64_t most_cpu_ns;
	uint64_t waited_ms, slept_ms; /* out, over all calls; to be 0 before the first */
};

/* Returns true once there is an answer, or the child has ended without one; false: it took too
 * long. */
bool aside_wait(const struct aside *a, struct aside_wait *wait);
/* Returns the CPU time that the child has taken; 0: it is gone. */
uint64_t aside_cpu_ns(const struct aside *a);

/* Returns true if that child was killed and has not ended yet. */
bool aside_is_left(pid_t child);
/* Returns how many children are left that were killed a second ago or more: they hang. */
size_t aside_hanging(void);

/*
 * Send and receive a packet, and a descriptor with it (-1: none). aside_send() returns
 * false if nobody is at the other end. aside_receive() waits for nothing, and returns what recv(2)
 * does.
 */
bool aside_send(int socket, const void *packet, size_t size, int fd);
ssize_t aside_receive(int socket, void *packet, size_t size, int *fd);

/* Ends it: closes fd, and kills the child if it is still there. May be called twice. */
void aside_end(struct aside *a);

#endif
