/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/disks.h"

#include <stdio.h>

#include "base/text.h"

/* From here on it is worth a sentence: a disk that is busy for half of what takes a 50th of the
 * run. */
enum { BUSY_PERCENT = 50, RUN_PARTS = 50, NAME_COLUMNS = 52, SHORT_NS = 10000000 };

uint64_t disk_speed(const struct recording_requests *read, const struct recording_requests *write,
		    uint64_t busy_ns)
{
	return busy_ns ? (uint64_t)((double)(read->bytes + write->bytes) * 1e9 / (double)busy_ns)
		       : 0;
}

char *disk_time(char *out, uint64_t ns)
{
	if (ns < 1000000 || ns >= SHORT_NS)
		return units_time_for_people(out, ns);
	snprintf(out, UNITS_TEXT_MAX, "%.2f ms", (double)ns / 1e6);
	return out;
}

static void of_phase(char *out, size_t size, const char *name)
{
	char cut[NAME_COLUMNS * TEXT_TERMINAL_GROWTH + 1];

	text_cut_middle(cut, name, NAME_COLUMNS);
	snprintf(out, size, "of %s", cut);
}

char *disk_sentence(char *text, const struct recording *r, const struct recording_device *device,
		    size_t i)
{
	const struct recording_device_use *use = i < device->n_uses ? &device->uses[i] : NULL;
	const uint64_t all_ns = use ? use->ns : r->totals.duration_ns;
	const uint64_t busy_ns = use ? use->busy_ns : device->busy_ns;
	char name[NAME_COLUMNS * TEXT_TERMINAL_GROWTH + 1];
	char phase[NAME_COLUMNS * TEXT_TERMINAL_GROWTH + 8] = "of the run";
	char busy[UNITS_TEXT_MAX], all[UNITS_TEXT_MAX], speed[UNITS_TEXT_MAX];

	/* What began in the phase before makes it busy for longer than it was: nobody knows more.
	 */
	if (!busy_ns || busy_ns > all_ns || busy_ns < all_ns / 100 * BUSY_PERCENT ||
	    all_ns < r->totals.duration_ns / RUN_PARTS)
		return NULL;
	if (use)
		of_phase(phase, sizeof(phase), use->name);
	text_cut_middle(name, device->name, NAME_COLUMNS);
	units_bytes_for_people(speed, use ? disk_speed(&use->read, &use->write, busy_ns)
					  : disk_speed(&device->read, &device->write, busy_ns));
	snprintf(text, DISKS_TEXT_MAX, "%s was busy for %s of the %s %s, with %s/s", name,
		 units_time_for_people(busy, busy_ns), units_time_for_people(all, all_ns), phase,
		 speed);
	return text;
}
