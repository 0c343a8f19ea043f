/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/machine_rows.h"
#include "model/machine_users.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* What a step or a metric is called. Equal texts share one copy. */
struct text {
	size_t owners;
	UT_hash_handle hh;
	char text[];
};

/* Returns NULL when out of memory. */
static const char *text_own(struct machine *m, const char *string)
{
	const size_t len = strlen(string);
	struct text *text;

	HASH_FIND(hh, m->texts, string, len, text);
	if (!text) {
		text = malloc(sizeof(*text) + len + 1);
		if (!text)
			return NULL;
		text->owners = 0;
		memcpy(text->text, string, len + 1);
		HASH_ADD_KEYPTR(hh, m->texts, text->text, len, text);
		if (!text->hh.tbl) {
			free(text);
			return NULL;
		}
	}
	text->owners++;
	return text->text;
}

static void text_disown(struct machine *m, const char *string)
{
	struct text *text;

	if (!string)
		return;
	text = (struct text *)(string - offsetof(struct text, text));
	if (--text->owners)
		return;
	HASH_DEL(m->texts, text);
	free(text);
}

static void free_row(struct machine *m, struct row *row)
{
	text_disown(m, row->step);
	for (size_t i = 0; row->metrics && i < row->n_metrics; i++)
		text_disown(m, row->metrics[i].name);
	free(row->metrics);
}

static int copy_metrics(struct machine *m, struct row *row, const struct profile_checkpoint *step)
{
	if (!step->n_metrics)
		return 0;
	row->metrics = calloc(step->n_metrics, sizeof(*row->metrics));
	if (!row->metrics)
		return -ENOMEM;
	row->n_metrics = (uint32_t)step->n_metrics;
	for (size_t i = 0; i < step->n_metrics; i++) {
		const char *name = text_own(m, step->metrics[i].name);

		if (!name)
			return -ENOMEM;
		row->metrics[i] = step->metrics[i];
		row->metrics[i].name = name;
	}
	return 0;
}

/* A place is reserved for the last row, the end. */
static bool has_room_for_row(const struct machine *m, const struct job *job,
			     const struct profile_checkpoint *step)
{
	if (step->what == WIRE_FINISH)
		return true;
	return job->pub.n_rows < MACHINE_JOB_ROWS - 1 &&
	       user_may_keep(m, job->user, 1 + step->n_metrics);
}

void rows_keep(struct machine *m, struct job *job, const struct profile_checkpoint *step)
{
	struct row row = {
		.time_ns = step->time_ns,
		.rss = step->tree.rss,
		.step_peak = step->tree.step_peak,
		.hugetlb = step->tree.hugetlb,
		.charge = step->charge.now,
		.gpu = step->tree.gpu,
		.gpu_step_peak = step->tree.gpu_step_peak,
		.pinned = step->tree.pinned,
		.has_gpu = step->tree.has_gpu,
		.usage = step->tree_usage,
		.seq = step->seq,
		.tgid = step->tgid,
		.tid = step->tid,
		.what = (uint8_t)step->what,
	};
	void *rows;

	job->pub.checkpoints++;
	if (!has_room_for_row(m, job, step)) {
		job->pub.dropped_rows++;
		m->losses.dropped_rows++;
		return;
	}
	rows = array_reserve(job->rows, job->pub.n_rows, &job->rows_cap, sizeof(row));
	if (rows)
		job->rows = rows;
	row.step = text_own(m, step->step);
	if (!rows || !row.step || copy_metrics(m, &row, step)) {
		free_row(m, &row);
		job->pub.dropped_rows++;
		m->losses.dropped_rows++;
		return;
	}
	job->rows[job->pub.n_rows++] = row;
	job_charge(m, job, 1 + row.n_metrics);
}

void machine_row(const struct machine_job *job, size_t i, struct profile_checkpoint *row)
{
	const struct row *kept = &((const struct job *)job)->rows[i];

	*row = (struct profile_checkpoint){
		.step = kept->step,
		.what = kept->what,
		.time_ns = kept->time_ns,
		.rel_ns = profile_rel_ns(job->profile, kept->time_ns),
		.unix_secs = profile_unix_secs(job->profile, kept->time_ns),
		.seq = kept->seq,
		.tgid = kept->tgid,
		.tid = kept->tid,
		.tree = {.rss = kept->rss,
			 .step_peak = kept->step_peak,
			 .hugetlb = kept->hugetlb,
			 .gpu = kept->gpu,
			 .gpu_step_peak = kept->gpu_step_peak,
			 .pinned = kept->pinned,
			 .has_gpu = kept->has_gpu},
		.tree_usage = kept->usage,
		.charge.now = kept->charge,
		.metrics = kept->metrics,
		.n_metrics = kept->n_metrics,
	};
}

void rows_put_away(struct job *job)
{
	if (job->packed_rows.bytes ||
	    packed_make(&job->packed_rows, job->rows, job->pub.n_rows, sizeof(*job->rows)))
		return;
	free(job->rows);
	job->rows = NULL;
	job->rows_cap = 0;
}

int rows_take_out(struct job *job)
{
	if (!job->packed_rows.bytes)
		return 0;
	job->rows = calloc(job->pub.n_rows + 1, sizeof(*job->rows));
	if (!job->rows)
		return -ENOMEM;
	job->rows_cap = job->pub.n_rows + 1;
	packed_read(&job->packed_rows, job->rows, job->pub.n_rows, sizeof(*job->rows));
	packed_free(&job->packed_rows);
	return 0;
}

void rows_free(struct machine *m, struct job *job)
{
	if (rows_take_out(job)) { /* nobody can say which texts they had: these stay */
		packed_free(&job->packed_rows);
		return;
	}
	for (size_t i = 0; i < job->pub.n_rows; i++)
		free_row(m, &job->rows[i]);
	free(job->rows);
}
