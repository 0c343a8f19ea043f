/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * args.h - words of texts that stand for an argument of a call or of a probe: {arg1:string} is the
 * first, and a text; {arg2:int} the second, and a number. {function} and {probe} are the name of
 * where it was met.
 */
#ifndef QPROF_ARGS_H
#define QPROF_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/profile.h"

/* Which arguments the texts of an item name. */
struct recipe_args {
	uint32_t used;		       /* bits; 0: the first argument */
	uint8_t texts[WIRE_HIT_TEXTS]; /* those that are texts, n_texts of them */
	size_t n_texts;
};

/* A place that was met. */
struct args_met {
	const struct recipe_args *args;
	const struct wire_hit *hit;
	const char *name; /* of the function or probe */
};

/* Adds what a word names. function: {function} is known, and an argument needs its type; else
 * {probe} is. Returns NULL, or a static text: what is wrong with the word. */
const char *args_add(struct recipe_args *args, bool function, const char *word, size_t len);
/* A braces_word_fn; context is a struct args_met. */
size_t args_fill(const void *context, const char *word, size_t len, char *out, size_t room);

#endif
