/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct group {
	UT_hash_handle hh;
	uint32_t number;
	size_t len;
	char key[];
};

/* Writes the name with each run of digits as one "0". Returns the length. */
static size_t without_numbers(char *out, const char *name)
{
	size_t len = 0;

	for (const char *at = name; *at; at++) {
		const bool is_digit = *at >= '0' && *at <= '9';

		if (is_digit && len && out[len - 1] == '0')
			continue;
		out[len++] = is_digit ? '0' : *at;
	}
	return len;
}

/* Returns the number of the name's group, or -ENOMEM. */
static int64_t group_of(struct group **groups, const char *name)
{
	struct group *new = calloc(1, sizeof(*new) + strlen(name)), *found;

	if (!new)
		return -ENOMEM;
	new->len = without_numbers(new->key, name);
	HASH_FIND(hh, *groups, new->key, new->len, found);
	if (found) {
		free(new);
		return found->number;
	}
	new->number = HASH_COUNT(*groups);
	HASH_ADD_KEYPTR(hh, *groups, new->key, new->len, new);
	if (!new->hh.tbl) {
		free(new);
		return -ENOMEM;
	}
	return new->number;
}

static int find_groups(struct layout *layout, const struct recording *r)
{
	struct group *groups = NULL, *group, *next;
	int64_t number = 0;

	for (size_t i = 0; i < r->n_phases && number >= 0; i++) {
		number = group_of(&groups, r->phases[i].name);
		layout->places[i].group = (uint32_t)number;
	}
	HASH_ITER (hh, groups, group, next) {
		HASH_DEL(groups, group);
		free(group);
	}
	return number < 0 ? (int)number : 0;
}

static bool is_gap(const struct recording_phase *phase)
{
	return phase->kind == PROFILE_PHASE_GAP;
}

/* Puts each phase of a kind into the first lane from `first` on that is free when it begins. */
static void find_lanes(struct layout *layout, const struct recording *r, bool gaps, uint32_t first,
		       uint32_t end)
{
	uint64_t free_from[LAYOUT_LANES] = {0};

	for (size_t i = 0; i < r->n_phases; i++) {
		const struct recording_phase *phase = &r->phases[i];
		uint32_t lane = first;

		if (is_gap(phase) != gaps)
			continue;
		while (lane < end && free_from[lane] > phase->start_ns)
			lane++;
		layout->places[i].lane = lane < end ? lane : LAYOUT_LANES;
		if (lane == end)
			continue;
		free_from[lane] = phase->start_ns + phase->duration_ns;
		if (lane >= layout->lanes)
			layout->lanes = lane + 1;
	}
}

/* Gaps overlap pairs without being their callers: they have the last lane to themselves. */
static void find_all_lanes(struct layout *layout, const struct recording *r)
{
	uint32_t for_pairs = LAYOUT_LANES;

	for (size_t i = 0; i < r->n_phases; i++) {
		if (is_gap(&r->phases[i]))
			for_pairs = LAYOUT_LANES - 1;
	}
	find_lanes(layout, r, false, 0, for_pairs);
	find_lanes(layout, r, true, layout->lanes, layout->lanes + 1);
}

int layout_phases(struct layout *layout, const struct recording *r)
{
	*layout = (struct layout){
		.places = calloc(r->n_phases + 1, sizeof(*layout->places)),
	};
	if (!layout->places)
		return -ENOMEM;
	find_all_lanes(layout, r);
	if (find_groups(layout, r)) {
		layout_free(layout);
		return -ENOMEM;
	}
	return 0;
}

void layout_free(struct layout *layout)
{
	free(layout->places);
	layout->places = NULL;
}
