/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recipe_ready.c - when the recipes of a run are read: before its kernel side is loaded, which is
 * to know what they listen to; or, where a service has that, as late as can be. To read all that
 * come with qprof-bpf takes 3 ms, by which a command would start later.
 */
#include <stdlib.h>

#include "capture/capture.h"
#include "recipes/from.h"
#include "recipes/recipe_marker.h"

int recipe_marker_make_room(struct recipe_marker *m)
{
	const size_t n = recipes_count(m->recipes) + 1;

	m->marker.listens = recipes_count(m->recipes);
	m->n_slots = recipes_slots(m->recipes);
	for (size_t slot = 0; slot < m->n_slots; slot++) {
		m->match[slot] = rules_match_new(recipes_rules(m->recipes, slot));
		if (!m->match[slot])
			return -1;
	}
	m->uses = calloc(n, sizeof(*m->uses));
	m->told = calloc(n, sizeof(*m->told));
	m->items = calloc(n * RECIPE_MAX_ITEMS, sizeof(*m->items));
	return m->uses && m->told && m->items ? 0 : -1;
}

static int read_rest(struct recipe_marker *m, struct error *err)
{
	if (recipes_read_all(m->recipes, m->rest, err))
		return -1;
	free(m->rest);
	m->rest = NULL;
	return recipe_marker_make_room(m) ? error_set(err, "out of memory") : 0;
}

static int write_items(struct recipe_marker *m, struct error *err)
{
	python_items_free(&m->python);
	return python_items_write(&m->python, m->recipes) ? error_set(err, "out of memory") : 0;
}

/* Those that come with qprof-bpf alone are to be known: that was written down. */
static bool knows_items(struct recipe_marker *m)
{
	return m->rest && !recipes_count(m->recipes) && python_items_take_kept(&m->python, m->rest);
}

int recipe_marker_ready(struct marker *marker, const char **variable, struct error *err)
{
	struct recipe_marker *m = (struct recipe_marker *)marker;

	m->starts = variable;
	if (!variable || !knows_items(m)) {
		if ((m->rest && read_rest(m, err)) || (variable && write_items(m, err)))
			return -1;
	}
	if (variable)
		*variable = m->python.text;
	return 0;
}

void recipe_marker_read_rest(struct recipe_marker *m, struct capture *c)
{
	const uint32_t told = m->python.set;
	struct error err = {0};

	if (read_rest(m, &err) || write_items(m, &err)) {
		m->starts = false;
		capture_fail(c, &err);
	} else if (m->python.set != told) {
		m->starts = false;
		capture_warn(
			c, "recipes",
			"python.items, beside those that come with qprof-bpf, is not what they "
			"say: calls of Python that recipes name are not heard");
	}
}
