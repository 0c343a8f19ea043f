/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/yaml_parts.h"

#include "base/units.h"
#include "format/quantities.h"
#include "format/recorded.h"
#include "format/yaml_record.h"

void yaml_comments(struct emit *e, const char *const *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		emit_comment(e, lines[i]);
}

void key_text(struct emit *e, const char *key, const char *text)
{
	emit_plain(e, key);
	if (text)
		emit_text(e, text);
	else
		emit_plain(e, "null");
}

void key_word(struct emit *e, const char *key, const char *word)
{
	emit_plain(e, key);
	emit_plain(e, word);
}

void key_count(struct emit *e, const char *key, uint64_t count)
{
	emit_plain(e, key);
	emit_u64(e, count);
}

void key_mb(struct emit *e, const char *key, uint64_t bytes)
{
	char text[UNITS_TEXT_MAX];

	key_word(e, key, units_mb(text, bytes));
}

void key_secs(struct emit *e, const char *key, uint64_t ns)
{
	char text[UNITS_TEXT_MAX];

	key_word(e, key, units_secs(text, ns, SECS_DECIMALS));
}

void yaml_usage(struct emit *e, const struct profile_usage *usage)
{
	char text[UNITS_TEXT_MAX];

	for (size_t i = 0; i < N_QUANTITIES; i++) {
		const struct quantity *q = &quantities[i];

		if (q->everywhere && (!q->if_any || quantity_of(q, usage)) && q->in_audits)
			key_word(e, q->key, quantity_text(text, q->unit, quantity_of(q, usage)));
	}
}

void yaml_step_members(struct emit *e, const struct profile_checkpoint *step)
{
	const struct recording_step row = recorded_step(step);

	yaml_record(e, &record_step, &row);
}

void yaml_step(struct emit *e, const struct profile_checkpoint *step)
{
	emit_map(e, EMIT_BLOCK);
	yaml_step_members(e, step);
	emit_map_end(e);
	emit_boundary(e);
}

void yaml_totals(struct emit *e, const struct profile_totals *totals, const struct run_gpus *gpus)
{
	const struct recording_totals recorded = recorded_totals(totals, gpus);

	yaml_record(e, &record_totals, &recorded);
	emit_boundary(e);
}

/* A profile without pairs is as it was before there was this key. */
static void put_outside(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_outside *parts = profile_outside(p, &n);

	if (!n)
		return;
	emit_plain(e, "outside_phases");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		const struct recording_phase part = recorded_outside(p, &parts[i]);

		yaml_item(e, &record_outside, &part);
	}
	emit_list_end(e);
	emit_boundary(e);
}

void yaml_phases(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_phase *phases = profile_phases(p, &n);

	emit_plain(e, "phases");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		const struct recording_phase phase = recorded_phase(p, &phases[i]);

		yaml_item(e, &record_phase, &phase);
	}
	emit_list_end(e);
	emit_boundary(e);
	put_outside(e, p);
}

void yaml_metrics(struct emit *e, const struct profile_metric *metrics, size_t n)
{
	if (!n)
		return;
	emit_plain(e, "metrics");
	yaml_metrics_value(e, metrics, n);
}

static void put_warnings(struct emit *e, const struct run_quality *quality)
{
	emit_plain(e, "warnings");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < quality->n_warnings; i++) {
		emit_map(e, EMIT_BLOCK);
		key_text(e, "what", quality->warnings[i].what);
		emit_boundary_if_long(e);
		key_text(e, "why", quality->warnings[i].why);
		emit_map_end(e);
		emit_boundary(e);
	}
	emit_list_end(e);
	emit_boundary(e);
}

static void put_notes(struct emit *e, const struct run_quality *quality)
{
	emit_plain(e, "notes");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < quality->n_notes; i++) {
		emit_text(e, quality->notes[i]);
		emit_boundary(e);
	}
	emit_list_end(e);
}

void yaml_recipes(struct emit *e, const struct run_quality *quality)
{
	if (!quality->n_recipes)
		return;
	emit_plain(e, "recipes");
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < quality->n_recipes; i++)
		yaml_item(e, &record_recipe, &quality->recipes[i]);
	emit_list_end(e);
	emit_boundary(e);
}

void yaml_quality(struct emit *e, const struct quality_count *counts, size_t n,
		  const struct run_quality *quality)
{
	for (size_t i = 0; i < n; i++)
		key_count(e, counts[i].key, counts[i].count);
	emit_boundary(e);
	put_warnings(e, quality);
	put_notes(e, quality);
}
