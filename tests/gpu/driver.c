/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory by the driver's API, each kind in a phase of its own. Prints a JSON line for each: what it
 * held most and at its end, by its own count. It loads libcuda.so.1 itself, as runtimes do.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>

typedef unsigned long long address;

struct location {
	int type, id;
};

/* CUmemAllocationProp, of cuda.h. */
struct properties {
	int type, handle_types;
	struct location location;
	void *win32;
	struct {
		unsigned char compression, gpu_direct;
		unsigned short usage;
		unsigned char reserved[4];
	} flags;
};

/* CUmemAccessDesc. */
struct access {
	struct location location;
	int flags;
};

enum { PINNED = 1, ON_DEVICE = 1, READ_WRITE = 3, ATTACH_GLOBAL = 1 };

#define MIB ((size_t)1 << 20)

static void *library;
static size_t now, most, pinned;

static void *find(const char *name)
{
	void *function = dlsym(library, name);

	if (!function) {
		printf("{\"error\": \"libcuda.so.1 has no %s\"}\n", name);
		exit(3);
	}
	return function;
}

#define CALL(name, types, ...) (((int(*) types)find(#name))(__VA_ARGS__))

static void expect(int result, const char *what)
{
	if (result) {
		printf("{\"error\": \"%s gave %d\"}\n", what, result);
		exit(3);
	}
}

static void hold(size_t bytes)
{
	now += bytes;
	most = now > most ? now : most;
}

static void begin(const char *phase)
{
	most = now;
	DTRACE_PROBE1(qprof, begin, phase);
}

static void end(const char *phase)
{
	DTRACE_PROBE1(qprof, end, phase);
	printf("{\"phase\": \"%s\", \"peak\": %zu, \"held\": %zu, \"pinned\": %zu}\n", phase, most,
	       now, pinned);
	fflush(stdout);
}

static void plain(void)
{
	address all[8];

	begin("plain");
	for (size_t i = 0; i < 8; i++) {
		expect(CALL(cuMemAlloc_v2, (address *, size_t), &all[i], (i + 1) * 3 * MIB + 256),
		       "cuMemAlloc");
		hold((i + 1) * 3 * MIB + 256);
	}
	for (size_t i = 0; i < 8; i++) {
		expect(CALL(cuMemFree_v2, (address), all[i]), "cuMemFree");
		now -= (i + 1) * 3 * MIB + 256;
	}
	end("plain");
}

/* Of what is free an eighth, and 64 MiB at most: more could hang a device. */
static void managed(void)
{
	size_t free_bytes = 0, total = 0, bytes;
	address at;

	expect(CALL(cuMemGetInfo_v2, (size_t *, size_t *), &free_bytes, &total), "cuMemGetInfo");
	bytes = free_bytes / 8 < 64 * MIB ? free_bytes / 8 : 64 * MIB;
	begin("managed");
	if (!CALL(cuMemAllocManaged, (address *, size_t, unsigned int), &at, bytes,
		  ATTACH_GLOBAL)) {
		hold(bytes);
		expect(CALL(cuMemFree_v2, (address), at), "cuMemFree");
		now -= bytes;
	}
	end("managed");
}

static void streams(void)
{
	void *stream[4];
	address at[4];

	begin("streams");
	for (size_t i = 0; i < 4; i++) {
		expect(CALL(cuStreamCreate, (void **, unsigned int), &stream[i], 1),
		       "cuStreamCreate");
		if (CALL(cuMemAllocAsync, (address *, size_t, void *), &at[i], (i + 1) * 16 * MIB,
			 stream[i]))
			at[i] = 0;
		else
			hold((i + 1) * 16 * MIB);
	}
	for (size_t i = 0; i < 4; i++) {
		if (at[i] && !CALL(cuMemFreeAsync, (address, void *), at[i], stream[i]))
			now -= (i + 1) * 16 * MIB;
		expect(CALL(cuStreamSynchronize, (void *), stream[i]), "cuStreamSynchronize");
	}
	end("streams");
}

/* ggml's order: the handle is released right after it was mapped. */
static void mapped(void)
{
	struct properties p = {.type = PINNED, .location = {ON_DEVICE, 0}};
	struct access access = {{ON_DEVICE, 0}, READ_WRITE};
	unsigned long long handle;
	size_t granularity = 0, bytes;
	address at;

	expect(CALL(cuMemGetAllocationGranularity, (size_t *, const struct properties *, int),
		    &granularity, &p, 0),
	       "cuMemGetAllocationGranularity");
	bytes = (32 * MIB + granularity - 1) / granularity * granularity;
	begin("mapped");
	expect(CALL(cuMemAddressReserve, (address *, size_t, size_t, address, unsigned long long),
		    &at, bytes, 0, 0, 0),
	       "cuMemAddressReserve");
	expect(CALL(cuMemCreate,
		    (unsigned long long *, size_t, const struct properties *, unsigned long long),
		    &handle, bytes, &p, 0),
	       "cuMemCreate");
	hold(bytes);
	expect(CALL(cuMemMap, (address, size_t, size_t, unsigned long long, unsigned long long), at,
		    bytes, 0, handle, 0),
	       "cuMemMap");
	expect(CALL(cuMemRelease, (unsigned long long), handle), "cuMemRelease");
	expect(CALL(cuMemSetAccess, (address, size_t, const struct access *, size_t), at, bytes,
		    &access, 1),
	       "cuMemSetAccess");
	DTRACE_PROBE1(qprof, mark, "mapped and released");
	expect(CALL(cuMemUnmap, (address, size_t), at, bytes), "cuMemUnmap");
	now -= bytes;
	expect(CALL(cuMemAddressFree, (address, size_t), at, bytes), "cuMemAddressFree");
	end("mapped");
}

static void host(void)
{
	void *at;

	begin("host");
	expect(CALL(cuMemAllocHost_v2, (void **, size_t), &at, 24 * MIB), "cuMemAllocHost");
	pinned += 24 * MIB;
	end("host");
	expect(CALL(cuMemFreeHost, (void *), at), "cuMemFreeHost");
	pinned = 0;
}

/* Twice what the device has: it fails, and nothing is held. */
static void refused(void)
{
	size_t free_bytes = 0, total = 0;
	address at;

	expect(CALL(cuMemGetInfo_v2, (size_t *, size_t *), &free_bytes, &total), "cuMemGetInfo");
	begin("refused");
	if (!CALL(cuMemAlloc_v2, (address *, size_t), &at, 2 * total))
		printf("{\"error\": \"twice the device's memory was given\"}\n");
	end("refused");
	printf("{\"asked\": %zu}\n", 2 * total);
}

int main(void)
{
	void *context;
	int device;

	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		printf("{\"error\": \"no libcuda.so.1\"}\n");
		return 3;
	}
	expect(CALL(cuInit, (unsigned int), 0), "cuInit");
	expect(CALL(cuDeviceGet, (int *, int), &device, 0), "cuDeviceGet");
	expect(CALL(cuCtxCreate_v2, (void **, unsigned int, int), &context, 0, device),
	       "cuCtxCreate");
	plain();
	managed();
	streams();
	mapped();
	host();
	refused();
	return 0;
}
