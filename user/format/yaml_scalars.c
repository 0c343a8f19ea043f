/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/yaml_scalars.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NS (1ull << 60)

int read_text(struct reader *r, const char *key, char **text)
{
	const size_t len = reader_at(r, YAML_SCALAR_EVENT) ? r->event.data.scalar.length : 0;

	if (!reader_at(r, YAML_SCALAR_EVENT))
		return reader_fail_value(r, key, "text");
	if (len > RECORDING_MAX_TEXT)
		return reader_fail_here(r, key, "a text longer than 64 KiB");
	*text = arena_text(r->arena, reader_scalar(r), len);
	if (!*text)
		return reader_out_of_memory(r);
	/* A NUL, which YAML can write, would end it early. */
	for (size_t i = 0; i < len; i++)
		if (!(*text)[i])
			(*text)[i] = ' ';
	return reader_next(r);
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

int read_amount(struct reader *r, const char *key, double scale, double max, double *value)
{
	if (!reader_is_plain(r) || !parse_decimal(reader_scalar(r), value))
		return reader_fail_value(r, key, "number");
	*value *= scale;
	if (fabs(*value) > max)
		return reader_fail_value(r, key, "number that makes sense here");
	return reader_next(r);
}

int read_positive(struct reader *r, const char *key, double scale, double max, uint64_t *value)
{
	double number = 0;

	if (reader_is_plain(r) && reader_scalar(r)[0] == '-')
		return reader_fail_value(r, key, "amount");
	if (read_amount(r, key, scale, max, &number))
		return -1;
	*value = (uint64_t)llround(number);
	return 0;
}

int read_ns(struct reader *r, const char *key, uint64_t *ns)
{
	/* Rounded to what files have: the nanoseconds of a double would be noise. */
	if (read_positive(r, key, 1e6, (double)MAX_NS / 1e3, ns))
		return -1;
	*ns *= 1000;
	return 0;
}

int read_count(struct reader *r, const char *key, uint64_t max, uint64_t *count)
{
	const char *text = reader_is_plain(r) ? reader_scalar(r) : "";

	errno = 0;
	*count = *text && strspn(text, "0123456789") == strlen(text) ? strtoull(text, NULL, 10)
								     : UINT64_MAX;
	if (errno || *count > max || *count == UINT64_MAX)
		return reader_fail_value(r, key, "whole number that makes sense here");
	return reader_next(r);
}

int read_u32(struct reader *r, const char *key, uint32_t *number)
{
	uint64_t count;

	if (read_count(r, key, UINT32_MAX, &count))
		return -1;
	*number = (uint32_t)count;
	return 0;
}

int read_bool(struct reader *r, const char *key, bool *value)
{
	if (!reader_is_plain(r) ||
	    (strcmp(reader_scalar(r), "true") && strcmp(reader_scalar(r), "false")))
		return reader_fail_value(r, key, "true or false");
	*value = !strcmp(reader_scalar(r), "true");
	return reader_next(r);
}

int read_name(struct reader *r, const char *key, const struct flag_name *names, size_t n,
	      uint32_t *value)
{
	for (size_t i = 0; i < n; i++) {
		/* With quotes in JSON, which is YAML, too. */
		if (reader_at(r, YAML_SCALAR_EVENT) && !strcmp(reader_scalar(r), names[i].name)) {
			*value = names[i].value;
			return reader_next(r);
		}
	}
	return reader_fail_value(r, key, "word that is known");
}

static bool is_whole(const char *text)
{
	const char *digits = text + (*text == '-');

	return *digits && strspn(digits, "0123456789") == strlen(digits);
}

/* Returns false if the whole number does not fit. */
static bool parse_whole(const char *text, struct profile_metric *metric)
{
	const bool is_negative = *text == '-';

	errno = 0;
	metric->kind = is_negative ? PROFILE_INT : PROFILE_UINT;
	if (is_negative)
		metric->i = strtoll(text, NULL, 10);
	else
		metric->u = strtoull(text, NULL, 10);
	return !errno;
}

bool is_metric_value(struct reader *r, struct profile_metric *metric)
{
	static const struct {
		const char *text;
		double value;
	} words[] = {{".nan", NAN}, {".inf", INFINITY}, {"-.inf", -INFINITY}};
	const char *text = reader_is_plain(r) ? reader_scalar(r) : "";

	if (reader_is_null(r)) {
		metric->kind = PROFILE_UNREADABLE;
		return true;
	}
	if (is_whole(text))
		return parse_whole(text, metric);
	metric->kind = PROFILE_DOUBLE;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (!strcmp(text, words[i].text)) {
			metric->d = words[i].value;
			return true;
		}
	}
	return parse_decimal(text, &metric->d);
}

int read_metric_value(struct reader *r, struct profile_metric *metric)
{
	if (is_metric_value(r, metric))
		return reader_next(r);
	return reader_fail_value(r, "metrics",
				 reader_is_plain(r) && is_whole(reader_scalar(r))
					 ? "number that fits into 64 bits"
					 : "number");
}
