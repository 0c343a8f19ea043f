/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/marking.h"

#include <string.h>

static enum wire_what what_of(const struct recipe_mark *mark)
{
	switch (mark->does) {
	case RECIPE_BEGIN:
		return WIRE_BEGIN;
	case RECIPE_END:
		return WIRE_END;
	case RECIPE_MARK:
		return WIRE_MARK;
	default:
		return WIRE_METRIC;
	}
}

/* The snapshot belongs to the first checkpoint of a record. No time lies between it and the rest.
 */
static void share_snapshot(struct wire_checkpoint *cp)
{
	const struct wire_memory *tree = &cp->tree.memory, *own = &cp->own.memory;

	cp->text_state |= WIRE_TEXT_AGAIN;
	cp->tree.memory.step_peak = tree->file + tree->anon + tree->shmem;
	cp->own.memory.step_peak = own->file + own->anon + own->shmem;
}

static uint32_t put_name(char *to, const char *name)
{
	const size_t len = strnlen(name, WIRE_NAME_MAX - 1);

	memcpy(to, name, len);
	return (uint32_t)len;
}

struct checkpoint_record {
	struct wire_checkpoint cp;
	char name[2 * WIRE_NAME_MAX];
};

static void note(const struct marking *m, uint32_t tid, const struct recipe_mark *mark)
{
	if (m->begun && mark->does == RECIPE_BEGIN)
		begun_add(m->begun, tid, mark->name);
	else if (m->begun && mark->does == RECIPE_END)
		begun_end(m->begun, tid, mark->name);
}

/* A line of a log is the process's, not the thread's that happened to write it. */
int marking_mark(void *context, const struct recipe_mark *mark)
{
	struct marking *m = context;
	struct checkpoint_record record = {.cp = *m->snapshot};

	if (!m->of_thread)
		record.cp.h.tid = record.cp.h.tgid;
	record.cp.h.size = sizeof(record);
	record.cp.what = what_of(mark);
	record.cp.site = mark->summary ? WIRE_SITE_SUMMARY : WIRE_SITE_NONE;
	record.cp.text_state = (mark->buffered ? WIRE_TEXT_BUFFERED : 0) |
			       (mark->died || m->died ? WIRE_TEXT_DIED : 0);
	record.cp.name_state = WIRE_NAME_OK;
	record.cp.value_state = WIRE_VALUE_NONE;
	record.cp.value = 0;
	if (record.cp.what == WIRE_METRIC) {
		record.cp.value_state = mark->has_value ? WIRE_VALUE_DOUBLE : WIRE_VALUE_UNREADABLE;
		memcpy(&record.cp.value, &mark->value, sizeof(record.cp.value));
	} else if (mark->number) {
		record.cp.value_state = WIRE_VALUE_PHASE;
		record.cp.value = mark->number;
	}
	record.cp.name_len = put_name(record.name, mark->name);
	if (mark->renamed) {
		record.cp.text_state |= WIRE_TEXT_RENAMES;
		record.name[record.cp.name_len++] = '\0';
		record.cp.name_len += put_name(record.name + record.cp.name_len, mark->renamed);
	}
	if (m->any)
		share_snapshot(&record.cp);
	m->any = true;
	note(m, record.cp.h.tid, mark);
	return m->feed(m->context, &record.cp.h);
}

int marking_end_begun(struct marking *m, struct begun *begun)
{
	struct wire_checkpoint snapshot = *m->snapshot;
	struct marking of_thread = *m;
	struct begun_phase phase;
	int code = 0;

	of_thread.snapshot = &snapshot;
	of_thread.begun = NULL;
	of_thread.of_thread = true;
	while (!code && begun_take(begun, &phase)) {
		const struct recipe_mark mark = {.does = RECIPE_END, .name = phase.name};

		snapshot.h.tid = phase.tid;
		code = marking_mark(&of_thread, &mark);
	}
	m->any = of_thread.any;
	return code;
}

int marking_last(struct marking *m)
{
	struct checkpoint_record record = {.cp = *m->snapshot};

	size_t size = m->snapshot->h.size - sizeof(record.cp);

	size = size < sizeof(record.name) ? size : sizeof(record.name);
	memcpy(record.name, m->snapshot->name, size);
	record.cp.h.size = sizeof(record);
	share_snapshot(&record.cp);
	return m->feed(m->context, &record.cp.h);
}
