/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * capture.h - what a run (run.h) and an audit (audit.h) have in common: the engine with its rings
 * and probes, what wakes us up, how it is told to stop, the first error, and the warnings.
 *
 * Life: watch_open -> watch_load -> watch_wait, again and again -> watch_close. All is zero before.
 */
#ifndef QPROF_WATCH_H
#define QPROF_WATCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <time.h>

#include "kernel/discovery.h"
#include "kernel/engine.h"
#include "base/error.h"
#include "kernel/rings.h"
#include "format/writer.h"

enum { WATCH_MAX_WARNINGS = 256, WATCH_MAX_NOTES = 16 };
/* What the output does not take at once waits in memory, up to this. */
enum { WATCH_MAX_WAITING = 64 << 20 };

/* A descriptor that wakes us up when it can be read (or written), and what is done then. */
struct wake {
	int fd;
	void (*take)(struct wake *wake);
	void *context;
};

struct watch {
	struct error err;
	bool failed;
	bool opened; /* by watch_open */
	bool stop;   /* asked to finish: by a signal, or the duration */

	struct engine *engine;
	struct rings *rings;
	struct discovery *discovery;

	int epoll;
	struct wake signals, duration, ring, output;
	/* Told of each signal that asks to stop, the first and the next; may be NULL. */
	void (*stopping)(struct watch *w, const struct signalfd_siginfo *info);
	/* Told of SIGHUP. NULL before watch_open: SIGHUP is left as it is. */
	void (*hung_up)(struct watch *w);

	struct run_warning warnings[WATCH_MAX_WARNINGS];
	size_t n_warnings;
	uint64_t dropped_warnings;

	struct utsname uts;
	struct timespec began; /* CLOCK_REALTIME */
	sigset_t old_mask;     /* of signals, before watch_open */
};

/* Epoll, signals, timers; raises our priority and the limit of descriptors. Must come after a
 * command was forked, which is to run as it would without us. 0, or -1 and the error. */
int watch_open(struct watch *w);
/* The BPF programs, attached, the rings and the search for probes. patterns are of --usdt and must
 * outlive the watch. 0, or -1 and the error. */
int watch_load(struct watch *w, const struct engine_config *config,
	       const struct rings_handler *handler, const char *const *patterns, size_t n);
/* Frees everything; the signals stay blocked until watch_restore_signals. */
void watch_close(struct watch *w);
void watch_restore_signals(struct watch *w);

/* The wake stays its owner's, and must outlive the watch or be removed. 0, or -errno. */
int watch_add(struct watch *w, struct wake *wake);
/* Likewise, but it wakes us up when its descriptor can be written. */
int watch_add_for_writing(struct watch *w, struct wake *wake);
void watch_remove(struct watch *w, struct wake *wake);
/*
 * The output is written by a thread of its own, which is_idle() asks; event is a descriptor that
 * can be read once the answer changes. 0, or -errno.
 */
int watch_add_output(struct watch *w, int event);
/* Waits for the output, but only a moment: whether it is idle then. Nothing else is taken. */
bool watch_output_settles(struct watch *w, bool (*is_idle)(void *context), void *context);
/*
 * At the end: waits until all is written, for as long as a reader takes. Nobody else is to pay for
 * that: the kernel side is gone by then. Signals are taken. 0, or -1 and the error.
 */
int watch_wait_for_output(struct watch *w, bool (*is_idle)(void *context), void *context);

/* Waits at most so long (-1: for ever), and takes what came. 0, or -1 and the error. */
int watch_wait(struct watch *w, int timeout_ms);
/* Hands out some of the records that are there. 1: there may be more; 0; or -1 and the error. */
int watch_read(struct watch *w);
/* Takes signals that are there, without waiting. */
void watch_take_signals(struct watch *w);

/* A timer's descriptor: not set yet. Or -1 and errno. */
int timer_new(void);
/* Once, in so many nanoseconds; 0: never. */
void timer_set(int fd, uint64_t ns);
/* It has fired: makes it wait again. */
void timer_take(int fd);
/* Stops the watch after so long; 0: never. */
void watch_limit(struct watch *w, uint64_t ns);

/* The first error is the one that is told. -1. */
int watch_fail(struct watch *w, const struct error *err);
int watch_failf(struct watch *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For discovery_new: context is the watch. */
void watch_warn(void *context, const char *what, const char *why);
/* What each source of figures leaves out or blurs on this kernel: how many of notes were set. */
size_t watch_notes(const struct watch *w, const char *notes[WATCH_MAX_NOTES]);
/* What a report says of the machine and of where its figures come from. */
struct run_info watch_info(const struct watch *w);

uint64_t clock_ns(clockid_t clock);
/* CLOCK_REALTIME - CLOCK_MONOTONIC */
int64_t realtime_offset_ns(void);

#endif
