/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recorded_gpu.c - the GPUs of a run: what their driver says of each, what the run itself
 * allocated there, and what it was refused. The two sources know a device by what the programs
 * number it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "format/fields.h"
#include "format/recorded.h"

/* CUresult and hsa_status_t */

static void set_allocated(struct recording_gpu *to, const struct profile *p,
			  const struct profile_gpu *ledger)
{
	if (ledger) {
		to->allocated_peak = ledger->peak;
		to->allocated_peak_ns = profile_rel_ns(p, ledger->peak_ns);
		to->process_peak = ledger->process_peak;
		to->allocated_peak_phase = (char *)profile_phase_at(p, ledger->peak_ns);
	}
	field_put(&record_gpu, to, "allocated_peak_mb", ledger);
	field_put(&record_gpu, to, "allocated_peak_secs", ledger);
	field_put(&record_gpu, to, "allocated_peak_phase", to->allocated_peak_phase);
	field_put(&record_gpu, to, "allocated_process_peak_mb", to->process_peak);
}

static struct recording_gpu recorded_gpu(const struct profile *p, const struct run_gpu *gpu)
{
	struct recording_gpu recorded = {
		.has = field_all(&record_gpu),
		.index = gpu->index,
		.number = gpu->number,
		.name = (char *)gpu->name,
		.uuid = (char *)gpu->uuid,
		.pci = (char *)gpu->pci,
		.total = gpu->total,
		.first_used = gpu->first_used,
		.peak_used = gpu->peak_used,
		.last_used = gpu->last_used,
		.peak_used_ns = profile_rel_ns(p, gpu->peak_ns),
		.peak_used_phase = (char *)profile_phase_at(p, gpu->peak_ns),
		.tree_peak_used = gpu->tree_peak_used,
		.looks = gpu->looks,
	};

	field_put(&record_gpu, &recorded, "program_index", gpu->has_number);
	field_put(&record_gpu, &recorded, "name", *gpu->name);
	field_put(&record_gpu, &recorded, "uuid", *gpu->uuid);
	field_put(&record_gpu, &recorded, "pci_id", *gpu->pci);
	field_put(&record_gpu, &recorded, "total_mb", gpu->total);
	field_put(&record_gpu, &recorded, "device_used_start_mb", gpu->looks);
	field_put(&record_gpu, &recorded, "device_used_peak_mb", gpu->looks);
	field_put(&record_gpu, &recorded, "device_used_peak_secs", gpu->looks);
	field_put(&record_gpu, &recorded, "device_used_peak_phase",
		  gpu->looks && recorded.peak_used_phase);
	field_put(&record_gpu, &recorded, "device_used_end_mb", gpu->looks);
	field_put(&record_gpu, &recorded, "tree_used_peak_mb", gpu->tree_peak_used);
	return recorded;
}

/* A device that no driver was heard of: of it only the number is known, if that is. */
static struct recording_gpu recorded_unheard(const struct profile *p,
					     const struct profile_gpu *ledger)
{
	struct recording_gpu recorded = {.number = ledger->device};

	field_put(&record_gpu, &recorded, "program_index", ledger->device != PROFILE_GPU_UNKNOWN);
	set_allocated(&recorded, p, ledger);
	return recorded;
}

static const struct run_gpu *heard_of(const struct run_gpus *gpus, uint32_t number)
{
	for (size_t i = 0; gpus && i < gpus->n; i++)
		if (gpus->list[i].has_number && gpus->list[i].number == number)
			return &gpus->list[i];
	return NULL;
}

static const struct profile_gpu *ledger_of(const struct profile *p, const struct run_gpu *gpu)
{
	size_t n;
	const struct profile_gpu *list = profile_gpus(p, &n);

	for (size_t i = 0; i < n; i++)
		if (gpu->has_number && list[i].device == gpu->number)
			return &list[i];
	return NULL;
}

static int add_gpu(struct arena *arena, struct recording_gpu **list, size_t *n,
		   struct recording_gpu gpu)
{
	struct recording_gpu *grown = arena_grow(arena, *list, *n, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	*list = grown;
	grown[(*n)++] = gpu;
	return 0;
}

int recorded_gpus(const struct profile *p, const struct run_gpus *gpus, struct arena *arena,
		  struct recording_gpu **list, size_t *n)
{
	size_t n_ledgers;
	const struct profile_gpu *ledgers = profile_gpus(p, &n_ledgers);
	int err = 0;

	*list = NULL;
	*n = 0;
	for (size_t i = 0; gpus && !err && i < gpus->n; i++) {
		struct recording_gpu gpu = recorded_gpu(p, &gpus->list[i]);

		set_allocated(&gpu, p, ledger_of(p, &gpus->list[i]));
		err = add_gpu(arena, list, n, gpu);
	}
	for (size_t i = 0; !err && i < n_ledgers; i++)
		if (!heard_of(gpus, ledgers[i].device))
			err = add_gpu(arena, list, n, recorded_unheard(p, &ledgers[i]));
	return err;
}

/* ---- What was refused ---- */

static int set_error(struct recording_gpu_refusal *to, const struct profile_gpu_refusal *refusal,
		     struct arena *arena)
{
	const bool is_cuda = refusal->vendor == WIRE_GPU_NVIDIA;
	char text[64];

	if (wire_gpu_lacks_memory(refusal->vendor, refusal->result))
		snprintf(text, sizeof(text), "%s",
			 is_cuda ? "CUDA_ERROR_OUT_OF_MEMORY"
				 : "HSA_STATUS_ERROR_OUT_OF_RESOURCES");
	else
		snprintf(text, sizeof(text), "%s %" PRId32, is_cuda ? "CUDA error" : "HSA status",
			 refusal->result);
	to->error = arena_text(arena, text, strlen(text));
	return to->error ? 0 : -ENOMEM;
}

int recorded_gpu_refusal(const struct profile *p, const struct profile_gpu_refusal *refusal,
			 struct arena *arena, struct recording_gpu_refusal *to)
{
	*to = (struct recording_gpu_refusal){
		.has = field_all(&record_gpu_refusal),
		.number = refusal->number,
		.time_ns = profile_rel_ns(p, refusal->time_ns),
		.pid = refusal->tgid,
		.phase = (char *)profile_phase_at(p, refusal->time_ns),
		.asked = refusal->bytes,
		.held = refusal->held,
		.device = refusal->device,
		.pinned = refusal->pinned,
	};
	field_put(&record_gpu_refusal, to, "phase", to->phase);
	field_put(&record_gpu_refusal, to, "asked_mb", to->asked);
	field_put(&record_gpu_refusal, to, "program_index",
		  !to->pinned && to->device != PROFILE_GPU_UNKNOWN);
	field_put(&record_gpu_refusal, to, "pinned", to->pinned);
	return set_error(to, refusal, arena);
}

int recorded_gpu_refusals(const struct profile *p, struct arena *arena,
			  struct recording_gpu_refusal **list, size_t *n)
{
	size_t n_kept;
	const struct profile_gpu_refusal *kept = profile_gpu_refusals(p, &n_kept);

	*list = NULL;
	for (*n = 0; *n < n_kept; (*n)++) {
		struct recording_gpu_refusal *grown = arena_grow(arena, *list, *n, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		*list = grown;
		if (recorded_gpu_refusal(p, &kept[*n], arena, &grown[*n]))
			return -ENOMEM;
	}
	return 0;
}

struct recording_gpu_point recorded_gpu_point(const struct profile *p,
					      const struct profile_gpu_point *point)
{
	return (struct recording_gpu_point){
		.has = field_all(&record_gpu_point),
		.time_ns = profile_rel_ns(p, point->time_ns),
		.held = point->held,
		.highest = point->highest,
		.pinned = point->pinned,
	};
}
