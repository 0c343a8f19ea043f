/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * put_off.h - BPF programs that the kernel verifies when they are needed first.
 *
 * The verifier takes some 10 ms for a large program, and many a run never needs it. So libbpf does
 * all of its own work on such a program at the start, and then loads another in its place, which
 * does nothing. put_off_load() loads the real one, and gives it the descriptor that libbpf has.
 *
 * Only a program that cannot run before somebody in user space wants it to may be put off: one that
 * is called, or attached later. A section whose name begins with "later." marks those that may be.
 */
#ifndef QPROF_PUT_OFF_H
#define QPROF_PUT_OFF_H

#include <stdbool.h>

struct bpf_object;
struct bpf_prog_load_opts;
struct bpf_program;

/* Before the object is loaded. Returns -ENOMEM if there is no memory for its name. */
int put_off(struct bpf_program *program);

/*
 * The same, but a thread loads it from when libbpf is done with it, while libbpf loads those that
 * follow: the kernel verifies programs side by side. put_off_load_beside() waits for all of them;
 * it comes before anything of the object is attached.
 *
 * Example: process_changes takes as long as all others together that every run needs. With two CPUs
 * a run begins 60 ms sooner.
 */
int put_off_beside(struct bpf_program *program);
int put_off_load_beside(const struct bpf_object *object);

/* When libbpf is done with a program, and is about to load it. Returns 0, or -errno. */
int put_off_prepare(struct bpf_program *program, struct bpf_prog_load_opts *opts);

/* Does nothing if the program is loaded. Returns 0, or -errno. */
int put_off_load(struct bpf_program *program);

/* All of an object that are put off. */
int put_off_load_all(const struct bpf_object *object);

/* Before the object is closed. */
void put_off_end(const struct bpf_object *object);

#endif
