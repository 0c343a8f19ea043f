/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * text.h - bytes from untrusted processes made into text: whole UTF-8, and safe for a terminal.
 */
#ifndef QPROF_TEXT_H
#define QPROF_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that one byte of input can become at most (U+FFFD). */
#define TEXT_GROWTH 3

/*
 * The character at s of len bytes (at least 1): its bytes, and its code point in *code. 0 if no
 * whole valid character is there; NUL counts as none.
 */
size_t text_char(const char *s, size_t len, uint32_t *code);

/* What is left of len bytes that were cut at the end: without the part of a character left there.
 */
size_t text_whole(const char *s, size_t len);

/*
 * Copies to out, U+FFFD in place of each byte that is no UTF-8, as many whole characters as fit in
 * size (at least 1) with the NUL that ends it. The bytes in out; *repaired, if not NULL, says
 * whether any byte had to be replaced.
 */
size_t text_repair(char *out, size_t size, const char *s, size_t len, bool *repaired);

/*
 * Copies to out what a terminal may be given: at most columns wide, cut with "..." where longer,
 * and neither control bytes nor what turns the direction of text. Returns the columns it takes.
 * size is that of out: columns * TEXT_TERMINAL_GROWTH + 1 is enough.
 */
#define TEXT_TERMINAL_GROWTH 4
unsigned int text_for_terminal(char *out, size_t size, const char *s, unsigned int columns);

#endif
