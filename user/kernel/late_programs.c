/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/late_programs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "bpf/wire.h"
#include "kernel/late_load.h"
#include "kernel/put_off.h"
#include "kernel/sections.h"
#include "kernel/skeleton.h"

enum { MAX_LATE = 5 /* programs of a subject */ };

/* Of an entry of a process. */
union late_entry {
	struct wire_listening listening;
	struct wire_watching watching;
};

/* The programs of a subject; those that are not there are NULL. */
struct late_list {
	struct bpf_program *at[MAX_LATE];
	struct bpf_program *shared; /* one of them: the others lead to it; NULL: there is none */
};

struct late_programs {
	enum late_subject subject;
	struct qprof_bpf *own; /* NULL: the engine has loaded them */
	struct late_list programs;
	unsigned int chosen;		  /* processes that they tell of */
	struct bpf_link *links[MAX_LATE]; /* NULL: it is not attached */
};

/* Of the programs for io_uring, those are taken whose like features_find() has chosen. */
static struct late_list programs_of(const struct qprof_bpf *engines, enum late_subject subject)
{
	struct late_list list = {.at = {engines->progs.call_enters}};
	struct bpf_program **at = list.at;

	if (subject == LATE_LOGS)
		return list;
	*at++ = engines->progs.file_call_enters;
	*at++ = engines->progs.file_call_leaves;
	if (bpf_program__autoload(engines->progs.io_uring_submitted))
		*at++ = engines->progs.file_submitted;
	else if (bpf_program__autoload(engines->progs.io_uring_submitted_old))
		*at++ = engines->progs.file_submitted_old;
	if (bpf_program__autoload(engines->progs.io_uring_done))
		*at++ = engines->progs.file_completed;
	else if (bpf_program__autoload(engines->progs.io_uring_done_old))
		*at++ = engines->progs.file_completed_old;
	*at = list.shared = engines->progs.file_changes;
	return list;
}

void late_programs_expect(struct qprof_bpf *engines, enum late_subject subject, bool expected)
{
	const struct late_list programs = programs_of(engines, subject);

	for (size_t i = 0; i < MAX_LATE && programs.at[i]; i++)
		bpf_program__set_autoload(programs.at[i], expected);
}

int late_programs_beside(const struct qprof_bpf *engines)
{
	int err = 0;

	for (enum late_subject subject = 0; subject < LATE_SUBJECTS; subject++) {
		const struct late_list programs = programs_of(engines, subject);

		for (size_t i = 0; i < MAX_LATE && programs.at[i] && !err; i++)
			if (bpf_program__autoload(programs.at[i]))
				err = put_off_beside(programs.at[i]);
	}
	return err;
}

void late_programs_hold(struct qprof_bpf *engines)
{
	for (enum late_subject subject = 0; subject < LATE_SUBJECTS; subject++) {
		const struct late_list programs = programs_of(engines, subject);

		for (size_t i = 0; i < MAX_LATE && programs.at[i]; i++)
			bpf_program__set_autoattach(programs.at[i], false);
	}
}

static int open_alone(struct late_programs *late, const struct qprof_bpf *engines,
		      const char *types)
{
	const char *names[MAX_LATE + 1] = {NULL};
	int code;

	for (size_t i = 0; i < MAX_LATE && late->programs.at[i]; i++)
		names[i] = bpf_program__name(late->programs.at[i]);
	late->own = late_load(engines, types, names, NULL, &code);
	for (size_t i = 0; late->own && i < MAX_LATE && names[i]; i++)
		late->programs.at[i] = bpf_object__find_program_by_name(late->own->obj, names[i]);
	if (late->own && late->programs.shared)
		late->programs.shared = late->own->progs.file_changes;
	return code;
}

static int lead_to_shared(const struct late_programs *late, const struct qprof_bpf *engines)
{
	const uint32_t at = WIRE_FILE_CHANGES;
	const int fd = bpf_program__fd(late->programs.shared);

	return bpf_map_update_elem(bpf_map__fd(engines->maps.changes), &at, &fd, BPF_ANY);
}

static int fail(enum late_subject subject, int code, struct error *err)
{
	static const char *const what[LATE_SUBJECTS] = {
		[LATE_LOGS] = "the program that hears what processes write",
		[LATE_FILES] = "the programs that see which files processes use",
	};

	return error_set(err, "cannot load %s: %s", what[subject], sections_why(code));
}

struct late_programs *late_programs_new(const struct qprof_bpf *engines, const char *types,
					enum late_subject subject, struct error *err)
{
	struct late_programs *late = calloc(1, sizeof(*late));
	int code = 0;

	if (!late) {
		error_set(err, "out of memory");
		return NULL;
	}
	late->subject = subject;
	late->programs = programs_of(engines, subject);
	if (bpf_program__fd(late->programs.at[0]) < 0)
		code = open_alone(late, engines, types);
	if (!code && late->programs.shared)
		code = lead_to_shared(late, engines);
	if (!code)
		return late;
	late_programs_free(late);
	fail(subject, code, err);
	return NULL;
}

static int attach(struct late_programs *late, struct error *err)
{
	for (size_t i = 0; i < MAX_LATE && late->programs.at[i]; i++) {
		if (late->programs.at[i] == late->programs.shared)
			continue;
		if (!late->links[i])
			late->links[i] = sections_attach(late->programs.at[i]);
		if (!late->links[i])
			return fail(late->subject, -errno, err);
	}
	return 0;
}

static void detach(struct late_programs *late)
{
	for (size_t i = 0; i < MAX_LATE; i++) {
		bpf_link__destroy(late->links[i]);
		late->links[i] = NULL;
	}
}

int late_programs_choose(struct late_programs *late, const struct bpf_map *map, uint32_t tgid,
			 const void *how, struct error *err)
{
	const int fd = bpf_map__fd(map);

	if (attach(late, err))
		return -1;
	if (!bpf_map_update_elem(fd, &tgid, how, BPF_NOEXIST))
		late->chosen++;
	else if (errno == ENOMEM)
		return error_set(err, "out of memory");
	else if (bpf_map_update_elem(fd, &tgid, how, BPF_EXIST))
		return -ENOSPC;
	return 0;
}

static bool find(const struct bpf_map *map, uint32_t tgid, void *how)
{
	return !bpf_map__lookup_elem(map, &tgid, sizeof(tgid), how, bpf_map__value_size(map), 0);
}

bool late_programs_has_chosen(struct late_programs *late, const struct bpf_map *map, uint32_t tgid)
{
	union late_entry how;

	if (!late || !find(map, tgid, &how))
		return false;
	late->chosen++;
	return true;
}

bool late_programs_give_up(struct late_programs *late, const struct bpf_map *map, uint32_t tgid,
			   void *how)
{
	if (!late || !find(map, tgid, how) || bpf_map_delete_elem(bpf_map__fd(map), &tgid))
		return false;
	if (!--late->chosen)
		detach(late);
	return true;
}

/* Entries that are added meanwhile may be missed: the process is gone, or they stay unused. */
void late_programs_drop_handles(const struct bpf_map *map, uint32_t tgid)
{
	const int fd = bpf_map__fd(map);
	struct wire_handle_key key, next;
	bool more = !bpf_map_get_next_key(fd, NULL, &next);

	while (more) {
		key = next;
		more = !bpf_map_get_next_key(fd, &key, &next);
		if (key.tgid == tgid)
			bpf_map_delete_elem(fd, &key);
	}
}

void late_programs_free(struct late_programs *late)
{
	if (!late)
		return;
	detach(late);
	qprof_bpf__destroy(late->own);
	free(late);
}

const struct qprof_bpf *late_programs_own(const struct late_programs *late)
{
	return late ? late->own : NULL;
}
