/* SPDX-License-Identifier: GPL-2.0-only */
#include "report/fits_gpu.h"

#include <inttypes.h>
#include <string.h>

#include "base/amounts.h"
#include "base/table.h"
#include "format/fields.h"
#include "report/renderer.h"

enum { WORDS_MAX = 512, NAME_WORDS_MAX = 192 };

/* What the run needs on a device. */
struct need {
	const struct recording_gpu *gpu;
	uint64_t least, most;
	bool knows_most;
	enum fits_answer answer;
	bool for_ending; /* it would fit, had the run not ended badly */
	bool for_losses; /* it would fit, had all been counted */
};

/* ---- Judging ---- */

static bool has(const struct recording_gpu *gpu, const char *key)
{
	return field_has_key(&record_gpu, gpu, key);
}

static bool ended_badly(const struct fits_gpu *f)
{
	struct ending ending;

	recording_ending(f->r, &ending);
	return ending.is_bad && !f->allow_failed;
}

/* Of a file that is sane; what any other says fits into nothing. */
static uint64_t together(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/*
 * Each process numbers GPUs as it likes (CUDA_VISIBLE_DEVICES, which it may set itself): so what
 * several allocated on one number may be on several GPUs, and what they allocated on several
 * numbers on one.
 */
static bool is_of_one_process(const struct fits_gpu *f)
{
	return f->r->totals.gpu_processes == 1;
}

/* Of what was allocated nobody knows where: it may be on any GPU, and on several. */
static bool is_anywhere(const struct recording_gpu *gpu)
{
	return !has(gpu, "index") && !has(gpu, "program_index");
}

static uint64_t allocated_anywhere(const struct fits_gpu *f)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < f->r->n_gpus; i++)
		if (is_anywhere(&f->r->gpus[i]))
			bytes = together(bytes, f->r->gpus[i].allocated_peak);
	return bytes;
}

static uint64_t least_allocated(const struct fits_gpu *f, const struct recording_gpu *gpu)
{
	if (is_anywhere(gpu))
		return 0;
	return is_of_one_process(f) ? gpu->allocated_peak : gpu->process_peak;
}

static uint64_t most_allocated(const struct fits_gpu *f, const struct recording_gpu *gpu)
{
	if (!is_of_one_process(f) || is_anywhere(gpu))
		return f->r->totals.peak_gpu;
	return together(gpu->allocated_peak, allocated_anywhere(f));
}

/* What the kernel side could not count may be anywhere. */
static bool lacks_some(const struct fits_gpu *f)
{
	static const char *const keys[] = {"lost_gpu_records", "uncounted_gpu_allocations",
					   "unknown_gpu_frees"};
	const struct recording_quality *quality = &f->r->quality;

	for (size_t i = 0; i < quality->n_counts; i++)
		for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
			if (quality->counts[i].count && !strcmp(quality->counts[i].key, keys[k]))
				return true;
	return false;
}

/* It fits, by what is known: unless there is more to know. */
static void allow(const struct fits_gpu *f, struct need *need)
{
	need->for_losses = lacks_some(f);
	need->for_ending = ended_badly(f);
	if (!need->for_losses && !need->for_ending)
		need->answer = FITS_YES;
}

/* Returns false if the run had nothing there, as far as is known. */
static bool judge(const struct fits_gpu *f, const struct recording_gpu *gpu, struct need *need)
{
	const uint64_t share = f->r->totals.driver_share;

	if (!gpu->allocated_peak && !gpu->tree_peak_used)
		return false;
	*need = (struct need){.gpu = gpu, .answer = FITS_UNKNOWN};
	need->least = least_allocated(f, gpu);
	raise_to(&need->least, gpu->tree_peak_used);
	need->knows_most = gpu->allocated_peak && share;
	if (need->knows_most)
		need->most = together(most_allocated(f, gpu), share);
	raise_to(&need->most, need->least);
	if (need->least > f->budget)
		need->answer = FITS_NO;
	else if (need->knows_most && need->most <= f->budget && !is_anywhere(gpu))
		allow(f, need);
	return true;
}

/* Whether other GPUs have this one's amount in theirs. */
static bool is_in_others(const struct fits_gpu *f, const struct recording_gpu *gpu)
{
	for (size_t i = 0; is_anywhere(gpu) && i < f->r->n_gpus; i++)
		if (!is_anywhere(&f->r->gpus[i]) && f->r->gpus[i].allocated_peak)
			return true;
	return false;
}

/* Sets *decides to what the answer is for: of those with the worst answer the one that needs most.
 * Returns false if there is no device that the run had anything on. */
static bool judge_all(const struct fits_gpu *f, struct need *decides)
{
	static const int worse[] = {[FITS_YES] = 0, [FITS_UNKNOWN] = 1, [FITS_NO] = 2};
	bool any = false;

	for (size_t i = 0; i < f->r->n_gpus; i++) {
		struct need need;

		if (is_in_others(f, &f->r->gpus[i]) || !judge(f, &f->r->gpus[i], &need))
			continue;
		if (!any || worse[need.answer] > worse[decides->answer] ||
		    (need.answer == decides->answer && need.most > decides->most))
			*decides = need;
		any = true;
	}
	return any;
}

enum fits_answer fits_gpu_answer(const struct fits_gpu *f)
{
	struct need decides;

	if (judge_all(f, &decides))
		return decides.answer;
	if (f->r->totals.peak_gpu || f->r->partial || ended_badly(f) || lacks_some(f))
		return FITS_UNKNOWN;
	return FITS_YES;
}

/* ---- Words ---- */

static const char *answer_word(enum fits_answer answer)
{
	return answer == FITS_YES ? "yes" : answer == FITS_NO ? "no" : "unknown";
}

static void device_words(char out[NAME_WORDS_MAX], const struct recording_gpu *gpu)
{
	if (has(gpu, "index"))
		snprintf(out, NAME_WORDS_MAX, "GPU %" PRIu32, gpu->index);
	else if (has(gpu, "program_index"))
		snprintf(out, NAME_WORDS_MAX, "GPU %" PRIu32 " of the program", gpu->number);
	else
		snprintf(out, NAME_WORDS_MAX, "GPU of unknown number");
}

static void no_device_words(const struct fits_gpu *f, char out[WORDS_MAX], const char *budget)
{
	if (fits_gpu_answer(f) == FITS_YES)
		snprintf(out, WORDS_MAX, "Fits into a GPU of %s: the run used none", budget);
	else if (!f->r->totals.peak_gpu && lacks_some(f))
		snprintf(out, WORDS_MAX,
			 "Cannot tell whether it fits into GPUs of %s: not all that the run "
			 "allocated there could be counted (quality)",
			 budget);
	else if (!f->r->totals.peak_gpu && ended_badly(f))
		snprintf(out, WORDS_MAX,
			 "Cannot tell whether it fits into GPUs of %s: the run used none, but did "
			 "not end well (--allow-failed)",
			 budget);
	else
		snprintf(out, WORDS_MAX,
			 "Cannot tell whether it fits into GPUs of %s: the profile does not say "
			 "what there was on each",
			 budget);
}

static const char of_several[] =
	"; several processes used GPUs, and each may have numbered them its own way";

/* One sentence with the answer, and why. */
static void sentence(const struct fits_gpu *f, char out[WORDS_MAX])
{
	char budget[UNITS_TEXT_MAX], least[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];
	char rest[UNITS_TEXT_MAX], device[NAME_WORDS_MAX];
	struct need need;

	units_bytes_for_people(budget, f->budget);
	if (!judge_all(f, &need)) {
		no_device_words(f, out, budget);
		return;
	}
	device_words(device, need.gpu);
	units_bytes_for_people(least, need.least);
	units_bytes_for_people(most, need.most);
	if (need.answer == FITS_YES)
		snprintf(out, WORDS_MAX,
			 "Fits into GPUs of %s: %s needs at most %s, which leaves %s", budget,
			 device, most, units_bytes_for_people(rest, f->budget - need.most));
	else if (need.answer == FITS_NO)
		snprintf(out, WORDS_MAX,
			 "Does NOT fit into GPUs of %s: %s needs at least %s, which is %s more",
			 budget, device, least,
			 units_bytes_for_people(rest, need.least - f->budget));
	else if (is_anywhere(need.gpu))
		snprintf(out, WORDS_MAX,
			 "Cannot tell whether it fits into GPUs of %s: nobody knows on which the "
			 "run had what it allocated",
			 budget);
	else if (need.for_losses)
		snprintf(out, WORDS_MAX,
			 "Cannot tell whether it fits into GPUs of %s: %s had at most %s of what "
			 "was counted, but not all could be (quality)",
			 budget, device, most);
	else if (need.for_ending)
		snprintf(out, WORDS_MAX,
			 "Cannot tell whether it fits into GPUs of %s: %s had at most %s, but the "
			 "run did not end well (--allow-failed)",
			 budget, device, most);
	else if (need.knows_most)
		snprintf(out, WORDS_MAX,
			 "Cannot tell whether it fits into GPUs of %s: %s needs at least %s, at "
			 "most %s with all that the driver took for itself%s",
			 budget, device, least, most, is_of_one_process(f) ? "" : of_several);
	else
		snprintf(out, WORDS_MAX,
			 "Cannot tell whether it fits into GPUs of %s: %s needs at least %s, and "
			 "the profile does not say what the driver took for itself%s",
			 budget, device, least, is_of_one_process(f) ? "" : of_several);
}

/* ---- Text and JSON ---- */

static void put_line(const struct fits_gpu *f, const struct table *table, const struct need *need)
{
	struct table_line line = {0};
	char device[NAME_WORDS_MAX];

	device_words(device, need->gpu);
	snprintf(line.name, sizeof(line.name), "%s%s%.80s", device, need->gpu->name ? " " : "",
		 need->gpu->name ? need->gpu->name : "");
	units_bytes_for_people(line.cells[0], need->least);
	snprintf(line.cells[1], UNITS_TEXT_MAX, "-");
	snprintf(line.cells[2], UNITS_TEXT_MAX, "-");
	if (need->knows_most)
		units_bytes_for_people(line.cells[1], need->most);
	if (need->answer != FITS_UNKNOWN)
		units_delta_for_people(line.cells[2],
				       need->answer == FITS_NO ? need->least : need->most,
				       f->budget);
	snprintf(line.cells[3], UNITS_TEXT_MAX, "%s", answer_word(need->answer));
	table_tone(table, need->answer == FITS_YES ? PLAIN : WARNING);
	table_line(table, &line, 4);
	table_tone(table, PLAIN);
}

void fits_gpu_text(const struct fits_gpu *f, unsigned int width, bool colour, FILE *out)
{
	static const char *const titles[] = {"AT LEAST", "AT MOST", "SPARE", "FITS"};
	const struct table table = {.out = out,
				    .width = table_width(width, MAX_WIDTH),
				    .min_name = 20,
				    .max_name = 60,
				    .colour = colour};
	char words[WORDS_MAX], budget[UNITS_TEXT_MAX], title[UNITS_TEXT_MAX + 32];
	bool begun = false;

	sentence(f, words);
	table_tone(&table, fits_gpu_answer(f) == FITS_YES ? BOLD : WARNING);
	table_wrapped(&table, "", words);
	table_tone(&table, PLAIN);
	snprintf(title, sizeof(title), "FITS INTO A GPU OF %s",
		 units_bytes_for_people(budget, f->budget));
	for (size_t i = 0; i < f->r->n_gpus; i++) {
		struct need need;

		if (is_in_others(f, &f->r->gpus[i]) || !judge(f, &f->r->gpus[i], &need))
			continue;
		if (!begun) {
			fputc('\n', out);
			table_titles(&table, title, titles, 4);
		}
		begun = true;
		put_line(f, &table, &need);
	}
}

static void put_mb(struct json_writer *j, const char *key, uint64_t bytes, bool is_known)
{
	char text[UNITS_TEXT_MAX];

	json_key(j, key);
	json_plain(j, is_known ? units_mb(text, bytes) : "null");
}

static void put_index(struct json_writer *j, const struct recording_gpu *gpu, const char *key,
		      uint32_t value)
{
	json_key(j, key);
	if (has(gpu, key))
		json_u64(j, value);
	else
		json_plain(j, "null");
}

void fits_gpu_json(const struct fits_gpu *f, struct json_writer *j)
{
	char words[WORDS_MAX];

	put_mb(j, "budget_mb", f->budget, true);
	json_member_text(j, "fits", answer_word(fits_gpu_answer(f)));
	sentence(f, words);
	json_member_text(j, "why", words);
	json_key(j, "devices");
	json_array(j);
	for (size_t i = 0; i < f->r->n_gpus; i++) {
		const struct recording_gpu *gpu = &f->r->gpus[i];
		struct need need;

		if (is_in_others(f, gpu) || !judge(f, gpu, &need))
			continue;
		json_compact(j);
		json_object(j);
		put_index(j, gpu, "index", gpu->index);
		put_index(j, gpu, "program_index", gpu->number);
		json_member_text(j, "fits", answer_word(need.answer));
		put_mb(j, "needed_at_least_mb", need.least, true);
		put_mb(j, "needed_at_most_mb", need.most, need.knows_most);
		json_object_end(j);
	}
	json_array_end(j);
}
