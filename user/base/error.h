/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * error.h - one line that says what failed, on what, why, and what to do. The function that fails
 * fills it in, its callers hand it up, and one place prints it.
 */
#ifndef QPROF_ERROR_H
#define QPROF_ERROR_H

struct error {
	int status; /* exit status of the program: 125 unless set before */
	char text[512];
};

/* Returns -1, for the failing function to return. */
int error_set(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
