/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_look.h - what drivers say of GPUs: which there are, what is in use, and by which process.
 * NVIDIA's by its library NVML, AMD's by files in /sys and /proc.
 *
 * All of this may hang in a driver, and looking at a GPU that sleeps wakes it. So a child does it:
 * gpu_helper.h.
 */
#ifndef QPROF_GPU_LOOK_H
#define QPROF_GPU_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	GPU_MAX = 32, /* devices; more are left out */
	GPU_TEXT_MAX = 96,
	GPU_PCI_MAX = 32,
	GPU_MAX_USES = 512,
	GPU_WHY_MAX = 192,
};

enum gpu_vendor { GPU_NVIDIA, GPU_AMD };

struct gpu_device {
	enum gpu_vendor vendor;
	uint32_t index; /* as the vendor's tools count, from 0: nvidia-smi, ROCr */
	char name[GPU_TEXT_MAX], uuid[GPU_TEXT_MAX], pci[GPU_PCI_MAX]; /* "": not said */
	uint64_t total;						       /* bytes */
	uint64_t used; /* by everybody; valid if knows_used */
	bool knows_used;
	bool is_visible; /* to the program that the look was for; see gpu_visible.h */
	bool has_number; /* and it is known how that numbers it: */
	uint32_t number;
};

/* What one process uses of a device, as the driver counts it: contexts included. */
struct gpu_use {
	uint32_t device; /* index into devices of the look */
	uint32_t pid;	 /* as the driver calls it: of the initial pid namespace */
	uint64_t bytes;
};

struct gpu_look {
	uint64_t time_ns; /* CLOCK_MONOTONIC, when it was over */
	uint32_t n_devices, n_uses;
	bool uses_were_cut;		    /* there are more than GPU_MAX_USES */
	struct gpu_device devices[GPU_MAX]; /* their texts are the drivers' */
	struct gpu_use uses[GPU_MAX_USES];
	char nvidia_why[GPU_WHY_MAX], amd_why[GPU_WHY_MAX]; /* why there is none; "": there is */
};

/* Returns whether a mapped file with that path is the driver's library of programs that compute on
 * a GPU: libcuda.so.1, libhsa-runtime64.so.1. */
bool gpu_is_library(const char *path);

/* Adds what a process uses. What it uses of a device by another way than before counts once: the
 * more of both. */
void gpu_look_add_use(struct gpu_look *look, uint32_t device, uint32_t pid, uint64_t bytes);

#endif
