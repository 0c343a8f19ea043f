/* SPDX-License-Identifier: GPL-2.0-only */
#include "unwind/jit_map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "unwind/unwind.h"

enum {
	MOST_CODES = 1 << 18,
	MOST_BYTES = 256 << 20,
	MOST_NAMES = 32 << 20, /* bytes */
	MOST_KEPT = 256 << 20, /* bytes, of all maps */
	PIECE = 64 << 10,      /* bytes: a line that is longer is none */
	UNSORTED = 1024,       /* codes that are looked through one by one */
	OVERLAPPING = 4096,    /* codes that may begin between another and an address within it */
};

/* Bytes of codes and names that all maps have. */
static size_t kept;

void jit_map_begin(struct jit_map *map, int fd)
{
	*map = (struct jit_map){.fd = fd, .has_fd = true};
}

static void forget(struct jit_map *map)
{
	kept -= map->n * sizeof(*map->codes) + map->named;
	free(map->codes);
	free(map->names);
	map->codes = NULL;
	map->names = NULL;
	map->n = map->room = map->n_sorted = 0;
	map->named = map->names_room = 0;
	map->read = 0;
	map->is_full = map->is_within = false;
}

void jit_map_end(struct jit_map *map)
{
	forget(map);
	if (map->has_fd)
		close(map->fd);
	map->has_fd = false;
}

/* ---- Reading ----------------------------------------------------------------------------------
 */

/* Returns false if there is no room. */
static bool keep_name(struct jit_map *map, const char *name, size_t len, uint32_t *at)
{
	char *names = array_reserve(map->names, map->named + len, &map->names_room, 1);

	if (names)
		map->names = names;
	if (!names || map->named > MOST_NAMES || kept > MOST_KEPT)
		return false;
	*at = (uint32_t)map->named;
	memcpy(names + map->named, name, len);
	names[map->named + len] = '\0';
	map->named += len + 1;
	kept += len + 1;
	return true;
}

static bool add_code(struct jit_map *map, uint64_t start, uint64_t size, const char *name,
		     size_t len)
{
	struct jit_code *codes = array_reserve(map->codes, map->n, &map->room, sizeof(*codes));
	struct jit_code code = {.start = start,
				.size = size,
				.seen_ns = clock_ns(CLOCK_MONOTONIC),
				.number = (uint32_t)map->n};

	if (codes)
		map->codes = codes;
	if (!codes || map->n == MOST_CODES)
		return false;
	if (len > UNWIND_MAX_NAME - 1)
		len = UNWIND_MAX_NAME - 1;
	if (!keep_name(map, name, len, &code.name))
		return false;
	codes[map->n++] = code;
	kept += sizeof(code);
	return true;
}

/* Returns false if there is no room for it. What is no line of a map is passed over. */
static bool take_line(struct jit_map *map, const char *line, size_t len)
{
	const char *end = line + len;
	char *at;
	uint64_t start, size;

	start = strtoull(line, &at, 16);
	if (at == line || *at != ' ')
		return true;
	line = at + 1;
	size = strtoull(line, &at, 16);
	if (at == line || *at != ' ' || !size || start + size < start)
		return true;
	return add_code(map, start, size, at + 1, (size_t)(end - (at + 1)));
}

/* Takes the whole lines that have been added. Returns how many bytes they have; 0: there are none.
 */
static size_t take_piece(struct jit_map *map)
{
	static char piece[PIECE + 1];
	const ssize_t n = pread(map->fd, piece, PIECE, map->read);
	char *line = piece, *end;

	if (n <= 0)
		return 0;
	piece[n] = '\0';
	if (map->is_within) { /* its end may be in this piece */
		end = memchr(piece, '\n', (size_t)n);
		map->is_within = !end;
		return end ? (size_t)(end + 1 - piece) : (size_t)n;
	}
	while (!map->is_full && (end = memchr(line, '\n', (size_t)(piece + n - line)))) {
		*end = '\0';
		map->is_full = !take_line(map, line, (size_t)(end - line));
		line = end + 1;
	}
	map->is_within = line == piece && n == PIECE;
	return map->is_within ? (size_t)n : (size_t)(line - piece);
}

static int by_start(const void *left, const void *right)
{
	const struct jit_code *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* A file may be cut, and written anew. */
static bool begins_as_before(struct jit_map *map)
{
	char begin[sizeof(map->begin)];
	const ssize_t n = pread(map->fd, begin, sizeof(begin), 0);

	if (n < (ssize_t)map->n_begin || memcmp(begin, map->begin, map->n_begin) != 0) {
		map->n_begin = 0;
		return false;
	}
	memcpy(map->begin, begin, (size_t)n);
	map->n_begin = (size_t)n;
	return true;
}

static void read_more(struct jit_map *map)
{
	struct stat now;
	size_t taken;

	if (fstat(map->fd, &now))
		return;
	if (now.st_size < map->read || !begins_as_before(map))
		forget(map);
	while (!map->is_full && map->read < now.st_size && (taken = take_piece(map))) {
		map->read += (off_t)taken;
		map->is_full |= map->read > MOST_BYTES;
	}
	if (map->n - map->n_sorted < UNSORTED)
		return;
	array_sort(map->codes, map->n, sizeof(*map->codes), by_start);
	map->n_sorted = map->n;
	for (size_t i = 0; i < map->n; i++) {
		const uint64_t end = map->codes[i].start + map->codes[i].size;

		map->codes[i].reach =
			i && map->codes[i - 1].reach > end ? map->codes[i - 1].reach : end;
	}
}

/* ---- Finding ----------------------------------------------------------------------------------
 */

static bool has(const struct jit_code *code, uint64_t address)
{
	return address >= code->start && address - code->start < code->size;
}

/* Returns how many of the sorted begin at the address or before. */
static size_t begun_by(const struct jit_map *map, uint64_t address)
{
	size_t low = 0, high = map->n_sorted;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (map->codes[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* What was told of an address. */
struct told {
	const struct jit_map *map;
	uint64_t address;
	const struct jit_code *last;
	bool is_unsure; /* other names were told before the last */
};

static void consider(struct told *told, const struct jit_code *code)
{
	const char *names = told->map->names;

	if (!has(code, told->address))
		return;
	if (told->last && strcmp(names + told->last->name, names + code->name) != 0)
		told->is_unsure = true;
	if (!told->last || code->number > told->last->number)
		told->last = code;
}

/* Looks through those that begin before the address, or there. Returns false if there are too many.
 */
static bool consider_sorted(const struct jit_map *map, struct told *told)
{
	size_t at = begun_by(map, told->address);

	for (int i = 0; at > 0 && map->codes[at - 1].reach > told->address; i++) {
		if (i == OVERLAPPING)
			return false;
		consider(told, &map->codes[--at]);
	}
	return true;
}

const char *jit_map_find(struct jit_map *map, uint64_t address, uint64_t time_ns)
{
	struct told told = {.map = map, .address = address};

	if (!map->has_fd)
		return NULL;
	read_more(map);
	/* What a full one lacks may be where something is that it has. */
	if (map->is_full || !map->codes)
		return NULL;
	for (size_t i = map->n_sorted; i < map->n; i++)
		consider(&told, &map->codes[i]);
	if (!consider_sorted(map, &told) || !told.last ||
	    (told.is_unsure && told.last->seen_ns > time_ns))
		return NULL;
	return map->names + told.last->name;
}
