/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "report/html_parts.h"
#include "base/text.h"
#include "base/units.h"

enum { MAX_NAME = 1024 }; /* columns of a text; longer texts are cut */

void html_shown(struct json_writer *j, const char *text)
{
	char safe[MAX_NAME * TEXT_TERMINAL_GROWTH + 1];

	if (text)
		text_for_terminal(safe, sizeof(safe), text, MAX_NAME);
	json_text(j, text ? safe : NULL);
}

void html_secs(struct json_writer *j, uint64_t ns)
{
	char text[UNITS_TEXT_MAX];

	json_plain(j, units_secs(text, ns, 6));
}

void html_bool(struct json_writer *j, bool value)
{
	json_plain(j, value ? "true" : "false");
}

void html_member_shown(struct json_writer *j, const char *key, const char *text)
{
	json_key(j, key);
	html_shown(j, text);
}

void html_member_secs(struct json_writer *j, const char *key, uint64_t ns)
{
	json_key(j, key);
	html_secs(j, ns);
}

void html_member_array(struct json_writer *j, const char *key)
{
	json_key(j, key);
	json_array(j);
}

void html_member_object(struct json_writer *j, const char *key)
{
	json_key(j, key);
	json_object(j);
}

/* Returns the uint64_t at the offset within item i. */
static uint64_t column_value(const void *items, size_t i, size_t size, size_t offset)
{
	return *(const uint64_t *)((const char *)items + i * size + offset);
}

void html_column(struct json_writer *j, const char *key, const void *items, size_t n, size_t size,
		 size_t offset)
{
	html_member_array(j, key);
	for (size_t i = 0; i < n; i++)
		json_u64(j, column_value(items, i, size, offset));
	json_array_end(j);
}

void html_time_column(struct json_writer *j, const void *items, size_t n, size_t size,
		      size_t offset)
{
	html_member_array(j, "time");
	for (size_t i = 0; i < n; i++)
		html_secs(j, column_value(items, i, size, offset));
	json_array_end(j);
}

void html_keys(struct json_writer *j, const char *name, const char *const *keys)
{
	html_member_object(j, name);
	html_member_array(j, "keys");
	for (; *keys; keys++)
		json_text(j, *keys);
}

void html_keys_end(struct json_writer *j)
{
	json_array_end(j);
	html_member_array(j, "rows");
}

void html_rows(struct json_writer *j, const char *name, const char *const *keys)
{
	html_keys(j, name, keys);
	html_keys_end(j);
}

void html_rows_end(struct json_writer *j)
{
	json_array_end(j);
	json_object_end(j);
}

void html_usage(struct json_writer *j, const struct profile_usage *usage)
{
	json_u64(j, usage->io_read);
	json_u64(j, usage->disk_read);
	json_u64(j, usage->io_write);
	json_u64(j, usage->disk_write);
	html_secs(j, usage->cpu_ns);
}
