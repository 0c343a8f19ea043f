/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exec_words.h - what the words of an item's text stand for, of a program that begins: {pid},
 * {comm}, {executable}, {arguments}, and {arg1}, {arg2} ... See braces.h.
 *
 * Pure.
 */
#ifndef QPROF_EXEC_WORDS_H
#define QPROF_EXEC_WORDS_H

#include <stddef.h>

/* A braces_check_fn. */
const char *exec_words_check(void *context, const char *word, size_t len);
/* A braces_word_fn; context is a struct wire_process with a command line. */
size_t exec_words_fill(const void *context, const char *word, size_t len, char *out, size_t room);

#endif
