/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * capture.h - the life that a run (run.h) and an audit (audit.h) share:
 *
 *   prepare  signals and timers, the model, the listeners' files
 *   attach   the kernel side, the rings, the search for probes; the listeners start
 *   run      wait, read the rings, tell the model and the listeners
 *   drain    what the rings still have
 *   finish   the model, then each listener, and its output
 *   leave    every way out, also of an error: the listeners, the kernel side, the signals
 *
 * A struct capture_kind says what a run or an audit does differently at each stage.
 */
#ifndef QPROF_CAPTURE_H
#define QPROF_CAPTURE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>

#include "base/error.h"
#include "capture/listener.h"
#include "capture/marker.h"
#include "capture/source.h"
#include "capture/wake.h"
#include "format/run_info.h"
#include "kernel/discovery.h"
#include "kernel/engine.h"
#include "kernel/file_system.h"
#include "kernel/rings.h"

enum { CAPTURE_MAX_WARNINGS = 256, CAPTURE_MAX_NOTES = 16 };

/* The options that a run and an audit share. */
struct capture_options {
	struct engine_config engine;
	uint64_t duration_ns;	     /* 0: without limit */
	const char *const *patterns; /* of --usdt */
	size_t n_patterns;
	unsigned int max_files, max_probes; /* see discovery_bound() */
	struct listener *listeners;	    /* they become the capture's, which closes them */
	struct marker *marker;		    /* so does this; NULL: none */
	struct source *source;		    /* so does this; NULL: the capture has an engine */
};

/* What a signal does that asks to stop. */
enum capture_effect { CAPTURE_GOES_ON, CAPTURE_FINISHES, CAPTURE_STOPS_AT_ONCE };

/* What a run or an audit does at each stage. Functions that fail call capture_fail() and return -1.
 */
struct capture_kind {
	const char *without_end; /* said when a second signal ends the program at once */
	uint64_t gather_ns; /* after some were read, records gather for so long; 0: read at once */
	uint64_t prompt_ns; /* instead, where what they say may change what is listened to */
	unsigned int reads_at_end; /* at most, of a machine that is never quiet */

	/* Before the capture changes what a forked command would inherit. May be NULL. */
	int (*prepare)(struct capture *c);
	/* Makes the model, adds wakes. */
	int (*open)(struct capture *c);
	/* Attached, listeners have started: finds the processes that are there already. */
	int (*attach)(struct capture *c);
	/* A record has left its ring. Records that came before it may still be queued. */
	void (*arrived)(struct capture *c, const struct wire_header *h);
	/* Gives a record to the model, and capture_tell() what came of it. 0 or -ENOMEM. */
	int (*feed)(struct capture *c, const struct wire_header *h);
	enum capture_effect (*signalled)(struct capture *c, const struct signalfd_siginfo *info);
	/* Reads until the rings have nothing more to tell of this capture. */
	void (*drain)(struct capture *c);
	/* Some exits were lost: has the model find out which. */
	void (*mark_gone)(struct capture *c);
	/* Finishes the model. 0 or -ENOMEM. */
	int (*finish)(struct capture *c);
	/* Frees what open() and prepare() made. */
	void (*close)(struct capture *c);
};

/* All is zero before, but for the kind and the options. */
struct capture {
	const struct capture_kind *kind;
	const struct capture_options *options;
	struct listener *listeners; /* the ones that are not closed yet */

	struct error err;
	bool failed;
	bool opened;	      /* signals are blocked */
	bool attached;	      /* all processes are known that were there before */
	bool stop;	      /* asked to finish: by a signal, the duration or a listener */
	bool finishing;	      /* what the kernel side counts is not asked any more */
	bool behind;	      /* see capture_is_behind */
	unsigned int hurried; /* reasons not to gather records: somebody waits */
	bool prompt;	      /* records gather for prompt_ns only */
	uint64_t read_ns;     /* when the rings were last found empty */

	struct engine *engine;
	struct rings *rings;
	struct discovery *discovery;
	struct patience disks; /* that are asked how much room they have left */

	int epoll;
	struct wake signals, duration, ring, urgent, searches;
	struct signalfd_siginfo last_signal;
	uint64_t last_signal_ns;
	sigset_t old_mask; /* of signals, before */

	struct utsname uts;
	struct timespec began; /* CLOCK_REALTIME */
	struct run_info info;
	struct run_quality quality;
	struct run_warning warnings[CAPTURE_MAX_WARNINGS];
	const char *notes[CAPTURE_MAX_NOTES];
};

/* Lives the whole life. 0, or the exit status of the error, which was printed. */
int capture_live(struct capture *c);

/* ---- For the kinds ----------------------------------------------------------------------------
 */

/* Tells the listeners of a record. */
void capture_tell(struct capture *c, const struct wire_header *h, const struct machine_news *news);
/* Waits at most so long (-1: for ever) and makes the calls of what woke us. 0, or -1. */
int capture_wait(struct capture *c, int timeout_ms);
/* Hands out some of the records that are there. 1: there may be more; 0; or -1. */
int capture_read(struct capture *c);
/* Handles the signals that are there, without waiting. */
void capture_handle_signals(struct capture *c);
/* The name of a probe's site, for a model: context is the capture. */
const char *capture_site_name(void *context, uint32_t site);

/* gather.c: between two reads of the rings. Whether records may be let gather. */
bool capture_may_gather(const struct capture *c);
/* Lets them, until gather_ns after the last read, or until something else is to be done. */
void capture_gather(struct capture *c);

/* drain.c: the end of what the rings have. The kind's, and what it is made of. */
void capture_drain(struct capture *c);
/* Reads until nothing is left, but at most reads_at_end times, not counting those that wait for a
 * record. Handles signals in between. */
void capture_read_all(struct capture *c);
/* Reads until `asks` returns true: all answers are there. Each call of it asks for what is missing.
 * Gives up, with a warning, once the rings were empty for a second, and after ten in any case. */
void capture_read_answers(struct capture *c, bool (*asks)(struct capture *c));
/* err: of engine_milestone(). Returns true if no record comes of it, now or when asked again. */
bool capture_asks_in_vain(int err);

/* account.c: what a capture says of itself. Filled in when the kernel side is loaded, and at the
 * end. */
void capture_fill_info(struct capture *c);
void capture_fill_account(struct capture *c);
/* Says the warnings by now: why there may be nothing to hear. */
void capture_say_warnings(const struct capture *c);
/* What figures lack on this kernel. Returns how many notes were set. */
size_t capture_notes(const struct capture *c, const char *notes[CAPTURE_MAX_NOTES]);

#endif
