/* SPDX-License-Identifier: GPL-2.0-only */
/* The report for a terminal. */
#include "renderer.h"
#include "text.h"
#include "units.h"

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	const struct recording_phase *phase = recording_peak_phase(r);
	char peak[UNITS_TEXT_MAX], when[UNITS_TEXT_MAX];
	char name[61 * TEXT_TERMINAL_GROWTH] = "no phase";

	(void)options;
	(void)err;
	if (phase)
		text_for_terminal(name, sizeof(name), phase->name, 60);
	fprintf(out, "Peak %s at %s in %s\n", units_bytes_for_people(peak, r->totals.peak_rss),
		units_time_for_people(when, recording_peak_ns(r)), name);
	return 0;
}

const struct renderer renderer_text = {
	.name = "text",
	.extension = ".txt",
	.what = "tables for people",
	.render = render,
};
