/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/gpu_look.h"

#include <string.h>

bool gpu_is_library(const char *path)
{
	static const char *const names[] = {"libcuda.so", "libhsa-runtime64.so"};
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const size_t len = strlen(names[i]);

		if (!strncmp(name, names[i], len) && (!name[len] || name[len] == '.'))
			return true;
	}
	return false;
}

static struct gpu_use *find_use(struct gpu_look *look, uint32_t device, uint32_t pid)
{
	for (uint32_t i = 0; i < look->n_uses; i++) {
		if (look->uses[i].device == device && look->uses[i].pid == pid)
			return &look->uses[i];
	}
	if (look->n_uses == GPU_MAX_USES) {
		look->uses_were_cut = true;
		return NULL;
	}
	look->uses[look->n_uses] = (struct gpu_use){.device = device, .pid = pid};
	return &look->uses[look->n_uses++];
}

void gpu_look_add_use(struct gpu_look *look, uint32_t device, uint32_t pid, uint64_t bytes)
{
	struct gpu_use *use = find_use(look, device, pid);

	if (use && bytes > use->bytes)
		use->bytes = bytes;
}
