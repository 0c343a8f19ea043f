/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * listener.h - whatever is told of a capture as it goes on: the writer of its file, the table at
 * its end, a live line or view, metrics, events, rules.
 *
 * A listener does not know how a capture lives (capture.h). It gets the calls of struct listener
 * and uses the functions below. What it may ask of a run is in run.h, of an audit in audit_state.h.
 */
#ifndef QPROF_LISTENER_H
#define QPROF_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/wake.h"
#include "format/run_info.h"
#include "model/machine.h"

struct capture;

/*
 * Functions that are NULL are not called. One thread makes all calls, listener by listener in the
 * order of their list. No function may block: records wait meanwhile, and perhaps programs.
 */
struct listener {
	/* Before the kernel side is loaded: opens what may be missing or forbidden. 0, or -1 and
	 * *err: the capture ends. */
	int (*prepare)(struct listener *l, struct capture *c, struct error *err);
	/* The kernel side is attached, the first record is yet to come. 0, or -1 and *err: the
	 * capture ends. */
	int (*start)(struct listener *l, struct capture *c, struct error *err);
	/* A record as the kernel side has written it: the marker (marker.h) and the model come
	 * next. */
	void (*written)(struct listener *l, const struct wire_header *record);
	/*
	 * The model has taken a record; *news is what the record changed: in a run `step` alone.
	 * Processes that were there before the capture come first: each as WIRE_FORK with
	 * WIRE_PROCESS_ATTACHED and, if its command line is known, as WIRE_EXEC. An audit may call
	 * this 50,000 times a second.
	 */
	void (*record)(struct listener *l, const struct wire_header *record,
		       const struct machine_news *news);
	/* The records that were read, perhaps none, have all been told; or the listener's output
	 * has caught up. At the first call all processes are known that were there before. */
	void (*batch)(struct listener *l);
	/* SIGHUP came: its files were moved away, and it opens them anew. SIGHUP ends the program
	 * if no listener has this function, or if stdin is a terminal. */
	void (*reopen)(struct listener *l);
	/* All is known, the model is finished. Not called after an error. The output of the
	 * listener before has caught up by then. */
	void (*finish)(struct listener *l);
	/* Frees the listener. Called once on every way out, also if nothing else was called. */
	void (*close)(struct listener *l);

	/*
	 * Only of a listener that writes through a thread (format/outlet.h): whether all that was
	 * flushed is written, or writing has failed. output.fd, which prepare() sets, can be read
	 * once the answer changes. A capture waits for such a listener before it ends.
	 */
	bool (*is_idle)(struct listener *l);
	struct wake output;

	struct listener *next; /* in its list */
};

/* Appends a listener; NULL is fine. */
void listener_append(struct listener **list, struct listener *l);
/* Closes the listeners of a capture that was never begun. */
void listeners_close(struct listener **list);

/* ---- What a listener may ask of its capture, from start() to close() --------------------------
 */

/* The wake stays its owner's, and is removed before it goes. 0, or -errno. */
int capture_add(struct capture *c, struct wake *wake);
/* Wakes up at these events of epoll_ctl(2). */
int capture_add_for(struct capture *c, struct wake *wake, uint32_t events);
/* Wakes up when the descriptor can be written. */
int capture_add_for_writing(struct capture *c, struct wake *wake);
void capture_remove(struct capture *c, struct wake *wake);

/* Ends the capture as a signal does. */
void capture_stop(struct capture *c);
/* Ends the capture with an error. Only the first error is printed. Returns -1. */
int capture_fail(struct capture *c, const struct error *err);
int capture_failf(struct capture *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a line to the warnings of the file, once. context is the capture. */
void capture_warn(void *context, const char *what, const char *why);
/* A row of the file was left out, for the output takes too little. */
void capture_count_dropped_row(struct capture *c);

/* True if more records are queued behind this batch. Postpone what is not urgent. */
bool capture_is_behind(const struct capture *c);
/* When the program began, by CLOCK_REALTIME. */
uint64_t capture_began_ns(const struct capture *c);
/* What a file says of the machine, and where its figures come from. The texts of the latter are
 * valid until finish() returns. */
const struct run_info *capture_info(const struct capture *c);
/* What went wrong so far. Valid as long as the capture, its warnings until the next one. What the
 * kernel side counts is as of finish() at most; cost and notes are known from then on. */
const struct run_quality *capture_quality(struct capture *c);

#endif
