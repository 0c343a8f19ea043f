/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * capture.h - what a run (run.h) and an audit (audit.h) have in common: the engine with its rings
 * and probes, what wakes us up, how it is told to stop, the first error, and the warnings.
 *
 * Life: capture_open -> capture_load -> capture_wait, again and again -> capture_close. All is zero
 * before.
 */
#ifndef QPROF_CAPTURE_H
#define QPROF_CAPTURE_H

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

enum { CAPTURE_MAX_WARNINGS = 256, CAPTURE_MAX_NOTES = 16 };
/* What the output does not take at once waits in memory, up to this. */
enum { CAPTURE_MAX_WAITING = 64 << 20 };

/* A descriptor that wakes us up when it can be read (or written), and what is done then. */
struct wake {
	int fd;
	void (*take)(struct wake *wake);
	void *context;
};

struct capture {
	struct error err;
	bool failed;
	bool opened; /* by capture_open */
	bool stop;   /* asked to finish: by a signal, or the duration */

	struct engine *engine;
	struct rings *rings;
	struct discovery *discovery;

	int epoll;
	struct wake signals, duration, ring, output;
	/* Told of each signal that asks to stop, the first and the next; may be NULL. */
	void (*stopping)(struct capture *w, const struct signalfd_siginfo *info);
	/* Told of SIGHUP. NULL before capture_open: SIGHUP is left as it is. */
	void (*hung_up)(struct capture *w);

	struct run_warning warnings[CAPTURE_MAX_WARNINGS];
	size_t n_warnings;
	uint64_t dropped_warnings;

	struct utsname uts;
	struct timespec began; /* CLOCK_REALTIME */
	sigset_t old_mask;     /* of signals, before capture_open */
};

/* Epoll, signals, timers; raises our priority and the limit of descriptors. Must come after a
 * command was forked, which is to run as it would without us. 0, or -1 and the error. */
int capture_open(struct capture *w);
/* The BPF programs, attached, the rings and the search for probes. patterns are of --usdt and must
 * outlive the capture. 0, or -1 and the error. */
int capture_load(struct capture *w, const struct engine_config *config,
		 const struct rings_handler *handler, const char *const *patterns, size_t n);
/* Frees everything; the signals stay blocked until capture_restore_signals. */
void capture_close(struct capture *w);
void capture_restore_signals(struct capture *w);

/* The wake stays its owner's, and must outlive the capture or be removed. 0, or -errno. */
int capture_add(struct capture *w, struct wake *wake);
/* Likewise, but it wakes us up when its descriptor can be written. */
int capture_add_for_writing(struct capture *w, struct wake *wake);
void capture_remove(struct capture *w, struct wake *wake);
/*
 * The output is written by a thread of its own, which is_idle() asks; event is a descriptor that
 * can be read once the answer changes. 0, or -errno.
 */
int capture_add_output(struct capture *w, int event);
/* Waits for the output, but only a moment: whether it is idle then. Nothing else is taken. */
bool capture_output_settles(struct capture *w, bool (*is_idle)(void *context), void *context);
/*
 * At the end: waits until all is written, for as long as a reader takes. Nobody else is to pay for
 * that: the kernel side is gone by then. Signals are taken. 0, or -1 and the error.
 */
int capture_wait_for_output(struct capture *w, bool (*is_idle)(void *context), void *context);

/* Waits at most so long (-1: for ever), and takes what came. 0, or -1 and the error. */
int capture_wait(struct capture *w, int timeout_ms);
/* Hands out some of the records that are there. 1: there may be more; 0; or -1 and the error. */
int capture_read(struct capture *w);
/* Takes signals that are there, without waiting. */
void capture_take_signals(struct capture *w);

/* A timer's descriptor: not set yet. Or -1 and errno. */
int timer_new(void);
/* Once, in so many nanoseconds; 0: never. */
void timer_set(int fd, uint64_t ns);
/* It has fired: makes it wait again. */
void timer_take(int fd);
/* Stops the capture after so long; 0: never. */
void capture_limit(struct capture *w, uint64_t ns);

/* The first error is the one that is told. -1. */
int capture_fail(struct capture *w, const struct error *err);
int capture_failf(struct capture *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For discovery_new: context is the capture. */
void capture_warn(void *context, const char *what, const char *why);
/* What each source of figures leaves out or blurs on this kernel: how many of notes were set. */
size_t capture_notes(const struct capture *w, const char *notes[CAPTURE_MAX_NOTES]);
/* What a report says of the machine and of where its figures come from. */
struct run_info capture_info(const struct capture *w);

uint64_t clock_ns(clockid_t clock);
/* CLOCK_REALTIME - CLOCK_MONOTONIC */
int64_t realtime_offset_ns(void);

#endif
