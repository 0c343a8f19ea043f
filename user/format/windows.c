/* SPDX-License-Identifier: GPL-2.0-only */
/* What was on in windows alone, as a profile says it. */
#include <string.h>

#include "format/fields.h"
#include "format/recording.h"

bool recording_in_windows(const struct recording *r, const char *what)
{
	return r->windows.has && r->windows.what && strstr(r->windows.what, what);
}

const char *recording_check_windows(struct recording *r)
{
	const struct recording_windows *w = &r->windows;

	for (size_t i = 0; i < w->n_within; i++) {
		const struct recording_open *open = &w->within[i];

		if (!field_has(&record_open, open, 0))
			continue;
		if (open->phase >= r->n_phases)
			return "name what is not there";
		r->phases[open->phase].window_ns = open->ns;
	}
	return NULL;
}
