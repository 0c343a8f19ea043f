/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_hsa.h - the parts of hsa.h, hsa_ext_amd.h and hip_runtime_api.h that gpu_hsa.c and gpu_hip.c
 * have. Agents, pools and handles are structs of one number there, which is passed as one. */
#ifndef QPROF_GPU_HSA_H
#define QPROF_GPU_HSA_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t hsa_status_t;
typedef uint64_t hsa_agent_t, hsa_pool_t, hsa_region_t, hsa_handle_t;

enum {
	HSA_STATUS_SUCCESS = 0,
	HSA_STATUS_INFO_BREAK = 1, /* of a callback: ask no further */
	HSA_STATUS_ERROR_INVALID_ARGUMENT = 0x1001,
	HSA_STATUS_ERROR_INVALID_ALLOCATION = 0x1003,
	HSA_STATUS_ERROR_OUT_OF_RESOURCES = 0x1008,
	HSA_AGENT_INFO_NAME = 0,
	HSA_AGENT_INFO_DEVICE = 17,
	HSA_DEVICE_TYPE_CPU = 0,
	HSA_DEVICE_TYPE_GPU = 1,
	HSA_POOL_INFO_SIZE = 2,
};

hsa_status_t hsa_iterate_agents(hsa_status_t (*callback)(hsa_agent_t agent, void *data),
				void *data);
hsa_status_t hsa_agent_get_info(hsa_agent_t agent, uint32_t attribute, void *value);
hsa_status_t hsa_amd_agent_iterate_memory_pools(
	hsa_agent_t agent, hsa_status_t (*callback)(hsa_pool_t pool, void *data), void *data);
hsa_status_t hsa_amd_memory_pool_get_info(hsa_pool_t pool, uint32_t attribute, void *value);
hsa_status_t hsa_agent_iterate_regions(hsa_agent_t agent,
				       hsa_status_t (*callback)(hsa_region_t region, void *data),
				       void *data);
hsa_status_t hsa_region_get_info(hsa_region_t region, uint32_t attribute, void *value);

hsa_status_t hsa_amd_memory_pool_allocate(hsa_pool_t pool, size_t bytes, uint32_t flags, void **at);
hsa_status_t hsa_amd_memory_pool_free(void *at);
hsa_status_t hsa_memory_allocate(hsa_region_t region, size_t bytes, void **at);
hsa_status_t hsa_memory_free(void *at);
hsa_status_t hsa_amd_memory_lock(void *host, size_t bytes, hsa_agent_t *agents, int n, void **at);
hsa_status_t hsa_amd_memory_lock_to_pool(void *host, size_t bytes, hsa_agent_t *agents, int n,
					 hsa_pool_t pool, uint32_t flags, void **at);
hsa_status_t hsa_amd_memory_unlock(void *host);
hsa_status_t hsa_amd_ipc_memory_attach(const void *handle, size_t bytes, uint32_t n,
				       const hsa_agent_t *agents, void **at);
hsa_status_t hsa_amd_ipc_memory_detach(void *at);

hsa_status_t hsa_amd_vmem_handle_create(hsa_pool_t pool, size_t bytes, int type, uint64_t flags,
					hsa_handle_t *handle);
hsa_status_t hsa_amd_vmem_handle_release(hsa_handle_t handle);
hsa_status_t hsa_amd_vmem_map(void *at, size_t bytes, size_t offset, hsa_handle_t handle,
			      uint64_t flags);
hsa_status_t hsa_amd_vmem_unmap(void *at, size_t bytes);
hsa_status_t hsa_amd_vmem_import_shareable_handle(int fd, hsa_handle_t *handle);
hsa_status_t hsa_amd_vmem_retain_alloc_handle(hsa_handle_t *handle, void *at);

/* ---- HIP: returns 0 on success ---- */

int hipSetDevice(int device);
int hipMemGetInfo(size_t *available, size_t *total);
int hipMalloc(void **at, size_t bytes);
int hipFree(void *at);
int hipHostMalloc(void **at, size_t bytes, unsigned int flags);
int hipHostFree(void *at);

#endif
