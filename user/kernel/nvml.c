/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The part of NVML's interface that is used, by its documentation --------------------------
 */

enum { NVML_SUCCESS = 0, NVML_INSUFFICIENT_SIZE = 7, NVML_BUS_ID_MAX = 32 };

typedef void *nvml_device;

struct nvml_pci {
	char legacy_bus_id[16];
	unsigned int domain, bus, device, pci_device, pci_subsystem;
	char bus_id[NVML_BUS_ID_MAX];
};

struct nvml_memory {
	unsigned long long total, free, used;
};

/* Drivers since 510: what the driver keeps for itself is not in `used`. */
struct nvml_memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

#define NVML_MEMORY_V2 ((unsigned int)sizeof(struct nvml_memory_v2) | 2u << 24)

/* Of nvmlDeviceGetComputeRunningProcesses; the ones below are of its _v2 and _v3. */
struct nvml_process_v1 {
	unsigned int pid;
	unsigned long long used;
};

struct nvml_process {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

/* The driver does not say how much. */
#define NVML_NOT_AVAILABLE (~0ull)

typedef int (*processes_fn)(nvml_device device, unsigned int *n, void *processes);

struct nvml {
	int (*count)(unsigned int *n);
	int (*handle)(unsigned int index, nvml_device *device);
	int (*name)(nvml_device device, char *name, unsigned int size);
	int (*uuid)(nvml_device device, char *uuid, unsigned int size);
	int (*pci)(nvml_device device, struct nvml_pci *pci);
	int (*memory)(nvml_device device, struct nvml_memory *memory);
	int (*memory_v2)(nvml_device device, struct nvml_memory_v2 *memory);
	processes_fn computing, drawing;
	bool is_v1; /* what these two fill in */
};

/* ---- Loading ----------------------------------------------------------------------------------
 */

static const char *error_words(void *library, int code)
{
	const char *(*words)(int) = NULL;
	const char *text;

	*(void **)&words = dlsym(library, "nvmlErrorString");
	text = words ? words(code) : NULL;
	return text ? text : "an error that it does not name";
}

/* The newest of a function that both sides know. */
static void *newest(void *library, const char *name, bool *is_v1)
{
	static const char *const versions[] = {"_v3", "_v2", ""};
	char versioned[64];

	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		void *function;

		snprintf(versioned, sizeof(versioned), "%s%s", name, versions[i]);
		function = dlsym(library, versioned);
		if (function) {
			*is_v1 = !*versions[i];
			return function;
		}
	}
	return NULL;
}

static bool find_functions(struct nvml *n, void *library)
{
	bool drawing_v1 = false;

	*(void **)&n->count = dlsym(library, "nvmlDeviceGetCount_v2");
	*(void **)&n->handle = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&n->name = dlsym(library, "nvmlDeviceGetName");
	*(void **)&n->uuid = dlsym(library, "nvmlDeviceGetUUID");
	*(void **)&n->pci = dlsym(library, "nvmlDeviceGetPciInfo_v3");
	*(void **)&n->memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
	*(void **)&n->memory_v2 = dlsym(library, "nvmlDeviceGetMemoryInfo_v2");
	*(void **)&n->computing =
		newest(library, "nvmlDeviceGetComputeRunningProcesses", &n->is_v1);
	*(void **)&n->drawing =
		newest(library, "nvmlDeviceGetGraphicsRunningProcesses", &drawing_v1);
	if (drawing_v1 != n->is_v1)
		n->drawing = NULL;
	return n->count && n->handle && n->memory;
}

/* A static program cannot load it: the library needs a libc, and of the version it finds. */
static void *load(char *why)
{
#ifdef QPROF_STATIC
	snprintf(why, GPU_WHY_MAX,
		 "this qprof-bpf is static and cannot load libnvidia-ml.so.1; one that was "
		 "installed from packages can");
	return NULL;
#else
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		snprintf(why, GPU_WHY_MAX, "%s", dlerror());
	return library;
#endif
}

struct nvml *nvml_open(char *why)
{
	void *library = load(why);
	struct nvml *n = library ? calloc(1, sizeof(*n)) : NULL;
	int (*init)(void) = NULL;
	int code;

	if (!library)
		return NULL;
	*(void **)&init = dlsym(library, "nvmlInit_v2");
	if (!n || !init || !find_functions(n, library)) {
		snprintf(why, GPU_WHY_MAX, "%s",
			 n ? "libnvidia-ml.so.1 is of a driver that is too old" : "out of memory");
		free(n);
		return NULL;
	}
	code = init();
	if (code != NVML_SUCCESS) {
		snprintf(why, GPU_WHY_MAX, "libnvidia-ml.so.1 says: %s",
			 error_words(library, code));
		free(n);
		return NULL;
	}
	return n;
}

/* ---- A look -----------------------------------------------------------------------------------
 */

/* "00000000:3B:00.0" as the kernel has it: "0000:3b:00.0". */
static void set_pci(struct gpu_device *device, const struct nvml_pci *pci)
{
	snprintf(device->pci, sizeof(device->pci), "%04x:%02x:%02x.0", pci->domain, pci->bus,
		 pci->device);
}

static void identify(const struct nvml *n, nvml_device handle, struct gpu_device *device)
{
	struct nvml_pci pci = {.domain = 0};

	if (!n->name || n->name(handle, device->name, sizeof(device->name)) != NVML_SUCCESS)
		device->name[0] = '\0';
	if (!n->uuid || n->uuid(handle, device->uuid, sizeof(device->uuid)) != NVML_SUCCESS)
		device->uuid[0] = '\0';
	if (n->pci && n->pci(handle, &pci) == NVML_SUCCESS)
		set_pci(device, &pci);
}

static void look_at_memory(const struct nvml *n, nvml_device handle, struct gpu_device *device)
{
	struct nvml_memory_v2 newer = {.version = NVML_MEMORY_V2};
	struct nvml_memory memory;

	if (n->memory_v2 && n->memory_v2(handle, &newer) == NVML_SUCCESS) {
		device->total = newer.total;
		device->used = newer.used;
		device->knows_used = true;
	} else if (n->memory(handle, &memory) == NVML_SUCCESS) {
		device->total = memory.total;
		device->used = memory.used;
		device->knows_used = true;
	}
}

static void look_at_processes(const struct nvml *n, processes_fn processes, nvml_device handle,
			      uint32_t device, struct gpu_look *look)
{
	union {
		struct nvml_process now[GPU_MAX_USES];
		struct nvml_process_v1 v1[GPU_MAX_USES];
	} *all = malloc(sizeof(*all));
	unsigned int count = GPU_MAX_USES;
	int code = all && processes ? processes(handle, &count, all) : NVML_INSUFFICIENT_SIZE;

	if (processes && code == NVML_INSUFFICIENT_SIZE)
		look->uses_were_cut = true;
	for (unsigned int i = 0; code == NVML_SUCCESS && i < count && i < GPU_MAX_USES; i++) {
		const unsigned int pid = n->is_v1 ? all->v1[i].pid : all->now[i].pid;
		const unsigned long long used = n->is_v1 ? all->v1[i].used : all->now[i].used;

		if (used != NVML_NOT_AVAILABLE)
			gpu_look_add_use(look, device, pid, used);
	}
	free(all);
}

void nvml_look(struct nvml *n, struct gpu_look *look)
{
	unsigned int count = 0;

	if (n->count(&count) != NVML_SUCCESS)
		return;
	for (unsigned int i = 0; i < count && look->n_devices < GPU_MAX; i++) {
		struct gpu_device *device = &look->devices[look->n_devices];
		nvml_device handle;

		if (n->handle(i, &handle) != NVML_SUCCESS)
			continue;
		*device = (struct gpu_device){.vendor = GPU_NVIDIA, .index = i};
		identify(n, handle, device);
		look_at_memory(n, handle, device);
		look_at_processes(n, n->computing, handle, look->n_devices, look);
		look_at_processes(n, n->drawing, handle, look->n_devices, look);
		look->n_devices++;
	}
}
