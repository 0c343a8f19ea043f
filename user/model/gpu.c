/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"

_Static_assert(WIRE_GPU_ALL == 0 && WIRE_GPU_PINNED == 1, "struct gpu_told has the first two");

static uint32_t device_of(uint32_t place)
{
	return place >= WIRE_GPU_DEVICE ? place - WIRE_GPU_DEVICE : PROFILE_GPU_UNKNOWN;
}

/* Its process may have had more before it was one of the job. */
static uint64_t highest_since(const struct wire_gpu_amount *own, uint64_t since_ns)
{
	return own->peak_ns >= since_ns ? own->peak : own->held;
}

static void note_devices(struct gpus *gpus, const struct wire_gpu *record, uint64_t since_ns)
{
	for (uint32_t place = WIRE_GPU_UNKNOWN; place < WIRE_GPU_PLACES; place++) {
		const struct wire_gpu_amount *amount = &record->tree[place];
		struct profile_gpu *gpu = &gpus->ledgers->list[place];

		if (amount->peak > gpu->peak) {
			gpu->peak = amount->peak;
			gpu->peak_ns = amount->peak_ns;
		}
		raise_to(&gpu->process_peak, highest_since(&record->own[place], since_ns));
		if (record->h.time_ns < gpus->ledgers->seen_ns[place])
			continue;
		gpu->held = amount->held;
		gpus->ledgers->seen_ns[place] = record->h.time_ns;
	}
}

static int keep_told(struct gpus *gpus, const struct wire_gpu *record)
{
	struct gpu_told *told = gpus->told;

	if (!told)
		told = gpus->told = calloc(GPU_MAX_TOLD, sizeof(*told));
	if (!told)
		return -ENOMEM;
	told += gpus->n_told++ % GPU_MAX_TOLD;
	*told = (struct gpu_told){
		.tgid = record->h.tgid,
		.tid = record->h.tid,
		.time_ns = record->h.time_ns,
	};
	memcpy(told->tree, record->tree, sizeof(told->tree));
	memcpy(told->own, record->own, sizeof(told->own));
	return 0;
}

/* Returns the last record of the thread before the checkpoint, unless that is another's. */
static struct gpu_told *find_told(struct gpus *gpus, const struct wire_header *h)
{
	const size_t n = gpus->n_told < GPU_MAX_TOLD ? gpus->n_told : GPU_MAX_TOLD;
	struct gpu_told *found = NULL;

	for (size_t i = 0; i < n; i++) {
		struct gpu_told *told = &gpus->told[i];

		if (told->tid != h->tid || told->tgid != h->tgid || told->time_ns > h->time_ns)
			continue;
		if (!found || told->time_ns > found->time_ns)
			found = told;
	}
	return found && (!found->joined_ns || found->joined_ns == h->time_ns) ? found : NULL;
}

int gpus_feed(struct gpus *gpus, const struct wire_gpu *record, uint64_t since_ns)
{
	const int err = record->why == WIRE_GPU_CHECKPOINT ? keep_told(gpus, record) : 0;

	if (err)
		return err;
	if (!gpus->ledgers)
		gpus->ledgers = calloc(1, sizeof(*gpus->ledgers));
	if (!gpus->ledgers)
		return -ENOMEM;
	note_devices(gpus, record, since_ns);
	raise_to(&gpus->processes, record->processes);
	raise_to(&gpus->peak, record->tree[WIRE_GPU_ALL].peak);
	raise_to(&gpus->peak_pinned, record->tree[WIRE_GPU_PINNED].peak);
	return 0;
}

const struct profile_gpu_refusal *gpus_refuse(struct gpus *gpus,
					      const struct wire_gpu_refused *record)
{
	struct profile_gpu_refusal *new;

	if (!gpus->refusals)
		gpus->refusals = calloc(PROFILE_MAX_REFUSALS, sizeof(*gpus->refusals));
	if (!gpus->refusals)
		return NULL;
	if (gpus->n_refusals == PROFILE_MAX_REFUSALS)
		memmove(gpus->refusals, gpus->refusals + 1,
			--gpus->n_refusals * sizeof(*gpus->refusals));
	new = &gpus->refusals[gpus->n_refusals++];
	*new = (struct profile_gpu_refusal){
		.number = ++gpus->refused,
		.time_ns = record->h.time_ns,
		.tgid = record->h.tgid,
		.tid = record->h.tid,
		.started_ns = record->h.started_ns,
		.bytes = record->bytes,
		.held = record->held,
		.device = device_of(record->place),
		.pinned = record->place == WIRE_GPU_PINNED,
		.result = record->result,
		.vendor = (enum wire_gpu_vendor)record->vendor,
	};
	return new;
}

static void fill(struct profile_memory *memory, const struct wire_gpu_amount *amounts)
{
	memory->has_gpu = true;
	memory->gpu = amounts[WIRE_GPU_ALL].held;
	memory->peak_gpu = amounts[WIRE_GPU_ALL].peak;
	memory->gpu_step_peak = amounts[WIRE_GPU_ALL].step_peak;
	memory->pinned = amounts[WIRE_GPU_PINNED].held;
	memory->peak_pinned = amounts[WIRE_GPU_PINNED].peak;
	memory->pinned_step_peak = amounts[WIRE_GPU_PINNED].step_peak;
}

void gpus_join(struct gpus *gpus, const struct wire_checkpoint *cp, struct profile_memory *tree,
	       struct profile_memory *own)
{
	struct gpu_told *told = gpus->told ? find_told(gpus, &cp->h) : NULL;

	if (!told)
		return;
	told->joined_ns = cp->h.time_ns;
	fill(tree, told->tree);
	fill(own, told->own);
}

void gpus_finish(struct gpus *gpus)
{
	struct profile_gpu *list = gpus->ledgers ? gpus->ledgers->list : NULL, unknown;

	if (!list)
		return;
	unknown = list[WIRE_GPU_UNKNOWN];
	for (uint32_t place = WIRE_GPU_DEVICE; place < WIRE_GPU_PLACES; place++) {
		if (!list[place].peak)
			continue;
		list[gpus->n] = list[place];
		list[gpus->n++].device = device_of(place);
	}
	if (unknown.peak) {
		list[gpus->n] = unknown;
		list[gpus->n++].device = PROFILE_GPU_UNKNOWN;
	}
}

void gpus_free(struct gpus *gpus)
{
	free(gpus->told);
	free(gpus->ledgers);
	free(gpus->refusals);
}

void gpu_of_process(struct process *process, const struct profile_memory *own)
{
	struct profile_memory *memory = &process->pub.memory;

	if (!own->has_gpu)
		return;
	memory->has_gpu = true;
	memory->gpu = own->gpu;
	memory->pinned = own->pinned;
	raise_to(&memory->peak_gpu, own->peak_gpu);
	raise_to(&memory->peak_pinned, own->peak_pinned);
}

void gpu_of_exit(struct processes *processes, const struct wire_gpu *record)
{
	struct process *process = processes_find(processes, &record->h);
	struct profile_memory own = {0};

	if (!process)
		return;
	fill(&own, record->own);
	gpu_of_process(process, &own);
	process->gpu_is_over = true;
}

void gpu_of_point(struct processes *processes, const struct wire_gpu_point *record)
{
	struct process *process = processes_find(processes, &record->h);
	const struct profile_memory own = {
		.has_gpu = true,
		.gpu = record->own_held,
		.peak_gpu = record->own_held,
		.pinned = record->own_pinned,
		.peak_pinned = record->own_pinned,
	};

	if (!process || process->gpu_is_over)
		return;
	raise_to(&process->pub.memory.peak_gpu, own.peak_gpu);
	raise_to(&process->pub.memory.peak_pinned, own.peak_pinned);
	if (record->h.time_ns < process->gpu_ns)
		return;
	process->gpu_ns = record->h.time_ns;
	gpu_of_process(process, &own);
}
