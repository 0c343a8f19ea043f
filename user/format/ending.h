/* SPDX-License-Identifier: GPL-2.0-only */
/* ending.h - how a run ended, where it did not end well. */
#ifndef QPROF_ENDING_H
#define QPROF_ENDING_H

#include "format/recording.h"

enum { ENDING_MAX = 640 };

struct ending {
	/* A target ended by a signal or with an exit status other than 0, or the file is cut off.
	 */
	bool is_bad;
	/* It was not just interrupted (^C): then its user wanted no more of it. */
	bool is_failed;
	/* By SIGKILL, or the file is cut off: the run might have needed more memory than it had. */
	bool is_killed;
	/* "Ended by SIGSEGV at 1.2 s, in Calibration"; empty unless is_bad. It has names that
	 * programs chose: to be made safe where it is shown. */
	char text[ENDING_MAX];
};

void recording_ending(const struct recording *r, struct ending *ending);

/* Writes "Ended by SIGSEGV", "Interrupted", or "Failed with exit status 3" where signal is 0. */
void ending_words(char *out, size_t size, uint32_t signal, uint32_t exit_code);

#endif
