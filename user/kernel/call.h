/* SPDX-License-Identifier: GPL-2.0-only */
/* call.h - calls a program that the BPF side has for us. */
#ifndef QPROF_CALL_H
#define QPROF_CALL_H

#include <stdint.h>

struct bpf_program;

/* args: its arguments, of size bytes. Returns 0, and *answer is what it returned; or -errno. */
int call_program(struct bpf_program *program, void *args, uint32_t size, uint32_t *answer);

#endif
