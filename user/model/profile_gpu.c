/* SPDX-License-Identifier: GPL-2.0-only */
/* What a profile takes of memory of GPUs. */
#include <errno.h>

#include "model/profile_state.h"

static int feed_amounts(struct profile *p, const struct wire_gpu *record)
{
	const int err = gpus_feed(&p->gpus, record, p->start_ns);

	if (!err && record->why == WIRE_GPU_EXIT) {
		gpu_of_exit(p->processes, record);
		deaths_gpu(&p->deaths, record, phases_of(&p->phases, record->h.tgid));
	}
	return err;
}

/* After the run there is only what its processes leave. */
static int feed_point(struct profile *p, const struct wire_gpu_point *record)
{
	if (p->config.no_timeline || (p->finished && record->h.time_ns > p->end_ns))
		return 0;
	return gpu_curve_point(&p->gpu_curve, record);
}

static int feed_refusal(struct profile *p, const struct wire_gpu_refused *record)
{
	const struct profile_gpu_refusal *refusal = gpus_refuse(&p->gpus, record);

	if (refusal && !wire_gpu_lacks_memory(record->vendor, record->result))
		return 0;
	return refusal ? deaths_refuse(&p->deaths, refusal) : -ENOMEM;
}

int profile_feed_gpu(struct profile *p, const struct wire_header *record)
{
	const void *data = record;

	if (record->kind == WIRE_GPU)
		return feed_amounts(p, data);
	return record->kind == WIRE_GPU_POINT ? feed_point(p, data) : feed_refusal(p, data);
}
