/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/parse.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int parse_duration(const char *text, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double seconds;
	} units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
	char *end;
	double value;

	/* strtod accepts more than users mean: "nan", "0x1p3", " 1". */
	if (!strchr(".0123456789", *text) || strspn(text, "0123456789.") != strcspn(text, "smh"))
		return -EINVAL;
	value = strtod(text, &end);
	if (end == text)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcmp(end, units[i].unit))
			continue;
		value *= units[i].seconds * 1e9;
		if (!isfinite(value) || value < 1 || value > 1e18)
			return -EINVAL;
		*ns = (uint64_t)value;
		return 0;
	}
	return -EINVAL;
}

/* Reads a decimal number without a sign; *end is behind it and blanks. Returns 0, or -EINVAL. */
static int parse_decimal(const char *text, double *value, const char **end)
{
	const size_t len = strspn(text, "0123456789.");
	char *after;

	*value = strtod(text, &after);
	if (!len || after != text + len || !isfinite(*value))
		return -EINVAL;
	*end = after + strspn(after, " ");
	return 0;
}

int parse_bytes(const char *text, uint64_t *bytes)
{
	static const char units[] = "KMGTP";
	const char *end, *unit;
	double value;

	if (parse_decimal(text, &value, &end))
		return -EINVAL;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit)
		value *= (double)(1ull << (10 * (unit - units + 1)));
	if (unit && strcmp(end + 1, "") && strcmp(end + 1, "B") && strcmp(end + 1, "iB"))
		return -EINVAL;
	if (!unit && strcmp(end, "") && strcmp(end, "B"))
		return -EINVAL;
	if (value > 1e18)
		return -EINVAL;
	*bytes = (uint64_t)value;
	return 0;
}

int parse_percent(const char *text, double *percent)
{
	const char *end;

	return parse_decimal(text, percent, &end) || strcmp(end, "%") ? -EINVAL : 0;
}

int parse_real(const char *text, double *number)
{
	char *end;

	if (!*text || strspn(text, "0123456789.eE+-") != strlen(text))
		return -EINVAL;
	*number = strtod(text, &end);
	return *end || end == text || !isfinite(*number) ? -EINVAL : 0;
}

/* Reads the number that text begins with, without sign or blank; *end is behind it. */
static int parse_number(const char *text, unsigned long min, unsigned long max,
			unsigned long *number, char **end)
{
	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*number = strtoul(text, end, 10);
	return errno || *number < min || *number > max ? -EINVAL : 0;
}

int parse_count(const char *text, unsigned int min, unsigned int max, unsigned int *count)
{
	unsigned long number;
	char *end;

	if (parse_number(text, min, max, &number, &end) || *end)
		return -EINVAL;
	*count = (unsigned int)number;
	return 0;
}

int parse_pids(const char *text, uint32_t **pids, size_t *n)
{
	for (;;) {
		uint32_t *more;
		unsigned long pid;
		char *end;

		if (parse_number(text, 1, INT_MAX, &pid, &end) || (*end && *end != ','))
			return -EINVAL;
		more = reallocarray(*pids, *n + 1, sizeof(**pids));
		if (!more)
			return -ENOMEM;
		*pids = more;
		(*pids)[(*n)++] = pid;
		if (!*end)
			return 0;
		text = end + 1;
	}
}
