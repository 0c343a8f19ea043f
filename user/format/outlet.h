/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * outlet.h - a thread that writes to a file, so that nothing else waits for the file.
 *
 * A write(2) may take for ever: the reader of a pipe is slow, a user has pressed ^S in the
 * terminal, a file server is down. Profiled programs must not wait for that. So text goes into a
 * queue in memory, and only the thread writes.
 *
 * The kernel lets SIGKILL cut a write(2) to a regular file short only between two pages of the
 * file. So each write stays within one page. The caller puts text such that what outlet_go releases
 * may end at its end and at each page boundary before.
 */
#ifndef QPROF_OUTLET_H
#define QPROF_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Divides all page sizes that there are. */
enum { OUTLET_PAGE = 4096 };

struct outlet;

/*
 * Writes to fd from its position on, and closes it at the end. regular: fd is a regular file, at
 * `position`. NULL when out of memory.
 */
struct outlet *outlet_new(int fd, bool regular, off_t position);

/* Takes text; the next outlet_go releases it. Returns as outlet_go. */
int outlet_put(struct outlet *o, const char *text, size_t len);

/* Releases what was put. Returns 0, or -errno of the first write that failed so far: nothing more
 * is written then, and the file ends where a write ended. */
int outlet_go(struct outlet *o);

/* Returns the bytes in the queue. */
size_t outlet_waiting(struct outlet *o);

/*
 * Returns true if the thread has nothing to do: all is written, or a write failed. When that
 * becomes true, the descriptor outlet_event() becomes readable.
 */
bool outlet_is_idle(struct outlet *o);
/* Also readable when a write has failed. The caller reads it. */
int outlet_event(const struct outlet *o);

/* Waits until all that was released is written or a write has failed, and frees o. NULL is fine. */
void outlet_close(struct outlet *o);

#endif
