/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Folded stacks, for flamegraph.pl, speedscope and their like: a stack in each line, the outermost
 * function first, and the bytes that it was the first to touch, the nanoseconds of CPU time that it
 * used, or the bytes that it allocated on GPUs, or gave back. With --phase, the stacks of each such
 * phase, below its name; else those of the whole run. Lines add up to the growth of RSS, to the CPU
 * time, or to what was allocated, or given back.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "format/touched.h"
#include "report/renderer.h"

enum { SHOWN = 256 };

/* A name as part of a line: without what separates names. */
static void put_name(FILE *out, const char *text)
{
	char safe[SHOWN * TEXT_TERMINAL_GROWTH + 1];

	text_for_terminal(safe, sizeof(safe), text, SHOWN);
	for (const char *at = safe; *at; at++)
		putc_unlocked(*at == ';' ? ':' : *at, out);
}

static void put_stack(FILE *out, const struct recording_stacks *s, uint32_t call)
{
	char name[TOUCHED_NAME_MAX];
	uint32_t calls[TOUCHED_MAX_DEPTH];
	size_t depth = 0;

	for (; call; call = s->calls[call].caller)
		calls[depth++] = call;
	if (!depth)
		fputs(";[unknown code]", out);
	while (depth-- > 0) {
		putc_unlocked(';', out);
		put_name(out, touched_call_name(name, s, calls[depth]));
	}
}

/* Of kinds that touched by the same call, each is a line: readers add them up. */
static void put_stacks(FILE *out, const struct recording_stacks *s, uint32_t phase,
		       const char *root)
{
	size_t n;
	const struct recording_touched *rows = touched_rows(s, phase, &n);
	const struct {
		const char *name;
		uint64_t amount;
	} rest[] = {{"(unsampled)", touched_unsampled(s, phase)},
		    {"(outside of windows)", touched_outside(s, phase)}};

	for (size_t i = 0; i < n; i++) {
		put_name(out, root);
		put_stack(out, s, rows[i].call);
		fprintf(out, " %" PRIu64 "\n", rows[i].amount);
	}
	for (size_t i = 0; i < sizeof(rest) / sizeof(*rest); i++) {
		if (!rest[i].amount)
			continue;
		put_name(out, root);
		fprintf(out, ";%s %" PRIu64 "\n", rest[i].name, rest[i].amount);
	}
}

static int render_what(const struct recording *r, const struct render_options *options,
		       enum touched_what what, FILE *out, struct error *err)
{
	static const char *const roots[] = {"first touched", "CPU time", "allocated on GPUs",
					    "given back"};
	const struct recording_stacks s = touched_of(r, what);

	if (touched_is_missing(r, what, err))
		return -1;
	if (!options->phase) {
		put_stacks(out, &s, TOUCHED_WHOLE_RUN, roots[what]);
		return 0;
	}
	for (uint32_t i = 0; i < r->n_phases; i++)
		if (render_wants_phase(options, &r->phases[i]))
			put_stacks(out, &s, i, r->phases[i].shown);
	return 0;
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	return render_what(r, options, TOUCHED_MEMORY, out, err);
}

static int render_cpu(const struct recording *r, const struct render_options *options, FILE *out,
		      struct error *err)
{
	return render_what(r, options, TOUCHED_CPU, out, err);
}

static int render_gpu(const struct recording *r, const struct render_options *options, FILE *out,
		      struct error *err)
{
	return render_what(r, options, TOUCHED_GPU, out, err);
}

static int render_back(const struct recording *r, const struct render_options *options, FILE *out,
		       struct error *err)
{
	return render_what(r, options, TOUCHED_BACK, out, err);
}

const struct renderer renderer_folded = {
	.name = "folded",
	.extension = ".folded",
	.what = "stacks of --stacks, for flamegraph.pl and speedscope",
	.render = render,
};

const struct renderer renderer_folded_cpu = {
	.name = "folded-cpu",
	.what = "the same of --stacks=cpu, in nanoseconds",
	.render = render_cpu,
};

const struct renderer renderer_folded_gpu = {
	.name = "folded-gpu",
	.what = "the same of what was allocated on GPUs",
	.render = render_gpu,
};

const struct renderer renderer_folded_back = {
	.name = "folded-back",
	.what = "the same of what was given back",
	.render = render_back,
};
