/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tools/lint tidy only: uthash as its static analyzer can bear it. It cannot know what holds
 * between an element and its table and reports impossible ways through the macros: a removal gives
 * any table here.
 */
#include_next <uthash.h>

#undef HASH_DELETE_HH
#define HASH_DELETE_HH(hh, head, removed) ((head) = tidy_any_table((head), (removed)))
void *tidy_any_table(void *head, void *removed);
