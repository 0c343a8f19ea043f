/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * braces.h - texts of items in which {WORD} stands for something: "Layer {layer_index}". {{ is a
 * brace, and so is }}. What words there are is the business of each kind of item.
 */
#ifndef QPROF_BRACES_H
#define QPROF_BRACES_H

#include <stddef.h>

/* Returns NULL; or a static text, why a word of len bytes cannot be used. */
typedef const char *(*braces_check_fn)(void *context, const char *word, size_t len);
/* Writes what a word stands for, at most room bytes. Returns how many. */
typedef size_t (*braces_word_fn)(const void *context, const char *word, size_t len, char *out,
				 size_t room);

/* Returns NULL; or a text that says what is wrong, valid as long as that of check(). */
const char *braces_check(const char *text, braces_check_fn check, void *context);
/*
 * Fills a text that was checked into out: at most size bytes with the NUL, cut to whole characters.
 * Bytes that are no UTF-8 are replaced.
 */
void braces_fill(const char *text, braces_word_fn word, const void *context, char *out,
		 size_t size);

#endif
