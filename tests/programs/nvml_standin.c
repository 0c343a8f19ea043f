/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A libnvidia-ml.so.1 without a GPU. It says what the file QPROF_STANDIN_NVML says, read anew at
 * each call:
 *
 *   gpu TOTAL USED RESERVED BUS UUID NAME   a device, in order
 *   use DEVICE PID BYTES                    a process that computes; "draw" one that draws
 *   fail CODE                               nvmlInit_v2() returns it
 *   hang                                    nvmlDeviceGetCount_v2() does not return
 *
 * After each look at the processes of the last device it appends a line to that file's name with
 * ".looks". With OLD_DRIVER it has the functions of drivers before 450.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, MAX_GPUS = 8 };

struct gpu {
	unsigned long long total, used, reserved;
	unsigned int bus;
	char uuid[80], name[80];
};

struct pci {
	char legacy[16];
	unsigned int domain, bus, device, id, subsystem;
	char bus_id[32];
};

struct memory {
	unsigned long long total, free, used;
};

struct memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

struct process_v1 {
	unsigned int pid;
	unsigned long long used;
};

struct process {
	unsigned int pid;
	unsigned long long used;
	unsigned int instance, compute;
};

static struct gpu gpus[MAX_GPUS];
static unsigned int n_gpus;
static int fails, hangs;

static FILE *open_state(void)
{
	const char *path = getenv("QPROF_STANDIN_NVML");

	return path ? fopen(path, "r") : NULL;
}

static void read_state(void)
{
	FILE *file = open_state();
	char line[512];

	n_gpus = 0;
	fails = hangs = 0;
	while (file && fgets(line, sizeof(line), file)) {
		struct gpu *gpu = &gpus[n_gpus];

		if (n_gpus < MAX_GPUS &&
		    sscanf(line, "gpu %llu %llu %llu %x %79s %79[^\n]", &gpu->total, &gpu->used,
			   &gpu->reserved, &gpu->bus, gpu->uuid, gpu->name) == 6)
			n_gpus++;
		sscanf(line, "fail %d", &fails);
		hangs |= !strncmp(line, "hang", 4);
	}
	if (file)
		fclose(file);
}

/* A handle is the device's number and one more. */
static struct gpu *gpu_of(void *handle)
{
	read_state();
	return &gpus[(size_t)handle - 1];
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
	read_state();
	return fails;
}

const char *nvmlErrorString(int code);
const char *nvmlErrorString(int code)
{
	return code == 9 ? "Driver Not Loaded" : "Unknown Error";
}

int nvmlDeviceGetCount_v2(unsigned int *n);
int nvmlDeviceGetCount_v2(unsigned int *n)
{
	read_state();
	while (hangs)
		pause();
	*n = n_gpus;
	return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle);
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle)
{
	if (index >= n_gpus)
		return NOT_FOUND;
	*handle = (void *)(size_t)(index + 1);
	return SUCCESS;
}

static int copy(char *out, unsigned int size, const char *text)
{
	if (strlen(text) >= size)
		return INSUFFICIENT_SIZE;
	strcpy(out, text);
	return SUCCESS;
}

int nvmlDeviceGetName(void *handle, char *name, unsigned int size);
int nvmlDeviceGetName(void *handle, char *name, unsigned int size)
{
	return copy(name, size, gpu_of(handle)->name);
}

int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int size);
int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int size)
{
	return copy(uuid, size, gpu_of(handle)->uuid);
}

int nvmlDeviceGetPciInfo_v3(void *handle, struct pci *pci);
int nvmlDeviceGetPciInfo_v3(void *handle, struct pci *pci)
{
	memset(pci, 0, sizeof(*pci));
	pci->bus = gpu_of(handle)->bus;
	return SUCCESS;
}

/* As drivers do: what is reserved counts as used. */
int nvmlDeviceGetMemoryInfo(void *handle, struct memory *memory);
int nvmlDeviceGetMemoryInfo(void *handle, struct memory *memory)
{
	const struct gpu *gpu = gpu_of(handle);

	memory->total = gpu->total;
	memory->used = gpu->used + gpu->reserved;
	memory->free = memory->total - memory->used;
	return SUCCESS;
}

static void note_look(size_t device)
{
	const char *path = getenv("QPROF_STANDIN_NVML");
	char name[512];
	FILE *file;

	if (device != n_gpus || !path)
		return;
	snprintf(name, sizeof(name), "%s.looks", path);
	file = fopen(name, "a");
	if (!file)
		return;
	fputs("look\n", file);
	fclose(file);
}

static int list(void *handle, const char *what, unsigned int *n, void *into, int is_v1)
{
	const unsigned int room = *n;
	FILE *file = open_state();
	char line[512];

	*n = 0;
	while (file && fgets(line, sizeof(line), file)) {
		char word[16];
		size_t device;
		unsigned int pid;
		unsigned long long used;

		if (sscanf(line, "%15s %zu %u %llu", word, &device, &pid, &used) != 4 ||
		    strcmp(word, what) || device + 1 != (size_t)handle)
			continue;
		if (*n < room && is_v1)
			((struct process_v1 *)into)[*n] = (struct process_v1){pid, used};
		else if (*n < room)
			((struct process *)into)[*n] = (struct process){pid, used, ~0u, ~0u};
		++*n;
	}
	if (file)
		fclose(file);
	return *n > room ? INSUFFICIENT_SIZE : SUCCESS;
}

#ifdef OLD_DRIVER

int nvmlDeviceGetComputeRunningProcesses(void *handle, unsigned int *n, void *into);
int nvmlDeviceGetComputeRunningProcesses(void *handle, unsigned int *n, void *into)
{
	note_look((size_t)handle);
	return list(handle, "use", n, into, 1);
}

#else

int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory_v2 *memory);
int nvmlDeviceGetMemoryInfo_v2(void *handle, struct memory_v2 *memory)
{
	const struct gpu *gpu = gpu_of(handle);

	if (memory->version != (sizeof(*memory) | 2u << 24))
		return 25;
	memory->total = gpu->total;
	memory->used = gpu->used;
	memory->reserved = gpu->reserved;
	memory->free = memory->total - memory->used - memory->reserved;
	return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *n, void *into);
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *n, void *into)
{
	return list(handle, "use", n, into, 0);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned int *n, void *into);
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *handle, unsigned int *n, void *into)
{
	note_look((size_t)handle);
	return list(handle, "draw", n, into, 0);
}

#endif
