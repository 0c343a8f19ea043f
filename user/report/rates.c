/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/rates.h"

#include <errno.h>
#include <stdlib.h>

#include "base/amounts.h"

enum { FEW = 10 }; /* even a short run may have this many stretches */
/* The kernel accounts CPU time at the scheduler's ticks, every 4 ms or 10 ms. */
static const uint64_t tick_ns = 10000000;

/* What the tree had used by then. */
struct moment {
	uint64_t ns;
	const struct profile_usage *usage;
};

bool rates_have_curve(const struct recording *r)
{
	return r->n_curve > 0;
}

/* A curve has the rows, too. Returns NULL when out of memory. */
static struct moment *moments_of(const struct recording *r, size_t *n)
{
	const bool has_curve = rates_have_curve(r);
	struct moment *moments;

	*n = has_curve ? r->n_curve : r->n_steps;
	moments = calloc(*n + 1, sizeof(*moments));
	for (size_t i = 0; moments && i < *n; i++) {
		if (has_curve)
			moments[i] = (struct moment){r->curve[i].time_ns, &r->curve[i].usage};
		else
			moments[i] = (struct moment){r->steps[i].rel_ns, &r->steps[i].usage};
	}
	return moments;
}

static uint64_t shortest(uint64_t duration_ns, size_t most)
{
	const uint64_t few = duration_ns / FEW < tick_ns ? duration_ns / FEW : tick_ns;
	const uint64_t fit = duration_ns / most + 1;

	return fit > few ? fit : few;
}

/* There is a moment at least. Returns how many stretches there are. */
static size_t join(struct rate *rates, const struct moment *moments, size_t n, size_t most)
{
	const struct moment *from = moments, *begin = moments, *last = &moments[n - 1];
	const uint64_t least = shortest(since(from->ns, last->ns), most);
	size_t made = 0;

	for (const struct moment *now = moments; now <= last; now++) {
		const uint64_t length = since(from->ns, now->ns);

		if (!length || (length < least && now != last))
			continue;
		/* The rest at the end is too short to stand alone: it joins the last stretch. */
		if (length < least && made) {
			from = begin;
			made--;
		}
		rates[made++] = (struct rate){
			.start_ns = from->ns,
			.end_ns = now->ns,
			.usage = usage_between(from->usage, now->usage),
		};
		begin = from;
		from = now;
	}
	return made;
}

struct rate *rates_over_time(const struct recording *r, size_t most, size_t *n)
{
	size_t n_moments;
	struct moment *moments = moments_of(r, &n_moments);
	struct rate *rates = calloc(n_moments + 1, sizeof(*rates));

	*n = moments && rates && n_moments ? join(rates, moments, n_moments, most) : 0;
	if (!moments) {
		free(rates);
		return NULL;
	}
	free(moments);
	return rates;
}

static uint64_t part_of(uint64_t before, uint64_t after, double part)
{
	return before + (uint64_t)((double)since(before, after) * part);
}

/* What had been used at a time, as if each amount grew evenly from one moment to the next. *at is
 * the last moment before it, and that of an earlier time when this is called. */
static struct profile_usage usage_at(const struct moment *moments, size_t n, size_t *at,
				     uint64_t ns)
{
	const struct moment *before, *after;
	struct profile_usage usage;
	double part;

	while (*at + 1 < n && moments[*at + 1].ns <= ns)
		++*at;
	before = &moments[*at];
	after = *at + 1 < n ? before + 1 : before;
	if (ns <= before->ns || after->ns <= before->ns)
		return *before->usage;
	part = (double)(ns - before->ns) / (double)(after->ns - before->ns);
#define USAGE_PART(member, from)                                                                   \
	usage.member = part_of(before->usage->member, after->usage->member, part);
	USAGE(USAGE_PART)
#undef USAGE_PART
	return usage;
}

int rates_in_columns(const struct recording *r, struct rate *columns, size_t n)
{
	const uint64_t end_ns = r->totals.duration_ns;
	size_t n_moments, at = 0;
	struct moment *moments = moments_of(r, &n_moments);
	struct profile_usage before, now;

	if (!moments)
		return -ENOMEM;
	if (!n_moments)
		n = 0;
	else
		before = usage_at(moments, n_moments, &at, 0);
	for (size_t i = 0; i < n; i++) {
		const double width = (double)end_ns / (double)n;
		const uint64_t to = i + 1 == n ? end_ns : (uint64_t)(width * (double)(i + 1));

		now = usage_at(moments, n_moments, &at, to);
		columns[i] = (struct rate){
			.start_ns = (uint64_t)(width * (double)i),
			.end_ns = to,
			.usage = usage_between(&before, &now),
		};
		before = now;
	}
	free(moments);
	return 0;
}
