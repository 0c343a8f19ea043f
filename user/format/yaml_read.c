/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads a profile: libyaml's events into the structs that fields.c describes. Lists are bounded.
 * Where the file was cut off, lists and maps that are open end there, what is not whole is left
 * out, and the recording is marked as partial.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/derive.h"
#include "format/fields.h"
#include "format/touched.h"
#include "format/yaml_scalars.h"

enum { MAX_COLUMNS = 64 };

#define MAX_BYTES (1ull << 56)

/* ---- Lists ---- */

struct items {
	void *items;
	size_t n;
};

/* The place of one more. It counts once .n says so. NULL and *r->err if there may be none. */
static void *more(struct reader *r, const struct field *field, size_t size, struct items *list)
{
	void *grown;

	if (list->n == field->max) {
		char why[64];

		snprintf(why, sizeof(why), "more than %u of them", field->max);
		reader_fail_here(r, field->key ? field->key : "keys that are no fields", why);
		return NULL;
	}
	grown = arena_grow(r->arena, list->items, list->n, size);
	if (!grown) {
		reader_out_of_memory(r);
		return NULL;
	}
	list->items = grown;
	return (char *)grown + list->n * size;
}

static void put_list(const struct field *field, void *into, const struct items *list)
{
	*(void **)field_at(field, into) = list->items;
	*(size_t *)((char *)into + field->count) = list->n;
}

/* Goes into a list or map. 1; 0: it is null or the end, there is nothing in it; or -1. */
static int enter(struct reader *r, const char *key, yaml_event_type_t type)
{
	if (reader_at(r, type))
		return reader_next(r) ? -1 : 1;
	if (reader_at(r, YAML_STREAM_END_EVENT))
		return 0;
	if (reader_is_null(r))
		return reader_next(r);
	return reader_fail_value(r, key, type == YAML_MAPPING_START_EVENT ? "map" : "list");
}

static bool goes_on(const struct reader *r, yaml_event_type_t end)
{
	return !reader_at(r, end) && !reader_at(r, YAML_STREAM_END_EVENT);
}

typedef int (*read_item)(struct reader *r, const struct field *field, struct items *list);

/* A list of items of which each is one scalar. */
static int read_scalars(struct reader *r, const struct field *field, read_item item,
			struct items *list)
{
	const int inside = enter(r, field->key, YAML_SEQUENCE_START_EVENT);

	if (inside <= 0)
		return inside;
	while (goes_on(r, YAML_SEQUENCE_END_EVENT)) {
		if (item(r, field, list))
			return -1;
	}
	return reader_next(r);
}

static int text_item(struct reader *r, const struct field *field, struct items *list)
{
	char **text = more(r, field, sizeof(*text), list);

	if (!text || read_text(r, field->key, text))
		return -1;
	list->n++;
	return 0;
}

static int number_item(struct reader *r, const struct field *field, struct items *list)
{
	uint32_t *number = more(r, field, sizeof(*number), list);

	if (!number || read_u32(r, field->key, number))
		return -1;
	list->n++;
	return 0;
}

/* The list is a set of bits, in place. */
static int flag_item(struct reader *r, const struct field *field, struct items *list)
{
	uint32_t flag = 0;

	if (read_name(r, field->key, flag_names, N_FLAG_NAMES, &flag))
		return -1;
	*(uint32_t *)list->items |= flag;
	return 0;
}

static int read_metrics(struct reader *r, const struct field *field, struct items *list)
{
	const int inside = enter(r, field->key, YAML_MAPPING_START_EVENT);

	if (inside <= 0)
		return inside;
	while (goes_on(r, YAML_MAPPING_END_EVENT)) {
		struct profile_metric *metric = more(r, field, sizeof(*metric), list);
		char *name;

		if (!metric || read_text(r, field->key, &name))
			return -1;
		metric->name = name;
		if (reader_at(r, YAML_STREAM_END_EVENT))
			break;
		if (read_metric_value(r, metric))
			return -1;
		list->n++;
	}
	return reader_next(r);
}

/* ---- Records ---- */

static int read_map(struct reader *r, const struct record *record, void *into);
static int read_whole_map(struct reader *r, const struct record *record, void *into);
static int read_list(struct reader *r, const struct field *field, struct items *list);
static int read_table(struct reader *r, const struct field *field, struct items *list);

static int read_any_list(struct reader *r, const struct field *field, void *into)
{
	struct items list = {0};
	int err;

	switch (field->kind) {
	case FIELD_TEXTS:
		err = read_scalars(r, field, text_item, &list);
		break;
	case FIELD_U32S:
		err = read_scalars(r, field, number_item, &list);
		break;
	case FIELD_METRICS:
		err = read_metrics(r, field, &list);
		break;
	case FIELD_TABLE:
		err = read_table(r, field, &list);
		break;
	default:
		err = read_list(r, field, &list);
		break;
	}
	put_list(field, into, &list);
	return err;
}

static int read_value(struct reader *r, const struct field *field, void *into)
{
	void *place = field_at(field, into);
	uint64_t bytes;
	double number;

	switch (field->kind) {
	case FIELD_TEXT:
		return read_text(r, field->key, place);
	case FIELD_COUNT:
		return read_count(r, field->key, UINT64_MAX - 1, place);
	case FIELD_EXACT_BYTES:
		return read_count(r, field->key, MAX_BYTES, place);
	case FIELD_U32:
		return read_u32(r, field->key, place);
	case FIELD_BYTES:
	case FIELD_QUARK_MB:
		if (read_positive(r, field->key, 1048576, (double)MAX_BYTES, &bytes))
			return -1;
		*(uint64_t *)place = bytes;
		return 0;
	case FIELD_DELTA:
		if (read_amount(r, field->key, 1048576, (double)MAX_BYTES, &number))
			return -1;
		*(int64_t *)place = llround(number);
		return 0;
	case FIELD_NS:
		return read_ns(r, field->key, place);
	case FIELD_RATIO:
	case FIELD_UNIX_SECS:
		return read_amount(r, field->key, 1, 1e11, place);
	case FIELD_BOOL:
		return read_bool(r, field->key, place);
	case FIELD_KIND:
		return read_name(r, field->key, kind_names, N_KIND_NAMES, place);
	case FIELD_FLAGS:
		return read_scalars(r, field, flag_item, &(struct items){.items = place});
	case FIELD_MAP:
		return read_whole_map(r, field->of, place);
	case FIELD_TEXTS:
	case FIELD_U32S:
	case FIELD_COUNTS:
	case FIELD_METRICS:
	case FIELD_LIST:
	case FIELD_TABLE:
		return read_any_list(r, field, into);
	}
	return -1;
}

static uint64_t *has_of(const struct record *record, void *item)
{
	return (uint64_t *)((char *)item + record->has);
}

/* Returns whether the number that is rounded in the i-th field was read exactly before. */
static bool has_exact(const struct record *record, size_t i, const void *into)
{
	return record->fields[i].kind == FIELD_QUARK_MB && i + 1 < record->n_fields &&
	       record->fields[i + 1].kind == FIELD_EXACT_BYTES && field_has(record, into, i + 1);
}

static int read_field(struct reader *r, const struct record *record, size_t i, void *into)
{
	const bool is_map = record->fields[i].kind == FIELD_MAP;
	const struct field *field = &record->fields[i];
	const uint64_t before = has_exact(record, i, into) ? *(uint64_t *)field_at(field, into) : 0;

	if (field_has(record, into, i))
		return reader_fail_here(r, field->key, "it is there twice");
	if (reader_is_null(r))
		return reader_next(r);
	if (reader_at(r, YAML_STREAM_END_EVENT))
		return 0;
	if (read_value(r, field, into))
		return -1;
	if (has_exact(record, i, into))
		*(uint64_t *)field_at(field, into) = before;
	/* Of a map that was cut off nothing is left. */
	if (!is_map || *has_of(field->of, field_at(field, into)))
		*has_of(record, into) |= 1ull << i;
	return 0;
}

/* Every key that is not known, where the record is one of counts. A value of another kind is not
 * ours. */
static int read_unknown_count(struct reader *r, const struct field *field, const char *key,
			      void *into)
{
	size_t n;
	struct items list = {.items = (void *)field_list(field, into, &n)};
	struct recording_count *count;

	list.n = n;
	if (!reader_is_plain(r) || !*reader_scalar(r) ||
	    strspn(reader_scalar(r), "0123456789") != strlen(reader_scalar(r)))
		return reader_skip(r);
	count = more(r, field, sizeof(*count), &list);
	if (!count)
		return -1;
	count->key = arena_text(r->arena, key, strlen(key));
	if (!count->key)
		return reader_out_of_memory(r);
	if (read_count(r, "quality", UINT64_MAX - 1, &count->count))
		return -1;
	list.n++;
	put_list(field, into, &list);
	return 0;
}

/* A metric's name with all its bytes repaired fits. */
enum { MAX_KEY = 1024 };

/* Every key that is not known and has a number: the program reported it. */
static int read_unknown_metric(struct reader *r, const struct field *field, const char *key,
			       void *into)
{
	size_t n;
	struct profile_metric value = {0}, *metrics = (void *)field_list(field, into, &n);
	struct items list = {.items = metrics, .n = n};
	struct profile_metric *metric;

	if (!*key || !is_metric_value(r, &value) || reader_at(r, YAML_STREAM_END_EVENT) ||
	    (value.kind == PROFILE_UNREADABLE && reader_at_end(r)))
		return reader_skip(r);
	for (size_t i = 0; i < n; i++) {
		if (!strcmp(metrics[i].name, key))
			return reader_fail_here(r, "a metric of the run", "it is there twice");
	}
	metric = more(r, field, sizeof(*metric), &list);
	if (!metric)
		return -1;
	*metric = value;
	metric->name = arena_text(r->arena, key, strlen(key));
	if (!metric->name)
		return reader_out_of_memory(r);
	list.n++;
	put_list(field, into, &list);
	return reader_next(r);
}

static int read_unknown(struct reader *r, const struct record *record, const char *key, void *into)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct field *field = &record->fields[i];
		size_t inner;

		if (field->kind == FIELD_COUNTS)
			return read_unknown_count(r, field, key, into);
		if (field->kind == FIELD_METRICS && !field->key)
			return read_unknown_metric(r, field, key, into);
		if (field->kind != FIELD_MAP || field->key)
			continue;
		inner = field_find(field->of, key, strlen(key));
		if (inner < field->of->n_fields)
			return read_field(r, field->of, inner, field_at(field, into));
	}
	return reader_skip(r);
}

/* Keys mostly come in the order of the fields: the one after the last is tried first. */
static size_t find(const struct record *record, const char *key, size_t len, size_t hint)
{
	for (; hint < record->n_fields; hint++) {
		const char *own = record->fields[hint].key;

		if (own && !strncmp(own, key, len) && !own[len])
			return hint;
	}
	return field_find(record, key, len);
}

static void set_defaults(const struct record *record, void *into)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		if (record->fields[i].kind == FIELD_BOOL)
			*(bool *)field_at(&record->fields[i], into) = record->fields[i].absent;
	}
}

static int read_map(struct reader *r, const struct record *record, void *into)
{
	size_t last = 0;
	const int inside = enter(r, record->name, YAML_MAPPING_START_EVENT);

	set_defaults(record, into);
	if (inside <= 0)
		return inside;
	while (goes_on(r, YAML_MAPPING_END_EVENT)) {
		char key[MAX_KEY] = "";
		size_t len;

		if (!reader_at(r, YAML_SCALAR_EVENT))
			return reader_fail_value(r, record->name, "key");
		len = r->event.data.scalar.length;
		/* A longer one is none of ours; a NUL ends it likewise. */
		if (len < sizeof(key))
			memcpy(key, reader_scalar(r), len);
		if (reader_next(r))
			return -1;
		last = find(record, key, strlen(key), last);
		if (last < record->n_fields ? read_field(r, record, last, into)
					    : read_unknown(r, record, key, into))
			return -1;
		last++;
	}
	return reader_next(r);
}

/* The first field that an item cannot do without and has not; NULL if it is whole. */
static const struct field *missing(const struct record *record, const void *item)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		if (record->fields[i].required && !field_has(record, item, i))
			return &record->fields[i];
	}
	return NULL;
}

/* Figures that the item before has and this one has not. */
static bool is_shorter(const struct record *record, const void *item, const void *before)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct field *field = &record->fields[i];

		if ((field->kind == FIELD_BYTES || field->kind == FIELD_QUARK_MB ||
		     field->kind == FIELD_NS) &&
		    !field->nullable && !field->late && field_has(record, before, i) &&
		    !field_has(record, item, i))
			return true;
	}
	return false;
}

/* 1: the item is whole. 0: the file ends in it. Else -1. ended: it is the last thing in the file.
 */
static int judge(struct reader *r, const struct record *record, const void *item, size_t n,
		 size_t line, bool ended)
{
	const struct field *lacks = missing(record, item);
	char what[64], why[64];

	if (ended &&
	    (lacks || (n && is_shorter(record, item, (const char *)item - record->size)))) {
		r->cut = true;
		return 0;
	}
	if (!lacks)
		return 1;
	snprintf(what, sizeof(what), "%s", record->name);
	snprintf(why, sizeof(why), "it has no %s", lacks->key);
	return reader_fail(r, line, what, why);
}

static int read_whole_map(struct reader *r, const struct record *record, void *into)
{
	const size_t line = reader_line(r);
	int whole;

	if (read_map(r, record, into))
		return -1;
	whole = judge(r, record, into, 0, line, reader_at_end(r));
	if (!whole)
		memset(into, 0, record->size);
	return whole < 0 ? -1 : 0;
}

static int read_list(struct reader *r, const struct field *field, struct items *list)
{
	const struct record *record = field->of;
	const int inside = enter(r, field->key, YAML_SEQUENCE_START_EVENT);

	if (inside <= 0)
		return inside;
	while (goes_on(r, YAML_SEQUENCE_END_EVENT)) {
		const size_t line = reader_line(r);
		void *item = more(r, field, record->size, list);
		int whole;

		if (!item || read_map(r, record, item))
			return -1;
		whole = judge(r, record, item, list->n, line, reader_at_end(r));
		if (whole < 0)
			return -1;
		list->n += (size_t)whole;
	}
	return reader_next(r);
}

/* ---- Tables: columns, then rows ---- */

struct columns {
	size_t field[MAX_COLUMNS]; /* n_fields of the record: one that is not known */
	size_t n;
};

static int read_columns(struct reader *r, const struct record *record, struct columns *columns)
{
	uint64_t has = 0;
	const int inside = enter(r, "columns", YAML_SEQUENCE_START_EVENT);

	if (inside <= 0)
		return inside;
	columns->n = 0;
	while (goes_on(r, YAML_SEQUENCE_END_EVENT)) {
		size_t i;

		if (columns->n == MAX_COLUMNS || !reader_at(r, YAML_SCALAR_EVENT))
			return reader_fail_value(r, "columns", "name, one of 64 at most,");
		i = field_find(record, reader_scalar(r), r->event.data.scalar.length);
		if (i < record->n_fields && has >> i & 1)
			return reader_fail_value(r, "columns", "name that is there once");
		if (i < record->n_fields)
			has |= 1ull << i;
		columns->field[columns->n++] = i;
		if (reader_next(r))
			return -1;
	}
	return reader_next(r);
}

static int read_row(struct reader *r, const struct record *record, const struct columns *columns,
		    void *item)
{
	const int inside = enter(r, record->name, YAML_SEQUENCE_START_EVENT);
	size_t n = 0;

	if (inside <= 0)
		return inside;
	for (; goes_on(r, YAML_SEQUENCE_END_EVENT); n++) {
		if (n == columns->n)
			return reader_fail_here(r, record->name,
						"it has more values than there are "
						"columns");
		if (columns->field[n] < record->n_fields
			    ? read_field(r, record, columns->field[n], item)
			    : reader_skip(r))
			return -1;
	}
	return reader_next(r);
}

static int read_rows(struct reader *r, const struct field *field, const struct columns *columns,
		     struct items *list)
{
	const struct record *record = field->of;
	const int inside = enter(r, "rows", YAML_SEQUENCE_START_EVENT);

	if (inside <= 0)
		return inside;
	while (goes_on(r, YAML_SEQUENCE_END_EVENT)) {
		const size_t line = reader_line(r);
		void *item = more(r, field, record->size, list);
		int whole;

		if (!item || read_row(r, record, columns, item))
			return -1;
		whole = judge(r, record, item, 0, line, reader_at_end(r));
		if (whole < 0)
			return -1;
		list->n += (size_t)whole;
	}
	return reader_next(r);
}

static int read_table(struct reader *r, const struct field *field, struct items *list)
{
	struct columns columns = {.n = 0};
	const int inside = enter(r, field->key, YAML_MAPPING_START_EVENT);

	if (inside <= 0)
		return inside;
	while (goes_on(r, YAML_MAPPING_END_EVENT)) {
		const bool is_columns =
			reader_at(r, YAML_SCALAR_EVENT) && !strcmp(reader_scalar(r), "columns");
		const bool is_rows =
			reader_at(r, YAML_SCALAR_EVENT) && !strcmp(reader_scalar(r), "rows");
		int err;

		if (is_rows && !columns.n)
			return reader_fail_here(r, field->key, "rows before columns");
		if (is_rows && list->n)
			return reader_fail_here(r, field->key, "rows are there twice");
		if (reader_next(r))
			return -1;
		if (is_columns)
			err = read_columns(r, field->of, &columns);
		else
			err = is_rows ? read_rows(r, field, &columns, list) : reader_skip(r);
		if (err)
			return -1;
	}
	return reader_next(r);
}

/* ---- The whole ---- */

/* In a file that was cut off: those at the peak come before all processes, which may be missing. */
static void keep_known_shares(struct recording *into)
{
	size_t kept = 0;

	for (size_t i = 0; i < into->peak.n_shares; i++)
		if (into->peak.shares[i].process < into->n_processes)
			into->peak.shares[kept++] = into->peak.shares[i];
	into->peak.n_shares = kept;
}

/* Processes are named by their index. */
static int check_processes(struct reader *r, struct recording *into)
{
	uint32_t highest = 0;

	for (size_t i = 0; i < into->n_tracks; i++)
		highest = into->tracks[i].process > highest ? into->tracks[i].process : highest;
	if (into->partial)
		keep_known_shares(into);
	for (size_t i = 0; i < into->peak.n_shares; i++)
		highest = into->peak.shares[i].process > highest ? into->peak.shares[i].process
								 : highest;
	if ((into->n_tracks || into->peak.n_shares) && highest >= into->n_processes)
		return error_set(r->err, "%s: it tells of a process %u and has only %zu", r->name,
				 highest, into->n_processes);
	return 0;
}

static int read_document(struct reader *r, struct recording *into)
{
	if (reader_next(r)) /* the stream's start */
		return -1;
	if (reader_next(r)) /* the document's */
		return -1;
	if (reader_at(r, YAML_STREAM_END_EVENT))
		return 0;
	if (reader_next(r))
		return -1;
	if (!reader_at(r, YAML_MAPPING_START_EVENT) && !reader_at_end(r))
		return reader_fail_here(r, "no map of keys", "");
	if (read_map(r, &record_recording, into))
		return -1;
	if (!reader_at(r, YAML_STREAM_END_EVENT) && reader_next(r)) /* the document's end */
		return -1;
	if (!reader_at(r, YAML_STREAM_END_EVENT))
		return reader_fail_here(r, "a second document", "");
	return 0;
}

static int read_all(struct reader *r, struct recording *into)
{
	int err = read_document(r, into);
	const size_t lines = r->input.lines;
	const char *wrong;

	if (err)
		return -1;
	into->is_ours = into->run.has != 0;
	if (!into->n_steps && !into->totals.has)
		return error_set(r->err,
				 "%s: it has no memory_usage and no totals; is it a "
				 "profile by qprof-bpf or AMD Quark?",
				 r->name);
	if (derive(into, r->cut || yaml_input_was_cut(&r->input), lines))
		return reader_out_of_memory(r);
	wrong = recording_check_windows(into);
	if (wrong)
		return error_set(r->err, "%s: its windows %s", r->name, wrong);
	wrong = touched_check(into);
	if (wrong)
		return error_set(r->err, "%s: its stacks %s", r->name, wrong);
	return check_processes(r, into);
}

int recording_read(struct recording *into, FILE *in, const char *name, struct error *err)
{
	struct reader r = {.input = {.in = in}, .name = name, .err = err};
	int failed;

	memset(into, 0, sizeof(*into));
	r.arena = into->arena = arena_new();
	r.input.buffer = malloc(YAML_INPUT_BUFFER);
	if (!r.arena || !r.input.buffer || !yaml_parser_initialize(&r.yaml)) {
		free(r.input.buffer);
		recording_free(into);
		return reader_out_of_memory(&r);
	}
	yaml_parser_set_input(&r.yaml, yaml_input_give, &r.input);
	failed = read_all(&r, into);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.yaml);
	free(r.input.buffer);
	if (failed)
		recording_free(into);
	return failed ? -1 : 0;
}
