/* SPDX-License-Identifier: GPL-2.0-only */
/* What a profile tells of its subjects. */
#include "base/amounts.h"
#include "model/profile_among.h"
#include "model/profile_state.h"

const struct profile_process *const *profile_processes(const struct profile *p, size_t *count)
{
	*count = p->own.n;
	return (const struct profile_process *const *)p->own.list;
}

const struct profile_phase *profile_phases(const struct profile *p, size_t *count)
{
	*count = p->phases.n;
	return p->phases.list;
}

const struct profile_outside *profile_outside(const struct profile *p, size_t *count)
{
	*count = p->phases.n_outside;
	return p->phases.outside.parts;
}

const struct profile_point *profile_points(const struct profile *p, size_t *count)
{
	*count = p->timeline.n;
	return p->timeline.points;
}

const struct profile_process_point *profile_process_points(const struct profile *p, size_t *count)
{
	*count = p->process_timeline.n;
	return p->process_timeline.points;
}

const struct profile_usage_point *profile_usage_points(const struct profile *p, size_t *count)
{
	*count = p->curve.n;
	return p->curve.points;
}

const struct profile_gpu_point *profile_gpu_points(const struct profile *p, size_t *count)
{
	*count = p->gpu_curve.n;
	return p->gpu_curve.points;
}

struct profile_at_peak profile_at_peak(const struct profile *p)
{
	const struct process_timeline *t = &p->process_timeline;
	struct profile_at_peak at = {
		.tree = t->at_peak, .shares = t->shares, .n_shares = t->n_shares};

	sharing_of_peak(&at, t->largest_file, t->largest_rss);
	/* The point is near the peak; what each process had at its own highest is exact. */
	if (at.tree.time_ns && !profile_is_among_others(p))
		raise_to(&at.least, processes_highest(&p->own));
	return at;
}

const struct profile_gpu *profile_gpus(const struct profile *p, size_t *count)
{
	*count = p->gpus.n;
	return p->gpus.ledgers ? p->gpus.ledgers->list : NULL;
}

const struct profile_gpu_refusal *profile_gpu_refusals(const struct profile *p, size_t *count)
{
	*count = p->gpus.n_refusals;
	return p->gpus.refusals;
}

const struct profile_file *profile_files(const struct profile *p, size_t *count)
{
	*count = p->files.n;
	return p->files.list;
}

const struct trend *profile_trends(const struct profile *p, size_t *count)
{
	*count = p->n_trends;
	return p->trends;
}

const struct profile_totals *profile_totals(const struct profile *p)
{
	return &p->totals;
}

const struct profile_metric *profile_summaries(const struct profile *p, size_t *count)
{
	*count = p->summaries.n;
	return p->summaries.list;
}

const struct profile_death *profile_deaths(const struct profile *p, size_t *count)
{
	*count = p->deaths.sure.n;
	return p->deaths.sure.deaths;
}

const char *const *profile_definitions(const struct profile *p, size_t *count)
{
	*count = p->summaries.n_definitions;
	return p->summaries.definitions;
}

const struct profile_losses *profile_losses(const struct profile *p)
{
	return &p->losses;
}

uint64_t profile_rss_now(const struct profile *p)
{
	return p->rss_now;
}

uint64_t profile_peak_so_far(const struct profile *p)
{
	return p->peak.rss;
}

uint64_t profile_peak_since_checkpoint(const struct profile *p)
{
	return p->tail.rss;
}

const struct profile_space *profile_spaces(const struct profile *p, size_t *count)
{
	*count = p->spaces.n_seen;
	return p->spaces.seen;
}

static bool was_open(const struct profile_phase *phase, uint64_t time_ns)
{
	return phase->start_ns <= time_ns && (!phase->end_ns || time_ns <= phase->end_ns);
}

const char *profile_phase_at(const struct profile *p, uint64_t time_ns)
{
	const struct profile_phase *gap = NULL;

	for (size_t i = p->phases.n; i > 0; i--) {
		const struct profile_phase *phase = &p->phases.list[i - 1];

		if (!was_open(phase, time_ns))
			continue;
		if (phase->kind == PROFILE_PHASE_PAIR)
			return phase->name;
		gap = gap ? gap : phase;
	}
	/* The gap that begins with the run is one only once a mark has come. */
	return gap && (gap->to || p->phases.pairing.any_mark) ? gap->name : NULL;
}

const char *profile_open_phase(const struct profile *p)
{
	return phases_innermost(&p->phases);
}

size_t profile_open_phases(const struct profile *p, const struct profile_phase **phases, size_t max)
{
	return phases_open(&p->phases, phases, max);
}

const struct profile_sums *profile_sums(const struct profile *p)
{
	return &p->sums_now;
}

const struct profile_device *profile_devices(const struct profile *p, size_t *count)
{
	*count = p->devices.n;
	return p->devices.pubs;
}

size_t profile_n_phases(const struct profile *p)
{
	return p->phases.n;
}

struct process *profile_who(const struct profile *p)
{
	return p->who;
}
