/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/judge.h"

#include <stdlib.h>

#include "report/fits_gpu.h"

bool judge_is_asked(const struct judge *judge)
{
	return judge->fits || judge->fits_gpu || judge->budgets.n;
}

/* The new side of a comparison whose old side is empty. Returns 0 or -ENOMEM. */
static int compare(const struct judge *judge, const struct recording *r, struct comparison *c,
		   struct diff *d)
{
	int err;

	*d = (struct diff){
		.c = c,
		.new_partial = r->partial,
		.budgets = judge->budgets.items,
		.n_budgets = judge->budgets.n,
		.width = judge->width,
		.colour = judge->colour,
		.allow_failed = judge->allow_failed,
	};
	recording_ending(r, &d->endings[COMPARE_NEW]);
	err = comparison_add(c, COMPARE_NEW, r);
	return err ? err : diff_judge(d);
}

static void put_text(const struct judge *judge, const struct fits *fits, const struct fits_gpu *gpu,
		     const struct diff *d, FILE *out)
{
	if (fits)
		fits_text(fits, judge->phase, judge->width, judge->colour, out);
	if (fits && gpu->budget)
		fputc('\n', out);
	if (gpu->budget)
		fits_gpu_text(gpu, judge->width, judge->colour, out);
	if ((fits || gpu->budget) && d->n_budgets)
		fputc('\n', out);
	diff_judgement_text(d, out);
}

static void put_json(const struct judge *judge, const struct fits *fits, const struct fits_gpu *gpu,
		     const struct diff *d, FILE *out)
{
	struct json_writer j = {.out = out, .pretty = true};
	const struct ending *ending = &d->endings[COMPARE_NEW];

	json_object(&j);
	json_member_bool(&j, "partial", d->new_partial);
	json_member_text(&j, "ending", ending->is_bad ? ending->text : NULL);
	if (fits) {
		json_key(&j, "fits");
		json_object(&j);
		fits_json(fits, judge->phase, &j);
		json_object_end(&j);
	}
	if (gpu->budget) {
		json_key(&j, "fits_gpu");
		json_object(&j);
		fits_gpu_json(gpu, &j);
		json_object_end(&j);
	}
	if (d->n_budgets)
		diff_judgement_json(d, &j);
	json_object_end(&j);
}

/* The worst of what was judged. */
static int status_of(const struct fits *fits, const struct fits_gpu *gpu, const struct diff *d)
{
	const enum fits_answer ram = fits ? fits_answer(fits) : FITS_YES;
	const enum fits_answer device = gpu->budget ? fits_gpu_answer(gpu) : FITS_YES;

	if (diff_is_broken(d) || ram == FITS_NO || device == FITS_NO)
		return FITS_NO;
	return ram == FITS_UNKNOWN ? ram : device;
}

int judge_write(const struct judge *judge, const struct recording *r, FILE *out)
{
	struct comparison *c = comparison_new();
	struct fits *fits = judge->fits ? fits_new(r, judge->fits, judge->allow_failed) : NULL;
	const struct fits_gpu gpu = {r, judge->fits_gpu, judge->allow_failed};
	struct diff d = {0};
	int status = c && (fits || !judge->fits) ? 0 : -1;

	if (!status && compare(judge, r, c, &d))
		status = -1;
	if (!status) {
		if (judge->json)
			put_json(judge, fits, &gpu, &d, out);
		else
			put_text(judge, fits, &gpu, &d, out);
		status = status_of(fits, &gpu, &d);
	}
	free(d.breaches);
	comparison_free(c);
	fits_free(fits);
	return status;
}
