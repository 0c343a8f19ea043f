/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_amd.c - allocates and frees on the GPUs of gpu_hsa.c, also by HIP, and keeps its own ledger:
 * gpu_truth.h has the cases. */
#include <pthread.h>

#include "gpu_hsa.h"
#include "gpu_truth.h"
#include "truth.h"

enum kind { POOL, REGION, HIP, HIP_HOST, OF_HOST, LOCKED, LOCKED_TO_POOL, MEMORY };

/* The agents and pools as they were told: the first agent is the CPU. */
static hsa_agent_t agents[1 + GPU_DEVICES];
static hsa_pool_t pools[1 + GPU_DEVICES];
static hsa_region_t regions[1 + GPU_DEVICES];
static unsigned int n_agents;

/* ---- What there is ---- */

static hsa_status_t take_agent(hsa_agent_t agent, void *unused)
{
	uint32_t type;

	(void)unused;
	must(n_agents <= GPU_DEVICES);
	must(!hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
	must(type == (n_agents ? HSA_DEVICE_TYPE_GPU : HSA_DEVICE_TYPE_CPU));
	agents[n_agents++] = agent;
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t take_pool(hsa_pool_t pool, void *to)
{
	size_t bytes;

	must(!hsa_amd_memory_pool_get_info(pool, HSA_POOL_INFO_SIZE, &bytes));
	*(hsa_pool_t *)to = pool;
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t take_region(hsa_region_t region, void *to)
{
	size_t bytes;

	must(!hsa_region_get_info(region, HSA_POOL_INFO_SIZE, &bytes));
	*(hsa_region_t *)to = region;
	return HSA_STATUS_INFO_BREAK;
}

static void begin(void)
{
	must(!hsa_iterate_agents(take_agent, NULL) && n_agents == 1 + GPU_DEVICES);
	for (unsigned int i = 0; i < n_agents; i++) {
		must(!hsa_amd_agent_iterate_memory_pools(agents[i], take_pool, &pools[i]));
		must(hsa_agent_iterate_regions(agents[i], take_region, &regions[i]) ==
		     HSA_STATUS_INFO_BREAK);
	}
}

static void use(unsigned int device)
{
	must(!hipSetDevice((int)device));
}

/* ---- Operations ---- */

/* The handle is released as soon as it is mapped. */
static void map_memory(struct gpu_live *live, unsigned int device)
{
	hsa_handle_t handle;

	must(!hsa_amd_vmem_handle_create(pools[1 + device], live->bytes, 0, 0, &handle));
	/* Of an address that nobody else has. */
	live->at = (uint64_t)live;
	must(!hsa_amd_vmem_map(live, live->bytes, 0, handle, 0));
	must(!hsa_amd_vmem_handle_release(handle));
}

static void allocate(struct gpu_live *live, unsigned int device, uint64_t *state)
{
	void *at = NULL;

	live->kind = gpu_draw(state) % (MEMORY + 1);
	live->pinned = live->kind >= HIP_HOST && live->kind <= LOCKED_TO_POOL;
	switch (live->kind) {
	case POOL:
		must(!hsa_amd_memory_pool_allocate(pools[1 + device], live->bytes, 0, &at));
		break;
	case REGION:
		must(!hsa_memory_allocate(regions[1 + device], live->bytes, &at));
		break;
	case HIP:
		must(!hipMalloc(&at, live->bytes));
		break;
	case HIP_HOST:
		must(!hipHostMalloc(&at, live->bytes, 0));
		break;
	case OF_HOST:
		must(!hsa_amd_memory_pool_allocate(pools[0], live->bytes, 0, &at));
		break;
	case LOCKED:
		must(!hsa_amd_memory_lock(live, live->bytes, agents, 1, &at));
		break;
	case LOCKED_TO_POOL:
		must(!hsa_amd_memory_lock_to_pool(live, live->bytes, agents, 1, pools[0], 0, &at));
		break;
	case MEMORY:
		map_memory(live, device);
		return;
	}
	live->at = (uint64_t)at;
}

static void release(const struct gpu_live *live)
{
	void *at = (void *)live->at;

	switch (live->kind) {
	case POOL:
	case OF_HOST:
		must(!hsa_amd_memory_pool_free(at));
		break;
	case REGION:
		must(!hsa_memory_free(at));
		break;
	case HIP:
		must(!hipFree(at));
		break;
	case HIP_HOST:
		must(!hipHostFree(at));
		break;
	case LOCKED:
	case LOCKED_TO_POOL:
		must(!hsa_amd_memory_unlock(at));
		break;
	case MEMORY:
		must(!hsa_amd_vmem_unmap(at, live->bytes));
		break;
	}
}

static void refuse(void)
{
	void *at;

	must(hipMalloc(&at, GPU_MOST_BYTES + 1) == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
	gpu_count_refused();
}

/* More than there is, and what nobody has. */
static void fail(uint64_t *state)
{
	hsa_handle_t handle;

	switch (gpu_draw(state) % 4) {
	case 0:
		refuse();
		break;
	case 1:
		must(hsa_amd_vmem_handle_create(pools[1], GPU_MOST_BYTES + 1, 0, 0, &handle) ==
		     HSA_STATUS_ERROR_OUT_OF_RESOURCES);
		gpu_count_refused();
		break;
	case 2:
		must(hsa_memory_free((void *)0xfff) == HSA_STATUS_ERROR_INVALID_ALLOCATION);
		break;
	default:
		must(!hsa_amd_memory_pool_free(NULL));
	}
}

static void spike(struct gpu_live *live, unsigned int device)
{
	void *at;

	live->kind = POOL;
	must(!hsa_amd_memory_pool_allocate(pools[1 + device], live->bytes, 0, &at));
	live->at = (uint64_t)at;
}

/* Asks about a device, as programs do that want to know how much is free. Such questions come after
 * those about all, in any order. */
static void ask(unsigned int device, uint64_t *state)
{
	size_t available, total;
	uint32_t type;

	(void)device;
	must(!hipMemGetInfo(&available, &total) && total == GPU_MOST_BYTES);
	must(!hsa_agent_get_info(agents[gpu_draw(state) % n_agents], HSA_AGENT_INFO_DEVICE, &type));
	must(!hsa_amd_memory_pool_get_info(pools[gpu_draw(state) % n_agents], HSA_POOL_INFO_SIZE,
					   &total));
}

/* ---- Each kind of call once ---- */

/* A program may allocate while it is told of pools. */
static hsa_status_t allocate_there(hsa_pool_t pool, void *to)
{
	size_t bytes;

	must(!hsa_amd_memory_pool_get_info(pool, HSA_POOL_INFO_SIZE, &bytes));
	must(!hsa_amd_memory_pool_allocate(pool, 3333, 0, to));
	return HSA_STATUS_INFO_BREAK;
}

static void step_pools(void)
{
	void *first, *second;
	size_t bytes;

	must(!hsa_amd_memory_pool_allocate(pools[2], 4444, 0, &first));
	gpu_count(false, 1, 4444);
	gpu_mark("Second Device");
	/* The thread has been told of another agent last. */
	must(hsa_amd_agent_iterate_memory_pools(agents[1], allocate_there, &second) ==
	     HSA_STATUS_INFO_BREAK);
	gpu_count_and_mark("While It Is Told", false, 3333);
	must(!hsa_amd_memory_pool_free(second));
	gpu_count_and_mark("Freed", false, -3333);
	must(!hsa_amd_memory_pool_get_info(pools[2], HSA_POOL_INFO_SIZE, &bytes));
	must(!hsa_region_get_info(regions[0], HSA_POOL_INFO_SIZE, &bytes));
	must(!hsa_amd_memory_pool_allocate(pools[2], 5555, 0, &second));
	gpu_count(false, 1, 5555);
	gpu_mark("Once More");
	must(!hsa_memory_free(first) && !hsa_amd_memory_pool_free(second));
	gpu_count(false, 1, -9999);
	gpu_mark("Freed");
	must(!hsa_memory_allocate(regions[0], 6666, &first));
	gpu_count_and_mark("Of The Host", true, 6666);
	must(!hsa_memory_free(first));
	gpu_count_and_mark("None Of The Host", true, -6666);
	must(!hsa_amd_ipc_memory_attach(NULL, 100, 0, NULL, &first));
	gpu_count_and_mark("Another's", false, 0);
	must(!hsa_amd_ipc_memory_detach(first));
}

/* HSA counts locks of the same memory, and unlocks it after as many unlocks. */
static void step_locks(void)
{
	static char host[9000];
	void *at;

	must(!hsa_amd_memory_lock(host, 4000, agents, 1, &at));
	must(!hsa_amd_memory_lock(host, 4000, agents, 1, &at));
	gpu_count_and_mark("Locked Twice", true, 4000);
	must(!hsa_amd_memory_unlock(host));
	gpu_count_and_mark("Unlocked Once", true, 0);
	must(hsa_amd_memory_unlock(NULL));
	must(!hsa_amd_memory_lock_to_pool(host, sizeof(host), agents, 1, pools[0], 0, &at));
	gpu_count_and_mark("Locked Longer", true, (int64_t)sizeof(host) - 4000);
	must(!hsa_amd_memory_unlock(host));
	gpu_count_and_mark("Locked Yet", true, 0);
	must(!hsa_amd_memory_unlock(host));
	gpu_count_and_mark("Unlocked", true, -(int64_t)sizeof(host));
	must(!hsa_amd_memory_lock(host, 10, agents, 1, &at));
	gpu_count_and_mark("Locked Anew", true, 10);
	must(!hsa_amd_memory_unlock(host));
	gpu_count_and_mark("Unlocked Again", true, -10);
}

enum { LOCKERS = 4, LOCKS = 2000 };

static char locked_by_many[LOCKERS * (LOCKS + 1)];

static void *lock_longer(void *number)
{
	void *at;

	for (size_t i = 1; i <= LOCKS; i++)
		must(!hsa_amd_memory_lock(locked_by_many, i * LOCKERS + (uintptr_t)number, agents,
					  1, &at));
	return NULL;
}

/* Threads lock the same memory at the same time, each time more of it. */
static void step_locks_by_many(void)
{
	const int64_t most = sizeof(locked_by_many) - 1;
	pthread_t threads[LOCKERS];
	void *at;

	must(!hsa_amd_memory_lock(locked_by_many, 1, agents, 1, &at));
	for (uintptr_t i = 0; i < LOCKERS; i++)
		must(!pthread_create(&threads[i], NULL, lock_longer, (void *)i));
	for (size_t i = 0; i < LOCKERS; i++)
		must(!pthread_join(threads[i], NULL));
	gpu_count_and_mark("Locked By Many", true, most);
	for (size_t i = 0; i < LOCKERS * LOCKS; i++)
		must(!hsa_amd_memory_unlock(locked_by_many));
	gpu_count_and_mark("Unlocked But Once", true, 0);
	must(!hsa_amd_memory_unlock(locked_by_many));
	gpu_count_and_mark("Unlocked By Many", true, -most);
}

static void step_handles(void)
{
	char *const at = (char *)0x100000000;
	hsa_handle_t first, second, again, other;

	must(!hsa_amd_vmem_handle_create(pools[1], 3000, 0, 0, &first));
	must(!hsa_amd_vmem_handle_create(pools[1], 5000, 0, 0, &second));
	gpu_count_and_mark("Created", false, 8000);
	must(!hsa_amd_vmem_map(at, 3000, 0, first, 0));
	must(!hsa_amd_vmem_map(at + 3000, 5000, 0, second, 0));
	must(!hsa_amd_vmem_handle_release(second));
	must(hsa_amd_vmem_handle_release(second) == HSA_STATUS_ERROR_INVALID_ALLOCATION);
	gpu_count_and_mark("Mapped", false, 0);
	must(!hsa_amd_vmem_unmap(at + 3000, 5000));
	gpu_count_and_mark("Unmapped", false, -5000);
	must(!hsa_amd_vmem_handle_release(first));
	must(!hsa_amd_vmem_retain_alloc_handle(&again, at) && !hsa_amd_vmem_unmap(at, 3000));
	gpu_count_and_mark("Retained", false, 0);
	must(!hsa_amd_vmem_handle_release(again));
	gpu_count_and_mark("Released", false, -3000);
	must(!hsa_amd_vmem_import_shareable_handle(3, &other));
	must(!hsa_amd_vmem_handle_release(other));
	gpu_count_and_mark("Imported", false, 0);
}

/* A thread that has asked about nothing uses what others were told. */
static void *allocate_elsewhere(void *to)
{
	must(!hipSetDevice(1) && !hipMalloc(to, 7777));
	return NULL;
}

static void step_threads(void)
{
	pthread_t other;
	void *at;

	must(!pthread_create(&other, NULL, allocate_elsewhere, &at) && !pthread_join(other, NULL));
	gpu_count(false, 1, 7777);
	gpu_mark("By Another Thread");
	must(!hipFree(at));
	gpu_count(false, 1, -7777);
	gpu_mark("Freed By This One");
}

static void run_steps(void)
{
	step_pools();
	step_locks();
	step_locks_by_many();
	step_handles();
	step_threads();
}

/* A process that has asked about GPUs and runs another program numbers them anew. */
static void run_again(char **argv)
{
	if (getenv("QPROF_RUNS_AGAIN"))
		return;
	begin();
	must(!setenv("QPROF_RUNS_AGAIN", "1", 1));
	execv("/proc/self/exe", argv);
	die("execv");
}

int main(int argc, char **argv)
{
	static const struct gpu_library hsa = {
		.begin = begin,
		.use = use,
		.allocate = allocate,
		.release = release,
		.spike = spike,
		.fail = fail,
		.refuse = refuse,
		.other = ask,
		.steps = run_steps,
	};

	run_again(argv);
	return gpu_main(argc, argv, &hsa);
}
