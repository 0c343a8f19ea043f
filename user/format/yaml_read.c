/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads a profile: libyaml's events into the structs that fields.c describes.
 *
 * Every byte may be hostile. Anchors, aliases and tags are refused, so a small file cannot become
 * large; texts, lists and depth are bounded; and libyaml, which has to keep a whole scalar, gets no
 * more input once it has had MAX_PENDING bytes without making an event of them.
 *
 * A run that was killed leaves a file that ends between two lines. Then a stream end is found where
 * something else was to come: lists and maps that are open end there, what is not whole is left
 * out, and the recording is marked as partial.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/arena.h"
#include "format/derive.h"
#include "format/fields.h"
#include "base/text.h"

enum {
	MAX_DEPTH = 64, /* of what is skipped; what is known has 6 */
	MAX_COLUMNS = 64,
	MAX_PENDING = 1 << 20, /* bytes of input for one event */
	MAX_LINE = MAX_PENDING,
	SHOWN = 40, /* columns of a text in a message */
};

#define MAX_INPUT (1ull << 30)
#define MAX_BYTES (1ull << 56)
#define MAX_NS	  (1ull << 60)

/* The file, as far as it consists of whole lines. */
struct input {
	FILE *in;
	char *buffer;		  /* of MAX_LINE */
	size_t begin, whole, end; /* of buffer: what is to be given, up to a newline, and read */
	unsigned long long total;
	size_t pending; /* bytes given since the last event */
	size_t lines;	/* given so far */
	bool ended;
	const char *refused; /* why no more is given */
};

struct reader {
	yaml_parser_t yaml;
	yaml_event_t event; /* the one at hand */
	struct input input;
	const char *name;
	struct error *err;
	struct arena *arena;
	bool cut; /* the end came in the midst of something */
};

/* ---- Input ---- */

static const char *fill(struct input *in)
{
	size_t n;

	if (in->begin) {
		memmove(in->buffer, in->buffer + in->begin, in->end - in->begin);
		in->end -= in->begin;
		in->begin = 0;
	}
	in->whole = 0;
	if (in->end == MAX_LINE)
		return "a line longer than 1 MiB";
	n = fread(in->buffer + in->end, 1, MAX_LINE - in->end, in->in);
	if (!n) {
		in->ended = true;
		return ferror(in->in) ? strerror(errno) : NULL;
	}
	in->total += n;
	if (in->total > MAX_INPUT)
		return "more than 1 GiB";
	for (size_t i = in->end + n; i > in->end; i--) {
		if (in->buffer[i - 1] == '\n') {
			in->whole = i;
			break;
		}
	}
	in->end += n;
	return NULL;
}

/* A last line without a newline was cut off, and a number in it may be any: it is left out. */
static int give_input(void *context, unsigned char *out, size_t size, size_t *given)
{
	struct input *in = context;
	size_t n;

	*given = 0;
	while (in->begin == in->whole && !in->ended && !in->refused)
		in->refused = fill(in);
	n = in->whole - in->begin;
	n = n < size ? n : size;
	if (!in->refused && in->pending + n > MAX_PENDING + size)
		in->refused = "more than 1 MiB in one piece";
	if (in->refused)
		return 0;
	memcpy(out, in->buffer + in->begin, n);
	for (size_t i = 0; i < n; i++)
		in->lines += out[i] == '\n';
	in->begin += n;
	in->pending += n;
	*given = n;
	return 1;
}

/* ---- Messages ---- */

static size_t line_of(const struct reader *r)
{
	return r->event.start_mark.line + 1;
}

static int fail(struct reader *r, size_t line, const char *what, const char *why)
{
	error_set(r->err, "%s, line %zu: %s%s%s; it is no profile that can be read", r->name, line,
		  what, *why ? ": " : "", why);
	return -1; /* the same, for whoever cannot look into it */
}

static int fail_here(struct reader *r, const char *what, const char *why)
{
	return fail(r, line_of(r), what, why);
}

static int out_of_memory(struct reader *r)
{
	error_set(r->err, "%s: not enough memory to read it", r->name);
	return -1;
}

/* Whatever the file has there, as a message may show it. */
static int fail_value(struct reader *r, const char *key, const char *wanted)
{
	char shown[SHOWN * TEXT_TERMINAL_GROWTH + 1] = "";
	char why[sizeof(shown) + 128];

	if (r->event.type == YAML_SCALAR_EVENT) {
		text_for_terminal(shown, sizeof(shown), (char *)r->event.data.scalar.value, SHOWN);
		snprintf(why, sizeof(why), "'%s' is no %s", shown, wanted);
	} else {
		snprintf(why, sizeof(why), "%s is to be here", wanted);
	}
	return fail_here(r, key, why);
}

/* ---- Events ---- */

/* What is wrong with it as YAML. At the end of the input it is only cut off. */
static int syntax_error(struct reader *r)
{
	const size_t line = r->yaml.problem_mark.line;

	if (r->yaml.error == YAML_MEMORY_ERROR)
		return out_of_memory(r);
	if (r->input.refused)
		return fail(r, r->yaml.mark.line + 1, r->input.refused, "");
	if (r->yaml.error == YAML_READER_ERROR)
		return fail(r, r->yaml.mark.line + 1, r->yaml.problem, "");
	if (r->input.ended && line >= r->input.lines) {
		r->cut = true;
		r->event = (yaml_event_t){.type = YAML_STREAM_END_EVENT,
					  .start_mark = r->yaml.problem_mark,
					  .end_mark = r->yaml.problem_mark};
		return 0;
	}
	return fail(r, line + 1, r->yaml.problem ? r->yaml.problem : "no YAML", "");
}

/* Nothing here needs a name or a type other than its own. */
static int refuse_references(struct reader *r)
{
	const yaml_event_t *e = &r->event;

	if (e->type == YAML_ALIAS_EVENT)
		return fail_here(r, "an alias", "profiles have none");
	if ((e->type == YAML_SCALAR_EVENT && e->data.scalar.anchor) ||
	    (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.anchor) ||
	    (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.anchor))
		return fail_here(r, "an anchor", "profiles have none");
	if ((e->type == YAML_SCALAR_EVENT && e->data.scalar.tag) ||
	    (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.tag) ||
	    (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.tag))
		return fail_here(r, "a tag", "profiles have none");
	return 0;
}

/* The next event. After the stream's end, the end again. */
static int next(struct reader *r)
{
	if (r->event.type == YAML_STREAM_END_EVENT)
		return 0;
	yaml_event_delete(&r->event);
	r->input.pending = 0;
	if (!yaml_parser_parse(&r->yaml, &r->event))
		return syntax_error(r);
	return refuse_references(r);
}

static bool at(const struct reader *r, yaml_event_type_t type)
{
	return r->event.type == type;
}

/* Whether the event at hand stands where the file ends: something after it may have been cut off.
 */
static bool at_end(const struct reader *r)
{
	return r->input.ended && r->event.end_mark.line >= r->input.lines;
}

static int skip(struct reader *r)
{
	unsigned int depth = 0;

	do {
		switch (r->event.type) {
		case YAML_SEQUENCE_START_EVENT:
		case YAML_MAPPING_START_EVENT:
			if (++depth > MAX_DEPTH)
				return fail_here(r, "nested too deeply", "");
			break;
		case YAML_SEQUENCE_END_EVENT:
		case YAML_MAPPING_END_EVENT:
			depth--;
			break;
		case YAML_STREAM_END_EVENT:
			return 0;
		default:
			break;
		}
		if (next(r))
			return -1;
	} while (depth);
	return 0;
}

/* ---- Scalars. Each takes the one at hand and goes on to the next event. ---- */

static const char *scalar(const struct reader *r)
{
	return (const char *)r->event.data.scalar.value;
}

static bool is_plain(const struct reader *r)
{
	return at(r, YAML_SCALAR_EVENT) && r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       strlen(scalar(r)) == r->event.data.scalar.length;
}

static bool is_null(const struct reader *r)
{
	return is_plain(r) &&
	       (!*scalar(r) || !strcmp(scalar(r), "null") || !strcmp(scalar(r), "~"));
}

static int take_text(struct reader *r, const char *key, char **text)
{
	const size_t len = at(r, YAML_SCALAR_EVENT) ? r->event.data.scalar.length : 0;

	if (!at(r, YAML_SCALAR_EVENT))
		return fail_value(r, key, "text");
	if (len > RECORDING_MAX_TEXT)
		return fail_here(r, key, "a text longer than 64 KiB");
	*text = arena_text(r->arena, scalar(r), len);
	if (!*text)
		return out_of_memory(r);
	/* A NUL, which YAML can write, would end it early. */
	for (size_t i = 0; i < len; i++)
		if (!(*text)[i])
			(*text)[i] = ' ';
	return next(r);
}

/* A decimal number as people write it: strtod takes more. */
static bool parse_decimal(const char *text, double *value)
{
	char *end;

	if (!*text || strspn(text, "0123456789+-.eE") != strlen(text))
		return false;
	*value = strtod(text, &end);
	return end != text && !*end && isfinite(*value);
}

static int take_amount(struct reader *r, const char *key, double scale, double max, double *value)
{
	if (!is_plain(r) || !parse_decimal(scalar(r), value))
		return fail_value(r, key, "number");
	*value *= scale;
	if (fabs(*value) > max)
		return fail_value(r, key, "number that makes sense here");
	return next(r);
}

static int take_positive(struct reader *r, const char *key, double scale, double max,
			 uint64_t *value)
{
	double number = 0;

	if (is_plain(r) && scalar(r)[0] == '-')
		return fail_value(r, key, "amount");
	if (take_amount(r, key, scale, max, &number))
		return -1;
	*value = (uint64_t)llround(number);
	return 0;
}

static int take_ns(struct reader *r, const char *key, uint64_t *ns)
{
	/* Rounded to what files have: the nanoseconds of a double would be noise. */
	if (take_positive(r, key, 1e6, (double)MAX_NS / 1e3, ns))
		return -1;
	*ns *= 1000;
	return 0;
}

static int take_count(struct reader *r, const char *key, uint64_t max, uint64_t *count)
{
	const char *text = is_plain(r) ? scalar(r) : "";

	errno = 0;
	*count = *text && strspn(text, "0123456789") == strlen(text) ? strtoull(text, NULL, 10)
								     : UINT64_MAX;
	if (errno || *count > max || *count == UINT64_MAX)
		return fail_value(r, key, "whole number that makes sense here");
	return next(r);
}

static int take_u32(struct reader *r, const char *key, uint32_t *number)
{
	uint64_t count;

	if (take_count(r, key, UINT32_MAX, &count))
		return -1;
	*number = (uint32_t)count;
	return 0;
}

static int take_bool(struct reader *r, const char *key, bool *value)
{
	if (!is_plain(r) || (strcmp(scalar(r), "true") && strcmp(scalar(r), "false")))
		return fail_value(r, key, "true or false");
	*value = !strcmp(scalar(r), "true");
	return next(r);
}

static int take_name(struct reader *r, const char *key, const struct flag_name *names, size_t n,
		     uint32_t *value)
{
	for (size_t i = 0; i < n; i++) {
		if (is_plain(r) && !strcmp(scalar(r), names[i].name)) {
			*value = names[i].value;
			return next(r);
		}
	}
	return fail_value(r, key, "word that is known");
}

/* Values of metrics are whatever the program said. */
static int take_metric_value(struct reader *r, struct profile_metric *metric)
{
	static const struct {
		const char *text;
		double value;
	} words[] = {{".nan", NAN}, {".inf", INFINITY}, {"-.inf", -INFINITY}};
	const char *text = is_plain(r) ? scalar(r) : "";
	bool whole = *text &&
		     strspn(text + (*text == '-'), "0123456789") == strlen(text + (*text == '-'));

	metric->kind = PROFILE_DOUBLE;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (!strcmp(text, words[i].text)) {
			metric->d = words[i].value;
			return next(r);
		}
	}
	errno = 0;
	if (is_null(r)) {
		metric->kind = PROFILE_UNREADABLE;
	} else if (whole && *text == '-') {
		metric->kind = PROFILE_INT;
		metric->i = strtoll(text, NULL, 10);
	} else if (whole) {
		metric->kind = PROFILE_UINT;
		metric->u = strtoull(text, NULL, 10);
	} else if (!parse_decimal(text, &metric->d)) {
		return fail_value(r, "metrics", "number");
	}
	if (errno)
		return fail_value(r, "metrics", "number that fits into 64 bits");
	return next(r);
}

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
		fail_here(r, field->key ? field->key : "quality", why);
		return NULL;
	}
	grown = arena_grow(r->arena, list->items, list->n, size);
	if (!grown) {
		out_of_memory(r);
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
	if (at(r, type))
		return next(r) ? -1 : 1;
	if (at(r, YAML_STREAM_END_EVENT))
		return 0;
	if (is_null(r))
		return next(r);
	return fail_value(r, key, type == YAML_MAPPING_START_EVENT ? "map" : "list");
}

static bool goes_on(const struct reader *r, yaml_event_type_t end)
{
	return !at(r, end) && !at(r, YAML_STREAM_END_EVENT);
}

static int read_texts(struct reader *r, const struct field *field, struct items *list)
{
	const int inside = enter(r, field->key, YAML_SEQUENCE_START_EVENT);

	if (inside <= 0)
		return inside;
	while (goes_on(r, YAML_SEQUENCE_END_EVENT)) {
		char **text = more(r, field, sizeof(*text), list);

		if (!text || take_text(r, field->key, text))
			return -1;
		list->n++;
	}
	return next(r);
}

static int read_u32s(struct reader *r, const struct field *field, struct items *list)
{
	const int inside = enter(r, field->key, YAML_SEQUENCE_START_EVENT);

	if (inside <= 0)
		return inside;
	while (goes_on(r, YAML_SEQUENCE_END_EVENT)) {
		uint32_t *number = more(r, field, sizeof(*number), list);

		if (!number || take_u32(r, field->key, number))
			return -1;
		list->n++;
	}
	return next(r);
}

static int read_flags(struct reader *r, const struct field *field, uint32_t *flags)
{
	const int inside = enter(r, field->key, YAML_SEQUENCE_START_EVENT);

	if (inside <= 0)
		return inside;
	while (goes_on(r, YAML_SEQUENCE_END_EVENT)) {
		uint32_t flag = 0;

		if (take_name(r, field->key, flag_names, N_FLAG_NAMES, &flag))
			return -1;
		*flags |= flag;
	}
	return next(r);
}

static int read_metrics(struct reader *r, const struct field *field, struct items *list)
{
	const int inside = enter(r, field->key, YAML_MAPPING_START_EVENT);

	if (inside <= 0)
		return inside;
	while (goes_on(r, YAML_MAPPING_END_EVENT)) {
		struct profile_metric *metric = more(r, field, sizeof(*metric), list);
		char *name;

		if (!metric || take_text(r, field->key, &name))
			return -1;
		metric->name = name;
		if (at(r, YAML_STREAM_END_EVENT))
			break;
		if (take_metric_value(r, metric))
			return -1;
		list->n++;
	}
	return next(r);
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
		err = read_texts(r, field, &list);
		break;
	case FIELD_U32S:
		err = read_u32s(r, field, &list);
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
		return take_text(r, field->key, place);
	case FIELD_COUNT:
		return take_count(r, field->key, UINT64_MAX - 1, place);
	case FIELD_U32:
		return take_u32(r, field->key, place);
	case FIELD_BYTES:
		if (take_positive(r, field->key, 1048576, (double)MAX_BYTES, &bytes))
			return -1;
		*(uint64_t *)place = bytes;
		return 0;
	case FIELD_DELTA:
		if (take_amount(r, field->key, 1048576, (double)MAX_BYTES, &number))
			return -1;
		*(int64_t *)place = llround(number);
		return 0;
	case FIELD_NS:
		return take_ns(r, field->key, place);
	case FIELD_UNIX_SECS:
		return take_amount(r, field->key, 1, 1e11, place);
	case FIELD_BOOL:
		return take_bool(r, field->key, place);
	case FIELD_KIND:
		return take_name(r, field->key, kind_names, N_KIND_NAMES, place);
	case FIELD_FLAGS:
		return read_flags(r, field, place);
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

static uint32_t *has_of(const struct record *record, void *item)
{
	return (uint32_t *)((char *)item + record->has);
}

static int read_field(struct reader *r, const struct record *record, size_t i, void *into)
{
	const bool is_map = record->fields[i].kind == FIELD_MAP;
	const struct field *field = &record->fields[i];

	if (field_has(record, into, i))
		return fail_here(r, field->key, "it is there twice");
	if (is_null(r))
		return next(r);
	if (at(r, YAML_STREAM_END_EVENT))
		return 0;
	if (read_value(r, field, into))
		return -1;
	/* Of a map that was cut off nothing is left. */
	if (!is_map || *has_of(field->of, field_at(field, into)))
		*has_of(record, into) |= 1u << i;
	return 0;
}

/* Every key that is not known, where the record is one of counts. A value of another kind is not
 * ours. */
static int read_count(struct reader *r, const struct field *field, const char *key, void *into)
{
	size_t n;
	struct items list = {.items = (void *)field_list(field, into, &n)};
	struct recording_count *count;

	list.n = n;
	if (!is_plain(r) || !*scalar(r) || strspn(scalar(r), "0123456789") != strlen(scalar(r)))
		return skip(r);
	count = more(r, field, sizeof(*count), &list);
	if (!count)
		return -1;
	count->key = arena_text(r->arena, key, strlen(key));
	if (!count->key)
		return out_of_memory(r);
	if (take_count(r, "quality", UINT64_MAX - 1, &count->count))
		return -1;
	list.n++;
	put_list(field, into, &list);
	return 0;
}

enum { MAX_KEY = 128 };

static int read_unknown(struct reader *r, const struct record *record, const char *key, void *into)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct field *field = &record->fields[i];
		size_t inner;

		if (field->kind == FIELD_COUNTS)
			return read_count(r, field, key, into);
		if (field->kind != FIELD_MAP || field->key)
			continue;
		inner = field_find(field->of, key, strlen(key));
		if (inner < field->of->n_fields)
			return read_field(r, field->of, inner, field_at(field, into));
	}
	return skip(r);
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

		if (!at(r, YAML_SCALAR_EVENT))
			return fail_value(r, record->name, "key");
		len = r->event.data.scalar.length;
		/* A longer one is none of ours; a NUL ends it likewise. */
		if (len < sizeof(key))
			memcpy(key, scalar(r), len);
		if (next(r))
			return -1;
		last = find(record, key, strlen(key), last);
		if (last < record->n_fields ? read_field(r, record, last, into)
					    : read_unknown(r, record, key, into))
			return -1;
		last++;
	}
	return next(r);
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

		if ((field->kind == FIELD_BYTES || field->kind == FIELD_NS) && !field->nullable &&
		    field_has(record, before, i) && !field_has(record, item, i))
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
	return fail(r, line, what, why);
}

static int read_whole_map(struct reader *r, const struct record *record, void *into)
{
	const size_t line = line_of(r);
	int whole;

	if (read_map(r, record, into))
		return -1;
	whole = judge(r, record, into, 0, line, at_end(r));
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
		const size_t line = line_of(r);
		void *item = more(r, field, record->size, list);
		int whole;

		if (!item || read_map(r, record, item))
			return -1;
		whole = judge(r, record, item, list->n, line, at_end(r));
		if (whole < 0)
			return -1;
		list->n += (size_t)whole;
	}
	return next(r);
}

/* ---- Tables: columns, then rows ---- */

struct columns {
	size_t field[MAX_COLUMNS]; /* n_fields of the record: one that is not known */
	size_t n;
};

static int read_columns(struct reader *r, const struct record *record, struct columns *columns)
{
	uint32_t has = 0;
	const int inside = enter(r, "columns", YAML_SEQUENCE_START_EVENT);

	if (inside <= 0)
		return inside;
	columns->n = 0;
	while (goes_on(r, YAML_SEQUENCE_END_EVENT)) {
		size_t i;

		if (columns->n == MAX_COLUMNS || !at(r, YAML_SCALAR_EVENT))
			return fail_value(r, "columns", "name, one of 64 at most,");
		i = field_find(record, scalar(r), r->event.data.scalar.length);
		if (i < record->n_fields && has >> i & 1)
			return fail_value(r, "columns", "name that is there once");
		if (i < record->n_fields)
			has |= 1u << i;
		columns->field[columns->n++] = i;
		if (next(r))
			return -1;
	}
	return next(r);
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
			return fail_here(r, record->name,
					 "it has more values than there are "
					 "columns");
		if (columns->field[n] < record->n_fields
			    ? read_field(r, record, columns->field[n], item)
			    : skip(r))
			return -1;
	}
	return next(r);
}

static int read_rows(struct reader *r, const struct field *field, const struct columns *columns,
		     struct items *list)
{
	const struct record *record = field->of;
	const int inside = enter(r, "rows", YAML_SEQUENCE_START_EVENT);

	if (inside <= 0)
		return inside;
	while (goes_on(r, YAML_SEQUENCE_END_EVENT)) {
		const size_t line = line_of(r);
		void *item = more(r, field, record->size, list);
		int whole;

		if (!item || read_row(r, record, columns, item))
			return -1;
		whole = judge(r, record, item, 0, line, at_end(r));
		if (whole < 0)
			return -1;
		list->n += (size_t)whole;
	}
	return next(r);
}

static int read_table(struct reader *r, const struct field *field, struct items *list)
{
	struct columns columns = {.n = 0};
	const int inside = enter(r, field->key, YAML_MAPPING_START_EVENT);

	if (inside <= 0)
		return inside;
	while (goes_on(r, YAML_MAPPING_END_EVENT)) {
		const bool is_columns = at(r, YAML_SCALAR_EVENT) && !strcmp(scalar(r), "columns");
		const bool is_rows = at(r, YAML_SCALAR_EVENT) && !strcmp(scalar(r), "rows");
		int err;

		if (is_rows && !columns.n)
			return fail_here(r, field->key, "rows before columns");
		if (is_rows && list->n)
			return fail_here(r, field->key, "rows are there twice");
		if (next(r))
			return -1;
		if (is_columns)
			err = read_columns(r, field->of, &columns);
		else
			err = is_rows ? read_rows(r, field, &columns, list) : skip(r);
		if (err)
			return -1;
	}
	return next(r);
}

/* ---- The whole ---- */

/* Processes are named by their index. Those at the peak come first: they may have been cut off. */
static int check_processes(struct reader *r, struct recording *into)
{
	uint32_t highest = 0;

	for (size_t i = 0; i < into->n_tracks; i++)
		highest = into->tracks[i].process > highest ? into->tracks[i].process : highest;
	if (into->partial)
		into->peak.n_shares = into->n_processes ? into->peak.n_shares : 0;
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
	if (next(r)) /* the stream's start */
		return -1;
	if (next(r)) /* the document's */
		return -1;
	if (at(r, YAML_STREAM_END_EVENT))
		return 0;
	if (next(r))
		return -1;
	if (!at(r, YAML_MAPPING_START_EVENT) && !at_end(r))
		return fail_here(r, "no map of keys", "");
	if (read_map(r, &record_recording, into))
		return -1;
	if (!at(r, YAML_STREAM_END_EVENT) && next(r)) /* the document's end */
		return -1;
	if (!at(r, YAML_STREAM_END_EVENT))
		return fail_here(r, "a second document", "");
	return 0;
}

static int read_all(struct reader *r, struct recording *into)
{
	int err = read_document(r, into);
	const size_t lines = r->input.lines;

	if (err)
		return -1;
	into->is_ours = into->run.has != 0;
	if (!into->n_steps && !into->totals.has)
		return error_set(r->err,
				 "%s: it has no memory_usage and no totals; is it a "
				 "profile by qprof-bpf or AMD Quark?",
				 r->name);
	if (derive(into, r->cut, lines))
		return out_of_memory(r);
	return check_processes(r, into);
}

int recording_read(struct recording *into, FILE *in, const char *name, struct error *err)
{
	struct reader r = {.input = {.in = in}, .name = name, .err = err};
	int failed;

	memset(into, 0, sizeof(*into));
	r.arena = into->arena = arena_new();
	r.input.buffer = malloc(MAX_LINE);
	if (!r.arena || !r.input.buffer || !yaml_parser_initialize(&r.yaml)) {
		free(r.input.buffer);
		recording_free(into);
		return out_of_memory(&r);
	}
	yaml_parser_set_input(&r.yaml, give_input, &r.input);
	failed = read_all(&r, into);
	yaml_event_delete(&r.event);
	yaml_parser_delete(&r.yaml);
	free(r.input.buffer);
	if (failed)
		recording_free(into);
	return failed ? -1 : 0;
}
