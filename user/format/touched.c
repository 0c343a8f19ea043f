/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/touched.h"

#include <stdlib.h>
#include <string.h>

#include "base/amounts.h"
#include "base/arena.h"
#include "base/units.h"
#include "format/fields.h"

/* A caller is a call before it, so this ends. */
static bool is_too_deep(const struct recording_stacks *s, size_t call)
{
	size_t depth = 0;

	for (; call && depth <= TOUCHED_MAX_DEPTH; depth++)
		call = s->calls[call].caller;
	return depth > TOUCHED_MAX_DEPTH;
}

static const char *check_calls(const struct recording_stacks *s)
{
	for (size_t i = 0; i < s->n_calls; i++) {
		if (s->calls[i].caller > i || (i && s->calls[i].caller == i) ||
		    s->calls[i].function >= s->n_functions)
			return "name what is not there";
		if (is_too_deep(s, i))
			return "are deeper than 1024 calls";
	}
	return NULL;
}

/* The whole run comes before all phases. */
static uint64_t turn_of(uint32_t phase)
{
	return phase == TOUCHED_WHOLE_RUN ? 0 : phase + 1ull;
}

static const char *check_rows(const struct recording *r, const struct record *record,
			      struct recording_touched *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct recording_touched *t = &rows[i];

		if (!field_has(record, t, 0))
			t->phase = TOUCHED_WHOLE_RUN;
		else if (t->phase >= r->n_phases)
			return "name what is not there";
		if (t->call >= r->stacks.n_calls)
			return "name what is not there";
		if (i && turn_of(t[-1].phase) > turn_of(t->phase))
			return "are not in order of phases";
	}
	return NULL;
}

static const char *check_growth(const struct recording *r,
				const struct recording_phase_growth *growth, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (growth[i].phase >= r->n_phases)
			return "name what is not there";
		if (i && growth[i - 1].phase >= growth[i].phase)
			return "are not in order of phases";
	}
	return NULL;
}

static const char *check_within(struct recording *r)
{
	struct recording_within *within = r->stacks.within;

	r->stacks.in_windows = recording_in_windows(r, "stacks");
	for (size_t i = 0; i < r->stacks.n_within; i++) {
		if (!field_has(&record_within, &within[i], 0))
			within[i].phase = TOUCHED_WHOLE_RUN;
		else if (within[i].phase >= r->n_phases)
			return "name what is not there";
		if (i && turn_of(within[i - 1].phase) >= turn_of(within[i].phase))
			return "are not in order of phases";
	}
	return NULL;
}

static bool has_key(const struct recording_stacks *s, const char *key)
{
	return field_has_key(&record_stacks, s, key);
}

/* Returns NULL, or what is wrong. */
static const char *derive_used(struct recording *r)
{
	struct recording_stacks *s = &r->stacks;

	if (!has_key(s, "cpu_samples"))
		return NULL;
	s->used = r->totals.usage.cpu_ns;
	for (size_t i = 0; i < r->n_phases; i++) {
		struct recording_phase_growth *list;

		if (!r->phases[i].usage.cpu_ns)
			continue;
		list = arena_grow(r->arena, s->phase_used, s->n_phase_used, sizeof(*list));
		if (!list)
			return "need more memory than there is";
		s->phase_used = list;
		list[s->n_phase_used++] = (struct recording_phase_growth){
			.phase = (uint32_t)i, .amount = r->phases[i].usage.cpu_ns};
	}
	return NULL;
}

const char *touched_check(struct recording *r)
{
	struct recording_stacks *s = &r->stacks;
	const char *wrong;

	if (r->partial || !(has_key(s, "grown_bytes") || has_key(s, "cpu_samples"))) {
		*s = (struct recording_stacks){.has = 0};
		field_put(&record_recording, r, "stacks", false);
	}
	wrong = check_growth(r, s->growth, s->n_growth);
	if (!wrong)
		wrong = check_growth(r, s->phase_gpu, s->n_phase_gpu);
	if (!wrong)
		wrong = check_growth(r, s->phase_back, s->n_phase_back);
	if (!wrong)
		wrong = check_growth(r, s->phase_ended, s->n_phase_ended);
	if (!wrong)
		wrong = check_calls(s);
	if (!wrong)
		wrong = check_rows(r, &record_touched, s->touched, s->n_touched);
	if (!wrong)
		wrong = check_rows(r, &record_touched, s->back, s->n_back);
	if (!wrong)
		wrong = check_rows(r, &record_ran, s->ran, s->n_ran);
	if (!wrong)
		wrong = check_rows(r, &record_allocated, s->allocated, s->n_allocated);
	if (!wrong)
		wrong = check_within(r);
	return wrong ? wrong : derive_used(r);
}

static struct recording_stacks of_gpu(struct recording_stacks of)
{
	of.grown = of.gpu_grown;
	of.samples = of.gpu_samples;
	of.lost = of.gpu_lost;
	of.growth = of.phase_gpu;
	of.n_growth = of.n_phase_gpu;
	of.touched = of.allocated;
	of.n_touched = of.n_allocated;
	of.of_gpu = true;
	return of;
}

static struct recording_stacks of_back(struct recording_stacks of)
{
	of.grown = of.given_back;
	of.samples = of.back_samples;
	of.lost = of.back_lost;
	of.growth = of.phase_back;
	of.n_growth = of.n_phase_back;
	of.touched = of.back;
	of.n_touched = of.n_back;
	of.of_back = true;
	return of;
}

struct recording_stacks touched_of(const struct recording *r, enum touched_what what)
{
	static const char *const keys[] = {[TOUCHED_MEMORY] = "grown_bytes",
					   [TOUCHED_CPU] = "cpu_samples",
					   [TOUCHED_GPU] = "gpu_allocated_bytes",
					   [TOUCHED_BACK] = "given_back_bytes"};
	struct recording_stacks of = r->stacks;

	if (!has_key(&of, keys[what]))
		return (struct recording_stacks){.has = 0};
	if (what == TOUCHED_MEMORY)
		return of;
	if (what == TOUCHED_GPU)
		return of_gpu(of);
	if (what == TOUCHED_BACK)
		return of_back(of);
	of.grown = of.used;
	of.samples = of.cpu_samples;
	of.lost = of.cpu_lost;
	of.growth = of.phase_used;
	of.n_growth = of.n_phase_used;
	of.touched = of.ran;
	of.n_touched = of.n_ran;
	of.of_cpu = true;
	return of;
}

char *touched_amount(char *out, enum touched_what what, uint64_t amount)
{
	return what == TOUCHED_CPU ? units_time_for_people(out, amount)
				   : units_bytes_for_people(out, amount);
}

/* Returns the index of the first row of that turn or a later one. */
static size_t first_row(const struct recording_stacks *s, uint64_t turn)
{
	size_t low = 0, high = s->n_touched;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (turn_of(s->touched[middle].phase) < turn)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct recording_touched *touched_rows(const struct recording_stacks *s, uint32_t phase,
					     size_t *n)
{
	const size_t first = first_row(s, turn_of(phase));

	*n = first_row(s, turn_of(phase) + 1) - first;
	return *n ? s->touched + first : NULL;
}

static int by_phase(const void *key, const void *item)
{
	const uint32_t phase = *(const uint32_t *)key;
	const struct recording_phase_growth *growth = item;

	return phase < growth->phase ? -1 : phase > growth->phase;
}

static uint64_t amount_of(const struct recording_phase_growth *list, size_t n, uint32_t phase)
{
	const struct recording_phase_growth *found =
		n ? bsearch(&phase, list, n, sizeof(*list), by_phase) : NULL;

	return found ? found->amount : 0;
}

uint64_t touched_growth(const struct recording_stacks *s, uint32_t phase)
{
	return phase == TOUCHED_WHOLE_RUN ? s->grown : amount_of(s->growth, s->n_growth, phase);
}

uint64_t touched_ended(const struct recording_stacks *s, uint32_t phase)
{
	return phase == TOUCHED_WHOLE_RUN ? s->ended
					  : amount_of(s->phase_ended, s->n_phase_ended, phase);
}

static int by_turn(const void *key, const void *item)
{
	const uint64_t turn = *(const uint64_t *)key;
	const struct recording_within *within = item;

	return turn < turn_of(within->phase) ? -1 : turn > turn_of(within->phase);
}

static const struct recording_within *within_of(const struct recording_stacks *s, uint32_t phase)
{
	const uint64_t turn = turn_of(phase);

	return s->n_within ? bsearch(&turn, s->within, s->n_within, sizeof(*s->within), by_turn)
			   : NULL;
}

bool touched_is_sampled(const struct recording_stacks *s, uint32_t phase)
{
	return !s->in_windows || within_of(s, phase);
}

uint64_t touched_outside(const struct recording_stacks *s, uint32_t phase)
{
	const uint64_t all = touched_growth(s, phase);
	const struct recording_within *within = within_of(s, phase);
	const uint64_t inside = !within	     ? 0
				: s->of_cpu  ? within->used
				: s->of_gpu  ? within->gpu
				: s->of_back ? within->back
					     : within->grown;

	if (!s->in_windows)
		return 0;
	return all - smaller_of(inside, all);
}

uint64_t touched_unsampled(const struct recording_stacks *s, uint32_t phase)
{
	size_t n;
	const struct recording_touched *rows = touched_rows(s, phase, &n);
	uint64_t rest = touched_growth(s, phase) - touched_outside(s, phase);

	for (size_t i = 0; i < n; i++)
		rest -= rows[i].amount < rest ? rows[i].amount : rest;
	return rest;
}

bool touched_is_missing(const struct recording *r, enum touched_what what, struct error *err)
{
	static const char *const lacks[] = {
		[TOUCHED_MEMORY] = "the profile has no stacks of memory: they are recorded with "
				   "--stacks",
		[TOUCHED_CPU] = "the profile has no stacks of CPU time: they are recorded with "
				"--stacks=cpu",
		[TOUCHED_GPU] = "the profile has no stacks of what was allocated on GPUs: they are "
				"recorded with --stacks, or nothing was allocated there",
		[TOUCHED_BACK] = "the profile has no stacks of what was given back: they are "
				 "recorded with --stacks",
		[TOUCHED_WHATS] = "the profile has no stacks: they are recorded with --stacks",
	};
	const bool has = what == TOUCHED_WHATS ? r->stacks.has != 0 : touched_of(r, what).has != 0;

	if (!has)
		error_set(err, "%s", lacks[r->stacks.has ? what : TOUCHED_WHATS]);
	return !has;
}

const char *touched_file(const struct recording_function *f)
{
	const char *slash = strrchr(f->path, '/');

	return slash ? slash + 1 : f->path;
}

const char *touched_name(char out[TOUCHED_NAME_MAX], const struct recording_function *f)
{
	if (*f->name)
		return f->name;
	snprintf(out, TOUCHED_NAME_MAX, "[%s]", *f->path ? touched_file(f) : "unknown code");
	return out;
}

const char *touched_call_name(char out[TOUCHED_NAME_MAX], const struct recording_stacks *s,
			      uint32_t call)
{
	const struct recording_function *f = &s->functions[s->calls[call].function];

	if (!s->calls[call].line)
		return touched_name(out, f);
	snprintf(out, TOUCHED_NAME_MAX, "%s (%s:%u)", f->name, touched_file(f),
		 s->calls[call].line);
	return out;
}

static bool begins_with_one_of(const char *text, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strncmp(text, names[i], strlen(names[i])))
			return true;
	return false;
}

bool touched_is_for_others(const char *file)
{
	static const char *const names[] = {"libc.so",	 "libc-",	"ld-linux",
					    "ld-musl",	 "libpthread",	"libstdc++.so",
					    "libc++.so", "libpython3.", "python3."};

	return begins_with_one_of(file, names, sizeof(names) / sizeof(*names));
}

static bool is_kernel(const struct recording_stacks *s, uint32_t call)
{
	const struct recording_function *f = &s->functions[s->calls[call].function];

	return !*f->path && !strcmp(f->name, TOUCHED_KERNEL);
}

/* Of what is allocated on GPUs, the runtimes above the driver's library and PyTorch's allocator
 * are for others, too. */
static bool is_library_of_language(const struct recording_stacks *s, uint32_t call)
{
	const struct recording_function *f = &s->functions[s->calls[call].function];
	static const char *const of_gpus[] = {"libcuda.so",	"libcudart",	"libamdhip64",
					      "libhsa-runtime", "libc10_cuda.", "libc10_hip."};
	const char *file = touched_file(f);

	if (s->calls[call].line)
		return false;
	return is_kernel(s, call) || touched_is_for_others(file) ||
	       (s->of_gpu && begins_with_one_of(file, of_gpus, sizeof(of_gpus) / sizeof(*of_gpus)));
}

/* Of a stack without such a function, its innermost one. */
uint32_t touched_who(const struct recording_stacks *s, uint32_t call)
{
	uint32_t own = call, at;

	while (own && is_library_of_language(s, own))
		own = s->calls[own].caller;
	at = own;
	while (at && (!*s->functions[s->calls[at].function].name || is_library_of_language(s, at)))
		at = s->calls[at].caller;
	/* Stacks that are not whole are below a name that is no function's. */
	if (at && *s->functions[s->calls[at].function].path)
		return s->calls[at].function;
	return s->calls[own ? own : call].function;
}

static int by_amount(const void *left, const void *right)
{
	const struct touched_function *a = left, *b = right;

	if (a->amount != b->amount)
		return a->amount > b->amount ? -1 : 1;
	return a->function < b->function ? -1 : a->function > b->function;
}

static int by_function(const void *left, const void *right)
{
	const struct touched_function *a = left, *b = right;

	return a->function < b->function ? -1 : a->function > b->function;
}

/* Adds up what is of one function. Returns how many there are. */
static size_t merge(struct touched_function *list, size_t n)
{
	size_t kept = 0;

	qsort(list, n, sizeof(*list), by_function);
	for (size_t i = 0; i < n; i++) {
		if (kept && list[kept - 1].function == list[i].function) {
			list[kept - 1].amount += list[i].amount;
			list[kept - 1].kernel += list[i].kernel;
		} else if (list[i].amount) {
			list[kept++] = list[i];
		}
	}
	return kept;
}

int touched_by_function(const struct recording_stacks *s, uint32_t phase, struct touched *into)
{
	size_t n;
	const struct recording_touched *rows = touched_rows(s, phase, &n);
	struct touched_function *list = calloc(n ? n : 1, sizeof(*list));

	*into = (struct touched){.list = list,
				 .grown = touched_growth(s, phase),
				 .unsampled = touched_unsampled(s, phase),
				 .outside = touched_outside(s, phase)};
	if (!list)
		return -1;
	for (size_t i = 0; i < n; i++)
		list[i] =
			(struct touched_function){touched_who(s, rows[i].call), rows[i].amount,
						  is_kernel(s, rows[i].call) ? rows[i].amount : 0};
	into->n = merge(list, n);
	qsort(list, into->n, sizeof(*list), by_amount);
	return 0;
}

static int by_size(const void *left, const void *right)
{
	const struct touched_line *a = left, *b = right;

	if (a->amount != b->amount)
		return a->amount > b->amount ? -1 : 1;
	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

static int by_place(const void *left, const void *right)
{
	const struct touched_line *a = left, *b = right;

	if (a->function != b->function)
		return a->function < b->function ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

int touched_by_line(const struct recording_stacks *s, uint32_t phase, struct touched_line **list,
		    size_t *n)
{
	size_t n_rows, kept = 0;
	const struct recording_touched *rows = touched_rows(s, phase, &n_rows);
	struct touched_line *lines = calloc(n_rows ? n_rows : 1, sizeof(*lines));

	*list = lines;
	*n = 0;
	if (!lines)
		return -1;
	for (size_t i = 0; i < n_rows; i++) {
		uint32_t call = rows[i].call;

		while (call && !s->calls[call].line)
			call = s->calls[call].caller;
		if (call)
			lines[(*n)++] = (struct touched_line){s->calls[call].function,
							      s->calls[call].line, rows[i].amount};
	}
	qsort(lines, *n, sizeof(*lines), by_place);
	for (size_t i = 0; i < *n; i++) {
		if (kept && !by_place(&lines[kept - 1], &lines[i]))
			lines[kept - 1].amount += lines[i].amount;
		else
			lines[kept++] = lines[i];
	}
	*n = kept;
	qsort(lines, kept, sizeof(*lines), by_size);
	return 0;
}

void touched_free(struct touched *t)
{
	free(t->list);
	t->list = NULL;
}
