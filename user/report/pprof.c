/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pprof's format (pprof.proto): what functions were the first to touch, and the CPU time that they
 * used, for the whole run, or for each phase that --phase matches, under the label "phase". pprof
 * takes it without compression.
 */
#include "pprof.pb.h"

#include <pb_encode.h>
#include <stdlib.h>
#include <string.h>

#include "format/touched.h"
#include "report/renderer.h"

/* Indexes of texts. Then come name and path of each function, then the names of phases. */
enum {
	TEXT_NONE,
	TEXT_SAMPLES,
	TEXT_COUNT,
	TEXT_TOUCHED,
	TEXT_BYTES,
	TEXT_KIND,
	TEXT_PHASE,
	TEXT_ANON,
	TEXT_FILE,
	TEXT_SHMEM,
	TEXT_UNSAMPLED,
	TEXT_UNKNOWN,
	TEXT_CPU_SAMPLES,
	TEXT_CPU,
	TEXT_NANOSECONDS,
	TEXT_OUTSIDE,
	TEXT_GPU_SAMPLES,
	TEXT_GPU,
	TEXT_BACK_SAMPLES,
	TEXT_BACK,
	TEXTS,
};

static const char *const texts[TEXTS] = {
	[TEXT_NONE] = "",
	[TEXT_SAMPLES] = "samples",
	[TEXT_COUNT] = "count",
	[TEXT_TOUCHED] = "first_touched",
	[TEXT_BYTES] = "bytes",
	[TEXT_KIND] = "kind",
	[TEXT_PHASE] = "phase",
	[TEXT_ANON] = "anon",
	[TEXT_FILE] = "file",
	[TEXT_SHMEM] = "shmem",
	[TEXT_UNSAMPLED] = "(unsampled)",
	[TEXT_UNKNOWN] = "[unknown code]",
	[TEXT_CPU_SAMPLES] = "cpu_samples",
	[TEXT_CPU] = "cpu",
	[TEXT_NANOSECONDS] = "nanoseconds",
	[TEXT_OUTSIDE] = "(outside of windows)",
	[TEXT_GPU_SAMPLES] = "gpu_samples",
	[TEXT_GPU] = "gpu_allocated",
	[TEXT_BACK_SAMPLES] = "given_back_samples",
	[TEXT_BACK] = "given_back",
};

/* What a profile's values are: two of each thing that was sampled. */
static const pp_ValueType types[TOUCHED_WHATS][2] = {
	[TOUCHED_MEMORY] = {{TEXT_SAMPLES, TEXT_COUNT}, {TEXT_TOUCHED, TEXT_BYTES}},
	[TOUCHED_CPU] = {{TEXT_CPU_SAMPLES, TEXT_COUNT}, {TEXT_CPU, TEXT_NANOSECONDS}},
	[TOUCHED_GPU] = {{TEXT_GPU_SAMPLES, TEXT_COUNT}, {TEXT_GPU, TEXT_BYTES}},
	[TOUCHED_BACK] = {{TEXT_BACK_SAMPLES, TEXT_COUNT}, {TEXT_BACK, TEXT_BYTES}},
};

static bool write_bytes(pb_ostream_t *stream, const pb_byte_t *bytes, size_t n)
{
	return fwrite_unlocked(bytes, 1, n, stream->state) == n;
}

static pb_ostream_t stream_to(FILE *out)
{
	return (pb_ostream_t){.callback = write_bytes, .state = out, .max_size = SIZE_MAX};
}

/* The caller of render finds failed writes at the file's end. */
static void put(FILE *out, uint32_t tag, const pb_msgdesc_t *fields, const void *message)
{
	pb_ostream_t stream = stream_to(out);

	if (pb_encode_tag(&stream, PB_WT_STRING, tag))
		pb_encode_submessage(&stream, fields, message);
}

/* ---- Texts and functions ---- */

static void put_text(FILE *out, const char *text)
{
	pb_ostream_t stream = stream_to(out);

	if (pb_encode_tag(&stream, PB_WT_STRING, pp_Profile_string_table_tag))
		pb_encode_string(&stream, (const pb_byte_t *)text, strlen(text));
}

static void put_texts(FILE *out, const struct recording *r, bool phases)
{
	char name[TOUCHED_NAME_MAX];

	for (size_t i = 0; i < TEXTS; i++)
		put_text(out, texts[i]);
	for (size_t i = 0; i < r->stacks.n_functions; i++) {
		put_text(out, touched_name(name, &r->stacks.functions[i]));
		put_text(out, r->stacks.functions[i].path);
	}
	for (size_t i = 0; phases && i < r->n_phases; i++)
		put_text(out, r->phases[i].shown);
}

/* Functions have the ids up to their number; then come (unsampled) and unknown code. */
static uint64_t id_of_line(const struct recording_stacks *s, size_t call)
{
	return s->n_functions + 3 + call;
}

/* And behind lines: what was in no window. */
static uint64_t id_of_outside(const struct recording_stacks *s)
{
	return id_of_line(s, s->n_calls);
}

static void put_function(FILE *out, uint64_t id, uint64_t mapping, int64_t name, int64_t path)
{
	const pp_Function function = {
		.id = id, .name = name, .system_name = name, .filename = path};
	const pp_Location location = {
		.id = id, .mapping_id = mapping, .line_count = 1, .line = {{.function_id = id}}};

	put(out, pp_Profile_function_tag, pp_Function_fields, &function);
	put(out, pp_Profile_location_tag, pp_Location_fields, &location);
}

/* pprof need not look for names: they are here. */
static void put_mapping(FILE *out, uint64_t id, int64_t path)
{
	const pp_Mapping mapping = {.id = id,
				    .filename = path,
				    .has_functions = true,
				    .has_filenames = true,
				    .has_line_numbers = true};

	put(out, pp_Profile_mapping_tag, pp_Mapping_fields, &mapping);
}

static int64_t text_of_path(const struct recording_stacks *s, const struct recording_function *f)
{
	return TEXTS + 2 * (f - s->functions) + 1;
}

/* By path, then as they come. */
static int by_path(const void *left, const void *right)
{
	const struct recording_function *a = *(const struct recording_function *const *)left;
	const struct recording_function *b = *(const struct recording_function *const *)right;
	const int order = strcmp(a->path, b->path);

	return order ? order : (a > b) - (a < b);
}

/* A function's id is its index and 1, a file's is that of its first function. files: of each
 * function, to be filled in. */
static int put_functions(FILE *out, const struct recording_stacks *s, uint64_t *files)
{
	const struct recording_function **sorted = calloc(s->n_functions + 1, sizeof(*sorted));
	uint64_t mapping = 0;

	if (!sorted)
		return -1;
	for (size_t i = 0; i < s->n_functions; i++)
		sorted[i] = &s->functions[i];
	qsort(sorted, s->n_functions, sizeof(*sorted), by_path);
	for (size_t i = 0; i < s->n_functions; i++) {
		const struct recording_function *f = sorted[i];
		const uint64_t id = (uint64_t)(f - s->functions) + 1;
		const int64_t path = text_of_path(s, f);

		if (*f->path && (!i || strcmp(sorted[i - 1]->path, f->path) != 0)) {
			mapping = id;
			put_mapping(out, mapping, path);
		}
		put_function(out, id, mapping, path - 1, *f->path ? path : TEXT_NONE);
		files[id - 1] = mapping;
	}
	put_function(out, s->n_functions + 1, 0, TEXT_UNSAMPLED, TEXT_NONE);
	put_function(out, s->n_functions + 2, 0, TEXT_UNKNOWN, TEXT_NONE);
	if (s->in_windows)
		put_function(out, id_of_outside(s), 0, TEXT_OUTSIDE, TEXT_NONE);
	free(sorted);
	return 0;
}

/* Of lines of Python, each call is a place. */
static void put_lines(FILE *out, const struct recording_stacks *s, const uint64_t *files)
{
	for (size_t i = 0; i < s->n_calls; i++) {
		const struct recording_call *call = &s->calls[i];
		const pp_Location location = {
			.id = id_of_line(s, i),
			.mapping_id = files[call->function],
			.line_count = 1,
			.line = {{.function_id = call->function + 1ull, .line = call->line}}};

		if (call->line)
			put(out, pp_Profile_location_tag, pp_Location_fields, &location);
	}
}

static int put_places(FILE *out, const struct recording_stacks *s)
{
	uint64_t *files = calloc(s->n_functions + 1, sizeof(*files));
	const int err = files ? put_functions(out, s, files) : -1;

	if (!err)
		put_lines(out, s, files);
	free(files);
	return err;
}

/* ---- Samples ---- */

static void add_label(pp_Sample *sample, int64_t key, int64_t text)
{
	if (text)
		sample->label[sample->label_count++] = (pp_Label){.key = key, .str = text};
}

static int64_t text_of_kind(const char *kind)
{
	for (int64_t i = TEXT_ANON; i <= TEXT_SHMEM; i++)
		if (!strcmp(texts[i], kind))
			return i;
	return TEXT_NONE;
}

/* The stacks whose samples are being written. */
struct sampled {
	struct recording_stacks stacks;
	pb_size_t first;    /* index of their values in a sample */
	pb_size_t n_values; /* of a sample: the others are 0 */
};

static void put_sample(FILE *out, const struct sampled *of, pp_Sample *sample, uint64_t samples,
		       uint64_t amount)
{
	sample->value_count = of->n_values;
	sample->value[of->first] = (int64_t)samples;
	sample->value[of->first + 1] = (int64_t)amount;
	put(out, pp_Profile_sample_tag, pp_Sample_fields, sample);
}

/* phase: the text of its name, or TEXT_NONE. */
static void put_row(FILE *out, const struct sampled *of, const struct recording_touched *row,
		    int64_t phase)
{
	const struct recording_stacks *s = &of->stacks;
	uint64_t locations[TOUCHED_MAX_DEPTH];
	pp_Sample sample = {.location_id = locations};

	for (uint32_t call = row->call; call; call = s->calls[call].caller)
		locations[sample.location_id_count++] =
			s->calls[call].line ? id_of_line(s, call) : s->calls[call].function + 1ull;
	if (!row->call)
		locations[sample.location_id_count++] = s->n_functions + 2;
	if (row->kind)
		add_label(&sample, TEXT_KIND, text_of_kind(row->kind));
	add_label(&sample, TEXT_PHASE, phase);
	put_sample(out, of, &sample, row->samples, row->amount);
}

/* Of what no sample has. */
static void put_other(FILE *out, const struct sampled *of, uint64_t location, uint64_t amount,
		      int64_t phase)
{
	pp_Sample sample = {.location_id_count = 1, .location_id = &location};

	add_label(&sample, TEXT_PHASE, phase);
	if (amount)
		put_sample(out, of, &sample, 0, amount);
}

static void put_samples(FILE *out, const struct sampled *of, uint32_t phase)
{
	const struct recording_stacks *s = &of->stacks;
	const int64_t text = phase == TOUCHED_WHOLE_RUN
				     ? TEXT_NONE
				     : TEXTS + 2 * (int64_t)s->n_functions + phase;
	size_t n;
	const struct recording_touched *rows = touched_rows(s, phase, &n);

	for (size_t i = 0; i < n; i++)
		put_row(out, of, &rows[i], text);
	put_other(out, of, s->n_functions + 1, touched_unsampled(s, phase), text);
	put_other(out, of, id_of_outside(s), touched_outside(s, phase), text);
}

static void put_all_samples(FILE *out, const struct recording *r,
			    const struct render_options *options, const struct sampled *of)
{
	if (!options->phase)
		put_samples(out, of, TOUCHED_WHOLE_RUN);
	for (uint32_t i = 0; options->phase && i < r->n_phases; i++)
		if (render_wants_phase(options, &r->phases[i]))
			put_samples(out, of, i);
}

/* ---- The profile ---- */

static void put_head(FILE *out, const struct recording *r)
{
	const bool of_memory = touched_of(r, TOUCHED_MEMORY).has != 0;
	const double start = r->run.started_at;
	pp_Profile head = {.duration_nanos = (int64_t)r->totals.duration_ns,
			   .default_sample_type = of_memory ? TEXT_TOUCHED : TEXT_CPU};
	pb_ostream_t stream = stream_to(out);

	if (start > 0 && start < (double)(INT64_MAX / 1000000000))
		head.time_nanos = (int64_t)(start * 1e6) * 1000;
	for (unsigned int what = 0; what < TOUCHED_WHATS; what++)
		for (size_t i = 0; touched_of(r, what).has && i < 2; i++)
			put(out, pp_Profile_sample_type_tag, pp_ValueType_fields, &types[what][i]);
	pb_encode(&stream, pp_Profile_fields, &head);
}

static int render(const struct recording *r, const struct render_options *options, FILE *out,
		  struct error *err)
{
	struct sampled of = {.n_values = 0};

	if (touched_is_missing(r, TOUCHED_WHATS, err))
		return -1;
	put_head(out, r);
	put_texts(out, r, options->phase);
	if (put_places(out, &r->stacks))
		return error_set(err, "not enough memory for the report");
	for (unsigned int what = 0; what < TOUCHED_WHATS; what++)
		of.n_values += touched_of(r, what).has ? 2 : 0;
	for (unsigned int what = 0; what < TOUCHED_WHATS; what++) {
		of.stacks = touched_of(r, what);
		if (!of.stacks.has)
			continue;
		put_all_samples(out, r, options, &of);
		of.first += 2;
	}
	return 0;
}

const struct renderer renderer_pprof = {
	.name = "pprof",
	.extension = ".pb",
	.what = "the same for pprof, not compressed",
	.binary = true,
	.render = render,
};
