/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * yaml_input.h - the bytes of a file that libyaml gets to read: whole lines only, and bounded. A
 * last line without a newline was cut off, and a number in it may be any, so it is left out.
 */
#ifndef QPROF_YAML_INPUT_H
#define QPROF_YAML_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { YAML_INPUT_BUFFER = 1 << 20 }; /* the longest line, and the most input of one event */

struct yaml_input {
	FILE *in;
	char *buffer;		  /* of YAML_INPUT_BUFFER bytes */
	size_t begin, whole, end; /* of buffer: what is to be given, up to a newline, and read */
	unsigned long long total;
	size_t pending;	     /* bytes given since the last event; the reader sets it back */
	size_t lines;	     /* given so far */
	bool ended;	     /* the file has no more */
	const char *refused; /* why no more is given; NULL: more may come */
};

/* Returns whether something but a comment was left out, once the file has no more. */
bool yaml_input_was_cut(const struct yaml_input *in);

/* libyaml's read handler; context is a struct yaml_input. */
int yaml_input_give(void *context, unsigned char *out, size_t size, size_t *given);

#endif
