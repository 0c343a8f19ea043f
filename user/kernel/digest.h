/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * digest.h - whether the probes of a file, and the code at their places, are what they were: FNV-1a
 * of them. A program could forge it, and would spoil only its own probes.
 */
#ifndef QPROF_DIGEST_H
#define QPROF_DIGEST_H

#include <stddef.h>
#include <stdint.h>

static const uint64_t digest_of_nothing = 0xcbf29ce484222325;

void digest_bytes(uint64_t *digest, const void *data, size_t size);
/* Digests a place and the code there: the kernel has a copy of the instruction under a probe. */
void digest_place(uint64_t *digest, int fd, uint64_t offset);

#endif
