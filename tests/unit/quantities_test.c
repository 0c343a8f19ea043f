/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The description of a profile (fields.c, quantities.c, quality.c) against what is promised in
 * docs: profile.schema.json has exactly its keys, with their units, and profile-format.md explains
 * each.
 */
#include <stdio.h>
#include <stdlib.h>

#include "format/fields.h"
#include "format/quality.h"
#include "format/quantities.h"
#include "yaml_tree.h"

#define SCHEMA "../../docs/profile.schema.json"
#define PAGE   "../../docs/profile-format.md"

/* In docs, and written by no record: what reports calculate, and what --cost adds. */
static const char *const beside[] = {
	"report",      "cost",		"bpf_run_time_secs", "bpf_runs",
	"bpf_share",   "bpf_wait_secs", "own_cpu_time_secs", "bpf_switch_time_secs",
	"bpf_switches"};

static unsigned int wrong;

static void complain(const char *where, const char *key, const char *what)
{
	print_message("%s: %s %s\n", where, key, what);
	wrong++;
}

/* To be freed. */
static char *contents_of(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = calloc(1, 1 << 20);

	assert_non_null(file);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
	fclose(file);
	return text;
}

/* The same with the first `old` replaced. */
static char *planted_in(const char *path, const char *old, const char *new)
{
	char *text = contents_of(path), *at = strstr(text, old), *planted;

	assert_non_null(at);
	assert_true(asprintf(&planted, "%.*s%s%s", (int)(at - text), text, new, at + strlen(old)) >
		    0);
	free(text);
	return planted;
}

static bool is_count(const char *key)
{
	return quality_means(key);
}

static bool is_beside(const char *key)
{
	for (size_t i = 0; i < sizeof(beside) / sizeof(*beside); i++) {
		if (!strcmp(beside[i], key))
			return true;
	}
	return false;
}

/* Whether the key is one of the record: of a field, of one that stands among its keys, or a count.
 */
static bool has_key(const struct record *record, const char *key)
{
	if (field_find(record, key, strlen(key)) < record->n_fields)
		return true;
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct field *field = &record->fields[i];

		if (field->kind == FIELD_COUNTS && is_count(key))
			return true;
		if (field->kind == FIELD_MAP && !field->key && has_key(field->of, key))
			return true;
	}
	return false;
}

/* ---- The schema ---- */

static void check_object(yaml_document_t *doc, const yaml_node_t *object,
			 const struct record *record);

static void check_unit(yaml_document_t *doc, const yaml_node_t *property, const struct field *field)
{
	static const char *const units[] = {
		[FIELD_BYTES] = "#/$defs/mb",	 [FIELD_QUARK_MB] = "#/$defs/mb",
		[FIELD_NS] = "#/$defs/secs",	 [FIELD_EXACT_BYTES] = "#/$defs/count",
		[FIELD_COUNT] = "#/$defs/count", [FIELD_TABLE] = NULL,
	};
	const char *unit = units[field->kind];
	const yaml_node_t *ref = find(doc, property, "$ref");

	if (unit && ref && strcmp(scalar(ref), unit))
		complain(SCHEMA, field->key, "has another unit");
}

static void check_columns(yaml_document_t *doc, const yaml_node_t *table,
			  const struct record *record)
{
	const yaml_node_t *columns =
		find(doc, find(doc, find(doc, table, "properties"), "columns"), "const");

	if (size(columns) != record->n_fields)
		complain(SCHEMA, record->name, "has other columns");
	for (size_t i = 0; i < record->n_fields && i < size(columns); i++) {
		if (strcmp(scalar(item(doc, columns, i)), record->fields[i].key))
			complain(SCHEMA, record->fields[i].key, "is not this column");
	}
}

static void check_field(yaml_document_t *doc, const yaml_node_t *properties,
			const struct field *field)
{
	const yaml_node_t *property = find(doc, properties, field->key);

	if (!property)
		complain(SCHEMA, field->key, "is missing");
	else if (field->kind == FIELD_TABLE)
		check_columns(doc, property, field->of);
	else if (field->kind == FIELD_LIST)
		check_object(doc, find(doc, property, "items"), field->of);
	else if (field->of)
		check_object(doc, property, field->of);
	else
		check_unit(doc, property, field);
}

static void check_fields(yaml_document_t *doc, const yaml_node_t *properties,
			 const struct record *record)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct field *field = &record->fields[i];

		if (field->key)
			check_field(doc, properties, field);
		else if (field->of)
			check_fields(doc, properties, field->of);
	}
}

static void check_object(yaml_document_t *doc, const yaml_node_t *object,
			 const struct record *record)
{
	const yaml_node_t *properties = find(doc, object, "properties");

	check_fields(doc, properties, record);
	for (size_t i = 0; i < size(properties); i++) {
		const char *key = key_at(doc, properties, i);

		if (!has_key(record, key) && !is_beside(key))
			complain(SCHEMA, key, "is no key of a profile");
	}
}

static void check_counts(yaml_document_t *doc, const yaml_node_t *properties)
{
	const struct run_quality quality = {0};
	const struct profile_losses losses = {0};
	struct quality_count counts[QUALITY_MAX_COUNTS];
	const size_t n = quality_of_run(&quality, &losses, counts);

	for (size_t i = 0; i < n; i++) {
		if (!find(doc, properties, counts[i].key))
			complain(SCHEMA, counts[i].key, "is missing");
	}
}

/* Returns how many things are wrong; frees the text. */
static unsigned int check_schema(char *text)
{
	const yaml_node_t *root, *quality;
	yaml_document_t doc;

	wrong = 0;
	assert_true(parse(text, strlen(text), &doc));
	root = yaml_document_get_root_node(&doc);
	check_object(&doc, root, &record_recording);
	quality = find(&doc, find(&doc, root, "properties"), "quality");
	check_counts(&doc, find(&doc, quality, "properties"));
	yaml_document_delete(&doc);
	free(text);
	return wrong;
}

static void test_schema(void **state)
{
	(void)state;
	assert_int_equal(check_schema(contents_of(SCHEMA)), 0);
}

static void test_schema_with_an_unknown_key(void **state)
{
	static const char *const before[] = {
		"\"cpu_memory_mb\":", "\"main_peak_memory_mb\":", "\"exit_code\":",
		"\"lost_checkpoints\":", "\"inherited_at_fork\":"};

	(void)state;
	for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++) {
		char planted[128];

		snprintf(planted, sizeof(planted), "\"planted_mb\": {\"type\": \"number\"}, %s",
			 before[i]);
		assert_int_equal(check_schema(planted_in(SCHEMA, before[i], planted)), 1);
	}
}

static void test_schema_without_a_key(void **state)
{
	(void)state;
	/* One that is not there, and one that nobody knows. */
	assert_int_equal(check_schema(planted_in(SCHEMA, "\"disk_read_mb\":", "\"disc_read_mb\":")),
			 2);
	assert_int_equal(check_schema(planted_in(SCHEMA, "\"cut_names\":", "\"cut_name\":")), 2);
	assert_int_equal(check_schema(planted_in(SCHEMA, "\"file_mb\",", "\"files_mb\",")), 0);
}

static void test_schema_with_another_unit(void **state)
{
	(void)state;
	assert_int_equal(check_schema(planted_in(SCHEMA,
						 "\"cpu_memory_mb\": {\n      \"$ref\": "
						 "\"#/$defs/mb\"",
						 "\"cpu_memory_mb\": {\n      \"$ref\": "
						 "\"#/$defs/secs\"")),
			 1);
}

/* A key that is not of the record has no bit. */
static void test_notes_no_unknown_key(void **state)
{
	struct recording_point point = {0};

	(void)state;
	field_put(&record_point, &point, "no_such_key", true);
	assert_int_equal(point.has, 0);
	field_put(&record_point, &point, "time_secs", true);
	field_put(&record_point, &point, "no_such_key", true);
	field_put(&record_point, &point, "no_such_key", false);
	assert_int_equal(point.has, 1);
	field_put(&record_point, &point, "time_secs", false);
	assert_int_equal(point.has, 0);
}

/* ---- The page ---- */

/* Where each record is explained; quality with its counts. */
static const struct {
	const char *heading;
	const struct record *record;
} sections[] = {
	{"## `qprof`", &record_run},
	{"## `memory_usage`", &record_step},
	{"## Totals", &record_totals},
	{"## `peak`", &record_peak},
	{"## `gpus`", &record_gpu},
	{"## `phases`", &record_phase},
	{"## `closest_to_limit`", &record_closest},
	{"## `cpu_limit`", &record_cpu_limit},
	{"## `ended`", &record_death},
	{"## `processes`", &record_process},
	{"## `timeline`", &record_point},
	{"## `process_timeline`", &record_track_point},
	{"## `usage_timeline`", &record_usage_point},
	{"## `gpu_timeline`", &record_gpu_point},
	{"## `quality`", &record_quality},
};

/* The section as a text of its own, to be freed; NULL if there is none. */
static char *section_of(const char *page, const char *heading)
{
	const char *begin = strstr(page, heading);
	const char *end = begin ? strstr(begin + 1, "\n## ") : NULL;

	return begin ? strndup(begin, end ? (size_t)(end - begin) : strlen(begin)) : NULL;
}

static bool explains(const char *text, const char *key)
{
	char quoted[128];

	snprintf(quoted, sizeof(quoted), "`%s`", key);
	return strstr(text, quoted);
}

static void check_explained(const char *page, const char *section, const struct record *record)
{
	const char *quark = strstr(page, "## Relation to Quark's file");

	for (size_t i = 0; i < record->n_fields; i++) {
		const char *key = record->fields[i].key;

		if (key && !explains(section, key) && !(quark && explains(quark, key)))
			complain(PAGE, key, "is not explained");
	}
}

static void check_counts_explained(const char *section)
{
	const struct run_quality quality = {0};
	const struct profile_losses losses = {0};
	struct quality_count counts[QUALITY_MAX_COUNTS];
	const size_t n = quality_of_run(&quality, &losses, counts);

	for (size_t i = 0; i < n; i++) {
		if (!explains(section, counts[i].key))
			complain(PAGE, counts[i].key, "is not explained");
	}
}

/* Keys that the first column of a table explains. */
static void check_known(const char *section, const struct record *record)
{
	for (const char *row = strstr(section, "\n| `"); row; row = strstr(row + 1, "\n| `")) {
		const char *end = strstr(row + 3, " |");

		for (const char *key = strchr(row, '`'); key && key < end;) {
			const char *close = strchr(key + 1, '`');
			char name[128];

			snprintf(name, sizeof(name), "%.*s", (int)(close - key - 1), key + 1);
			if (!has_key(record, name) && !is_beside(name))
				complain(PAGE, name, "is no key of this section");
			key = strchr(close + 1, '`');
		}
	}
}

/* Returns how many things are wrong; frees the page. */
static unsigned int check_page(char *page)
{
	wrong = 0;
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		char *section = section_of(page, sections[i].heading);

		assert_non_null(section);
		check_explained(page, section, sections[i].record);
		check_known(section, sections[i].record);
		if (sections[i].record == &record_quality)
			check_counts_explained(section);
		free(section);
	}
	free(page);
	return wrong;
}

static void test_page(void **state)
{
	(void)state;
	assert_int_equal(check_page(contents_of(PAGE)), 0);
}

static void test_page_without_a_key(void **state)
{
	(void)state;
	assert_int_equal(check_page(planted_in(PAGE, "| `cpu_time_secs` |", "| CPU |")), 1);
	assert_int_equal(check_page(planted_in(PAGE, "| `cut_names` |", "| cut |")), 1);
}

static void test_page_with_an_unknown_key(void **state)
{
	(void)state;
	assert_int_equal(check_page(planted_in(PAGE, "| `depth` |", "| `depth`, `height` |")), 1);
}

/* ---- The table itself ---- */

/* An amount in all formats is what the table says. */
static void test_texts(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(quantity_text(text, QUANTITY_BYTES, 3 << 20), "3.00");
	assert_string_equal(quantity_text(text, QUANTITY_NS, 1500000000), "1.500000");
	assert_string_equal(quantity_text(text, QUANTITY_COUNT, 12), "12");
	assert_string_equal(quantity_for_people(text, QUANTITY_BYTES, 3 << 20), "3.00 MiB");
	assert_string_equal(quantity_for_people(text, QUANTITY_NS, 1500000000), "1.5 s");
	assert_string_equal(quantity_for_people(text, QUANTITY_COUNT, 12), "12");
	assert_string_equal(quantities[QUANTITY_OF_cpu_ns].key, "cpu_time_secs");
	assert_string_equal(quantities[QUANTITY_OF_cpu_ns].exact_key, "cpu_time_ns");
	assert_string_equal(quantities[QUANTITY_OF_cpu_ns].event_key, "cpu_ns");
	assert_string_equal(quantities[QUANTITY_OF_io_read].key, "io_read_mb");
	assert_string_equal(quantities[QUANTITY_OF_io_read].event_key, "io_read_bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schema),
		cmocka_unit_test(test_schema_with_an_unknown_key),
		cmocka_unit_test(test_schema_without_a_key),
		cmocka_unit_test(test_schema_with_another_unit),
		cmocka_unit_test(test_notes_no_unknown_key),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_page_without_a_key),
		cmocka_unit_test(test_page_with_an_unknown_key),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
