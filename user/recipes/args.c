/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum type {
	TYPE_LONG,
	TYPE_ULONG,
	TYPE_INT,
	TYPE_UINT,
	TYPE_BOOL,
	TYPE_POINTER,
	TYPE_STRING,
	TYPES
};

static const char *const types[TYPES] = {
	[TYPE_LONG] = "long",	  [TYPE_ULONG] = "ulong", [TYPE_INT] = "int",
	[TYPE_UINT] = "uint",	  [TYPE_BOOL] = "bool",	  [TYPE_POINTER] = "pointer",
	[TYPE_STRING] = "string",
};

static bool is(const char *word, size_t len, const char *text)
{
	return strlen(text) == len && !memcmp(word, text, len);
}

/* Example: "arg2:int" is argument 1, from 0, and TYPE_INT. */
static const char *read_word(const char *word, size_t len, size_t *arg, enum type *type)
{
	const char *colon = memchr(word, ':', len);
	const size_t before = colon ? (size_t)(colon - word) : len;

	if (before < 4 || memcmp(word, "arg", 3) != 0)
		return "an unknown word: {arg1:string} is the first argument";
	if (before != 4 || word[3] < '1' || word[3] > '0' + WIRE_HIT_ARGS)
		return "no such argument: arg1 to arg6 can be read";
	*arg = (size_t)(word[3] - '1');
	for (*type = 0; colon && *type < TYPES; ++*type)
		if (is(colon + 1, len - before - 1, types[*type]))
			return NULL;
	return colon ? "an unknown type: use string, int, uint, long, ulong, bool or pointer"
		     : NULL;
}

static const char *add_text(struct recipe_args *args, size_t arg)
{
	for (size_t i = 0; i < args->n_texts; i++)
		if (args->texts[i] == arg)
			return NULL;
	if (args->n_texts == WIRE_HIT_TEXTS)
		return "more than two arguments are texts";
	args->texts[args->n_texts++] = (uint8_t)arg;
	return NULL;
}

const char *args_add(struct recipe_args *args, bool function, const char *word, size_t len)
{
	enum type type = TYPE_LONG;
	size_t arg = 0;
	const char *why;

	if (is(word, len, function ? "function" : "probe"))
		return NULL;
	why = read_word(word, len, &arg, &type);
	if (why)
		return why;
	if (function && !memchr(word, ':', len))
		return "an argument without its type: {arg1:string}, {arg1:int}";
	args->used |= 1u << arg;
	return type == TYPE_STRING ? add_text(args, arg) : NULL;
}

static int print_number(char *out, size_t room, enum type type, uint64_t value)
{
	switch (type) {
	case TYPE_INT:
		return snprintf(out, room, "%d", (int)(int32_t)value);
	case TYPE_UINT:
		return snprintf(out, room, "%u", (unsigned int)value);
	case TYPE_ULONG:
		return snprintf(out, room, "%llu", (unsigned long long)value);
	case TYPE_BOOL: /* the other bits of the register may be anything */
		return snprintf(out, room, "%s", value & 0xff ? "true" : "false");
	case TYPE_POINTER:
		return snprintf(out, room, "0x%llx", (unsigned long long)value);
	default:
		return snprintf(out, room, "%lld", (long long)value);
	}
}

static size_t fill_bytes(const char *from, size_t len, char *out, size_t room)
{
	if (len > room)
		len = room;
	memcpy(out, from, len);
	return len;
}

/* What cannot be read is shown as such, not left out. */
static size_t fill_text(const struct args_met *met, size_t arg, char *out, size_t room)
{
	for (size_t i = 0; i < met->args->n_texts; i++) {
		const int32_t len = met->hit->len[i];

		if (met->args->texts[i] != arg)
			continue;
		/* An empty text has 0 or 1 bytes, by the kernel. */
		if (len >= 0 && len <= WIRE_HIT_TEXT_MAX)
			return fill_bytes(met->hit->text[i], len ? (size_t)len - 1 : 0, out, room);
	}
	return fill_bytes("?", 1, out, room);
}

size_t args_fill(const void *context, const char *word, size_t len, char *out, size_t room)
{
	const struct args_met *met = context;
	enum type type = TYPE_LONG;
	char number[32];
	size_t arg = 0;

	if (is(word, len, "function") || is(word, len, "probe"))
		return fill_bytes(met->name, strlen(met->name), out, room);
	if (read_word(word, len, &arg, &type))
		return 0;
	if (type == TYPE_STRING)
		return fill_text(met, arg, out, room);
	if (!(met->hit->known & 1u << arg))
		return fill_bytes("?", 1, out, room);
	print_number(number, sizeof(number), type, met->hit->value[arg]);
	return fill_bytes(number, strlen(number), out, room);
}
