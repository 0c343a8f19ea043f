/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/outside.h"

#include "base/amounts.h"

enum { BEFORE, BETWEEN, AFTER };

static const char *const names[PROFILE_OUTSIDE_PARTS] = {
	[BEFORE] = "(before the first)",
	[BETWEEN] = "(between)",
	[AFTER] = "(after the last)",
};

void outside_fold(struct outside *o, uint64_t rss)
{
	if (o->open)
		raise_to(&o->peak, rss);
}

static void begin(struct outside *o, const struct moment *now)
{
	o->open = true;
	o->from = *now;
	o->peak = now->rss;
}

static void end(struct outside *o, int which, const struct moment *now)
{
	struct profile_outside *part = &o->parts[which];
	const struct profile_usage used = usage_between(&o->from.usage, &now->usage);
	const uint64_t took = since(o->from.time_ns, now->time_ns);

	o->open = false;
	if (!took)
		return;
	if (!part->stretches++)
		part->start_ns = o->from.time_ns;
	part->duration_ns += took;
	/* Unsigned: what makes no sense may wrap, and must not be undefined. */
	part->delta_rss = (int64_t)((uint64_t)part->delta_rss + now->rss - o->from.rss);
	raise_to(&part->peak_rss, o->peak);
	usage_add(&part->usage, &used);
}

void outside_step(struct outside *o, size_t n_pairs, const struct moment *now)
{
	if (!o->begun)
		begin(o, now);
	o->begun = true;
	if (o->open && n_pairs)
		end(o, o->any_pair ? BETWEEN : BEFORE, now);
	else if (!o->open && !n_pairs)
		begin(o, now);
	o->any_pair |= n_pairs > 0;
}

size_t outside_finish(struct outside *o, const struct moment *now)
{
	size_t n = 0;

	if (!o->any_pair)
		return 0;
	if (o->open)
		end(o, AFTER, now);
	for (int i = 0; i < PROFILE_OUTSIDE_PARTS; i++) {
		o->parts[i].name = names[i];
		if (o->parts[i].stretches)
			o->parts[n++] = o->parts[i];
	}
	return n;
}
