/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rss_layout.h - how the kernel keeps the four counts of an mm's resident memory, by its own type
 * information. The BPF side (bpf/rss.bpf.c) knows two layouts, and on a third would silently count
 * something else.
 */
#ifndef QPROF_RSS_LAYOUT_H
#define QPROF_RSS_LAYOUT_H

#include <stddef.h>

struct kernel_btf;

enum rss_layout {
	RSS_UNKNOWN, /* neither: do not read it */
	RSS_PERCPU,  /* struct percpu_counter rss_stat[4], from Linux 6.2 */
	RSS_ATOMIC,  /* struct mm_rss_stat { atomic_long_t count[4]; }, before */
};

/* Looks at struct mm_struct. If it returns RSS_UNKNOWN, why has the reason, in size bytes. */
enum rss_layout rss_layout_of(const struct kernel_btf *btf, char *why, size_t size);

#endif
