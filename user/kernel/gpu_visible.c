/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/gpu_visible.h"

#include <string.h>
#include <strings.h>

struct gpu_environment gpu_environment_of(const char *environment, size_t size)
{
	struct gpu_environment env = {.cuda_visible = NULL};
	const struct {
		const char *name;
		const char **value;
	} variables[] = {
		{"CUDA_VISIBLE_DEVICES=", &env.cuda_visible},
		{"CUDA_DEVICE_ORDER=", &env.cuda_order},
		{"HIP_VISIBLE_DEVICES=", &env.hip_visible},
		{"ROCR_VISIBLE_DEVICES=", &env.rocr_visible},
	};
	const char *end = environment + size;

	for (const char *at = environment; at < end; at += strlen(at) + 1) {
		if (!memchr(at, '\0', (size_t)(end - at)))
			break;
		for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
			const size_t len = strlen(variables[i].name);

			/* As getenv(3): the first counts. */
			if (!strncmp(at, variables[i].name, len) && !*variables[i].value)
				*variables[i].value = at + len;
		}
	}
	return env;
}

/* The devices that a program sees, in its order. */
struct seen {
	size_t n;
	struct gpu_device *list[GPU_MAX];
};

enum found { FOUND, NONE, NOT_TOLD };

static enum found find_by_uuid(const struct seen *all, const char *name, size_t len, size_t *index)
{
	enum found found = NONE;

	for (size_t i = 0; i < all->n; i++) {
		if (strncasecmp(all->list[i]->uuid, name, len) != 0)
			continue;
		if (found == FOUND)
			return NOT_TOLD;
		*index = i;
		found = FOUND;
	}
	return found;
}

/* "3", "GPU-8932f937", or a device of an NVIDIA's own: "MIG-GPU-8932f937.../1/0". */
static enum found find_entry(const struct seen *all, const char *name, size_t len, size_t *index)
{
	size_t number = 0;

	if (len >= 4 && !strncmp(name, "MIG-", 4))
		return NOT_TOLD;
	if (len >= 4 && !strncasecmp(name, "GPU-", 4))
		return find_by_uuid(all, name, len, index);
	if (!len || len > 6 || strspn(name, "0123456789") < len)
		return NONE;
	for (size_t i = 0; i < len; i++)
		number = number * 10 + (size_t)(name[i] - '0');
	*index = number;
	return number < all->n ? FOUND : NONE;
}

static bool is_in(const struct seen *seen, const struct gpu_device *device)
{
	for (size_t i = 0; i < seen->n; i++) {
		if (seen->list[i] == device)
			return true;
	}
	return false;
}

/* Leaves what the list names: all before the first entry that names none. Returns false if that
 * cannot be told. */
static bool choose(struct seen *all, const char *list)
{
	struct seen chosen = {.n = 0};

	while (list) {
		size_t index, len;
		enum found found;

		list += strspn(list, " ");
		len = strcspn(list, ",");
		while (len && list[len - 1] == ' ')
			len--;
		found = find_entry(all, list, len, &index);
		if (found == NOT_TOLD)
			return false;
		if (found == NONE)
			break;
		if (is_in(&chosen, all->list[index]))
			return false;
		chosen.list[chosen.n++] = all->list[index];
		list = strchr(list, ',');
		list = list ? list + 1 : NULL;
	}
	*all = chosen;
	return true;
}

static bool are_alike(const struct seen *seen)
{
	for (size_t i = 1; i < seen->n; i++) {
		if (strcmp(seen->list[i]->name, seen->list[0]->name) != 0)
			return false;
	}
	return true;
}

static bool choose_all(struct seen *seen, enum gpu_vendor vendor, const struct gpu_environment *env)
{
	/* HIP takes CUDA's variable where its own says nothing. */
	const char *hip =
		env->hip_visible && *env->hip_visible ? env->hip_visible : env->cuda_visible;

	if (vendor == GPU_AMD)
		return (!env->rocr_visible || choose(seen, env->rocr_visible)) &&
		       (!hip || choose(seen, hip));
	if (!are_alike(seen) && (!env->cuda_order || strcmp(env->cuda_order, "PCI_BUS_ID") != 0))
		return false;
	return !env->cuda_visible || choose(seen, env->cuda_visible);
}

static void mark(struct gpu_device *devices, size_t n, enum gpu_vendor vendor,
		 const struct gpu_environment *env)
{
	struct seen seen = {.n = 0};
	bool told;

	for (size_t i = 0; i < n && i < GPU_MAX; i++) {
		if (devices[i].vendor == vendor)
			seen.list[seen.n++] = &devices[i];
	}
	told = choose_all(&seen, vendor, env);
	for (size_t i = 0; i < n && i < GPU_MAX; i++) {
		if (devices[i].vendor == vendor)
			devices[i].is_visible = !told;
	}
	for (size_t i = 0; told && i < seen.n; i++) {
		seen.list[i]->is_visible = seen.list[i]->has_number = true;
		seen.list[i]->number = (uint32_t)i;
	}
}

void gpus_mark_visible(struct gpu_device *devices, size_t n, const struct gpu_environment *env)
{
	mark(devices, n, GPU_NVIDIA, env);
	mark(devices, n, GPU_AMD, env);
}
