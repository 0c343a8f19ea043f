/* SPDX-License-Identifier: GPL-2.0-only */
/* How disks served the run: requests, and how long each took. */
#include "report/disks.h"
#include "report/text_report.h"

enum { AMOUNT, REQUESTS, MEAN, HALF, MOST, LONGEST, N_CELLS };

static void fill(const char *name, const char *way, const struct recording_requests *requests,
		 struct table_line *line)
{
	*line = (struct table_line){0};
	snprintf(line->name, sizeof(line->name), "%s %s", name, way);
	units_bytes_short(line->cells[AMOUNT], requests->bytes);
	units_count(line->cells[REQUESTS], requests->n);
	if (!requests->mean_ns)
		return; /* nobody saw when they ended */
	disk_time(line->cells[MEAN], requests->mean_ns);
	disk_time(line->cells[HALF], requests->p50_ns);
	disk_time(line->cells[MOST], requests->p99_ns);
	disk_time(line->cells[LONGEST], requests->max_ns);
}

static void put_line(const struct text_report *t, struct table_columns *columns, bool measure,
		     const struct table_line *line)
{
	if (measure)
		table_measure(columns, line);
	else
		table_settled(&t->table, columns, line);
}

static void put_table(const struct text_report *t)
{
	static const char *const titles[] = {"AMOUNT", "REQUESTS", "MEAN", "50 %", "99 %", "MAX"};
	static const unsigned int leaving[] = {HALF, LONGEST, REQUESTS};
	struct table_columns columns = {.titles = titles,
					.n = N_CELLS,
					.leaving = leaving,
					.n_leaving = sizeof(leaving) / sizeof(*leaving)};
	struct table_line line;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < t->r->n_devices && i < t->top; i++) {
			const struct recording_device *device = &t->r->devices[i];

			fill(device->name, "read", &device->read, &line);
			if (device->read.n)
				put_line(t, &columns, !pass, &line);
			fill(device->name, "write", &device->write, &line);
			if (device->write.n)
				put_line(t, &columns, !pass, &line);
		}
		if (!pass) {
			fputc('\n', t->table.out);
			table_settle(&t->table, &columns, "DISKS");
		}
	}
	text_more(t, t->r->n_devices, "more disk(s)");
}

void text_disks(const struct text_report *t)
{
	char sentence[DISKS_TEXT_MAX];
	size_t said = 0;

	if (!t->r->n_devices)
		return;
	put_table(t);
	for (size_t i = 0; i < t->r->n_devices; i++) {
		const struct recording_device *device = &t->r->devices[i];

		for (size_t use = 0; use <= device->n_uses && said < DISKS_SENTENCES; use++) {
			if (!disk_sentence(sentence, t->r, device, use))
				continue;
			text_wrapped(t, "  ", sentence);
			said++;
		}
	}
}
