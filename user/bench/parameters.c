// SPDX-License-Identifier: GPL-2.0-only
#include "bench/parameters.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DECIMALS = 9, MAX_DIGITS = 15 };

static int out_of_memory(struct error *err)
{
	return error_set(err, "out of memory");
}

static void free_values(struct parameter *parameter)
{
	for (size_t i = 0; i < parameter->n; i++)
		free(parameter->values[i]);
	free(parameter->values);
	parameter->values = NULL;
	parameter->n = 0;
}

void parameters_free(struct parameters *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free_values(&p->items[i]);
		free(p->items[i].name);
		free(p->items[i].from);
		free(p->items[i].to);
	}
	p->n = 0;
}

size_t parameters_find(const struct parameters *p, const char *name, size_t len)
{
	size_t i = 0;

	while (i < p->n && (strlen(p->items[i].name) != len || memcmp(p->items[i].name, name, len)))
		i++;
	return i;
}

static bool is_name(const char *name)
{
	const size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
			return false;
	return len && len <= PARAMETER_MAX_NAME;
}

int parameters_add(struct parameters *p, const char *name, struct error *err)
{
	if (!is_name(name))
		return error_set(err,
				 "'%.80s' is no name of a parameter: use letters, digits, - and _",
				 name);
	if (parameters_find(p, name, strlen(name)) < p->n)
		return error_set(err, "the parameter '%s' is there twice", name);
	if (p->n == PARAMETERS_MAX)
		return error_set(err, "more than %d parameters", PARAMETERS_MAX);
	p->items[p->n] = (struct parameter){.name = strdup(name)};
	if (!p->items[p->n].name)
		return out_of_memory(err);
	p->n++;
	return 0;
}

int parameters_add_value(struct parameters *p, const char *value, size_t len, struct error *err)
{
	struct parameter *last = &p->items[p->n - 1];
	char **more;

	if (last->n == PARAMETER_MAX_VALUES)
		return error_set(err, "the parameter '%s' has more than %d values", last->name,
				 PARAMETER_MAX_VALUES);
	more = reallocarray(last->values, last->n + 1, sizeof(*more));
	if (!more)
		return out_of_memory(err);
	last->values = more;
	more[last->n] = strndup(value, len);
	if (!more[last->n])
		return out_of_memory(err);
	last->n++;
	return 0;
}

int parameters_add_list(struct parameters *p, const char *name, const char *values,
			struct error *err)
{
	char *value = malloc(strlen(values) + 1);
	size_t len = 0;
	int failed;

	if (!value)
		return out_of_memory(err);
	failed = parameters_add(p, name, err);
	for (const char *at = values; !failed; at++) {
		if (at[0] == '\\' && at[1] == ',') {
			value[len++] = *++at;
		} else if (*at && *at != ',') {
			value[len++] = *at;
		} else {
			failed = parameters_add_value(p, value, len, err);
			len = 0;
			if (!*at)
				break;
		}
	}
	free(value);
	return failed;
}

/* ---- Scans: decimal numbers, so that 0.1 is 0.1 ------------------------------------------------
 */

struct decimal {
	int64_t units;
	unsigned int decimals;
};

static bool read_decimal(const char *text, struct decimal *d)
{
	const bool is_negative = *text == '-';
	unsigned int digits = 0;
	bool after_point = false;

	*d = (struct decimal){0};
	for (text += is_negative; *text; text++) {
		if (*text == '.' && !after_point) {
			after_point = true;
			continue;
		}
		if (!isdigit((unsigned char)*text) || ++digits > MAX_DIGITS)
			return false;
		d->units = d->units * 10 + (*text - '0');
		d->decimals += after_point;
	}
	if (is_negative)
		d->units = -d->units;
	return digits && d->decimals <= MAX_DECIMALS;
}

/* Returns whether it still fits. */
static bool scale(struct decimal *d, unsigned int decimals)
{
	for (; d->decimals < decimals; d->decimals++)
		if (__builtin_mul_overflow(d->units, 10, &d->units))
			return false;
	return true;
}

static int add_number(struct parameters *p, int64_t units, unsigned int decimals, struct error *err)
{
	const uint64_t size = units < 0 ? -(uint64_t)units : (uint64_t)units;
	uint64_t whole = 1;
	char text[48];
	int len;

	for (unsigned int i = 0; i < decimals; i++)
		whole *= 10;
	len = snprintf(text, sizeof(text), "%s%" PRIu64, units < 0 ? "-" : "", size / whole);
	if (decimals)
		len += snprintf(text + len, sizeof(text) - (size_t)len, ".%0*" PRIu64,
				(int)decimals, size % whole);
	return parameters_add_value(p, text, (size_t)len, err);
}

/* Makes the values of the last parameter. */
static int scan(struct parameters *p, const char *step_text, struct error *err)
{
	struct parameter *last = &p->items[p->n - 1];
	struct decimal from, to, step;
	unsigned int decimals;
	int failed = 0;

	if (!read_decimal(last->from, &from) || !read_decimal(last->to, &to))
		return error_set(err, "'%.40s' to '%.40s' are no decimal numbers such as 0.5",
				 last->from, last->to);
	if (!read_decimal(step_text, &step) || step.units <= 0)
		return error_set(err, "'%.40s' is no step: it is a decimal number above 0",
				 step_text);
	decimals = from.decimals > step.decimals ? from.decimals : step.decimals;
	if (to.decimals > decimals)
		decimals = to.decimals;
	if (!scale(&from, decimals) || !scale(&to, decimals) || !scale(&step, decimals))
		return error_set(err, "'%.40s' to '%.40s' have too many digits", last->from,
				 last->to);
	if (to.units < from.units)
		return error_set(err,
				 "the parameter '%s' goes from %s down to %s: give the lower "
				 "number first",
				 last->name, last->from, last->to);
	free_values(last);
	for (int64_t at = from.units; at <= to.units && !failed; at += step.units)
		failed = add_number(p, at, decimals, err);
	return failed;
}

int parameters_add_scan(struct parameters *p, const char *name, const char *from, const char *to,
			struct error *err)
{
	struct parameter *last;

	if (parameters_add(p, name, err))
		return -1;
	last = &p->items[p->n - 1];
	last->from = strdup(from);
	last->to = strdup(to);
	if (!last->from || !last->to)
		return out_of_memory(err);
	return scan(p, "1", err);
}

int parameters_set_step(struct parameters *p, const char *step, struct error *err)
{
	if (!p->n || !p->items[p->n - 1].from)
		return error_set(err, "a step belongs to the numbers before it: -P NAME FROM TO -D "
				      "STEP");
	return scan(p, step, err);
}

int parameters_check(const struct parameters *p, struct error *err)
{
	size_t combinations = 1;

	for (size_t i = 0; i < p->n; i++) {
		if (!p->items[i].n)
			return error_set(err, "the parameter '%s' has no value", p->items[i].name);
		combinations *= p->items[i].n;
		if (combinations > PARAMETERS_MAX_COMBINATIONS)
			return error_set(err, "more than %d combinations of parameters",
					 PARAMETERS_MAX_COMBINATIONS);
	}
	return 0;
}

/* ---- Combinations ------------------------------------------------------------------------------
 */

size_t parameters_combinations(const struct parameters *p)
{
	size_t combinations = 1;

	for (size_t i = 0; i < p->n; i++)
		combinations *= p->items[i].n;
	return combinations;
}

const char *parameters_value(const struct parameters *p, size_t combination, size_t parameter)
{
	for (size_t i = p->n - 1; i > parameter; i--)
		combination /= p->items[i].n;
	return p->items[parameter].values[combination % p->items[parameter].n];
}

char *parameters_fill(const struct parameters *p, size_t combination, const char *text)
{
	char *filled = NULL;
	size_t size, len, found;
	FILE *out = open_memstream(&filled, &size);

	if (!out)
		return NULL;
	while (*text) {
		len = *text == '{' ? strcspn(text + 1, "}") : 0;
		found = len && text[1 + len] ? parameters_find(p, text + 1, len) : p->n;
		if (found < p->n) {
			fputs(parameters_value(p, combination, found), out);
			text += len + 2;
		} else {
			fputc(*text++, out);
		}
	}
	if (!fclose(out))
		return filled;
	free(filled);
	return NULL;
}

char *parameters_label(const struct parameters *p, size_t combination)
{
	char *label = NULL;
	size_t size;
	FILE *out = open_memstream(&label, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < p->n; i++)
		fprintf(out, "%s%s=%s", i ? ", " : "", p->items[i].name,
			parameters_value(p, combination, i));
	if (!fclose(out))
		return label;
	free(label);
	return NULL;
}
