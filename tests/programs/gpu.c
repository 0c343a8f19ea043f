/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu.c - allocates and frees on the GPUs of gpu_cuda.c, and keeps its own ledger:
 *   gpu random OPERATIONS   3 processes of 8 threads make so many in all, each under one lock; some
 *                           fail, some are spikes of 0.2 ms. One process ends, one is killed, with
 *                           all that they hold
 *   gpu free OPERATIONS     the same without the lock: what is left at the end alone is known
 *   gpu steps               each kind of call once
 *
 * Prints {"case", "rows": [{step, gpu, peak, pinned}], "peak", "pinned_peak", "devices": [peaks],
 * "processes": [{pid, peak, held}], "refused"}, in bytes; "peak" of a row is since the row before.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/sdt.h>
#include <sys/wait.h>

#include "gpu_cuda.h"
#include "truth.h"

enum {
	PROCESSES = 3,
	THREADS = 8,
	DEVICES = 2,
	MAX_ROWS = 64,
	MAX_LIVE = 256, /* of a thread */
	MAX_BYTES = 64 << 20,
};

enum kind { POINTER, INNER_POINTER, ASYNC, ARRAY, HOST, REGISTERED, MEMORY };

struct live {
	enum kind kind;
	uint64_t at, bytes;
};

struct amount {
	uint64_t held, peak, step;
};

struct process {
	pid_t pid;
	struct amount all, pinned, device[DEVICES];
};

struct row {
	char step[32];
	uint64_t gpu, peak, pinned;
};

/* What all processes know. */
static struct shared {
	pthread_mutex_t lock;
	struct amount all, pinned, device[DEVICES];
	struct process process[PROCESSES];
	struct row rows[MAX_ROWS];
	unsigned int n_rows, refused, operations;
	unsigned int done; /* processes that have made all their calls */
	bool may_end;
} * shared;

static struct process *self;
static bool locks = true;
static unsigned int share_of_thread;
static uintptr_t contexts[DEVICES];
static CUresult (*inner_alloc)(CUdeviceptr *dptr, size_t bytes);
static CUresult (*inner_free)(CUdeviceptr dptr);

/* ---- The ledger ---- */

static void add(struct amount *amount, int64_t bytes)
{
	const uint64_t held = __atomic_add_fetch(&amount->held, (uint64_t)bytes, __ATOMIC_RELAXED);

	if (bytes <= 0 || !locks)
		return;
	if (held > amount->peak)
		amount->peak = held;
	if (held > amount->step)
		amount->step = held;
}

static void count(bool pinned, unsigned int device, int64_t bytes)
{
	add(pinned ? &shared->pinned : &shared->all, bytes);
	add(pinned ? &self->pinned : &self->all, bytes);
	if (pinned)
		return;
	add(&shared->device[device], bytes);
	add(&self->device[device], bytes);
}

/* All that a process held is free. */
static void count_gone(struct process *process)
{
	add(&shared->all, -(int64_t)process->all.held);
	add(&shared->pinned, -(int64_t)process->pinned.held);
	for (unsigned int i = 0; i < DEVICES; i++)
		add(&shared->device[i], -(int64_t)process->device[i].held);
}

static void take_lock(void)
{
	if (locks)
		must(!pthread_mutex_lock(&shared->lock));
}

static void give_lock(void)
{
	if (locks)
		must(!pthread_mutex_unlock(&shared->lock));
}

/* With the lock. */
static void mark(const char *name)
{
	struct row *row = &shared->rows[shared->n_rows++];

	must(shared->n_rows < MAX_ROWS);
	snprintf(row->step, sizeof(row->step), "%s", name);
	row->gpu = shared->all.held;
	row->peak = shared->all.step;
	row->pinned = shared->pinned.held;
	shared->all.step = shared->all.held;
	DTRACE_PROBE1(qprof, mark, row->step);
}

/* ---- Operations ---- */

static uint32_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static uint64_t draw_bytes(uint64_t *state)
{
	return 1 + draw(state) % MAX_BYTES;
}

static void use_context(unsigned int device)
{
	must(!cuCtxSetCurrent(contexts[device]));
}

/* As llama.cpp does: the handle is released as soon as it is mapped. */
static void map_memory(struct live *live, unsigned int device)
{
	const struct cuda_properties properties = {.type = 1, .location = {1, (int)device}};
	uint64_t handle;

	must(!cuMemCreate(&handle, live->bytes, &properties, 0));
	count(false, device, (int64_t)live->bytes);
	/* Of an address that nobody else has. */
	live->at = (uint64_t)live;
	must(!cuMemMap(live->at, live->bytes, 0, handle, 0));
	must(!cuMemRelease(handle));
}

static void allocate(struct live *live, unsigned int device, uint64_t *state)
{
	void *pool, *host = NULL;

	live->kind = draw(state) % (MEMORY + 1);
	live->bytes = draw_bytes(state);
	switch (live->kind) {
	case POINTER:
		if (draw(state) & 1)
			must(!cuMemAlloc_v2(&live->at, live->bytes));
		else
			must(!cuMemAllocManaged(&live->at, live->bytes, 1));
		break;
	case INNER_POINTER:
		must(!inner_alloc(&live->at, live->bytes));
		break;
	case ASYNC:
		must(!cuDeviceGetDefaultMemPool(&pool, (int)device));
		if (draw(state) & 1)
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
		return;
	}
	count(live->kind == HOST || live->kind == REGISTERED, device, (int64_t)live->bytes);
}

static void release(struct live *live, unsigned int device)
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
	count(live->kind == HOST || live->kind == REGISTERED, device, -(int64_t)live->bytes);
}

/* More than there is, and what nobody has. */
static void fail(uint64_t *state)
{
	CUdeviceptr at;

	if (draw(state) & 1) {
		must(cuMemAlloc_v2(&at, GPU_MOST_BYTES + 1) == CUDA_ERROR_OUT_OF_MEMORY);
		__atomic_add_fetch(&shared->refused, 1, __ATOMIC_RELAXED);
	} else {
		must(cuMemFree_v2(0xfff) == CUDA_ERROR_INVALID_VALUE);
	}
}

static void spike(unsigned int device, uint64_t *state)
{
	struct live live = {.bytes = 3 * (uint64_t)MAX_BYTES + draw_bytes(state)};

	must(!cuMemAlloc_v2(&live.at, live.bytes));
	count(false, device, (int64_t)live.bytes);
	hold_ns(200000);
	release(&live, device);
}

/* A context of the thread's own goes with all that is in it. */
static void use_own_context(unsigned int device, uint64_t *state)
{
	const uint64_t bytes = draw_bytes(state), pinned = draw_bytes(state);
	uintptr_t context;
	CUdeviceptr at;
	void *host;

	must(!cuCtxCreate_v2(&context, 0, (int)device));
	must(!cuMemAlloc_v2(&at, bytes));
	must(!cuMemHostAlloc(&host, pinned, 0));
	count(false, device, (int64_t)bytes);
	count(true, device, (int64_t)pinned);
	must(!cuCtxDestroy_v2(context));
	count(false, device, -(int64_t)bytes);
	count(true, device, -(int64_t)pinned);
}

static void operate(struct live **live, size_t *n, unsigned int device, uint64_t *state)
{
	const unsigned int what = draw(state) % 1000;

	if (what == 0) {
		spike(device, state);
	} else if (what < 10) {
		use_own_context(device, state);
	} else if (what < 30) {
		fail(state);
	} else if (*n && (*n == MAX_LIVE || what & 1)) {
		const size_t at = draw(state) % *n;

		release(live[at], device);
		free(live[at]);
		live[at] = live[--*n];
	} else {
		live[*n] = malloc(sizeof(**live));
		must(live[*n]);
		allocate(live[(*n)++], device, state);
	}
}

static void *operate_all(void *arg)
{
	const unsigned int number = (unsigned int)(uintptr_t)arg, device = number % DEVICES;
	struct live **live = calloc(MAX_LIVE, sizeof(*live));
	uint64_t state = number + 1;
	size_t n = 0;

	must(live);
	use_context(device);
	for (unsigned int i = 0; i < share_of_thread; i++) {
		char name[32];

		take_lock();
		operate(live, &n, device, &state);
		if (locks && !number && i % (share_of_thread / 8 + 1) == 0) {
			snprintf(name, sizeof(name), "Step %u", i);
			mark(name);
		}
		give_lock();
	}
	return NULL;
}

static void run_threads(unsigned int process)
{
	pthread_t threads[THREADS];

	self = &shared->process[process];
	self->pid = getpid();
	for (unsigned int i = 0; i < DEVICES; i++)
		must(!cuDevicePrimaryCtxRetain(&contexts[i], (int)i));
	must(!cuGetProcAddress_v2("cuMemAlloc", (void **)&inner_alloc, 12000, 0, NULL));
	must(!cuGetProcAddress_v2("cuMemFree", (void **)&inner_free, 12000, 0, NULL));
	for (uintptr_t i = 0; i < THREADS; i++)
		must(!pthread_create(&threads[i], NULL, operate_all,
				     (void *)(process * THREADS + i)));
	for (unsigned int i = 0; i < THREADS; i++)
		must(!pthread_join(threads[i], NULL));
	__atomic_add_fetch(&shared->done, 1, __ATOMIC_RELEASE);
}

static void share(void)
{
	pthread_mutexattr_t attributes;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	must(shared != MAP_FAILED);
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	must(!pthread_mutex_init(&shared->lock, &attributes));
}

static void print(const char *name)
{
	printf("{\"case\": \"%s\", \"rows\": [", name);
	for (unsigned int i = 0; i < shared->n_rows; i++)
		printf("%s{\"step\": \"%s\", \"gpu\": %" PRIu64 ", \"peak\": %" PRIu64
		       ", \"pinned\": %" PRIu64 "}",
		       i ? ", " : "", shared->rows[i].step, shared->rows[i].gpu,
		       shared->rows[i].peak, shared->rows[i].pinned);
	printf("], \"peak\": %" PRIu64 ", \"pinned_peak\": %" PRIu64 ", \"refused\": %u",
	       shared->all.peak, shared->pinned.peak, shared->refused);
	printf(", \"devices\": [%" PRIu64 ", %" PRIu64 "], \"processes\": [",
	       shared->device[0].peak, shared->device[1].peak);
	for (unsigned int i = 0; i < PROCESSES && shared->process[i].pid; i++)
		printf("%s{\"pid\": %d, \"peak\": %" PRIu64 ", \"held\": %" PRIu64
		       ", \"pinned\": %" PRIu64 "}",
		       i ? ", " : "", shared->process[i].pid, shared->process[i].all.peak,
		       shared->process[i].all.held, shared->process[i].pinned.held);
	printf("]}\n");
}

static void run_random(unsigned int operations)
{
	pid_t ends, dies;
	int status;

	share_of_thread = operations / (PROCESSES * THREADS);
	ends = fork();
	if (!ends) {
		run_threads(1);
		while (!__atomic_load_n(&shared->may_end, __ATOMIC_ACQUIRE))
			pause_ns(1000000);
		_exit(0);
	}
	dies = fork();
	if (!dies) {
		run_threads(2);
		while (true)
			pause();
	}
	must(ends > 0 && dies > 0);
	run_threads(0);
	/* When a process ends, nobody may make calls: the ledger learns of its end later. */
	while (__atomic_load_n(&shared->done, __ATOMIC_ACQUIRE) < PROCESSES)
		pause_ns(1000000);
	mark("All Done");
	__atomic_store_n(&shared->may_end, true, __ATOMIC_RELEASE);
	must(waitpid(ends, &status, 0) == ends && !status);
	count_gone(&shared->process[1]);
	mark("One Ended");
	must(!kill(dies, SIGKILL) && waitpid(dies, &status, 0) == dies && WIFSIGNALED(status));
	count_gone(&shared->process[2]);
	mark("One Killed");
}

/* ---- Each kind of call once ---- */

static void add_and_mark(const char *name, bool pinned, int64_t bytes)
{
	count(pinned, 0, bytes);
	mark(name);
}

static void step_pointers(void)
{
	const struct cuda_array_3d shape = {.width = 8, .height = 4, .format = 0x10, .channels = 4};
	CUdeviceptr at, array;
	size_t pitch;

	must(!cuMemAllocPitch_v2(&at, &pitch, 1000, 10, 4));
	add_and_mark("Pitch", false, 10240);
	must(!cuMemFree_v2(at));
	add_and_mark("Freed", false, -10240);
	must(!cuMipmappedArrayCreate(&array, &shape, 3));
	add_and_mark("Mipmapped", false, (8 * 4 + 4 * 2 + 2 * 1) * 2 * 4);
	must(!cuMipmappedArrayDestroy(array));
	add_and_mark("Destroyed", false, -(8 * 4 + 4 * 2 + 2 * 1) * 2 * 4);
	must(!cuIpcOpenMemHandle_v2(&at, NULL, 0));
	add_and_mark("Another's", false, 0);
}

/* Two mappings side by side of one handle and of another, unmapped by one call. */
static void step_handles(void)
{
	const struct cuda_properties on_0 = {.location = {1, 0}}, on_host = {.location = {2, 0}};
	const CUdeviceptr at = 0x100000000;
	uint64_t first, second, host, again, other;

	must(!cuMemCreate(&first, 3000, &on_0, 0) && !cuMemCreate(&second, 5000, &on_0, 0));
	add_and_mark("Created", false, 8000);
	must(!cuMemMap(at, 3000, 0, first, 0) && !cuMemMap(at + 3000, 5000, 0, second, 0));
	must(!cuMemRelease(second) && cuMemRelease(second) == CUDA_ERROR_INVALID_VALUE);
	add_and_mark("Mapped", false, 0);
	must(!cuMemUnmap(at, 8000));
	add_and_mark("Unmapped", false, -5000);
	must(!cuMemMap(at, 3000, 0, first, 0) && !cuMemRelease(first));
	must(!cuMemRetainAllocationHandle(&again, (void *)at) && !cuMemUnmap(at, 3000));
	add_and_mark("Retained", false, 0);
	must(!cuMemRelease(again));
	add_and_mark("Released", false, -3000);
	must(!cuMemImportFromShareableHandle(&other, NULL, 1) && !cuMemRelease(other));
	add_and_mark("Imported", false, 0);
	must(!cuMemCreate(&host, 7000, &on_host, 0));
	add_and_mark("On The Host", true, 7000);
	must(!cuMemRelease(host));
	add_and_mark("Not There", true, -7000);
}

static void step_contexts(void)
{
	uintptr_t context, popped;
	CUdeviceptr at;

	must(!cuMemAlloc_v2(&at, 1111));
	must(!cuCtxCreate_v2(&context, 0, 1) && !cuMemAlloc_v2(&at, 2222));
	count(false, 0, 1111);
	count(false, 1, 2222);
	mark("Second Device");
	must(!cuCtxPopCurrent_v2(&popped) && popped == context && !cuMemAlloc_v2(&at, 10));
	add_and_mark("Popped", false, 10);
	must(!cuCtxPushCurrent_v2(context) && cuCtxDestroy_v2(60) == CUDA_ERROR_INVALID_CONTEXT);
	mark("Not Destroyed");
	must(!cuCtxDestroy_v2(context));
	count(false, 1, -2222);
	mark("Destroyed");
	must(!cuDevicePrimaryCtxReset_v2(0));
	add_and_mark("Reset", false, -1121);
	must(!cuMemAlloc_v2(&at, 500));
	add_and_mark("After It", false, 500);
	must(!cuDevicePrimaryCtxRetain(&popped, 0) && !cuDevicePrimaryCtxRelease_v2(0));
	mark("Kept");
	must(!cuDevicePrimaryCtxRelease_v2(0));
	add_and_mark("Gone", false, -500);
}

static void run_steps(void)
{
	self = &shared->process[0];
	self->pid = getpid();
	must(!cuDevicePrimaryCtxRetain(&contexts[0], 0));
	use_context(0);
	step_pointers();
	step_handles();
	step_contexts();
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	share();
	if (!strcmp(name, "steps") && argc == 2) {
		run_steps();
	} else if (argc == 3 && (!strcmp(name, "random") || !strcmp(name, "free"))) {
		locks = !strcmp(name, "random");
		run_random((unsigned int)strtoul(argv[2], NULL, 10));
	} else {
		die("gpu random N | free N | steps");
	}
	print(name);
	return 0;
}
