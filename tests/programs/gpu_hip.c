/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_hip.c - libamdhip64.so.6 for gpu_amd.c: as the real one it allocates by HSA, whose agents and
 * pools it asks about once in a process, and whose pools it asks for their sizes at any time. */
#include "gpu_hsa.h"
#include "gpu_truth.h"

#include <pthread.h>

#define API __attribute__((visibility("default")))

static pthread_once_t once = PTHREAD_ONCE_INIT;
static hsa_agent_t cpu, gpus[GPU_DEVICES];
static hsa_pool_t of_host, of_gpu[GPU_DEVICES];
static unsigned int n_gpus;
static __thread unsigned int used;

static hsa_status_t take_agent(hsa_agent_t agent, void *unused)
{
	uint32_t type = 0;
	char name[64];

	(void)unused;
	hsa_agent_get_info(agent, HSA_AGENT_INFO_NAME, name);
	hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
	if (type == HSA_DEVICE_TYPE_CPU)
		cpu = agent;
	else if (n_gpus < GPU_DEVICES)
		gpus[n_gpus++] = agent;
	return HSA_STATUS_SUCCESS;
}

/* The first one will do. */
static hsa_status_t take_pool(hsa_pool_t pool, void *to)
{
	size_t size;

	hsa_amd_memory_pool_get_info(pool, HSA_POOL_INFO_SIZE, &size);
	*(hsa_pool_t *)to = pool;
	return HSA_STATUS_INFO_BREAK;
}

static void begin(void)
{
	hsa_iterate_agents(take_agent, NULL);
	for (unsigned int i = 0; i < n_gpus; i++)
		hsa_amd_agent_iterate_memory_pools(gpus[i], take_pool, &of_gpu[i]);
	hsa_amd_agent_iterate_memory_pools(cpu, take_pool, &of_host);
}

API int hipSetDevice(int device)
{
	pthread_once(&once, begin);
	if (device < 0 || (unsigned int)device >= n_gpus)
		return 1;
	used = (unsigned int)device;
	return 0;
}

API int hipMemGetInfo(size_t *available, size_t *total)
{
	pthread_once(&once, begin);
	if (hsa_amd_memory_pool_get_info(of_gpu[used], HSA_POOL_INFO_SIZE, total))
		return 1;
	*available = *total;
	return 0;
}

API int hipMalloc(void **at, size_t bytes)
{
	pthread_once(&once, begin);
	return (int)hsa_amd_memory_pool_allocate(of_gpu[used], bytes, 0, at);
}

API int hipFree(void *at)
{
	return (int)hsa_amd_memory_pool_free(at);
}

API int hipHostMalloc(void **at, size_t bytes, unsigned int flags)
{
	pthread_once(&once, begin);
	return (int)hsa_amd_memory_pool_allocate(of_host, bytes, flags, at);
}

API int hipHostFree(void *at)
{
	return (int)hsa_amd_memory_pool_free(at);
}
