/* SPDX-License-Identifier: GPL-2.0-only */
/* The page's table of disks: how they served the run, and each of its phases. */
#include "report/disks.h"
#include "report/html_parts.h"

/* of_run: there is more of all requests of the run than of those of a phase. */
static void put_requests(struct json_writer *j, const struct recording_requests *requests,
			 bool of_run)
{
	json_u64(j, requests->bytes);
	json_u64(j, requests->n);
	html_secs(j, requests->mean_ns);
	if (!of_run)
		return;
	html_secs(j, requests->p50_ns);
	html_secs(j, requests->p99_ns);
	html_secs(j, requests->max_ns);
}

static void put_use(struct json_writer *j, const char *disk, const struct recording_device_use *use)
{
	json_array(j);
	html_shown(j, disk);
	html_shown(j, use->name);
	html_secs(j, use->ns);
	html_secs(j, use->busy_ns);
	json_u64(j, disk_speed(&use->read, &use->write, use->busy_ns));
	put_requests(j, &use->read, false);
	put_requests(j, &use->write, false);
	json_array_end(j);
}

static void put_disk(struct json_writer *j, const struct recording *r,
		     const struct recording_device *device)
{
	json_array(j);
	html_shown(j, device->name);
	html_secs(j, r->totals.duration_ns);
	html_secs(j, device->busy_ns);
	json_u64(j, disk_speed(&device->read, &device->write, device->busy_ns));
	put_requests(j, &device->read, true);
	put_requests(j, &device->write, true);
	json_array_end(j);
}

static void put_uses(struct html_page *page)
{
	static const char *const keys[] = {"disk",    "phase",	"secs",	      "busy",
					   "speed",   "read",	"reads",      "read_mean",
					   "written", "writes", "write_mean", NULL};
	const struct recording *r = page->r;

	html_rows(&page->json, "disk_phases", keys);
	for (size_t i = 0; i < r->n_devices; i++)
		for (size_t use = 0; use < r->devices[i].n_uses; use++)
			put_use(&page->json, r->devices[i].name, &r->devices[i].uses[use]);
	html_rows_end(&page->json);
}

void html_disks(struct html_page *page)
{
	static const char *const keys[] = {
		"disk",	      "secs",	   "busy",	"speed",     "read",	"reads",
		"read_mean",  "read_p50",  "read_p99",	"read_max",  "written", "writes",
		"write_mean", "write_p50", "write_p99", "write_max", NULL};
	const struct recording *r = page->r;
	struct json_writer *j = &page->json;
	char sentence[DISKS_TEXT_MAX];
	size_t said = 0;

	if (!r->n_devices)
		return;
	html_rows(j, "disks", keys);
	for (size_t i = 0; i < r->n_devices; i++)
		put_disk(j, r, &r->devices[i]);
	html_rows_end(j);
	put_uses(page);
	html_member_array(j, "busy_disks");
	for (size_t i = 0; i < r->n_devices; i++)
		for (size_t use = 0; use <= r->devices[i].n_uses && said < DISKS_SENTENCES; use++) {
			if (!disk_sentence(sentence, r, &r->devices[i], use))
				continue;
			html_shown(j, sentence);
			said++;
		}
	json_array_end(j);
}
