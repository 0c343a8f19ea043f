/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/python_codes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

enum {
	UTF8_MAX = 4,		  /* bytes of a character */
	LINETABLE_NO_LINE = -128, /* Objects/lnotab_notes.txt of 3.10 */
	/* Objects/locations.md of 3.11: kinds of entries. */
	LOCATION_ONE_LINE0 = 10,
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* What code objects may have in common: those of workers that run the same. */
struct source {
	UT_hash_handle hh;
	uint32_t lines_kind, first;
	size_t name_size, path_size, n; /* with their NULs; bytes of lines */
	size_t size;			/* of texts: name, path, lines */
	char texts[];
};

struct key {
	uint64_t program, code, name;
	uint32_t line, digest;
};

struct code {
	UT_hash_handle hh;
	struct key key;
	const struct source *source;
};

struct python_codes {
	struct code *all;
	struct source *sources; /* by texts */
	size_t n, bytes;
};

struct python_codes *python_codes_new(void)
{
	return calloc(1, sizeof(struct python_codes));
}

void python_codes_free(struct python_codes *codes)
{
	struct source *source, *next_source;
	struct code *code, *next;

	if (!codes)
		return;
	code = codes->all;
	HASH_CLEAR(hh, codes->all);
	for (; code; code = next) {
		next = code->hh.next;
		free(code);
	}
	source = codes->sources;
	HASH_CLEAR(hh, codes->sources);
	for (; source; source = next_source) {
		next_source = source->hh.next;
		free(source);
	}
	free(codes);
}

/* ---- Texts ------------------------------------------------------------------------------------
 */

static uint32_t character(const uint8_t *at, size_t width)
{
	uint32_t code = 0;

	memcpy(&code, at, width); /* little endian, as is all that Python runs on here */
	return code;
}

static size_t put_utf8(char *out, uint32_t code)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | (code >> 18 & 7));
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* out has UTF8_MAX bytes for each of the text and one more. What is no character is repaired where
 * names are shown. Returns the bytes in out, with the NUL. */
static size_t decode(char *out, const struct wire_python_text *text)
{
	const bool known = text->width == 1 || text->width == 2 || text->width == 4;
	size_t n = known ? text->len : 0, len = 0;

	if (n > WIRE_PYTHON_TEXT / (known ? text->width : 1u))
		n = WIRE_PYTHON_TEXT / text->width;
	for (size_t i = 0; i < n; i++) {
		const uint32_t code = character(text->bytes + i * text->width, text->width);

		if (code)
			len += put_utf8(out + len, code);
	}
	out[len] = '\0';
	return len + 1;
}

/* ---- Lines ------------------------------------------------------------------------------------
 */

static uint32_t valid_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* Pairs of bytes: by how much the address grows, and then the line. */
static uint32_t line_of_lnotab(const uint8_t *table, size_t n, uint32_t first, uint32_t at)
{
	int64_t line = first;
	uint64_t address = 0;

	if (at == UINT32_MAX) /* f_lasti is -1: before the first instruction */
		return valid_line(line);
	for (size_t i = 0; i + 1 < n; i += 2) {
		address += table[i];
		if (address > at)
			break;
		line += (int8_t)table[i + 1];
	}
	return valid_line(line);
}

/* Pairs of bytes: how many bytes of code have a line, and by how much it differs from the last. */
static uint32_t line_of_linetable(const uint8_t *table, size_t n, uint32_t first, uint32_t at)
{
	int64_t line = first;
	uint64_t address = 0;

	for (size_t i = 0; i + 1 < n; i += 2) {
		const int8_t delta = (int8_t)table[i + 1];

		address += table[i];
		line += delta == LINETABLE_NO_LINE ? 0 : delta;
		if (at < address)
			return delta == LINETABLE_NO_LINE ? 0 : valid_line(line);
	}
	return 0;
}

/* Six bits a byte, the low ones first; another byte follows if the seventh is set. */
static uint32_t read_varint(const uint8_t **at, const uint8_t *end)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; *at < end; shift += 6) {
		const uint8_t byte = *(*at)++;

		if (shift < 32)
			value |= (uint32_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40))
			break;
	}
	return value;
}

static int64_t read_signed(const uint8_t **at, const uint8_t *end)
{
	const uint32_t value = read_varint(at, end);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* Entries: a byte with its high bit set, which says of how many units of two bytes, and how a line
 * is told; then bytes without it. */
static uint32_t line_of_locations(const uint8_t *table, size_t n, uint32_t first, uint32_t at)
{
	const uint8_t *entry = table, *const end = table + n;
	int64_t line = first;
	uint64_t address = 0;

	while (entry < end) {
		const unsigned int kind = *entry >> 3 & 15;

		address += ((*entry & 7u) + 1) * 2;
		entry++;
		if (kind == LOCATION_LONG || kind == LOCATION_NO_COLUMNS)
			line += read_signed(&entry, end);
		else if (kind >= LOCATION_ONE_LINE0 && kind < LOCATION_NO_COLUMNS)
			line += kind - LOCATION_ONE_LINE0;
		if (at < address)
			return kind == LOCATION_NONE ? 0 : valid_line(line);
		while (entry < end && !(*entry & 0x80))
			entry++;
	}
	return 0;
}

uint32_t python_line(uint32_t kind, const uint8_t *table, size_t n, uint32_t first, uint32_t at)
{
	switch (kind) {
	case WIRE_PYTHON_LNOTAB:
		return line_of_lnotab(table, n, first, at);
	case WIRE_PYTHON_LINETABLE:
		return line_of_linetable(table, n, first, at);
	case WIRE_PYTHON_LOCATIONS:
		return line_of_locations(table, n, first, at);
	default:
		return 0;
	}
}

/* ---- Code objects -----------------------------------------------------------------------------
 */

static struct code *find(const struct python_codes *codes, const struct key *key)
{
	struct code *code;

	HASH_FIND(hh, codes->all, key, sizeof(*key), code);
	return code;
}

static struct source *read_source(const struct wire_python_code *from, size_t room)
{
	char name[WIRE_PYTHON_TEXT * UTF8_MAX + 1], path[WIRE_PYTHON_TEXT * UTF8_MAX + 1];
	const size_t name_size = decode(name, &from->name_text);
	const size_t path_size = decode(path, &from->path_text);
	const size_t n = from->lines_len < room ? from->lines_len : room;
	const size_t size = name_size + path_size + n;
	struct source *source = malloc(sizeof(*source) + size);

	if (!source)
		return NULL;
	*source = (struct source){.lines_kind = from->lines_kind,
				  .first = from->line,
				  .name_size = name_size,
				  .path_size = path_size,
				  .n = n,
				  .size = size};
	memcpy(source->texts, name, name_size);
	memcpy(source->texts + name_size, path, path_size);
	memcpy(source->texts + name_size + path_size, from->lines, n);
	return source;
}

static bool is_same(const struct source *a, const struct source *b)
{
	return a->lines_kind == b->lines_kind && a->first == b->first &&
	       a->name_size == b->name_size && a->path_size == b->path_size;
}

/* Takes it. Returns it, or the one that is there already, or NULL if there is no room. */
static const struct source *keep(struct python_codes *codes, struct source *source)
{
	struct source *same;

	HASH_FIND(hh, codes->sources, source->texts, source->size, same);
	if (same && is_same(same, source)) {
		free(source);
		return same;
	}
	if (codes->bytes + source->size <= PYTHON_CODES_MAX_BYTES)
		HASH_ADD_KEYPTR(hh, codes->sources, source->texts, source->size, source);
	if (!source->hh.tbl) {
		free(source);
		return NULL;
	}
	codes->bytes += source->size;
	return source;
}

void python_codes_add(struct python_codes *codes, const struct wire_python_code *from, size_t room)
{
	const struct key key = {from->program, from->code, from->name, from->line, from->digest};
	struct source *source;
	struct code *code;

	if (codes->n == PYTHON_CODES_MAX || find(codes, &key))
		return;
	source = read_source(from, room);
	code = source ? calloc(1, sizeof(*code)) : NULL;
	if (!code) {
		free(source);
		return;
	}
	code->key = key;
	code->source = keep(codes, source);
	if (code->source)
		HASH_ADD(hh, codes->all, key, sizeof(key), code);
	if (!code->hh.tbl) {
		free(code);
		return;
	}
	codes->n++;
}

struct python_place python_codes_find(const struct python_codes *codes, uint64_t program,
				      const struct wire_python_frame *frame)
{
	const struct key key = {program, frame->code, frame->name, frame->line, frame->digest};
	const struct code *code = find(codes, &key);
	const struct source *source = code ? code->source : NULL;
	const uint32_t first = valid_line(frame->line) ? frame->line : 1;
	const uint8_t *lines;
	uint32_t line;

	if (!source)
		return (struct python_place){false, "(unknown)", "", first};
	lines = (const uint8_t *)source->texts + source->name_size + source->path_size;
	line = python_line(source->lines_kind, lines, source->n, frame->line, frame->at);
	return (struct python_place){true, *source->texts ? source->texts : "(unknown)",
				     source->texts + source->name_size, line ? line : first};
}
