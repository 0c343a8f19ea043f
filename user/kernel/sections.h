/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sections.h - what is done with a program of the BPF side by the name of its section: how the
 * kernel loads it, and how it is attached.
 *
 * libbpf would do that, too, but reads all types of the kernel for it, 5 MiB of them, in each
 * object again: for the number of what a program attaches to (the type btf_trace_rss_stat for
 * SEC("tp_btf/rss_stat")), and for those of the kernel's functions that programs call. The engine
 * has read these types already, and once it has learned the numbers nobody needs all types again.
 * So libbpf must not know that a program is of a type that has such a number: it would read.
 */
#ifndef QPROF_SECTIONS_H
#define QPROF_SECTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct bpf_link;
struct bpf_object;
struct bpf_object_skeleton;
struct bpf_program;
struct kernel_btf;

/* Before an object is opened. Returns 0, or -errno. */
int sections_begin(void);

/* Once the first object is open: learns the numbers that all of its programs may need, but for
 * those of functions that are traced. Returns -ENOMEM without memory for them. */
int sections_learn(const struct kernel_btf *kernel, const struct bpf_object *object);
/* Learns one more: of a type with this name, as programs of fentry and fexit need it. */
int sections_learn_one(const char *name, uint32_t number);
/* Returns what was learned, 0 if the kernel has no such type. */
uint32_t sections_number(const char *name);

/* Why an object could not be loaded, which gave -errno: in words. Valid until the next call. */
const char *sections_why(int code);

/* Attaches a program to what its section names. Returns NULL, and sets errno, if that fails. */
struct bpf_link *sections_attach(const struct bpf_program *program);
/* Attaches all programs of an object that are loaded and shall be attached, in their order; but not
 * those whose section does not say to what. Returns 0, or -errno. */
int sections_attach_all(const struct bpf_object_skeleton *skeleton);

#endif
