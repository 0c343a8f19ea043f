/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * error.h - one line that says what failed, on what, why, and what to do. Filled in where it
 * happens, handed up, printed once.
 */
#ifndef QPROF_ERROR_H
#define QPROF_ERROR_H

struct error {
	int status; /* exit status of the program that this leads to: 125 unless set otherwise */
	char text[512];
};

/* Always -1, so that a failing function can return it. */
int error_set(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
