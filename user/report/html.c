/* SPDX-License-Identifier: GPL-2.0-only */
/* The report as a page for a browser. html/ is the page; this file puts the profile into it. */
#include <stdlib.h>
#include <string.h>

#include "report/html/page.h"
#include "report/html_parts.h"
#include "report/markup.h"
#include "base/units.h"
#include "format/charged.h"
#include "format/gpus.h"
#include "format/least.h"
#include "format/headroom.h"
#include "format/trending.h"
#include "format/waits.h"

enum { MAX_RATES = 2000 };

/* ---- Parts of the profile ---- */

/* The file without its folder: a report that is passed on must not tell the folder. */
static const char *source_name(const struct html_page *page)
{
	const char *source = page->options->source, *slash = strrchr(source, '/');

	if (!strcmp(source, "-"))
		return "stdin";
	return slash && slash[1] ? slash + 1 : source;
}

/* Why it was slow, and what grows. */
static void put_reasons(struct json_writer *j, const struct recording *r)
{
	enum { SHOWN = 5 };
	char sentence[TRENDING_TEXT_MAX], slow[WAITS_TEXT_MAX], closest[HEADROOM_TEXT_MAX];

	if (waits_sentence(slow, r))
		html_member_shown(j, "slow", slow);
	if (headroom_sentence(closest, r))
		html_member_shown(j, "closest", closest);
	if (!r->n_trends)
		return;
	html_member_array(j, "trends");
	for (size_t i = 0; i < r->n_trends && i < SHOWN; i++)
		html_shown(j, trending_sentence(sentence, r, &r->trends[i]));
	json_array_end(j);
}

static void put_run(struct json_writer *j, const struct html_page *page)
{
	const struct recording_run *run = &page->r->run;

	html_member_shown(j, "source", source_name(page));
	html_member_shown(j, "version", run->version);
	html_member_shown(j, "hostname", run->hostname);
	html_member_shown(j, "kernel", run->kernel);
	json_key(j, "started_at");
	json_double(j, run->started_at);
	html_member_array(j, "command");
	for (size_t i = 0; i < run->n_command; i++)
		html_shown(j, run->command[i]);
	json_array_end(j);
	html_member_array(j, "pids");
	for (size_t i = 0; i < run->n_pids; i++)
		json_u64(j, run->pids[i]);
	json_array_end(j);
	html_member_shown(j, "partial", page->r->partial ? page->r->partial_text : NULL);
	/* The page knows the exact one. */
	if (recording_cpu_error(page->r) > RECORDING_CPU_EXACT_NS)
		html_member_secs(j, "cpu_error", recording_cpu_error(page->r));
	put_reasons(j, page->r);
	if (!page->ending.is_bad)
		return;
	html_member_shown(j, "ending", page->ending.text);
	json_member_bool(j, "killed", page->ending.is_killed);
}

static void put_devices(struct json_writer *j, const struct recording *r)
{
	char words[GPUS_WORDS_MAX];

	if (!r->n_gpus && !r->n_gpu_refusals)
		return;
	html_member_array(j, "devices");
	for (size_t i = 0; i < r->n_gpus; i++) {
		if (gpus_device_words(words, &r->gpus[i]))
			html_shown(j, words);
	}
	if (gpus_refusal_words(words, r))
		html_shown(j, words);
	json_array_end(j);
}

static void put_totals(struct json_writer *j, const struct html_page *page)
{
	const struct recording_totals *totals = &page->r->totals;
	struct recording_need need;
	const bool is_known = recording_need(page->needs, 0, UINT64_MAX, &need);
	char charged[CHARGED_WORDS_MAX];

	html_member_object(j, "totals");
	html_member_secs(j, "duration", totals->duration_ns);
	json_member_u64(j, "peak", totals->peak_rss);
	json_member_u64(j, "gpu_peak", totals->peak_gpu);
	if (totals->peak_pinned)
		json_member_u64(j, "pinned_peak", totals->peak_pinned);
	if (totals->peak_hugetlb)
		json_member_u64(j, "hugetlb_peak", totals->peak_hugetlb);
	put_devices(j, page->r);
	if (charged_words(charged, page->r, page->ending.is_killed))
		html_member_shown(j, "charged", charged);
	json_member_u64(j, "io_read", totals->usage.io_read);
	json_member_u64(j, "disk_read", totals->usage.disk_read);
	json_member_u64(j, "io_write", totals->usage.io_write);
	json_member_u64(j, "disk_write", totals->usage.disk_write);
	html_member_secs(j, "cpu", totals->usage.cpu_ns);
	html_later_members(j, page->r, &totals->usage);
	if (is_known) {
		json_member_u64(j, "needed", need.most);
		if (need.knows_least)
			json_member_u64(j, "least", need.least);
		json_member_u64(j, "files", need.files);
	}
	json_object_end(j);
}

static void put_where(struct json_writer *j, const struct html_page *page, uint64_t ns,
		      const struct recording_phase *phase, const char *words)
{
	html_member_secs(j, "time", ns);
	html_member_shown(j, "words", words);
	html_member_shown(j, "phase", by_name_path(page->by_name, phase));
}

/* Where memory got that high often says more than where it was highest. */
static void put_plateau(struct json_writer *j, const struct html_page *page, uint64_t peak_ns,
			const struct recording_phase *peak_phase)
{
	const uint64_t ns = recording_plateau_ns(page->r);
	const struct recording_phase *phase = recording_phase_at(page->r, ns);
	const char *words;

	if (ns >= peak_ns || phase == peak_phase)
		return;
	html_member_object(j, "plateau");
	phase = recording_where(page->r, ns, phase, &words);
	put_where(j, page, ns, phase, words);
	json_object_end(j);
}

static void put_peak(struct json_writer *j, const struct html_page *page)
{
	static const char *const keys[] = {"process", "anon", "shmem", "file", "swap", NULL};
	const struct recording_peak *peak = &page->r->peak;
	const struct recording_phase *phase = recording_peak_phase(page->r), *at;
	const char *words;
	char least[LEAST_WORDS_MAX];
	uint64_t ns;

	html_member_object(j, "peak");
	json_member_bool(j, "exact", recording_peak_time(page->r, &ns));
	at = recording_where_peak(page->r, &words);
	put_where(j, page, ns, at, words);
	json_member_u64(j, "number", phase ? (uint64_t)(phase - page->r->phases) + 1 : 0);
	put_plateau(j, page, ns, phase);
	if (least_of_peak(least, peak, page->r->totals.peak_rss, true))
		html_member_shown(j, "least", least);
	if (peak->has) {
		json_member_u64(j, "anon", peak->anon);
		json_member_u64(j, "shmem", peak->shmem);
		json_member_u64(j, "file", peak->file);
		json_member_u64(j, "swap", peak->swap);
		html_rows(j, "shares", keys);
		for (size_t i = 0; i < peak->n_shares; i++) {
			const struct recording_share *share = &peak->shares[i];

			json_array(j);
			json_u64(j, share->process);
			json_u64(j, share->anon);
			json_u64(j, share->shmem);
			json_u64(j, share->file);
			json_u64(j, share->swap);
			json_array_end(j);
		}
		html_rows_end(j);
	}
	json_object_end(j);
}

/* ---- The page ---- */

static void put_profile(struct html_page *page)
{
	static const char *const orders[] = {"start",	"peak",	    "delta", "seconds",
					     "io_read", "io_write", "cpu"};
	struct json_writer *j = &page->json;

	json_object(j);
	put_run(j, page);
	put_totals(j, page);
	put_peak(j, page);
	html_tables(page);
	json_key(j, "order");
	json_text(j, orders[page->options->order]);
	json_member_u64(j, "top", page->options->top);
	html_member_shown(j, "filter", page->options->phase);
	json_object_end(j);
}

static void put_title(struct html_page *page)
{
	const struct recording_run *run = &page->r->run;

	for (size_t i = 0; i < run->n_command; i++) {
		markup_text(page->out, run->command[i], 60);
		fputs(i + 1 < run->n_command ? " " : "", page->out);
	}
	if (!run->n_command)
		markup_text(page->out, source_name(page), 60);
	fputs(" - qprof-bpf", page->out);
}

/* A sentence for browsers without scripts. */
static void put_summary(struct html_page *page)
{
	char peak[UNITS_TEXT_MAX];

	if (page->ending.is_bad) {
		markup_text(page->out, page->ending.text, ENDING_MAX);
		fputs(". ", page->out);
	}
	fprintf(page->out, "Peak %s ", units_bytes_for_people(peak, page->r->totals.peak_rss));
	markup_peak_time(page->out, page->r, 100);
}

static void put_page(struct html_page *page)
{
	static const struct {
		const char *mark;
		void (*put)(struct html_page *page);
	} parts[] = {
		{"@TITLE@", put_title},
		{"@SUMMARY@", put_summary},
		{"@PROFILE@", put_profile},
	};
	const char *at = html_page;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *mark = strstr(at, parts[i].mark);

		fwrite(at, 1, (size_t)(mark - at), page->out);
		parts[i].put(page);
		at = mark + strlen(parts[i].mark);
	}
	fputs(at, page->out);
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	struct html_page page = {
		.r = r,
		.options = options,
		.needs = recording_needs_new(r),
		.out = out,
		.json = {.out = out},
	};
	bool is_ready;

	recording_ending(r, &page.ending);
	page.rates = rates_over_time(r, MAX_RATES, &page.n_rates);
	page.metrics = reported_metrics(r, &page.n_metrics);
	page.by_name = by_name_new(r);
	is_ready = !layout_phases(&page.layout, r) && page.needs && page.rates && page.metrics &&
		   page.by_name;
	if (is_ready)
		put_page(&page);
	recording_needs_free(page.needs);
	free(page.rates);
	free(page.metrics);
	by_name_free(page.by_name);
	layout_free(&page.layout);
	return is_ready ? 0 : error_set(err, "not enough memory for the report");
}

const struct renderer renderer_html = {
	.name = "html",
	.extension = ".html",
	.what = "a page with charts for a browser, in one file",
	.render = render,
};
