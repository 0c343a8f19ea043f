/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_cuda.c - libcuda.so.1 without a GPU, for gpu.c: what allocates memory gives out numbers, and
 * nothing is behind them. As the real one it has internal functions, which exported ones call or
 * jump to, and which cuGetProcAddress() hands out. Addresses and handles are used again as soon as
 * they are free, and both are small numbers of the same range.
 */
#include "gpu_cuda.h"
#include "gpu_numbers.h"
#include "gpu_truth.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICES = GPU_DEVICES, DEPTH = 8 };

#ifdef __clang__
#define INNER static __attribute__((noinline))
#else
#define INNER static __attribute__((noinline, noclone))
#endif
#define API __attribute__((visibility("default")))

struct context {
	int device;
	uint32_t retained;
	bool there;
};

/* Of an address, the mark is the context that it goes with. */
static struct numbers pointers, hosts, handles;
static struct context contexts[64]; /* the first DEVICES are primary ones */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread uintptr_t current[DEPTH];
static __thread unsigned int depth;

static CUresult give_back(struct numbers *n, uint64_t at)
{
	return numbers_give_back(n, at) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static uintptr_t now_current(void)
{
	return depth ? current[depth - 1] : 0;
}

static struct context *context_at(uintptr_t at)
{
	return at && at <= 64 && contexts[at - 1].there ? &contexts[at - 1] : NULL;
}

/* ---- Memory with an address ---- */

INNER CUresult inner_alloc(CUdeviceptr *dptr, size_t bytes)
{
	if (!context_at(now_current()))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!bytes || bytes > GPU_MOST_BYTES)
		return bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	*dptr = numbers_take(&pointers, (uint8_t)now_current());
	return CUDA_SUCCESS;
}

INNER CUresult inner_free(CUdeviceptr dptr)
{
	return give_back(&pointers, dptr);
}

static void wait_for_context(void);

/* As a tool that is told of each call would have it: the inner function is called. */
static volatile int calls;

API CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytes)
{
	const CUresult result = inner_alloc(dptr, bytes);

	calls++;
	return result;
}

API CUresult cuMemFree_v2(CUdeviceptr dptr)
{
	const CUresult result = inner_free(dptr);

	wait_for_context();
	calls++;
	return result;
}

API CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height,
				unsigned int element)
{
	(void)element;
	*pitch = (width + 511) / 512 * 512;
	return inner_alloc(dptr, *pitch * height);
}

API CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytes, unsigned int flags)
{
	(void)flags;
	return cuMemAlloc_v2(dptr, bytes);
}

INNER CUresult inner_alloc_async(CUdeviceptr *dptr, size_t bytes, void *stream)
{
	(void)stream;
	return inner_alloc(dptr, bytes);
}

/* These jump to the inner function, as their last act. */
API CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytes, void *stream)
{
	return inner_alloc_async(dptr, bytes, stream);
}

API CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytes, void *stream)
{
	return inner_alloc_async(dptr, bytes, stream);
}

API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytes, void *pool, void *stream)
{
	(void)pool;
	return inner_alloc_async(dptr, bytes, stream);
}

API CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytes, void *pool, void *stream)
{
	return cuMemAllocFromPoolAsync(dptr, bytes, pool, stream);
}

INNER CUresult inner_free_async(CUdeviceptr dptr, void *stream)
{
	(void)stream;
	return inner_free(dptr);
}

API CUresult cuMemFreeAsync(CUdeviceptr dptr, void *stream)
{
	return inner_free_async(dptr, stream);
}

API CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, void *stream)
{
	return inner_free_async(dptr, stream);
}

/* What is allocated from it is on its device, whatever context the thread uses. */
API CUresult cuMemPoolCreate(void **pool, const struct cuda_properties *properties)
{
	*pool = (void *)(uintptr_t)(DEVICES + 1 + properties->location.id);
	return CUDA_SUCCESS;
}

/* The default pool is a device's number + 1. */
API CUresult cuDeviceGetDefaultMemPool(void **pool, int device)
{
	*pool = (void *)(uintptr_t)(device + 1);
	return CUDA_SUCCESS;
}

API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *dptr, const void *handle, unsigned int flags)
{
	(void)handle;
	(void)flags;
	*dptr = 0x7000000000;
	return CUDA_SUCCESS;
}

/* ---- Of the host ---- */

API CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned int flags)
{
	(void)flags;
	if (!bytes || bytes > GPU_MOST_BYTES)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*host = (void *)numbers_take(&hosts, (uint8_t)now_current());
	return CUDA_SUCCESS;
}

API CUresult cuMemAllocHost_v2(void **host, size_t bytes)
{
	return cuMemHostAlloc(host, bytes, 0);
}

API CUresult cuMemFreeHost(void *host)
{
	return give_back(&hosts, (uint64_t)host);
}

API CUresult cuMemHostRegister_v2(void *host, size_t bytes, unsigned int flags)
{
	(void)flags;
	return host && bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemHostUnregister(void *host)
{
	return host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- Arrays ---- */

API CUresult cuArrayCreate_v2(CUdeviceptr *array, const struct cuda_array *description)
{
	(void)description;
	return inner_alloc(array, 1);
}

API CUresult cuArray3DCreate_v2(CUdeviceptr *array, const struct cuda_array_3d *description)
{
	(void)description;
	return inner_alloc(array, 1);
}

API CUresult cuMipmappedArrayCreate(CUdeviceptr *array, const struct cuda_array_3d *description,
				    unsigned int levels)
{
	(void)levels;
	return cuArray3DCreate_v2(array, description);
}

API CUresult cuArrayDestroy(CUdeviceptr array)
{
	return inner_free(array);
}

API CUresult cuMipmappedArrayDestroy(CUdeviceptr array)
{
	return cuArrayDestroy(array);
}

/* ---- Memory without an address ---- */

API CUresult cuMemCreate(uint64_t *handle, size_t bytes, const struct cuda_properties *properties,
			 unsigned long long flags)
{
	(void)properties;
	(void)flags;
	if (!bytes || bytes > GPU_MOST_BYTES)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*handle = numbers_take(&handles, 1);
	return CUDA_SUCCESS;
}

API CUresult cuMemImportFromShareableHandle(uint64_t *handle, void *from, int type)
{
	(void)from;
	(void)type;
	*handle = numbers_take(&handles, 1);
	return CUDA_SUCCESS;
}

API CUresult cuMemRetainAllocationHandle(uint64_t *handle, void *at)
{
	(void)at;
	*handle = numbers_take(&handles, 1);
	return CUDA_SUCCESS;
}

/* The number is another's at once, though the memory may still be mapped. */
API CUresult cuMemRelease(uint64_t handle)
{
	return give_back(&handles, handle);
}

API CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, uint64_t handle,
		      unsigned long long flags)
{
	(void)offset;
	(void)flags;
	return at && bytes && handle ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
	return at && bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- Contexts: numbers from 1 on ---- */

API CUresult cuCtxSetCurrent(uintptr_t context)
{
	if (!depth)
		depth = 1;
	current[depth - 1] = context;
	return CUDA_SUCCESS;
}

API CUresult cuCtxPushCurrent_v2(uintptr_t context)
{
	if (depth == DEPTH)
		return CUDA_ERROR_INVALID_VALUE;
	current[depth++] = context;
	return CUDA_SUCCESS;
}

API CUresult cuCtxPopCurrent_v2(uintptr_t *context)
{
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	*context = current[--depth];
	return CUDA_SUCCESS;
}

API CUresult cuCtxCreate_v2(uintptr_t *context, unsigned int flags, int device)
{
	(void)flags;
	pthread_mutex_lock(&lock);
	for (uintptr_t i = DEVICES; i < 64; i++) {
		if (contexts[i].there)
			continue;
		contexts[i] = (struct context){.device = device, .there = true};
		pthread_mutex_unlock(&lock);
		*context = i + 1;
		return cuCtxPushCurrent_v2(i + 1);
	}
	pthread_mutex_unlock(&lock);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static void end_context(uintptr_t at)
{
	numbers_give_back_all(&pointers, (uint8_t)at);
	numbers_give_back_all(&hosts, (uint8_t)at);
}

API CUresult cuCtxDestroy_v2(uintptr_t context)
{
	if (!context_at(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (now_current() == context)
		depth--;
	end_context(context);
	context_at(context)->there = false;
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRetain(uintptr_t *context, int device)
{
	if (device < 0 || device >= DEVICES)
		return CUDA_ERROR_INVALID_VALUE;
	contexts[device].device = device;
	contexts[device].there = true;
	contexts[device].retained++;
	*context = (uintptr_t)device + 1;
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRelease_v2(int device)
{
	if (device < 0 || device >= DEVICES || !contexts[device].retained)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!--contexts[device].retained) {
		end_context((uintptr_t)device + 1);
		contexts[device].there = false;
	}
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxReset_v2(int device)
{
	if (device < 0 || device >= DEVICES)
		return CUDA_ERROR_INVALID_VALUE;
	end_context((uintptr_t)device + 1);
	return CUDA_SUCCESS;
}

/* ---- Waits ---- */

unsigned int gpu_waiting;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Nothing that is watched by itself. */
static void sleep_while_busy(const struct cuda_stream *stream)
{
	const struct timespec until = {(time_t)(stream->busy_until_ns / 1000000000),
				       (long)(stream->busy_until_ns % 1000000000)};

	__atomic_add_fetch(&gpu_waiting, 1, __ATOMIC_SEQ_CST);
	while (now_ns() < stream->busy_until_ns)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	__atomic_sub_fetch(&gpu_waiting, 1, __ATOMIC_SEQ_CST);
}

INNER CUresult inner_wait(const struct cuda_stream *stream)
{
	sleep_while_busy(stream);
	return CUDA_SUCCESS;
}

/* Jump to the inner function. */
API CUresult cuStreamSynchronize(const struct cuda_stream *stream)
{
	return inner_wait(stream);
}

API CUresult cuStreamSynchronize_ptsz(const struct cuda_stream *stream)
{
	return inner_wait(stream);
}

/* Spins, as the driver does if nobody says otherwise. */
API CUresult cuEventSynchronize(const struct cuda_stream *event)
{
	__atomic_add_fetch(&gpu_waiting, 1, __ATOMIC_SEQ_CST);
	while (now_ns() < event->busy_until_ns)
		;
	__atomic_sub_fetch(&gpu_waiting, 1, __ATOMIC_SEQ_CST);
	return CUDA_SUCCESS;
}

static const struct cuda_stream *of_context;

API void gpu_set_busy(const struct cuda_stream *stream)
{
	of_context = stream;
}

static void wait_for_context(void)
{
	if (of_context)
		sleep_while_busy(of_context);
}

/* Waits in futex(2). */
API CUresult cuCtxSynchronize(void)
{
	static pthread_mutex_t nobodys = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t never;
	pthread_condattr_t monotonic;
	const struct timespec until = {(time_t)(of_context->busy_until_ns / 1000000000),
				       (long)(of_context->busy_until_ns % 1000000000)};

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&never, &monotonic);
	pthread_mutex_lock(&nobodys);
	__atomic_add_fetch(&gpu_waiting, 1, __ATOMIC_SEQ_CST);
	while (now_ns() < of_context->busy_until_ns)
		pthread_cond_timedwait(&never, &nobodys, &until);
	__atomic_sub_fetch(&gpu_waiting, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&nobodys);
	pthread_cond_destroy(&never);
	return CUDA_SUCCESS;
}

/* A call within a call, and a while without it. */
API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	static const struct timespec a_while = {.tv_nsec = 100000000};
	CUresult result;

	(void)to;
	(void)from;
	(void)bytes;
	result = cuCtxSynchronize();
	nanosleep(&a_while, NULL);
	return result;
}

/* Reads all that it copies. */
API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
	CUresult result;

	for (size_t i = 0; i < bytes; i += 4096)
		calls += ((const volatile char *)from)[i];
	result = cuMemcpy(to, (CUdeviceptr)from, bytes);
	calls++;
	return result;
}

/* ---- Functions by name ---- */

INNER CUresult inner_host_alloc(void **host, size_t bytes, unsigned int flags)
{
	return cuMemHostAlloc(host, bytes, flags);
}

/* An internal function where there is one, as if the exported one only led to it. */
API CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags,
				 int *status)
{
	static const struct {
		const char *name;
		void *address;
	} known[] = {
		{"cuMemAlloc", (void *)inner_alloc},
		{"cuMemFree", (void *)inner_free},
		{"cuMemAllocAsync", (void *)inner_alloc_async},
		{"cuMemFreeAsync", (void *)inner_free_async},
		{"cuMemHostAlloc", (void *)inner_host_alloc},
		{"cuMemFreeHost", (void *)cuMemFreeHost},
		{"cuStreamSynchronize", (void *)inner_wait},
	};

	(void)version;
	(void)flags;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strcmp(symbol, known[i].name) != 0)
			continue;
		*address = known[i].address;
		if (status)
			*status = 0;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

API CUresult cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(symbol, address, version, flags, NULL);
}
