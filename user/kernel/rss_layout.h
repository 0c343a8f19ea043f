/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rss_layout.h - how the kernel keeps the four counts of an mm's resident memory, by its own type
 * information. The BPF side (bpf/rss.bpf.c) reads them as they are laid out and would count
 * something else, silently, on a kernel that lays them out in a third way.
 */
#ifndef QPROF_RSS_LAYOUT_H
#define QPROF_RSS_LAYOUT_H

#include <stddef.h>

struct btf;

enum rss_layout {
	RSS_UNKNOWN, /* none of these: not to be read */
	RSS_PERCPU,  /* struct percpu_counter rss_stat[4], from Linux 6.2 */
	RSS_ATOMIC,  /* struct mm_rss_stat { atomic_long_t count[4]; }, before */
};

/* Of struct mm_struct in the kernel's types. RSS_UNKNOWN: why has the reason, at most size bytes.
 */
enum rss_layout rss_layout_of(const struct btf *btf, char *why, size_t size);

#endif
