/* SPDX-License-Identifier: GPL-2.0-only */
/* ring.h - io_uring by hand. */
#ifndef QPROF_RING_H
#define QPROF_RING_H

#include <linux/io_uring.h>
#include <sys/syscall.h>

#include "truth.h"

/* What is tested is the account, not the speed: few entries. */
struct ring {
	int fd;
	struct io_uring_params p;
	char *sq, *cq;
	struct io_uring_sqe *sqe;
	unsigned int put; /* since the last call */
};

TRUTH_FN void ring_open(struct ring *r, unsigned int entries)
{
	r->fd = (int)syscall(SYS_io_uring_setup, entries, &r->p);
	if (r->fd < 0)
		die("io_uring_setup");
	r->sq = mmap(NULL, r->p.sq_off.array + r->p.sq_entries * 4, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQ_RING);
	r->cq = mmap(NULL, r->p.cq_off.cqes + r->p.cq_entries * sizeof(struct io_uring_cqe),
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_CQ_RING);
	r->sqe = mmap(NULL, r->p.sq_entries * sizeof(*r->sqe), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_POPULATE, r->fd, IORING_OFF_SQES);
	must(r->sq != MAP_FAILED && r->cq != MAP_FAILED && r->sqe != MAP_FAILED);
}

TRUTH_FN void ring_put(struct ring *r, struct io_uring_sqe sqe)
{
	unsigned int *tail = (void *)(r->sq + r->p.sq_off.tail);
	unsigned int *array = (void *)(r->sq + r->p.sq_off.array);
	unsigned int at = *tail & (r->p.sq_entries - 1);

	r->sqe[at] = sqe;
	array[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	r->put++;
}

/* Submits what was put, and waits for so many completions that nobody has taken. */
TRUTH_FN void ring_enter(struct ring *r, unsigned int wait)
{
	int n = (int)syscall(SYS_io_uring_enter, r->fd, r->put, wait, IORING_ENTER_GETEVENTS, NULL,
			     0);

	must(n == (int)r->put);
	r->put = 0;
}

/* False: there is no completion now. */
TRUTH_FN bool ring_take(struct ring *r, struct io_uring_cqe *taken)
{
	unsigned int *head = (void *)(r->cq + r->p.cq_off.head);
	unsigned int *done = (void *)(r->cq + r->p.cq_off.tail);
	struct io_uring_cqe *cqe = (void *)(r->cq + r->p.cq_off.cqes);

	if (__atomic_load_n(done, __ATOMIC_ACQUIRE) == *head)
		return false;
	*taken = cqe[*head & (r->p.cq_entries - 1)];
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return true;
}

/* One operation from submission to completion. Returns what it completed with. */
TRUTH_FN int ring_do(struct ring *r, struct io_uring_sqe sqe)
{
	struct io_uring_cqe cqe;

	ring_put(r, sqe);
	ring_enter(r, 1);
	must(ring_take(r, &cqe));
	return cqe.res;
}

#endif
