/* SPDX-License-Identifier: GPL-2.0-only */
/* What the page's flame graphs are drawn of: calls, and what each touched, used or allocated on
 * GPUs, by phase. */
#include "format/touched.h"
#include "report/html_parts.h"

/* A path tells folders of whoever ran it: the file alone is shown. */
static void put_functions(struct json_writer *j, const struct recording_stacks *s)
{
	static const char *const keys[] = {"name", "file", NULL};
	char name[TOUCHED_NAME_MAX];

	html_rows(j, "functions", keys);
	for (size_t i = 0; i < s->n_functions; i++) {
		json_array(j);
		html_shown(j, touched_name(name, &s->functions[i]));
		html_shown(j, touched_file(&s->functions[i]));
		json_array_end(j);
	}
	html_rows_end(j);
}

/* As columns: there may be many. */
static void put_calls(struct json_writer *j, const struct recording_stacks *s)
{
	html_member_array(j, "caller");
	for (size_t i = 0; i < s->n_calls; i++)
		json_u64(j, s->calls[i].caller);
	json_array_end(j);
	html_member_array(j, "function");
	for (size_t i = 0; i < s->n_calls; i++)
		json_u64(j, s->calls[i].function);
	json_array_end(j);
	html_member_array(j, "line");
	for (size_t i = 0; i < s->n_calls; i++)
		json_u64(j, s->calls[i].line);
	json_array_end(j);
}

/* A call has a place of its own for each kind of memory: the page adds them up. */
static void put_graph(struct json_writer *j, const struct html_page *page,
		      const struct recording_stacks *s, enum touched_what what, uint32_t phase)
{
	const bool is_run = phase == TOUCHED_WHOLE_RUN;
	size_t n;
	const struct recording_touched *rows = touched_rows(s, phase, &n);

	json_array(j);
	json_u64(j, is_run ? 0 : phase + 1ull);
	html_shown(j, is_run ? NULL : page->r->phases[phase].shown);
	json_u64(j, what);
	json_u64(j, touched_growth(s, phase));
	json_u64(j, touched_unsampled(s, phase));
	json_u64(j, touched_outside(s, phase));
	json_array(j);
	for (size_t i = 0; i < n; i++)
		json_u64(j, rows[i].call);
	json_array_end(j);
	json_array(j);
	for (size_t i = 0; i < n; i++)
		json_u64(j, rows[i].amount);
	json_array_end(j);
	json_array_end(j);
}

/* Each phase uses some CPU time: only those with samples have a graph. With windows, so have those
 * that are in one. */
static bool has_graph(const struct html_page *page, const struct recording_stacks *s,
		      enum touched_what what, uint32_t phase)
{
	size_t n = touched_is_sampled(s, phase);

	if (n && what == TOUCHED_CPU)
		touched_rows(s, phase, &n);
	return n && render_wants_phase(page->options, &page->r->phases[phase]);
}

static void put_graphs(struct json_writer *j, const struct html_page *page, enum touched_what what)
{
	const struct recording_stacks s = touched_of(page->r, what);

	if (!s.has)
		return;
	put_graph(j, page, &s, what, TOUCHED_WHOLE_RUN);
	for (size_t i = 0; i < s.n_growth; i++)
		if (has_graph(page, &s, what, s.growth[i].phase))
			put_graph(j, page, &s, what, s.growth[i].phase);
}

void html_stacks(struct html_page *page)
{
	static const char *const keys[] = {"number",  "name",  "what",	  "all", "unsampled",
					   "outside", "calls", "amounts", NULL};
	const struct recording_stacks *s = &page->r->stacks;
	struct json_writer *j = &page->json;

	if (!s->has || !s->n_calls)
		return;
	html_member_object(j, "stacks");
	put_functions(j, s);
	put_calls(j, s);
	html_rows(j, "graphs", keys);
	for (unsigned int what = 0; what < TOUCHED_WHATS; what++)
		put_graphs(j, page, what);
	html_rows_end(j);
	json_object_end(j);
}
