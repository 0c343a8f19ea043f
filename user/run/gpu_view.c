/* SPDX-License-Identifier: GPL-2.0-only */
#include "run/gpu_view.h"

#include <string.h>

#include "base/amounts.h"
#include "base/text.h"

/* Nothing makes a driver's texts UTF-8, or fit for a file. */
static void repair(char text[GPU_TEXT_MAX])
{
	char repaired[GPU_TEXT_MAX];

	text_repair(repaired, sizeof(repaired), text, strnlen(text, GPU_TEXT_MAX), NULL);
	memcpy(text, repaired, sizeof(repaired));
}

static void list_devices(struct gpu_view *v, const struct gpu_look *look)
{
	size_t n = 0;

	for (uint32_t i = 0; i < look->n_devices; i++) {
		struct gpu_device *device = &v->devices[n];

		if (!look->devices[i].is_visible)
			continue;
		*device = look->devices[i];
		repair(device->name);
		repair(device->uuid);
		v->list[n++] = (struct run_gpu){
			.index = device->index,
			.has_number = device->has_number,
			.number = device->number,
			.name = device->name,
			.uuid = device->uuid,
			.pci = device->pci,
			.total = device->total,
		};
	}
	v->gpus.list = v->list;
	v->gpus.n = n;
}

/* The place of a device of this look among those of the first; n if it was not there. */
static size_t place_of(const struct gpu_view *v, const struct gpu_device *device)
{
	size_t i = 0;

	while (i < v->gpus.n &&
	       (v->devices[i].vendor != device->vendor || v->devices[i].index != device->index ||
		strcmp(v->devices[i].pci, device->pci) != 0))
		i++;
	return i;
}

static uint64_t used_by_tree(const struct gpu_look *look, uint32_t device, gpu_owner_fn is_ours,
			     void *context)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < look->n_uses; i++) {
		if (look->uses[i].device == device && is_ours(context, look->uses[i].pid))
			used += look->uses[i].bytes;
	}
	return used;
}

static void take_device(struct run_gpu *gpu, uint64_t used, uint64_t tree_used, uint64_t time_ns)
{
	if (!gpu->looks++)
		gpu->first_used = used;
	if (used > gpu->peak_used || !gpu->peak_ns) {
		gpu->peak_used = used;
		gpu->peak_ns = time_ns;
	}
	gpu->last_used = used;
	gpu->last_ns = time_ns;
	gpu->tree_last_used = tree_used;
	if (tree_used > gpu->tree_peak_used)
		gpu->tree_peak_used = tree_used;
}

/* Of all devices together: processes may number them differently. */
void gpu_view_compare(struct gpu_view *v, const struct gpu_look *look, uint64_t held,
		      const struct gpu_owners *owners)
{
	uint64_t used = 0;

	if (look->uses_were_cut) /* the tree may have more than is seen */
		return;
	for (uint32_t i = 0; i < look->n_uses; i++) {
		const struct gpu_use *use = &look->uses[i];

		if (!owners->is_there(owners->context, use->pid))
			return;
		if (use->device >= look->n_devices || !owners->is_ours(owners->context, use->pid))
			continue;
		if (owners->has_ended(owners->context, use->pid))
			return;
		used += use->bytes;
	}
	raise_to(&v->gpus.driver_share, since(held, used));
}

void gpu_view_take(struct gpu_view *v, const struct gpu_look *look, uint64_t asked_ns,
		   gpu_owner_fn is_ours, void *context)
{
	size_t told = 0;

	if (!v->has_looked)
		list_devices(v, look);
	v->has_looked = true;
	v->gpus.used = 0;
	for (uint32_t i = 0; i < look->n_devices; i++) {
		const struct gpu_device *device = &look->devices[i];
		const size_t place = place_of(v, device);

		if (place == v->gpus.n || !device->knows_used)
			continue;
		take_device(&v->list[place], device->used, used_by_tree(look, i, is_ours, context),
			    look->time_ns);
		v->gpus.used += device->used;
		told++;
	}
	v->gpus.knows_used = told && told == v->gpus.n;
	v->gpus.asked_ns = asked_ns;
	v->gpus.told_ns = look->time_ns;
}
