/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * outlet.h - a thread that writes to a file, so that nobody else waits for the file.
 *
 * A write(2) takes as long as somebody else likes: whoever reads the pipe, presses ^S in the
 * terminal or runs the file server. Programs that are profiled wait for our answers meanwhile. So
 * text goes into a queue in memory, and only the thread writes.
 *
 * The kernel lets SIGKILL cut a write(2) to a regular file short only between two pages of the
 * file. So each write is within one, and text must be put so that what outlet_go releases may end
 * at its end and at each page boundary before.
 */
#ifndef QPROF_OUTLET_H
#define QPROF_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A divisor of the page sizes there are. */
enum { OUTLET_PAGE = 4096 };

struct outlet;

/*
 * Writes from where fd stands. regular: it is a regular file, which is at `position`. fd becomes
 * the outlet's. NULL when out of memory.
 */
struct outlet *outlet_new(int fd, bool regular, off_t position);

/* Takes text, to be written after the next outlet_go. 0, or -errno as outlet_go. */
int outlet_put(struct outlet *o, const char *text, size_t len);

/* Has all written that was put. 0, or -errno of the first write that failed so far: nothing is
 * written any more, and what is in the file ends where a write ended. */
int outlet_go(struct outlet *o);

/* Bytes that are in the queue. */
size_t outlet_waiting(struct outlet *o);

/*
 * Whether the thread has nothing to do: all is written, or a write failed. If not, the descriptor
 * outlet_event() can be read once that changes.
 */
bool outlet_is_idle(struct outlet *o);
/* Readable also when a write has failed. Reading it is the caller's. */
int outlet_event(const struct outlet *o);

/* Waits until all that was released is written, or a write has failed. NULL is fine. */
void outlet_close(struct outlet *o);

#endif
