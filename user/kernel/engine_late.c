/* SPDX-License-Identifier: GPL-2.0-only */
/* Which processes are listened to, and which files of theirs are seen: by programs that are loaded
 * when the first process is chosen (late_programs.h). */
#include "kernel/engine_state.h"

#include <errno.h>

#include <bpf/bpf.h>

static int choose(struct engine *e, enum late_subject subject, const struct bpf_map *map,
		  uint32_t tgid, const void *how, struct error *err)
{
	if (!e->late[subject])
		e->late[subject] = late_programs_new(e->bpf, e->types.path, subject, err);
	if (!e->late[subject])
		return -1;
	return late_programs_choose(e->late[subject], map, tgid, how, err);
}

/* A child that is listened to as its parent is, and for which there was no room among the tracked
 * processes, has an entry that nobody takes back. Returns true if there were any. */
static bool forget_untracked(struct engine *e)
{
	const int fd = bpf_map__fd(e->bpf->maps.listening);
	struct wire_listening how;
	uint32_t tgid, next;
	bool any = false, more = !bpf_map_get_next_key(fd, NULL, &next);

	while (more) {
		tgid = next;
		more = !bpf_map_get_next_key(fd, &tgid, &next);
		if (!bpf_map_lookup_elem(fd, &tgid, &how) &&
		    !engine_tracks(e, tgid, how.started_ns))
			any |= !bpf_map_delete_elem(fd, &tgid);
	}
	return any;
}

int engine_listen(struct engine *e, uint32_t tgid, const struct wire_listening *how,
		  struct error *err)
{
	const struct bpf_map *map = e->bpf->maps.listening;
	int code = choose(e, LATE_LOGS, map, tgid, how, err);

	if (code == -ENOSPC && forget_untracked(e))
		code = choose(e, LATE_LOGS, map, tgid, how, err);
	return code;
}

bool engine_stop_listening(struct engine *e, uint32_t tgid, struct wire_listening *how)
{
	return late_programs_give_up(e->late[LATE_LOGS], e->bpf->maps.listening, tgid, how);
}

bool engine_listens_to_child(struct engine *e, uint32_t tgid)
{
	return late_programs_has_chosen(e->late[LATE_LOGS], e->bpf->maps.listening, tgid);
}

int engine_watch(struct engine *e, uint32_t tgid, const struct wire_watching *how,
		 struct error *err)
{
	return choose(e, LATE_FILES, e->bpf->maps.watching, tgid, how, err);
}

void engine_stop_watching(struct engine *e, uint32_t tgid)
{
	struct wire_watching how;

	if (!late_programs_give_up(e->late[LATE_FILES], e->bpf->maps.watching, tgid, &how) ||
	    bpf_map_delete_elem(bpf_map__fd(e->bpf->maps.readers), &tgid))
		return; /* it has opened none of these files */
	late_programs_drop_handles(e->bpf->maps.handles, tgid);
	late_programs_drop_handles(e->bpf->maps.uses, tgid);
}
