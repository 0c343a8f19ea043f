/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_cuda.h - the part of cuda.h that gpu_cuda.c has, with its types as plain numbers. */
#ifndef QPROF_GPU_CUDA_H
#define QPROF_GPU_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef uint64_t CUdeviceptr;

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_NOT_FOUND = 500,
};

struct cuda_array {
	size_t width, height;
	int format;
	unsigned int channels;
};

struct cuda_array_3d {
	size_t width, height, depth;
	int format;
	unsigned int channels, flags;
};

struct cuda_properties {
	int type, handle_types;
	struct {
		int type, id;
	} location;
	void *meta_data;
	uint8_t flags[32];
};

/* Streams and events are pointers to it: the GPU is done at that time, CLOCK_MONOTONIC. */
struct cuda_stream {
	uint64_t busy_until_ns;
};

/* No part of cuda.h: threads that wait, and until when cuCtxSynchronize(), copies and cuMemFree()
 * do: at first not at all. */
extern __attribute__((visibility("default"))) unsigned int gpu_waiting;
void gpu_set_busy(const struct cuda_stream *stream);

CUresult cuStreamSynchronize(const struct cuda_stream *stream);
CUresult cuStreamSynchronize_ptsz(const struct cuda_stream *stream);
CUresult cuEventSynchronize(const struct cuda_stream *event);
CUresult cuCtxSynchronize(void);
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);

CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr dptr);
CUresult cuMemAllocPitch_v2(CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height,
			    unsigned int element);
CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytes, unsigned int flags);
CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t bytes, void *stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *dptr, size_t bytes, void *stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytes, void *pool, void *stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *dptr, size_t bytes, void *pool, void *stream);
CUresult cuMemFreeAsync(CUdeviceptr dptr, void *stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr dptr, void *stream);
CUresult cuMemPoolCreate(void **pool, const struct cuda_properties *properties);
CUresult cuDeviceGetDefaultMemPool(void **pool, int device);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *dptr, const void *handle, unsigned int flags);
CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned int flags);
CUresult cuMemAllocHost_v2(void **host, size_t bytes);
CUresult cuMemFreeHost(void *host);
CUresult cuMemHostRegister_v2(void *host, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void *host);
CUresult cuArrayCreate_v2(CUdeviceptr *array, const struct cuda_array *description);
CUresult cuArray3DCreate_v2(CUdeviceptr *array, const struct cuda_array_3d *description);
CUresult cuMipmappedArrayCreate(CUdeviceptr *array, const struct cuda_array_3d *description,
				unsigned int levels);
CUresult cuArrayDestroy(CUdeviceptr array);
CUresult cuMipmappedArrayDestroy(CUdeviceptr array);
CUresult cuMemCreate(uint64_t *handle, size_t bytes, const struct cuda_properties *properties,
		     unsigned long long flags);
CUresult cuMemImportFromShareableHandle(uint64_t *handle, void *from, int type);
CUresult cuMemRetainAllocationHandle(uint64_t *handle, void *at);
CUresult cuMemRelease(uint64_t handle);
CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, uint64_t handle,
		  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes);
CUresult cuCtxSetCurrent(uintptr_t context);
CUresult cuCtxPushCurrent_v2(uintptr_t context);
CUresult cuCtxPopCurrent_v2(uintptr_t *context);
CUresult cuCtxCreate_v2(uintptr_t *context, unsigned int flags, int device);
CUresult cuCtxDestroy_v2(uintptr_t context);
CUresult cuDevicePrimaryCtxRetain(uintptr_t *context, int device);
CUresult cuDevicePrimaryCtxRelease_v2(int device);
CUresult cuDevicePrimaryCtxReset_v2(int device);
CUresult cuGetProcAddress_v2(const char *symbol, void **address, int version, uint64_t flags,
			     int *status);
CUresult cuGetProcAddress(const char *symbol, void **address, int version, uint64_t flags);

#endif
