/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/gpus.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "format/fields.h"

bool gpus_held_words(char out[GPUS_WORDS_MAX], const struct recording_totals *totals)
{
	char held[UNITS_TEXT_MAX], pinned[UNITS_TEXT_MAX], share[UNITS_TEXT_MAX];
	char of_host[UNITS_TEXT_MAX + 32] = "", of_driver[UNITS_TEXT_MAX + 32] = "";

	if (!totals->peak_gpu && !totals->peak_pinned)
		return false;
	units_bytes_for_people(held, totals->peak_gpu);
	units_bytes_for_people(pinned, totals->peak_pinned);
	if (totals->peak_pinned)
		snprintf(of_host, sizeof(of_host), ", and %s of the host pinned", pinned);
	if (totals->driver_share)
		snprintf(of_driver, sizeof(of_driver), "; the driver itself took %s",
			 units_bytes_for_people(share, totals->driver_share));
	snprintf(out, GPUS_WORDS_MAX, "peak %s%s%s", held, of_host, of_driver);
	return true;
}

enum { WHEN_MAX = 320 };

/* "at 3.2 s in Calibration" */
static void put_when(char *out, size_t size, uint64_t time_ns, const char *phase)
{
	char when[UNITS_TEXT_MAX];

	snprintf(out, size, "at %s%s%.256s", units_time_for_people(when, time_ns),
		 phase ? " in " : "", phase ? phase : "");
}

static void put_allocated(char *out, size_t size, const struct recording_gpu *gpu)
{
	char peak[UNITS_TEXT_MAX], when[WHEN_MAX];

	put_when(when, sizeof(when), gpu->allocated_peak_ns, gpu->allocated_peak_phase);
	snprintf(out, size, "this run allocated at most %s, %s",
		 units_bytes_for_people(peak, gpu->allocated_peak), when);
}

/* No driver was heard of it: what the program calls it may be another's number for tools. */
static bool unheard_words(char out[GPUS_WORDS_MAX], const struct recording_gpu *gpu)
{
	char allocated[UNITS_TEXT_MAX + WHEN_MAX], number[32] = "of unknown number";

	if (!gpu->allocated_peak)
		return false;
	put_allocated(allocated, sizeof(allocated), gpu);
	if (field_has_key(&record_gpu, gpu, "program_index"))
		snprintf(number, sizeof(number), "%" PRIu32 " of the program", gpu->number);
	snprintf(out, GPUS_WORDS_MAX, "%s: %s", number, allocated);
	return true;
}

bool gpus_device_words(char out[GPUS_WORDS_MAX], const struct recording_gpu *gpu)
{
	char total[UNITS_TEXT_MAX], peak[UNITS_TEXT_MAX], first[UNITS_TEXT_MAX];
	char own[UNITS_TEXT_MAX], when[WHEN_MAX], of[UNITS_TEXT_MAX + 8] = "";
	char by[UNITS_TEXT_MAX + 16] = "", allocated[UNITS_TEXT_MAX + WHEN_MAX] = "";

	if (!gpu->looks)
		return unheard_words(out, gpu);
	if (gpu->total)
		snprintf(of, sizeof(of), " of %s", units_bytes_for_people(total, gpu->total));
	if (gpu->tree_peak_used)
		snprintf(by, sizeof(by), ", %s by this run",
			 units_bytes_for_people(own, gpu->tree_peak_used));
	if (gpu->allocated_peak)
		put_allocated(allocated, sizeof(allocated), gpu);
	put_when(when, sizeof(when), gpu->peak_used_ns, gpu->peak_used_phase);
	snprintf(out, GPUS_WORDS_MAX,
		 "%" PRIu32 " (%.120s): at most %s%s were in use, %s%s; %s at first%s%s",
		 gpu->index, gpu->name ? gpu->name : "unnamed",
		 units_bytes_for_people(peak, gpu->peak_used), of, when, by,
		 units_bytes_for_people(first, gpu->first_used), *allocated ? "; " : "", allocated);
	return true;
}

/* "on GPU 3", as its driver and all tools number it, or else as the program does. */
static void put_device(char *out, size_t size, const struct recording *r, uint32_t number)
{
	for (size_t i = 0; i < r->n_gpus; i++) {
		const struct recording_gpu *gpu = &r->gpus[i];

		if (gpu->number != number || !field_has_key(&record_gpu, gpu, "program_index") ||
		    !field_has_key(&record_gpu, gpu, "index"))
			continue;
		snprintf(out, size, "on GPU %" PRIu32, gpu->index);
		return;
	}
	snprintf(out, size, "on GPU %" PRIu32 " of the program", number);
}

void gpus_refused_words(char out[GPUS_REFUSED_MAX], const struct recording *r,
			const struct recording_gpu_refusal *refusal)
{
	char asked[UNITS_TEXT_MAX] = "memory", held[UNITS_TEXT_MAX], when[WHEN_MAX];
	char where[48] = "on a GPU";

	if (refusal->pinned)
		snprintf(where, sizeof(where), "pinned on the host");
	else if (field_has_key(&record_gpu_refusal, refusal, "program_index"))
		put_device(where, sizeof(where), r, refusal->device);
	if (refusal->asked)
		units_bytes_for_people(asked, refusal->asked);
	put_when(when, sizeof(when), refusal->time_ns, refusal->phase);
	snprintf(out, GPUS_REFUSED_MAX, "%s %s %s, where the run held %s (%.64s)", asked, where,
		 when, units_bytes_for_people(held, refusal->held),
		 refusal->error ? refusal->error : "unknown error");
}

bool gpus_refusal_words(char out[GPUS_WORDS_MAX], const struct recording *r)
{
	const struct recording_gpu_refusal *last;
	char refused[GPUS_REFUSED_MAX], times[48] = "";

	if (!r->n_gpu_refusals)
		return false;
	last = &r->gpu_refusals[r->n_gpu_refusals - 1];
	if (last->number > 1)
		snprintf(times, sizeof(times), ", the last of %" PRIu64 " times", last->number);
	gpus_refused_words(refused, r, last);
	snprintf(out, GPUS_WORDS_MAX, "process %" PRIu32 " was refused %s%s", last->pid, refused,
		 times);
	return true;
}
