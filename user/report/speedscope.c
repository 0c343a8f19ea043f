/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The file format of speedscope.app: a flame graph of what functions were the first to touch, and
 * one of the CPU time that they used, and one of what they allocated on GPUs, for the whole run and
 * for each phase that did, or for those that --phase matches.
 */
#include "base/json_writer.h"
#include "format/touched.h"
#include "report/renderer.h"

static void put_frames(struct json_writer *j, const struct recording_stacks *s)
{
	char name[TOUCHED_NAME_MAX];

	json_key(j, "frames");
	json_array(j);
	for (size_t i = 0; i <= s->n_functions + (s->in_windows ? 1 : 0); i++) {
		const bool is_function = i < s->n_functions;
		const struct recording_function *f = is_function ? &s->functions[i] : NULL;

		json_compact(j);
		json_object(j);
		/* Behind functions: what no sample has, and what was in no window. */
		json_member_text(j, "name",
				 f		       ? touched_name(name, f)
				 : i == s->n_functions ? "(unsampled)"
						       : "(outside of windows)");
		if (f && *f->path)
			json_member_text(j, "file", f->path);
		json_object_end(j);
	}
	json_array_end(j);
}

/* The outermost function first. */
static void put_stack(struct json_writer *j, const struct recording_stacks *s, uint32_t call)
{
	uint32_t calls[TOUCHED_MAX_DEPTH];
	size_t depth = 0;

	for (; call; call = s->calls[call].caller)
		calls[depth++] = call;
	json_compact(j);
	json_array(j);
	while (depth-- > 0)
		json_u64(j, s->calls[calls[depth]].function);
	json_array_end(j);
}

static void put_frame(struct json_writer *j, size_t frame)
{
	json_compact(j);
	json_array(j);
	json_u64(j, frame);
	json_array_end(j);
}

static void put_profile(struct json_writer *j, const struct recording_stacks *s, uint32_t phase,
			const char *name, const char *unit)
{
	size_t n;
	const struct recording_touched *rows = touched_rows(s, phase, &n);
	const uint64_t unsampled = touched_unsampled(s, phase);
	const uint64_t outside = touched_outside(s, phase);

	json_object(j);
	json_member_text(j, "type", "sampled");
	json_member_text(j, "name", name);
	json_member_text(j, "unit", unit);
	json_member_u64(j, "startValue", 0);
	json_member_u64(j, "endValue", touched_growth(s, phase));
	json_key(j, "samples");
	json_array(j);
	for (size_t i = 0; i < n; i++)
		put_stack(j, s, rows[i].call);
	if (unsampled)
		put_frame(j, s->n_functions);
	if (outside)
		put_frame(j, s->n_functions + 1);
	json_array_end(j);
	json_key(j, "weights");
	json_array(j);
	for (size_t i = 0; i < n; i++)
		json_u64(j, rows[i].amount);
	if (unsampled)
		json_u64(j, unsampled);
	if (outside)
		json_u64(j, outside);
	json_array_end(j);
	json_object_end(j);
}

static void put_profiles(struct json_writer *j, const struct recording *r,
			 const struct render_options *options, enum touched_what what)
{
	static const char *const runs[] = {
		"first touched in the whole run", "CPU time in the whole run",
		"allocated on GPUs in the whole run", "given back in the whole run"};
	static const char *const units[] = {"bytes", "nanoseconds", "bytes", "bytes"};
	static const char *const phases[] = {"", "CPU time in ", "allocated on GPUs in ",
					     "given back in "};
	const struct recording_stacks s = touched_of(r, what);
	char name[TOUCHED_NAME_MAX];

	if (!s.has)
		return;
	if (!options->phase)
		put_profile(j, &s, TOUCHED_WHOLE_RUN, runs[what], units[what]);
	for (size_t i = 0; i < s.n_growth; i++) {
		const struct recording_phase *phase = &r->phases[s.growth[i].phase];

		if (!render_wants_phase(options, phase) ||
		    !touched_is_sampled(&s, s.growth[i].phase))
			continue;
		snprintf(name, sizeof(name), "%s%s", phases[what], phase->shown);
		put_profile(j, &s, s.growth[i].phase, name, units[what]);
	}
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	struct json_writer j = {.out = out, .pretty = true};

	if (touched_is_missing(r, TOUCHED_WHATS, err))
		return -1;
	json_object(&j);
	json_member_text(&j, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_member_text(&j, "exporter", "qprof-bpf");
	json_key(&j, "shared");
	json_object(&j);
	put_frames(&j, &r->stacks);
	json_object_end(&j);
	json_key(&j, "profiles");
	json_array(&j);
	for (unsigned int what = 0; what < TOUCHED_WHATS; what++)
		put_profiles(&j, r, options, what);
	json_array_end(&j);
	json_object_end(&j);
	return 0;
}

const struct renderer renderer_speedscope = {
	.name = "speedscope",
	.what = "the same for speedscope.app, by phase",
	.render = render,
};
