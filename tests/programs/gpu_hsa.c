/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_hsa.c - libhsa-runtime64.so.1 without a GPU, for gpu_amd.c: what allocates memory gives out
 * numbers, and nothing is behind them. A CPU and two GPUs, with two pools each. Exported functions
 * call others, or jump to them; addresses and handles are small numbers of the same range.
 */
#include "gpu_hsa.h"
#include "gpu_numbers.h"
#include "gpu_truth.h"

#define API __attribute__((visibility("default")))

/* Agents are 16, 32, 48; their pools 17 and 18, 33 and 34, 49 and 50. A pool is a region. */
enum { AGENTS = 1 + GPU_DEVICES, AGENT = 16, POOLS = 2 };

static struct numbers pointers, handles;

/* Calls that another makes do not end in a jump to it. */
static volatile int calls;

static bool is_agent(hsa_agent_t agent)
{
	return agent && agent % AGENT == 0 && agent / AGENT <= AGENTS;
}

static bool is_pool(hsa_pool_t pool)
{
	return is_agent(pool / AGENT * AGENT) && pool % AGENT >= 1 && pool % AGENT <= POOLS;
}

static hsa_status_t give_back(struct numbers *n, uint64_t at)
{
	return numbers_give_back(n, at) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ALLOCATION;
}

/* ---- What there is ---- */

API hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t agent, void *data),
				    void *data)
{
	hsa_status_t status = HSA_STATUS_SUCCESS;

	for (hsa_agent_t i = 1; !status && i <= AGENTS; i++)
		status = callback(i * AGENT, data);
	return status;
}

API hsa_status_t hsa_agent_get_info(hsa_agent_t agent, uint32_t attribute, void *value)
{
	if (!is_agent(agent))
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (attribute == HSA_AGENT_INFO_DEVICE)
		*(uint32_t *)value = agent == AGENT ? HSA_DEVICE_TYPE_CPU : HSA_DEVICE_TYPE_GPU;
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t tell_pools(hsa_agent_t agent,
			       hsa_status_t (*callback)(hsa_pool_t pool, void *data), void *data)
{
	hsa_status_t status =
		is_agent(agent) ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;

	for (hsa_pool_t i = 1; !status && i <= POOLS; i++)
		status = callback(agent + i, data);
	return status;
}

API hsa_status_t hsa_amd_agent_iterate_memory_pools(
	hsa_agent_t agent, hsa_status_t (*callback)(hsa_pool_t pool, void *data), void *data)
{
	return tell_pools(agent, callback, data);
}

API hsa_status_t hsa_agent_iterate_regions(
	hsa_agent_t agent, hsa_status_t (*callback)(hsa_region_t region, void *data), void *data)
{
	return tell_pools(agent, callback, data);
}

API hsa_status_t hsa_amd_memory_pool_get_info(hsa_pool_t pool, uint32_t attribute, void *value)
{
	if (!is_pool(pool))
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (attribute == HSA_POOL_INFO_SIZE)
		*(size_t *)value = GPU_MOST_BYTES;
	return HSA_STATUS_SUCCESS;
}

API hsa_status_t hsa_region_get_info(hsa_region_t region, uint32_t attribute, void *value)
{
	return hsa_amd_memory_pool_get_info(region, attribute, value);
}

/* ---- Memory with an address ---- */

API hsa_status_t hsa_amd_memory_pool_allocate(hsa_pool_t pool, size_t bytes, uint32_t flags,
					      void **at)
{
	(void)flags;
	if (!is_pool(pool) || !bytes)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (bytes > GPU_MOST_BYTES)
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	*at = (void *)numbers_take(&pointers, 1);
	return HSA_STATUS_SUCCESS;
}

API hsa_status_t hsa_memory_allocate(hsa_region_t region, size_t bytes, void **at)
{
	const hsa_status_t status = hsa_amd_memory_pool_allocate(region, bytes, 0, at);

	calls++;
	return status;
}

API hsa_status_t hsa_memory_free(void *at)
{
	return at ? give_back(&pointers, (uint64_t)at) : HSA_STATUS_SUCCESS;
}

/* Jumps to the other. */
API hsa_status_t hsa_amd_memory_pool_free(void *at)
{
	return hsa_memory_free(at);
}

API hsa_status_t hsa_amd_memory_lock(void *host, size_t bytes, hsa_agent_t *agents, int n,
				     void **at)
{
	(void)agents;
	(void)n;
	*at = host;
	return host && bytes ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

API hsa_status_t hsa_amd_memory_lock_to_pool(void *host, size_t bytes, hsa_agent_t *agents, int n,
					     hsa_pool_t pool, uint32_t flags, void **at)
{
	(void)pool;
	(void)flags;
	return hsa_amd_memory_lock(host, bytes, agents, n, at);
}

API hsa_status_t hsa_amd_memory_unlock(void *host)
{
	return host ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

/* Another's memory. */
API hsa_status_t hsa_amd_ipc_memory_attach(const void *handle, size_t bytes, uint32_t n,
					   const hsa_agent_t *agents, void **at)
{
	(void)handle;
	(void)bytes;
	(void)n;
	(void)agents;
	*at = (void *)0x7000000000;
	return HSA_STATUS_SUCCESS;
}

API hsa_status_t hsa_amd_ipc_memory_detach(void *at)
{
	return at ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

/* ---- Memory without an address ---- */

API hsa_status_t hsa_amd_vmem_handle_create(hsa_pool_t pool, size_t bytes, int type, uint64_t flags,
					    hsa_handle_t *handle)
{
	(void)type;
	(void)flags;
	if (!is_pool(pool) || !bytes)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	if (bytes > GPU_MOST_BYTES)
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	*handle = numbers_take(&handles, 1);
	return HSA_STATUS_SUCCESS;
}

API hsa_status_t hsa_amd_vmem_import_shareable_handle(int fd, hsa_handle_t *handle)
{
	(void)fd;
	*handle = numbers_take(&handles, 1);
	return HSA_STATUS_SUCCESS;
}

API hsa_status_t hsa_amd_vmem_retain_alloc_handle(hsa_handle_t *handle, void *at)
{
	(void)at;
	*handle = numbers_take(&handles, 1);
	return HSA_STATUS_SUCCESS;
}

/* The number is another's at once, though the memory may still be mapped. */
API hsa_status_t hsa_amd_vmem_handle_release(hsa_handle_t handle)
{
	return give_back(&handles, handle);
}

API hsa_status_t hsa_amd_vmem_map(void *at, size_t bytes, size_t offset, hsa_handle_t handle,
				  uint64_t flags)
{
	(void)offset;
	(void)flags;
	return at && bytes && handle ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

API hsa_status_t hsa_amd_vmem_unmap(void *at, size_t bytes)
{
	return at && bytes ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}
