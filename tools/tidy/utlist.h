/* SPDX-License-Identifier: GPL-2.0-only */
/* For tools/lint tidy only; see uthash.h beside it. */
#include_next <utlist.h>

#undef DL_DELETE2
#define DL_DELETE2(head, removed, prev, next) ((head) = tidy_any_list((head), (removed)))
void *tidy_any_list(void *head, void *removed);
