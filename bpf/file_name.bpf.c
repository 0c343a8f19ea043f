// SPDX-License-Identifier: GPL-2.0-only
/*
 * file_name.bpf.c - whether a path has a part that the names of wanted files have. The loader
 * matches the whole name. Example, of the pattern "*.gguf": the last 5 bytes are ".gguf".
 */
#include "file_name.bpf.h"

struct search {
	const struct wire_watching *how;
	const struct path_room *room;
	u64 end;  /* the last eight bytes of the path */
	u32 from; /* where the search begins in it */
	u32 anywhere;
	u32 found;
};

/* Each position from the `from`-th on. */
static long compare_at(u32 i, struct search *s)
{
	const u32 at = s->from + i;
	u64 here;

	if (at >= PATH_BYTES)
		return 1;
	__builtin_memcpy(&here, s->room->path + at, sizeof(here));
	for (u32 k = 0; k < WIRE_MAX_NAME_PARTS; k++) {
		const struct wire_name_part *part = &s->how->parts[k];

		if (part->anywhere && ((here ^ part->bytes) & part->mask) == 0) {
			s->found = 1;
			return 1;
		}
	}
	return 0;
}

/* The k-th part, at the end. */
static long compare_end(u32 k, struct search *s)
{
	const struct wire_name_part *part = &s->how->parts[k & (WIRE_MAX_NAME_PARTS - 1)];

	if (part->anywhere)
		s->anywhere = 1;
	else if (part->mask && ((s->end ^ part->bytes) & part->mask) == 0)
		s->found = 1;
	return s->found;
}

/* A part may reach beyond the end of the path, where an earlier one lies. */
__noinline int is_wanted(const struct wire_watching *how, const struct path_room *room, u32 len)
{
	struct search s = {.how = how, .room = room};

	if (!how || !room)
		return 0;
	barrier_var(len); /* for the verifier: the bound is on the register that is used */
	if (len >= PATH_BYTES)
		return 0;
	__builtin_memcpy(&s.end, room->path + len - sizeof(s.end), sizeof(s.end));
	short_loop(WIRE_MAX_NAME_PARTS, compare_end, &s);
	if (s.found || !s.anywhere)
		return s.found;
	s.from = len > WIRE_NAME_MAX - 1 ? len - (WIRE_NAME_MAX - 1) : 0;
	bpf_loop(len - s.from, compare_at, &s, 0);
	return s.found;
}
