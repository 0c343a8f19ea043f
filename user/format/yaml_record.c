/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/yaml_record.h"

#include <string.h>

#include "base/units.h"

void yaml_metric_value(struct emit *e, const struct profile_metric *metric)
{
	switch (metric->kind) {
	case PROFILE_INT:
		emit_i64(e, metric->i);
		break;
	case PROFILE_UINT:
		emit_u64(e, metric->u);
		break;
	case PROFILE_DOUBLE:
		emit_double(e, metric->d);
		break;
	case PROFILE_UNREADABLE:
		emit_plain(e, "null");
		break;
	}
}

void yaml_metrics_value(struct emit *e, const struct profile_metric *metrics, size_t n)
{
	emit_map(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		emit_text(e, metrics[i].name);
		yaml_metric_value(e, &metrics[i]);
		emit_boundary_if_long(e);
	}
	emit_map_end(e);
}

static void texts_value(struct emit *e, char *const *texts, size_t n)
{
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		emit_text(e, texts[i]);
		emit_boundary(e);
	}
	emit_list_end(e);
}

static void numbers_value(struct emit *e, const uint32_t *numbers, size_t n)
{
	emit_list(e, EMIT_BLOCK);
	for (size_t i = 0; i < n; i++) {
		emit_u64(e, numbers[i]);
		emit_boundary(e);
	}
	emit_list_end(e);
}

static void flags_value(struct emit *e, uint32_t flags)
{
	emit_list(e, EMIT_FLOW);
	for (size_t i = 0; i < N_FLAG_NAMES; i++) {
		if (flags & flag_names[i].value)
			emit_plain(e, flag_names[i].name);
	}
	emit_list_end(e);
}

static void table_begin(struct emit *e, const struct record *record)
{
	emit_map(e, EMIT_BLOCK);
	emit_plain(e, "columns");
	emit_list(e, EMIT_FLOW);
	for (size_t i = 0; i < record->n_fields; i++)
		emit_plain(e, record->fields[i].key);
	emit_list_end(e);
	emit_plain(e, "rows");
	emit_list(e, EMIT_BLOCK);
}

static void table_value(struct emit *e, const struct record *record, const char *items, size_t n)
{
	table_begin(e, record);
	for (size_t i = 0; i < n; i++)
		yaml_table_row(e, record, items + i * record->size);
	yaml_table_end(e);
}

static void list_value(struct emit *e, const struct field *field, const void *item)
{
	size_t n;
	const void *items = field_list(field, item, &n);

	switch (field->kind) {
	case FIELD_TEXTS:
		texts_value(e, items, n);
		break;
	case FIELD_U32S:
		numbers_value(e, items, n);
		break;
	case FIELD_METRICS:
		yaml_metrics_value(e, items, n);
		break;
	case FIELD_TABLE:
		table_value(e, field->of, items, n);
		break;
	default:
		emit_list(e, EMIT_BLOCK);
		for (size_t i = 0; i < n; i++)
			yaml_item(e, field->of, (const char *)items + i * field->of->size);
		emit_list_end(e);
		break;
	}
}

static void text_value(struct emit *e, const char *text)
{
	if (text)
		emit_text(e, text);
	else
		emit_plain(e, "null");
}

static void value(struct emit *e, const struct record *record, size_t i, const void *item)
{
	const struct field *field = &record->fields[i];
	const void *place = field_at(field, item);
	char text[FIELD_TEXT_MAX];

	if (!field_has(record, item, i)) {
		emit_plain(e, "null");
	} else if (field->kind == FIELD_TEXT) {
		text_value(e, *(char *const *)place);
	} else if (field->kind == FIELD_FLAGS) {
		flags_value(e, *(const uint32_t *)place);
	} else if (field->kind == FIELD_MAP) {
		emit_map(e, EMIT_BLOCK);
		yaml_record(e, field->of, place);
		emit_map_end(e);
	} else if (field_is_list(field)) {
		list_value(e, field, item);
	} else {
		emit_plain(e, field_scalar(text, record, i, item));
	}
}

static void key_and_value(struct emit *e, const struct record *record, size_t i, const void *item)
{
	const struct field *field = &record->fields[i];

	if (!field_has(record, item, i) && !field->nullable)
		return;
	emit_plain(e, field->key);
	value(e, record, i, item);
	if (field->kind == FIELD_TEXT)
		emit_boundary_if_long(e);
}

static size_t index_of(const struct record *record, const char *key)
{
	return field_find(record, key, strlen(key));
}

static bool comes_first(const struct record *record, const char *key)
{
	for (const char *const *first = record->first; first && *first; first++) {
		if (!strcmp(*first, key))
			return true;
	}
	return false;
}

void yaml_record(struct emit *e, const struct record *record, const void *item)
{
	for (const char *const *first = record->first; first && *first; first++)
		key_and_value(e, record, index_of(record, *first), item);
	for (size_t i = 0; i < record->n_fields; i++) {
		if (!comes_first(record, record->fields[i].key))
			key_and_value(e, record, i, item);
	}
}

void yaml_fields(struct emit *e, const struct record *record, const void *item, const char *first,
		 const char *last)
{
	for (size_t i = index_of(record, first); i <= index_of(record, last); i++)
		key_and_value(e, record, i, item);
}

void yaml_item(struct emit *e, const struct record *record, const void *item)
{
	emit_map(e, EMIT_BLOCK);
	yaml_record(e, record, item);
	emit_map_end(e);
	emit_boundary(e);
}

void yaml_table_begin(struct emit *e, const char *key, const struct record *record)
{
	emit_plain(e, key);
	table_begin(e, record);
}

void yaml_table_row(struct emit *e, const struct record *record, const void *item)
{
	emit_list(e, EMIT_FLOW);
	for (size_t i = 0; i < record->n_fields; i++)
		value(e, record, i, item);
	emit_list_end(e);
	emit_boundary(e);
}

void yaml_table_end(struct emit *e)
{
	emit_list_end(e);
	emit_map_end(e);
	emit_boundary(e);
}
