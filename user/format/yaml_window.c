/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/yaml_window.h"

#include <stdio.h>

#include "format/yaml_record.h"
#include "model/windows.h"

/* As --window takes it. */
static void write_schedule(char *out, size_t size, const struct window_schedule *s)
{
	const int len =
		snprintf(out, size, "skip=%u,warmup=%u,active=%u", s->skip, s->warmup, s->active);

	if (s->repeat)
		snprintf(out + len, size - (size_t)len, ",repeat=%u", s->repeat);
}

static void put_list(struct emit *e, const struct profile *p, const struct windows *windows)
{
	size_t n;
	const struct window *list = windows_list(windows, &n);

	yaml_table_begin(e, "phases", &record_window);
	for (size_t i = 0; i < n; i++) {
		const struct recording_window window = {
			.has = field_all(&record_window),
			.phase = (char *)list[i].name,
			.pid = list[i].tgid,
			.start_ns = profile_rel_ns(p, list[i].span.from.ns),
			.end_ns = profile_rel_ns(p, list[i].span.to.ns),
			.late_ns = list[i].late_ns};

		yaml_table_row(e, &record_window, &window);
	}
	yaml_table_end(e);
}

static void put_row(struct emit *e, uint32_t phase, uint64_t ns)
{
	struct recording_open open = {.has = field_all(&record_open), .phase = phase, .ns = ns};

	field_put(&record_open, &open, "phase", phase != PROFILE_NO_PARENT);
	yaml_table_row(e, &record_open, &open);
}

static void put_within(struct emit *e, const struct profile *p)
{
	size_t n;
	const struct profile_phase *phases = profile_phases(p, &n);

	yaml_table_begin(e, "within", &record_open);
	put_row(e, PROFILE_NO_PARENT, profile_totals(p)->window_ns);
	for (size_t i = 0; i < n; i++)
		if (phases[i].window_ns)
			put_row(e, (uint32_t)i, phases[i].window_ns);
	yaml_table_end(e);
}

void yaml_window(struct emit *e, const struct profile *p, const struct run_windows *windows)
{
	struct windows_totals totals;
	char schedule[96];
	struct recording_windows recorded = {.has = field_all(&record_windows),
					     .schedule = schedule};

	if (!windows)
		return;
	totals = windows_totals(windows->windows);
	write_schedule(schedule, sizeof(schedule), &totals.schedule);
	recorded.of = (char *)totals.pattern;
	recorded.what = (char *)windows->what;
	recorded.on_ns = totals.sampling_ns;
	recorded.dropped = totals.dropped;
	emit_plain(e, "window");
	emit_map(e, EMIT_BLOCK);
	yaml_fields(e, &record_windows, &recorded, "schedule", "dropped");
	put_list(e, p, windows->windows);
	put_within(e, p);
	emit_map_end(e);
	emit_boundary(e);
}
