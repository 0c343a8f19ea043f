/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * text.h - turns bytes of untrusted processes into UTF-8 that is safe for a terminal.
 */
#ifndef QPROF_TEXT_H
#define QPROF_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One byte of input becomes at most this many bytes (U+FFFD). */
#define TEXT_GROWTH 3

/*
 * Reads the character at the start of len bytes, at least 1. Returns its length and sets *code; or
 * returns 0 if no whole valid character is there. NUL is no character.
 */
size_t text_char(const char *s, size_t len, uint32_t *code);

/* Returns how many of len bytes are whole characters, if they were cut within the last one. */
size_t text_whole(const char *s, size_t len);

/*
 * Copies as many whole characters as fit into size bytes, at least 1, with a NUL at the end. Writes
 * U+FFFD for each byte that is not UTF-8, and sets *repaired, unless NULL, to whether there was
 * one. Returns the bytes in out.
 */
size_t text_repair(char *out, size_t size, const char *s, size_t len, bool *repaired);

/*
 * Copies a text so that a terminal may show it, at most columns wide, cut with "...". Line breaks
 * and tabs show as "\n", "\r" and "\t"; other control bytes and marks that turn the direction of
 * text are replaced. Returns its columns. For size, columns * TEXT_TERMINAL_GROWTH + 1 is enough.
 */
#define TEXT_TERMINAL_GROWTH 4
unsigned int text_for_terminal(char *out, size_t size, const char *s, unsigned int columns);

/* Returns the columns that a text takes on a terminal, if it is not cut. */
unsigned int text_columns(const char *s);

/*
 * As text_for_terminal(), but cut in the middle, since names often differ at their end:
 * "model.layers.0.self_attn.q_proj" in 21 columns is "model.layers.0…q_proj". The end is at most
 * half of it, and a part of a dotted name, of a path or of words if one begins there. A number is
 * cut only if nothing else is left: a part of it reads as another one. out has columns *
 * TEXT_TERMINAL_GROWTH + 1 bytes.
 */
unsigned int text_cut_middle(char *out, const char *s, unsigned int columns);

#endif
