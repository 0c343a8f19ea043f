// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpu_stacks.c - functions that allocate a known amount each on the GPUs of gpu_cuda.c, in phases:
 * stacks, that tell which, are compared with what it prints. Built without frame pointers.
 *
 * Usage: gpu_stacks all
 *        gpu_stacks many N    N allocations of 1 MiB
 *        gpu_stacks mixed     large ones, and small ones in between
 */
#include <pthread.h>
#include <sys/sdt.h>
#include <time.h>

#include "gpu_cuda.h"
#include "kept.h"

static CUresult (*inner_alloc)(CUdeviceptr *dptr, size_t bytes);

static void use_device(int device)
{
	uintptr_t context;

	must(!cuDevicePrimaryCtxRetain(&context, device) && !cuCtxSetCurrent(context));
}

KEPT static CUdeviceptr load_weights(size_t bytes)
{
	CUdeviceptr at;

	must(!cuMemAlloc_v2(&at, bytes));
	done += bytes;
	return at;
}

/* By the address that the library gave. */
KEPT static CUdeviceptr load_scales(size_t bytes)
{
	CUdeviceptr at;

	must(!inner_alloc(&at, bytes));
	done += bytes;
	return at;
}

/* Counts when it is made, not when it is mapped. */
KEPT static void map_cache(size_t bytes)
{
	const struct cuda_properties properties = {.type = 1, .location = {1, 1}};
	const CUdeviceptr at = 0x100000000;
	uint64_t handle;

	must(!cuMemCreate(&handle, bytes, &properties, 0));
	must(!cuMemMap(at, bytes, 0, handle, 0) && !cuMemRelease(handle));
	done += bytes;
}

/* Memory of the host does not count, nor does what is refused. */
KEPT static void pin_buffers(size_t bytes)
{
	CUdeviceptr at;
	void *host;

	must(!cuMemHostAlloc(&host, bytes, 0));
	must(cuMemAlloc_v2(&at, (1ull << 40) + 1) == CUDA_ERROR_OUT_OF_MEMORY);
	done += bytes;
}

static void load(void)
{
	DTRACE_PROBE1(qprof, begin, "Load");
	for (unsigned int i = 0; i < 8; i++)
		load_weights(16 * MIB);
	for (unsigned int i = 0; i < 1000; i++)
		load_scales(4 * KIB);
	map_cache(24 * MIB);
	pin_buffers(32 * MIB);
	DTRACE_PROBE1(qprof, end, "Load");
}

/* What is freed was allocated all the same. */
static void quantize(void)
{
	DTRACE_PROBE1(qprof, begin, "Quantize");
	for (unsigned int i = 0; i < 4; i++)
		must(!cuMemFree_v2(load_weights(32 * MIB)));
	DTRACE_PROBE1(qprof, end, "Quantize");
}

KEPT static void *calibrate(void *arg)
{
	use_device(0);
	for (unsigned int i = 0; i < 200; i++)
		must(!cuMemFree_v2(load_weights(MIB)));
	done += 1;
	return arg;
}

KEPT static void *evaluate(void *arg)
{
	use_device(1);
	for (unsigned int i = 0; i < 100; i++)
		must(!cuMemFree_v2(load_scales(MIB)));
	done += 1;
	return arg;
}

static void run_threads(void)
{
	pthread_t threads[2];

	DTRACE_PROBE1(qprof, begin, "Threads");
	must(!pthread_create(&threads[0], NULL, calibrate, NULL));
	must(!pthread_create(&threads[1], NULL, evaluate, NULL));
	must(!pthread_join(threads[0], NULL) && !pthread_join(threads[1], NULL));
	DTRACE_PROBE1(qprof, end, "Threads");
}

static void run_all(void)
{
	load();
	quantize();
	run_threads();
	puts("{\"Load\": {\"load_weights\": 134217728, \"load_scales\": 4096000, \"map_cache\": "
	     "25165824}, "
	     "\"Quantize\": {\"load_weights\": 134217728}, "
	     "\"Threads\": {\"load_weights\": 209715200, \"load_scales\": 104857600}}");
}

/* Slow enough for whoever reads 37 KiB of each. */
static void run_many(unsigned int n)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	DTRACE_PROBE1(qprof, begin, "Many");
	for (unsigned int i = 0; i < n; i++) {
		must(!cuMemFree_v2(load_weights(MIB)));
		if (i % 64 == 63)
			nanosleep(&pause, NULL);
	}
	DTRACE_PROBE1(qprof, end, "Many");
	printf("{\"Many\": {\"load_weights\": %llu}}\n", (unsigned long long)n * MIB);
}

/* Large ones do not take the weight of small ones in between. */
static void run_mixed(void)
{
	DTRACE_PROBE1(qprof, begin, "Mixed");
	for (unsigned int i = 0; i < 900; i++) {
		must(!cuMemFree_v2(load_weights(120 * KIB)));
		for (unsigned int j = 0; j < 5; j++)
			must(!cuMemFree_v2(load_scales(4 * KIB)));
	}
	DTRACE_PROBE1(qprof, end, "Mixed");
	puts("{\"Mixed\": {\"load_weights\": 110592000, \"load_scales\": 18432000}}");
}

int main(int argc, char **argv)
{
	use_device(0);
	must(!cuGetProcAddress_v2("cuMemAlloc", (void **)&inner_alloc, 12000, 0, NULL));
	if (argc == 3 && !strcmp(argv[1], "many"))
		run_many((unsigned int)strtoul(argv[2], NULL, 10));
	else if (argc == 2 && !strcmp(argv[1], "mixed"))
		run_mixed();
	else
		run_all();
	return 0;
}
