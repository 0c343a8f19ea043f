/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/usage_line.h"

#include <string.h>

#include "base/units.h"

/* ", major page faults 12": totals of the groups that have no words in the line itself. */
static void add_groups(char *line, const struct profile_usage *usage)
{
	char text[UNITS_TEXT_MAX];

	for (size_t i = 0; i < N_QUANTITIES; i++) {
		const struct quantity *q = &quantities[i];
		const size_t len = strlen(line);

		if (q->column && quantity_of(q, usage))
			snprintf(line + len, USAGE_LINE_MAX - len, ", %s %s", q->words,
				 quantity_for_people(text, q->unit, quantity_of(q, usage)));
	}
}

char *usage_line(char *out, const struct recording_totals *totals)
{
	const struct profile_usage *u = &totals->usage;
	char a[UNITS_TEXT_MAX], b[UNITS_TEXT_MAX], c[UNITS_TEXT_MAX], d[UNITS_TEXT_MAX];
	char cpu[UNITS_TEXT_MAX];

	units_bytes_for_people(b, u->disk_read);
	units_bytes_for_people(d, u->disk_write);
	out[0] = '\0';
	/* Quark's file has only these two. */
	if (!u->io_read && !u->io_write && !u->cpu_ns) {
		if (u->disk_read || u->disk_write)
			snprintf(out, USAGE_LINE_MAX, "Storage: read %s, wrote %s", b, d);
		return out;
	}
	snprintf(out, USAGE_LINE_MAX, "Read %s (storage %s), wrote %s (storage %s), CPU %s",
		 units_bytes_for_people(a, u->io_read), b, units_bytes_for_people(c, u->io_write),
		 d, units_time_for_people(cpu, u->cpu_ns));
	add_groups(out, u);
	return out;
}
