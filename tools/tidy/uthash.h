/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tools/lint tidy only: uthash as its static analyzer can bear it. It cannot know what holds
 * between an element and its table and reports impossible ways through the macros: a removal gives
 * any table here, a hash value is any number.
 */
#include_next <uthash.h>

#undef HASH_DELETE_HH
#define HASH_DELETE_HH(hh, head, removed) ((head) = tidy_any_table((head), (removed)))
void *tidy_any_table(void *head, void *removed);

#undef HASH_JEN
#define HASH_JEN(key, length, hash) ((hash) = tidy_any_hash((key), (length)))
unsigned int tidy_any_hash(const void *key, size_t length);
