/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu.c - allocates and frees on the GPUs of gpu_cuda.c, and keeps its own ledger: gpu_truth.h has
 * the cases. */
#include "gpu_cuda.h"
#include "gpu_truth.h"
#include "truth.h"

enum kind { POINTER, INNER_POINTER, ASYNC, ARRAY, HOST, REGISTERED, MEMORY };

static uintptr_t contexts[GPU_DEVICES];
static CUresult (*inner_alloc)(CUdeviceptr *dptr, size_t bytes);
static CUresult (*inner_free)(CUdeviceptr dptr);

/* ---- Operations ---- */

static void begin(void)
{
	for (unsigned int i = 0; i < GPU_DEVICES; i++)
		must(!cuDevicePrimaryCtxRetain(&contexts[i], (int)i));
	must(!cuGetProcAddress_v2("cuMemAlloc", (void **)&inner_alloc, 12000, 0, NULL));
	must(!cuGetProcAddress_v2("cuMemFree", (void **)&inner_free, 12000, 0, NULL));
}

static void use_context(unsigned int device)
{
	must(!cuCtxSetCurrent(contexts[device]));
}

/* As llama.cpp does: the handle is released as soon as it is mapped. */
static void map_memory(struct gpu_live *live, unsigned int device)
{
	const struct cuda_properties properties = {.type = 1, .location = {1, (int)device}};
	uint64_t handle;

	must(!cuMemCreate(&handle, live->bytes, &properties, 0));
	/* Of an address that nobody else has. */
	live->at = (uint64_t)live;
	must(!cuMemMap(live->at, live->bytes, 0, handle, 0));
	must(!cuMemRelease(handle));
}

static void allocate(struct gpu_live *live, unsigned int device, uint64_t *state)
{
	void *pool, *host = NULL;

	live->kind = gpu_draw(state) % (MEMORY + 1);
	live->pinned = live->kind == HOST || live->kind == REGISTERED;
	switch (live->kind) {
	case POINTER:
		if (gpu_draw(state) & 1)
			must(!cuMemAlloc_v2(&live->at, live->bytes));
		else
			must(!cuMemAllocManaged(&live->at, live->bytes, 1));
		break;
	case INNER_POINTER:
		must(!inner_alloc(&live->at, live->bytes));
		break;
	case ASYNC:
		must(!cuDeviceGetDefaultMemPool(&pool, (int)device));
		if (gpu_draw(state) & 1)
			must(!cuMemAllocAsync_ptsz(&live->at, live->bytes, NULL));
		else
			must(!cuMemAllocFromPoolAsync(&live->at, live->bytes, pool, NULL));
		break;
	case ARRAY: {
		const struct cuda_array shape = {.width = 1 + live->bytes % 1000,
						 .height = 3,
						 .format = 0x20,
						 .channels = 2};

		live->bytes = shape.width * 3 * 4 * 2;
		must(!cuArrayCreate_v2(&live->at, &shape));
		break;
	}
	case HOST:
		must(!cuMemHostAlloc(&host, live->bytes, 0));
		live->at = (uint64_t)host;
		break;
	case REGISTERED:
		live->at = (uint64_t)live;
		must(!cuMemHostRegister_v2(live, live->bytes, 0));
		break;
	case MEMORY:
		map_memory(live, device);
		break;
	}
}

static void release(const struct gpu_live *live)
{
	switch (live->kind) {
	case POINTER:
	case INNER_POINTER:
		must(!(live->bytes & 1 ? cuMemFree_v2(live->at) : inner_free(live->at)));
		break;
	case ASYNC:
		must(!cuMemFreeAsync(live->at, NULL));
		break;
	case ARRAY:
		must(!cuArrayDestroy(live->at));
		break;
	case HOST:
		must(!cuMemFreeHost((void *)live->at));
		break;
	case REGISTERED:
		must(!cuMemHostUnregister((void *)live->at));
		break;
	case MEMORY:
		must(!cuMemUnmap(live->at, live->bytes));
		break;
	}
}

static void refuse(void)
{
	CUdeviceptr at;

	must(cuMemAlloc_v2(&at, GPU_MOST_BYTES + 1) == CUDA_ERROR_OUT_OF_MEMORY);
	gpu_count_refused();
}

/* More than there is, and what nobody has. */
static void fail(uint64_t *state)
{
	if (gpu_draw(state) & 1)
		refuse();
	else
		must(cuMemFree_v2(0xfff) == CUDA_ERROR_INVALID_VALUE);
}

static void spike(struct gpu_live *live, unsigned int device)
{
	(void)device;
	live->kind = POINTER;
	must(!cuMemAlloc_v2(&live->at, live->bytes));
}

/* A context of the thread's own goes with all that is in it. */
static void use_own_context(unsigned int device, uint64_t *state)
{
	const uint64_t bytes = gpu_draw_bytes(state), pinned = gpu_draw_bytes(state);
	uintptr_t context;
	CUdeviceptr at;
	void *host;

	must(!cuCtxCreate_v2(&context, 0, (int)device));
	must(!cuMemAlloc_v2(&at, bytes));
	must(!cuMemHostAlloc(&host, pinned, 0));
	gpu_count(false, device, (int64_t)bytes);
	gpu_count(true, device, (int64_t)pinned);
	must(!cuCtxDestroy_v2(context));
	gpu_count(false, device, -(int64_t)bytes);
	gpu_count(true, device, -(int64_t)pinned);
}

/* ---- Each kind of call once ---- */

static void step_pointers(void)
{
	const struct cuda_array_3d shape = {.width = 8, .height = 4, .format = 0x10, .channels = 4};
	CUdeviceptr at, array;
	size_t pitch;

	must(!cuMemAllocPitch_v2(&at, &pitch, 1000, 10, 4));
	gpu_count_and_mark("Pitch", false, 10240);
	must(!cuMemFree_v2(at));
	gpu_count_and_mark("Freed", false, -10240);
	must(!cuMipmappedArrayCreate(&array, &shape, 3));
	gpu_count_and_mark("Mipmapped", false, (8 * 4 + 4 * 2 + 2 * 1) * 2 * 4);
	must(!cuMipmappedArrayDestroy(array));
	gpu_count_and_mark("Destroyed", false, -(8 * 4 + 4 * 2 + 2 * 1) * 2 * 4);
	must(!cuIpcOpenMemHandle_v2(&at, NULL, 0));
	gpu_count_and_mark("Another's", false, 0);
}

/* A pool of another device than the one that the thread uses. */
static void step_pools(void)
{
	const struct cuda_properties on_1 = {.type = 1, .location = {1, 1}};
	CUdeviceptr first, second;
	void *own, *of_device;

	must(!cuMemPoolCreate(&own, &on_1) && !cuDeviceGetDefaultMemPool(&of_device, 1));
	must(!cuMemAllocFromPoolAsync(&first, 4444, own, NULL));
	must(!cuMemAllocFromPoolAsync_ptsz(&second, 5555, of_device, NULL));
	gpu_count(false, 1, 9999);
	gpu_mark("From Pools");
	must(!cuMemFreeAsync_ptsz(first, NULL) && !cuMemFree_v2(second));
	gpu_count(false, 1, -9999);
	gpu_mark("Freed");
}

/* Two mappings side by side of one handle and of another, unmapped by one call. */
static void step_handles(void)
{
	const struct cuda_properties on_0 = {.location = {1, 0}}, on_host = {.location = {2, 0}};
	const CUdeviceptr at = 0x100000000;
	uint64_t first, second, host, again, other;

	must(!cuMemCreate(&first, 3000, &on_0, 0) && !cuMemCreate(&second, 5000, &on_0, 0));
	gpu_count_and_mark("Created", false, 8000);
	must(!cuMemMap(at, 3000, 0, first, 0) && !cuMemMap(at + 3000, 5000, 0, second, 0));
	must(!cuMemRelease(second) && cuMemRelease(second) == CUDA_ERROR_INVALID_VALUE);
	gpu_count_and_mark("Mapped", false, 0);
	must(!cuMemUnmap(at, 8000));
	gpu_count_and_mark("Unmapped", false, -5000);
	must(!cuMemMap(at, 3000, 0, first, 0) && !cuMemRelease(first));
	must(!cuMemRetainAllocationHandle(&again, (void *)at) && !cuMemUnmap(at, 3000));
	gpu_count_and_mark("Retained", false, 0);
	must(!cuMemRelease(again));
	gpu_count_and_mark("Released", false, -3000);
	must(!cuMemImportFromShareableHandle(&other, NULL, 1) && !cuMemRelease(other));
	gpu_count_and_mark("Imported", false, 0);
	must(!cuMemCreate(&host, 7000, &on_host, 0));
	gpu_count_and_mark("On The Host", true, 7000);
	must(!cuMemRelease(host));
	gpu_count_and_mark("Not There", true, -7000);
}

static void step_contexts(void)
{
	uintptr_t context, popped;
	CUdeviceptr at;

	must(!cuMemAlloc_v2(&at, 1111));
	must(!cuCtxCreate_v2(&context, 0, 1) && !cuMemAlloc_v2(&at, 2222));
	gpu_count(false, 0, 1111);
	gpu_count(false, 1, 2222);
	gpu_mark("Second Device");
	must(!cuCtxPopCurrent_v2(&popped) && popped == context && !cuMemAlloc_v2(&at, 10));
	gpu_count_and_mark("Popped", false, 10);
	must(!cuCtxPushCurrent_v2(context) && cuCtxDestroy_v2(60) == CUDA_ERROR_INVALID_CONTEXT);
	gpu_mark("Not Destroyed");
	must(!cuCtxDestroy_v2(context));
	gpu_count(false, 1, -2222);
	gpu_mark("Destroyed");
	must(!cuDevicePrimaryCtxReset_v2(0));
	gpu_count_and_mark("Reset", false, -1121);
	must(!cuMemAlloc_v2(&at, 500));
	gpu_count_and_mark("After It", false, 500);
	must(!cuDevicePrimaryCtxRetain(&popped, 0) && !cuDevicePrimaryCtxRelease_v2(0));
	gpu_mark("Kept");
	must(!cuDevicePrimaryCtxRelease_v2(0));
	gpu_count_and_mark("Gone", false, -500);
}

static void run_steps(void)
{
	step_pointers();
	step_pools();
	step_handles();
	step_contexts();
}

int main(int argc, char **argv)
{
	static const struct gpu_library cuda = {
		.begin = begin,
		.use = use_context,
		.allocate = allocate,
		.release = release,
		.spike = spike,
		.fail = fail,
		.refuse = refuse,
		.other = use_own_context,
		.steps = run_steps,
	};

	return gpu_main(argc, argv, &cuda);
}
