/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_source.h - the programs that see what is allocated on GPUs (gpu_call.bpf.c), and their probes
 * in the libraries. Loaded with the first such library that a process maps.
 */
#ifndef QPROF_GPU_SOURCE_H
#define QPROF_GPU_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "bpf/wire.h"
#include "kernel/probes.h"

struct gpu_source;
struct qprof_bpf;
struct bpf_program;

/* Before the engine's object is loaded: it has none of this. */
void gpu_source_hold(struct qprof_bpf *engines);
/* Loads the programs. types: as for late_load(). Returns NULL, and *err: this kernel cannot do it.
 */
struct gpu_source *gpu_source_new(const struct qprof_bpf *engines, const char *types,
				  struct error *err);
void gpu_source_free(struct gpu_source *source);
/* The programs at the begin and at the return of a call. */
struct bpf_program *gpu_source_program(const struct gpu_source *source, bool returns);
/* The object that has them; NULL for NULL. */
const struct qprof_bpf *gpu_source_own(const struct gpu_source *source);
/* A process has ended: makes room. */
void gpu_source_forget(struct gpu_source *source, uint32_t tgid, uint64_t started_ns);

struct gpu_places {
	struct probe_place place[WIRE_GPU_CALLS];
	size_t n;
};

/*
 * Finds the functions in a library of that vendor, which is open at fd, and adds their code to a
 * digest. Returns 0, or -errno.
 */
int gpu_source_find(int fd, enum wire_gpu_vendor vendor, struct gpu_places *places,
		    uint64_t *digest);
/* Attaches the programs to the functions. Returns 0, or -errno. */
int gpu_source_attach(struct gpu_source *source, struct probes *probes, struct probe_owner owner,
		      int fd, const struct gpu_places *places);
/* The same for one function, at an offset of the file; not if it has its probes. */
int gpu_source_attach_at(struct gpu_source *source, struct probes *probes, struct probe_owner owner,
			 int fd, uint64_t offset, uint32_t call);

#endif
