/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/units.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MB_SHIFT = 20 };

static const uint64_t powers_of_ten[] = {
	1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000,
};

/* Writes the digits without a NUL. Returns their end. */
static char *digits(char *out, uint64_t value)
{
	char reversed[20];
	int n = 0;

	do {
		reversed[n++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (n)
		*out++ = reversed[--n];
	return out;
}

/* Writes ".part" with that many decimals, and the NUL. */
static void fraction(char *out, uint64_t part, unsigned int decimals)
{
	char *const end = out + decimals + (decimals > 0);

	*end = '\0';
	for (char *at = end; decimals--; part /= 10)
		*--at = (char)('0' + part % 10);
	if (end > out)
		*out = '.';
}

/*
 * Writes value / 10^decimals without printf(): a checkpoint has fifteen such numbers, and printing
 * fifteen doubles would take longer than all else.
 */
static void fixed(char *out, uint64_t value, unsigned int decimals)
{
	const uint64_t unit = powers_of_ten[decimals];

	fraction(digits(out, value / unit), value % unit, decimals);
}

char *units_count(char *out, uint64_t count)
{
	fixed(out, count, 0);
	return out;
}

/*
 * Numbers of six decimals are 1.05 bytes apart, so at most one of them is within 0.49 bytes, and a
 * shorter number that is within is the same one. Numbers of seven are 0.1 bytes apart. The 0.01
 * bytes that are left are for readers who calculate with doubles: below 64 TiB they get each byte
 * back. What two decimals of a MiB name is off by 0.48 bytes at most, so it stays as short.
 */
char *units_mb(char *out, uint64_t bytes)
{
	const int64_t mb = 1 << MB_SHIFT, million = 1000000;
	const int64_t rest = (int64_t)(bytes & (uint64_t)(mb - 1));
	int64_t part = (rest * million + mb / 2) / mb;
	unsigned int decimals = 6;

	if (llabs(part * mb - rest * million) * 100 <= 49 * million) {
		for (; decimals > 2 && part % 10 == 0; decimals--)
			part /= 10;
	} else {
		part = (rest * 10 * million + mb / 2) / mb;
		decimals = 7;
	}
	fraction(digits(out, bytes >> MB_SHIFT), (uint64_t)part, decimals);
	return out;
}

/* Hundredths of a MiB above the whole MiB. */
static uint64_t hundredths(uint64_t bytes)
{
	const uint64_t mb = 1ull << MB_SHIFT;

	return ((bytes & (mb - 1)) * 100 + mb / 2) >> MB_SHIFT;
}

char *units_mb_rounded(char *out, uint64_t bytes)
{
	fixed(out, (bytes >> MB_SHIFT) * 100 + hundredths(bytes), 2);
	return out;
}

bool units_mb_is_whole(uint64_t bytes)
{
	const uint64_t mb = 1ull << MB_SHIFT;

	return (hundredths(bytes) * mb + 50) / 100 == (bytes & (mb - 1));
}

char *units_mb_delta(char *out, uint64_t before, uint64_t after)
{
	bool less = after < before;

	out[0] = '-';
	units_mb(out + less, less ? before - after : after - before);
	return out;
}

char *units_secs(char *out, uint64_t ns, unsigned int decimals)
{
	uint64_t unit = powers_of_ten[9 - decimals];

	fixed(out, ns / unit + (ns % unit * 2 >= unit && unit > 1), decimals);
	return out;
}

/* YAML 1.1 takes a number for a float only if it has a point. */
static void add_point(char *text)
{
	char *exponent = strchr(text, 'e');
	char *end = text + strlen(text);

	if (strchr(text, '.'))
		return;
	if (!exponent)
		exponent = end;
	memmove(exponent + 2, exponent, (size_t)(end - exponent) + 1);
	exponent[0] = '.';
	exponent[1] = '0';
}

char *units_double(char *out, double value)
{
	for (int n = 15; n <= 17; n++) {
		snprintf(out, UNITS_TEXT_MAX, "%.*g", n, value);
		if (strtod(out, NULL) == value)
			break;
	}
	add_point(out);
	return out;
}

char *units_bytes_for_people(char *out, uint64_t bytes)
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	unsigned int i = 0;

	/* 1023.5 would read "1024". */
	while (value >= 1023.5) {
		value /= 1024;
		i++;
	}

	int decimals = i == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;

	snprintf(out, UNITS_TEXT_MAX, "%.*f %s", decimals, value, names[i]);
	return out;
}

/* Without the blank, and the unit as its first letter. */
char *units_bytes_short(char *out, uint64_t bytes)
{
	char *blank;

	units_bytes_for_people(out, bytes);
	blank = strchr(out, ' ');
	blank[0] = bytes ? blank[1] : '\0';
	blank[1] = '\0';
	return out;
}

char *units_delta_short(char *out, int64_t bytes)
{
	char size[UNITS_TEXT_MAX];
	const bool less = bytes < 0;

	units_bytes_short(size, less ? -(uint64_t)bytes : (uint64_t)bytes);
	snprintf(out, UNITS_TEXT_MAX, "%s%.*s", bytes ? less ? "-" : "+" : "", UNITS_TEXT_MAX - 2,
		 size);
	return out;
}

char *units_delta_for_people(char *out, uint64_t before, uint64_t after)
{
	char size[UNITS_TEXT_MAX];
	bool less = after < before;

	units_bytes_for_people(size, less ? before - after : after - before);
	snprintf(out, UNITS_TEXT_MAX, "%s%.*s", less ? "-" : "+", UNITS_TEXT_MAX - 2, size);
	return out;
}

char *units_time_for_people(char *out, uint64_t ns)
{
	const double secs = (double)ns / 1e9;
	const uint64_t whole = (ns + 500000000) / 1000000000;

	if (ns == 0)
		snprintf(out, UNITS_TEXT_MAX, "0 s");
	else if (ns < 1000000)
		snprintf(out, UNITS_TEXT_MAX, "%.0f us", (double)ns / 1e3);
	else if (secs < 0.9995)
		snprintf(out, UNITS_TEXT_MAX, "%.0f ms", (double)ns / 1e6);
	else if (secs < 119.95)
		snprintf(out, UNITS_TEXT_MAX, "%.1f s", secs);
	else if (whole < 3600)
		snprintf(out, UNITS_TEXT_MAX, "%" PRIu64 "m %02" PRIu64 "s", whole / 60,
			 whole % 60);
	else
		snprintf(out, UNITS_TEXT_MAX, "%" PRIu64 "h %02" PRIu64 "m", whole / 3600,
			 whole / 60 % 60);
	return out;
}

char *units_counted(char *out, size_t size, uint64_t n, const char *what)
{
	size_t len = (size_t)snprintf(out, size, "%" PRIu64 " ", n);
	bool plural = false;

	for (; *what && len + 1 < size; what++) {
		if (*what == '(' || *what == ')')
			plural = *what == '(';
		else if (!plural || n != 1)
			out[len++] = *what;
	}
	if (len < size)
		out[len] = '\0';
	return out;
}
