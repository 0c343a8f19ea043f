/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fields.h - the keys of a profile, what each means, and where it lies in a struct recording. The
 * reader fills the structs by this description; YAML, JSON and CSV are written by it. A new key of
 * the profile is one line in fields.c.
 */
#ifndef QPROF_FIELDS_H
#define QPROF_FIELDS_H

#include <string.h>

#include "format/recording.h"

enum field_kind {
	FIELD_TEXT,	/* char * */
	FIELD_COUNT,	/* uint64_t */
	FIELD_U32,	/* uint32_t */
	FIELD_BYTES,	/* uint64_t; MiB in files, with the decimals that name the byte */
	FIELD_QUARK_MB, /* uint64_t; MiB with two decimals, as Quark has them. If the next field is
			 * FIELD_EXACT_BYTES, that has the exact number, of the same member */
	FIELD_EXACT_BYTES, /* uint64_t; bytes in files */
	FIELD_DELTA,	   /* int64_t; as FIELD_BYTES, with its sign */
	FIELD_NS,	   /* uint64_t; seconds with six decimals in files */
	FIELD_UNIX_SECS,   /* double; the same */
	FIELD_RATIO,	   /* double; with two decimals */
	FIELD_BOOL,	   /* bool */
	FIELD_KIND,	   /* uint32_t: enum profile_phase_kind, by name */
	FIELD_FLAGS,	   /* uint32_t: enum wire_process_flag, a list of names */
	FIELD_TEXTS,	   /* list of char * */
	FIELD_U32S,	   /* list of uint32_t */
	FIELD_COUNTS,	   /* list of struct recording_count: every other key of the map */
	FIELD_METRICS, /* list of struct profile_metric, a map from name to value; without a key:
			* every other key of the map that has a number */
	FIELD_MAP,     /* a struct of the record `of`, in place */
	FIELD_LIST,    /* list of structs of the record `of` */
	FIELD_TABLE,   /* the same; in files `columns` once and `rows` of values */
};

struct record;

struct field {
	const char *key; /* NULL: the fields of this FIELD_MAP, the metrics of this FIELD_METRICS
			  * stand among the others; or it is FIELD_COUNTS */
	size_t offset;	 /* in the struct; of a list: of its pointer */
	size_t count;	 /* of a list: offset of the size_t with its length */
	const struct record *of;
	enum field_kind kind;
	unsigned int max;	/* of a list: more items are an error */
	bool required;		/* an item that lacks it is an error */
	bool nullable;		/* where it is absent, null is written */
	bool if_any;		/* a uint64_t that an item lacks where it is 0 */
	bool late;		/* it is known later than the rest, or not at all */
	bool absent;		/* of a FIELD_BOOL: its value where it is absent */
	unsigned char decimals; /* of a FIELD_NS; 0: SECS_DECIMALS */
	unsigned int since;	/* 2 and more: it came later (quantities.h) */
	const char *means; /* a sentence for the comments of a profile; NULL: the key says it */
};

/* Each field has a bit of `has`. */
enum { RECORD_MAX_FIELDS = 64 };

struct record {
	const char *name; /* for messages: "a phase" */
	const struct field *fields;
	size_t n_fields; /* at most RECORD_MAX_FIELDS */
	size_t size;	 /* of the struct */
	size_t has;	 /* offset of its uint64_t has */
	const char *const
		*first; /* keys that come first in a YAML file, NULL at the end; or NULL */
};

/* Decimals of seconds: times 1 us apart stay apart. */
enum { SECS_DECIMALS = 6 };

extern const struct record record_recording, record_run, record_backends, record_step, record_phase,
	record_outside, record_process, record_point, record_track_point, record_usage_point,
	record_gpu_point, record_peak, record_totals, record_shared, record_recipe,
	record_recipe_item, record_quality, record_named, record_trend, record_death,
	record_closest, record_cpu_limit, record_gpu, record_gpu_refusal, record_stacks,
	record_function, record_call, record_stack_end, record_phase_growth, record_touched,
	record_window, record_windows, record_open, record_within, record_ran, record_allocated,
	record_file, record_file_use, record_file_point, record_space, record_device,
	record_device_use;

/* Names of enum profile_phase_kind, and of process flags. */
struct flag_name {
	uint32_t value;
	const char *name;
};
extern const struct flag_name kind_names[], flag_names[];
enum { N_KIND_NAMES = 2, N_FLAG_NAMES = 4 };

/* Notes that the item lacks its fields that are `if_any`, where they are 0. */
void field_leave_none(const struct record *record, void *item);

/* Returns the field's place in item. */
static inline void *field_at(const struct field *field, const void *item)
{
	return (char *)item + field->offset;
}

/* Returns the items of a list, and in *n how many. */
static inline const void *field_list(const struct field *field, const void *item, size_t *n)
{
	*n = *(const size_t *)((const char *)item + field->count);
	return *(void *const *)field_at(field, item);
}

/* Returns whether the item has a value for the i-th field. */
static inline bool field_has(const struct record *record, const void *item, size_t i)
{
	return *(const uint64_t *)((const char *)item + record->has) >> i & 1;
}

/* Notes whether the item has a value for the field with that key. Without one, notes nothing. */
void field_put(const struct record *record, void *item, const char *key, bool has);

/* The bits of `has` of an item that lacks nothing. */
static inline uint64_t field_all(const struct record *record)
{
	return UINT64_MAX >> (RECORD_MAX_FIELDS - record->n_fields);
}

static inline bool field_is_list(const struct field *field)
{
	return field->count != 0;
}

/*
 * Writes the value of the i-th field as files have it into out (FIELD_TEXT_MAX bytes): a number
 * with its decimals, true or false, the name of a kind. Only for kinds that are one number or word.
 * Returns out.
 */
enum { FIELD_TEXT_MAX = 32 };
char *field_scalar(char *out, const struct record *record, size_t i, const void *item);

/*
 * Returns whether a key of the profile has that name, in YAML or in JSON: a metric of the whole run
 * has another key then, with FIELD_AGAIN after its name. The same holds for a name that ends so
 * itself: no two metrics have one key.
 */
bool field_is_taken(const char *name);
#define FIELD_AGAIN  " (metric)"
#define FIELD_REPORT "report" /* only in JSON: what reports calculate */

/* Returns the index of the field with that key, or record->n_fields. */
size_t field_find(const struct record *record, const char *key, size_t len);

/* Returns whether the item has a value for the field with that key. */
static inline bool field_has_key(const struct record *record, const void *item, const char *key)
{
	return field_has(record, item, field_find(record, key, strlen(key)));
}

#endif
