/* SPDX-License-Identifier: GPL-2.0-only */
/* What was read, written, mapped and copied, file by file, in a comparison: as text or JSON. */
#include "report/diff.h"

#include "base/text.h"
#include "base/units.h"
#include "report/compare_files.h"
#include "report/files.h"

enum { MAX_PATH = 500, MAX_PATH_BYTES = 4096, MOST_SHOWN = 20 };

static const struct {
	const char *name, *title;
} metrics[FILE_METRICS] = {
	[FILE_READ] = {"storage_read_bytes", "from storage"},
	[FILE_CALLED] = {"call_read_bytes", "by calls"},
	[FILE_WRITTEN] = {"storage_written_bytes", "written"},
	[FILE_REREAD] = {"reread_factor", "times"},
	[FILE_MAPPED] = {"mapped_bytes", "mapped"},
	[FILE_COPIED] = {"copied_bytes", "copied"},
};

/* ---- Judging ---- */

static int judge_file(struct diff *d, const struct compare_limit *limit,
		      const struct compared_file *file)
{
	const struct compared_files *files = comparison_files(d->c);
	const struct compare_values old = compared_file_values(files, file, COMPARE_OLD, FILE_READ);
	const struct compare_values new = compared_file_values(files, file, COMPARE_NEW, FILE_READ);
	bool is_rest;
	const struct diff_breach breach = {
		.limit = limit->text,
		.name = compared_file_path(file, &is_rest),
		.is_file = true,
		.metric = COMPARE_IO, /* its unit */
		.new = new.median,
		.most = diff_most(limit, old.median),
	};

	if (!old.n || !new.n || !compare_breaks(limit, old.median, new.median) ||
	    compare_is_within_spread(&old, &new))
		return 0;
	return diff_add_breach(d, &breach);
}

/* A gate that compares nothing must not be green. */
int diff_judge_files(struct diff *d, const struct compare_limit *limit)
{
	const struct compared_files *files = comparison_files(d->c);
	const struct diff_breach missing = {
		.limit = limit->text, .is_file = true, .metric = COMPARE_IO, .is_missing = true};
	int err = 0;

	if (!compared_files_tell(files, COMPARE_OLD) || !compared_files_tell(files, COMPARE_NEW))
		return diff_add_breach(d, &missing);
	compared_files_sort(files);
	for (size_t i = 0; i < files->n && !err; i++)
		err = judge_file(d, limit, files->items[i]);
	return err;
}

/* ---- Text ---- */

static char *value_text(char *out, enum file_metric metric, uint64_t value)
{
	if (metric != FILE_REREAD)
		return units_bytes_for_people(out, value);
	snprintf(out, UNITS_TEXT_MAX, "%.2f", (double)value / 100);
	return out;
}

static void put_change(FILE *out, enum file_metric metric, uint64_t old, uint64_t new)
{
	char amount[UNITS_TEXT_MAX], change[UNITS_TEXT_MAX + 1], percent[UNITS_TEXT_MAX];

	value_text(amount, metric, new > old ? new - old : old - new);
	snprintf(change, sizeof(change), "%c%s", new < old ? '-' : '+', amount);
	fprintf(out, "%*s%*s", DIFF_VALUE + 1, change, DIFF_VALUE,
		diff_percent(percent, (double)old, (double)new));
}

/* Nothing that was written on either side, or what was read once, is not worth a line. */
static bool is_told(const struct diff *d, enum file_metric metric, const struct compare_values *old,
		    const struct compare_values *new)
{
	const uint64_t usual = metric == FILE_REREAD ? 100 : 0;

	if (!old->n && !new->n)
		return false;
	return d->all || (old->n && old->highest != usual) || (new->n &&new->highest != usual);
}

static void put_metric(const struct diff *d, FILE *out, const struct compared_file *file,
		       enum file_metric metric)
{
	const struct compared_files *files = comparison_files(d->c);
	const struct compare_values old = compared_file_values(files, file, COMPARE_OLD, metric);
	const struct compare_values new = compared_file_values(files, file, COMPARE_NEW, metric);
	char before[UNITS_TEXT_MAX] = "-", after[UNITS_TEXT_MAX] = "-";

	if (!is_told(d, metric, &old, &new))
		return;
	if (old.n)
		value_text(before, metric, old.median);
	if (new.n)
		value_text(after, metric, new.median);
	fprintf(out, "    %-*s%*s%*s", DIFF_TITLE - 2, metrics[metric].title, DIFF_VALUE, before,
		DIFF_VALUE, after);
	if (old.n && new.n)
		put_change(out, metric, old.median, new.median);
	if (old.n && new.n && compare_is_within_spread(&old, &new))
		fputs(" ~", out);
	fputc('\n', out);
}

static void put_file(const struct diff *d, FILE *out, const struct compared_file *file)
{
	const unsigned int columns = d->width - 2 < MAX_PATH ? d->width - 2 : MAX_PATH;
	char path[MAX_PATH_BYTES], name[MAX_PATH * TEXT_TERMINAL_GROWTH + 1];
	bool is_rest;

	files_short_path(path, sizeof(path), compared_file_path(file, &is_rest), columns);
	text_cut_middle(name, path, columns);
	fprintf(out, "  %s\n", name);
	for (int metric = 0; metric < FILE_METRICS; metric++)
		put_metric(d, out, file, metric);
}

static void put_left_out(FILE *out, size_t more, size_t same)
{
	char count[UNITS_TEXT_MAX];

	if (more)
		fprintf(out, "... and %s that changed (--all)\n",
			units_counted(count, sizeof(count), more, "more file(s)"));
	if (same)
		fprintf(out, "%s without a change of 1 %% and 1 MiB (--all)\n",
			units_counted(count, sizeof(count), same, "file(s)"));
}

static void put_files(const struct diff *d, FILE *out, const struct compared_files *files)
{
	size_t shown = 0, more = 0, same = 0;

	compared_files_sort(files);
	for (size_t i = 0; i < files->n; i++) {
		const bool is_change = compared_file_is_change(files, files->items[i]);

		if (!d->all && (!is_change || shown == MOST_SHOWN)) {
			same += !is_change;
			more += is_change;
			continue;
		}
		if (!shown++)
			diff_title(d, out, "Files");
		put_file(d, out, files->items[i]);
	}
	put_left_out(out, more, same);
}

void diff_text_files(const struct diff *d, FILE *out)
{
	const struct compared_files *files = comparison_files(d->c);
	const bool old = compared_files_tell(files, COMPARE_OLD);
	const bool new = compared_files_tell(files, COMPARE_NEW);

	if (old && new)
		put_files(d, out, files);
	else if (old || new)
		fprintf(out, "Files: %s does not tell of them (--files)\n", old ? "NEW" : "OLD");
}

/* ---- JSON ---- */

static void put_number(struct json_writer *j, const char *key, enum file_metric metric,
		       uint64_t value)
{
	char text[UNITS_TEXT_MAX];

	json_key(j, key);
	json_plain(j, metric == FILE_REREAD ? value_text(text, metric, value)
					    : units_count(text, value));
}

static void put_values(struct json_writer *j, const char *key, enum file_metric metric,
		       const struct compare_values *values)
{
	json_key(j, key);
	if (!values->n) {
		json_plain(j, "null");
		return;
	}
	json_compact(j);
	json_object(j);
	put_number(j, "median", metric, values->median);
	put_number(j, "lowest", metric, values->lowest);
	put_number(j, "highest", metric, values->highest);
	json_object_end(j);
}

static void put_json_metric(struct json_writer *j, const struct compared_files *files,
			    const struct compared_file *file, enum file_metric metric)
{
	const struct compare_values old = compared_file_values(files, file, COMPARE_OLD, metric);
	const struct compare_values new = compared_file_values(files, file, COMPARE_NEW, metric);

	json_key(j, metrics[metric].name);
	json_object(j);
	put_values(j, "old", metric, &old);
	put_values(j, "new", metric, &new);
	json_member_bool(j, "within_spread", old.n && new.n &&compare_is_within_spread(&old, &new));
	json_object_end(j);
}

void diff_json_files(const struct diff *d, struct json_writer *j)
{
	const struct compared_files *files = comparison_files(d->c);

	if (!compared_files_tell(files, COMPARE_OLD) && !compared_files_tell(files, COMPARE_NEW))
		return;
	compared_files_sort(files);
	json_key(j, "files");
	json_array(j);
	for (size_t i = 0; i < files->n; i++) {
		bool is_rest;

		json_object(j);
		json_member_text(j, "path", compared_file_path(files->items[i], &is_rest));
		json_member_bool(j, "no_file", is_rest);
		for (int metric = 0; metric < FILE_METRICS; metric++)
			put_json_metric(j, files, files->items[i], metric);
		json_object_end(j);
	}
	json_array_end(j);
}
