/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arguments of libcuda's functions are those of cuda.h, of libhsa-runtime64's those of hsa.h
 * and hsa_ext_amd.h. "_v2" is what these headers name the function that is meant today; "_ptsz" is
 * the same for programs whose default stream is the thread's.
 *
 * Functions that give a stream of its own memory back later (cuMemFreeAsync) count at once: the
 * program has given it up. A destroyed pool frees nothing that is in use. Graphs allocate by nodes
 * of their own, which are not seen.
 *
 * What WAITS returns when the GPU is done, and what has .waits may do so besides what it does: so
 * cuMemFree() is documented, but for memory of a stream. Copies within a device return at once, and
 * so do those that a stream makes ("Async"), but for copies of memory that is not pinned: nobody
 * can tell from their arguments. "_ptds" is "_ptsz" of functions without a stream.
 */
#include "kernel/gpu_calls.h"

#include <string.h>

#define CUDA(symbol_, does_, ...)                                                                  \
	{                                                                                          \
		.symbol = (symbol_), .call = {                                                     \
			.vendor = WIRE_GPU_NVIDIA,                                                 \
			.does = WIRE_GPU_##does_,                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define HSA(symbol_, does_, ...)                                                                   \
	{                                                                                          \
		.symbol = (symbol_), .call = {                                                     \
			.vendor = WIRE_GPU_AMD,                                                    \
			.does = WIRE_GPU_##does_,                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define WAITS(symbol_)	    CUDA(symbol_, WAITS), CUDA(symbol_ "_ptsz", WAITS)
#define COPIES(symbol_)	    CUDA(symbol_, WAITS), CUDA(symbol_ "_ptds", WAITS)
#define TWINS(symbol_, ...) CUDA(symbol_, __VA_ARGS__), CUDA(symbol_ "_ptsz", __VA_ARGS__)

const struct gpu_function gpu_functions[] = {
	CUDA("cuMemAlloc_v2", ALLOCATES, .space = WIRE_GPU_POINTERS, .size = 1),
	CUDA("cuMemAllocPitch_v2", ALLOCATES, .space = WIRE_GPU_POINTERS,
	     .how = WIRE_GPU_SIZE_PITCH, .size = 3),
	CUDA("cuMemAllocManaged", ALLOCATES, .space = WIRE_GPU_POINTERS, .size = 1),
	TWINS("cuMemAllocAsync", ALLOCATES, .space = WIRE_GPU_POINTERS, .size = 1),
	TWINS("cuMemAllocFromPoolAsync", ALLOCATES, .space = WIRE_GPU_POINTERS, .size = 1,
	      .where = WIRE_GPU_AT_POOL, .from = 2),
	CUDA("cuMemPoolImportPointer", ALLOCATES, .space = WIRE_GPU_POINTERS,
	     .how = WIRE_GPU_SIZE_NONE),
	CUDA("cuMemFree_v2", FREES, .space = WIRE_GPU_POINTERS, .waits = 1),
	TWINS("cuMemFreeAsync", FREES, .space = WIRE_GPU_POINTERS),

	CUDA("cuMemHostAlloc", ALLOCATES, .space = WIRE_GPU_HOST_POINTERS, .size = 1,
	     .where = WIRE_GPU_AT_HOST),
	CUDA("cuMemAllocHost_v2", ALLOCATES, .space = WIRE_GPU_HOST_POINTERS, .size = 1,
	     .where = WIRE_GPU_AT_HOST),
	CUDA("cuMemFreeHost", FREES, .space = WIRE_GPU_HOST_POINTERS),
	CUDA("cuMemHostRegister_v2", REGISTERS, .space = WIRE_GPU_HOST_POINTERS, .size = 1,
	     .where = WIRE_GPU_AT_HOST),
	CUDA("cuMemHostUnregister", FREES, .space = WIRE_GPU_HOST_POINTERS),

	CUDA("cuMemCreate", CREATES, .size = 1, .where = WIRE_GPU_AT_LOCATION, .from = 2),
	CUDA("cuMemImportFromShareableHandle", IMPORTS, .how = WIRE_GPU_SIZE_NONE),
	CUDA("cuMemRetainAllocationHandle", RETAINS, .key = 0),
	CUDA("cuMemRelease", RELEASES, .key = 0),
	CUDA("cuMemMap", MAPS, .size = 1),
	CUDA("cuMemUnmap", UNMAPS, .size = 1),

	CUDA("cuArrayCreate_v2", ALLOCATES, .space = WIRE_GPU_ARRAYS, .how = WIRE_GPU_SIZE_ARRAY,
	     .size = 1),
	CUDA("cuArray3DCreate_v2", ALLOCATES, .space = WIRE_GPU_ARRAYS,
	     .how = WIRE_GPU_SIZE_ARRAY_3D, .size = 1),
	CUDA("cuMipmappedArrayCreate", ALLOCATES, .space = WIRE_GPU_ARRAYS,
	     .how = WIRE_GPU_SIZE_MIPMAPPED, .size = 1),
	CUDA("cuArrayDestroy", FREES, .space = WIRE_GPU_ARRAYS),
	CUDA("cuMipmappedArrayDestroy", FREES, .space = WIRE_GPU_ARRAYS),

	CUDA("cuCtxCreate_v2", CONTEXT_BEGINS, .from = 2),
	CUDA("cuCtxCreate_v3", CONTEXT_BEGINS, .from = 4),
	CUDA("cuCtxCreate_v4", CONTEXT_BEGINS, .from = 3),
	CUDA("cuCtxDestroy_v2", CONTEXT_ENDS, .key = 0),
	CUDA("cuCtxSetCurrent", CONTEXT_SET, .key = 0),
	CUDA("cuCtxPushCurrent_v2", CONTEXT_PUSHED, .key = 0),
	CUDA("cuCtxPopCurrent_v2", CONTEXT_POPPED, .key = 0),
	CUDA("cuDevicePrimaryCtxRetain", PRIMARY_RETAINED, .from = 1),
	CUDA("cuDevicePrimaryCtxRelease_v2", PRIMARY_RELEASED, .key = 0),
	CUDA("cuDevicePrimaryCtxReset_v2", PRIMARY_RESET, .key = 0),

	CUDA("cuMemPoolCreate", POOL, .where = WIRE_GPU_AT_LOCATION, .from = 1),
	CUDA("cuDeviceGetDefaultMemPool", POOL, .where = WIRE_GPU_AT_DEVICE, .from = 1),
	CUDA("cuDeviceGetMemPool", POOL, .where = WIRE_GPU_AT_DEVICE, .from = 1),
	CUDA("cuCtxSynchronize", WAITS),
	CUDA("cuCtxSynchronize_v2", WAITS),
	WAITS("cuStreamSynchronize"),
	CUDA("cuEventSynchronize", WAITS),
	COPIES("cuMemcpy"),
	COPIES("cuMemcpyHtoD_v2"),
	COPIES("cuMemcpyDtoH_v2"),
	COPIES("cuMemcpyHtoA_v2"),
	COPIES("cuMemcpyAtoH_v2"),
	COPIES("cuMemcpy2D_v2"),
	COPIES("cuMemcpy2DUnaligned_v2"),
	COPIES("cuMemcpy3D_v2"),

	CUDA("cuGetProcAddress", NAMES, .key = 0),
	CUDA("cuGetProcAddress_v2", NAMES, .key = 0),

	HSA("hsa_amd_memory_pool_allocate", ALLOCATES, .space = WIRE_GPU_POINTERS, .key = 3,
	    .size = 1, .where = WIRE_GPU_AT_POOL),
	HSA("hsa_memory_allocate", ALLOCATES, .space = WIRE_GPU_POINTERS, .key = 2, .size = 1,
	    .where = WIRE_GPU_AT_POOL),
	HSA("hsa_amd_memory_pool_free", FREES, .space = WIRE_GPU_POINTERS),
	HSA("hsa_memory_free", FREES, .space = WIRE_GPU_POINTERS),
	HSA("hsa_amd_memory_lock", REGISTERS, .space = WIRE_GPU_HOST_POINTERS, .size = 1,
	    .where = WIRE_GPU_AT_HOST),
	HSA("hsa_amd_memory_lock_to_pool", REGISTERS, .space = WIRE_GPU_HOST_POINTERS, .size = 1,
	    .where = WIRE_GPU_AT_HOST),
	HSA("hsa_amd_memory_unlock", FREES, .space = WIRE_GPU_HOST_POINTERS),
	HSA("hsa_amd_vmem_handle_create", CREATES, .key = 4, .size = 1, .where = WIRE_GPU_AT_POOL),
	HSA("hsa_amd_vmem_import_shareable_handle", IMPORTS, .key = 1, .how = WIRE_GPU_SIZE_NONE),
	HSA("hsa_amd_vmem_retain_alloc_handle", RETAINS, .key = 0),
	HSA("hsa_amd_vmem_handle_release", RELEASES, .key = 0),
	HSA("hsa_amd_vmem_map", MAPS, .size = 1),
	HSA("hsa_amd_vmem_unmap", UNMAPS, .size = 1),
	HSA("hsa_signal_wait_scacquire", WAITS),
	HSA("hsa_signal_wait_relaxed", WAITS),
	HSA("hsa_signal_wait_acquire", WAITS),
	HSA("hsa_amd_signal_wait_all", WAITS),
	HSA("hsa_amd_signal_wait_any", WAITS),
	HSA("hsa_agent_get_info", AGENT, .key = 0),
	HSA("hsa_amd_agent_iterate_memory_pools", POOLS, .key = 0),
	HSA("hsa_agent_iterate_regions", POOLS, .key = 0),
	HSA("hsa_amd_memory_pool_get_info", POOL_SEEN, .key = 0),
	HSA("hsa_region_get_info", POOL_SEEN, .key = 0),
};
const size_t n_gpu_functions = sizeof(gpu_functions) / sizeof(*gpu_functions);

_Static_assert(sizeof(gpu_functions) / sizeof(*gpu_functions) <= WIRE_GPU_CALLS, "gpu_functions");

enum wire_gpu_vendor gpu_library_vendor(const char *name)
{
	static const char cuda[] = "libcuda.so.", hsa[] = "libhsa-runtime64.so.";

	if (!strncmp(name, cuda, sizeof(cuda) - 1))
		return WIRE_GPU_NVIDIA;
	return strncmp(name, hsa, sizeof(hsa) - 1) ? 0 : WIRE_GPU_AMD;
}

void gpu_function_name(const char *symbol, char name[WIRE_GPU_NAME_MAX])
{
	size_t len = strcspn(symbol, "_");

	if (len >= WIRE_GPU_NAME_MAX)
		len = WIRE_GPU_NAME_MAX - 1;
	memset(name, 0, WIRE_GPU_NAME_MAX);
	memcpy(name, symbol, len);
}
