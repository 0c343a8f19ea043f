// SPDX-License-Identifier: GPL-2.0-only
/* Itanium C++ ABI, 5.1: a name is its length and its letters; std:: is St; N and E are around
 * several; B comes before a tag, which says which ABI a name is of. */
#include "model/cxx_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool begins(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

/* Reads the length and the letters of a name. Returns what follows, or NULL. */
static const char *read_name(const char *at, const char **name, size_t *len)
{
	size_t n = 0;

	while (*at >= '0' && *at <= '9' && n < 1000)
		n = 10 * n + (size_t)(*at++ - '0');
	if (!n || strnlen(at, n) < n)
		return NULL;
	*name = at;
	*len = n;
	return at + n;
}

/* Returns what follows the part, or NULL. */
static const char *add_part(char *out, size_t size, const char *at)
{
	static const char unnamed[] = "_GLOBAL__N";
	const size_t used = strlen(out);
	const char *const between = used ? "::" : "";
	const char *name;
	size_t len;

	if (*at == 'B')
		return read_name(at + 1, &name, &len);
	if (!used && begins(at, "St")) {
		snprintf(out, size, "std");
		return at + 2;
	}
	at = read_name(at, &name, &len);
	if (!at)
		return NULL;
	if (begins(name, unnamed))
		snprintf(out + used, size - used, "%s(anonymous namespace)", between);
	else
		snprintf(out + used, size - used, "%s%.*s", between, (int)len, name);
	return at;
}

void cxx_name(char *out, size_t size, const char *type)
{
	const char *at = type + (*type == '*'); /* of a type that this file alone has */
	const bool nested = *at == 'N';

	out[0] = '\0';
	at += nested;
	while (at && *at && *at != 'E')
		at = add_part(out, size, at);
	if (!at || strcmp(at, nested ? "E" : "") != 0)
		snprintf(out, size, "%s", type);
}
