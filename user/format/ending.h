/* SPDX-License-Identifier: GPL-2.0-only */
/* ending.h - how a run ended, where it did not end well. */
#ifndef QPROF_ENDING_H
#define QPROF_ENDING_H

#include "format/recording.h"

enum { ENDING_MAX = 1280 };

struct ending {
	/* A target ended by a signal or with an exit status other than 0, the file is cut off, or
	 * the OOM killer took a process. */
	bool is_bad;
	/* It was not just interrupted (^C): then its user wanted no more of it. */
	bool is_failed;
	/* By SIGKILL, or the file is cut off, or the OOM killer took a process of it: the run might
	 * have needed more memory than it had. */
	bool is_killed;
	/* "Ended by SIGSEGV at 1.2 s, in Calibration", "Killed by the OOM killer ..."; empty unless
	 * is_bad. It has names that programs chose: to be made safe where it is shown. */
	char text[ENDING_MAX];
};

void recording_ending(const struct recording *r, struct ending *ending);

#endif
