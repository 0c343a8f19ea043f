/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/item_source.h"

#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel/late_load.h"
#include "kernel/sections.h"
#include "kernel/skeleton.h"

struct item_source {
	struct qprof_bpf *own; /* NULL: the engine has loaded the program */
	const struct qprof_bpf *maps;
	struct bpf_program *program;
};

struct item_source *item_source_new(const struct qprof_bpf *engines, const char *types,
				    struct error *err)
{
	struct item_source *source = calloc(1, sizeof(*source));
	static const char *const names[] = {"item_hit", NULL};
	int code = 0;

	if (!source) {
		error_set(err, "out of memory");
		return NULL;
	}
	source->maps = engines;
	source->program = engines->progs.item_hit;
	if (bpf_program__fd(source->program) < 0)
		source->own = late_load(engines, types, names, NULL, &code);
	if (source->own)
		source->program = source->own->progs.item_hit;
	if (!code)
		return source;
	free(source);
	error_set(err, "cannot load the program that tells of functions and probes: %s",
		  sections_why(code));
	return NULL;
}

void item_source_free(struct item_source *source)
{
	if (!source)
		return;
	qprof_bpf__destroy(source->own);
	free(source);
}

const struct qprof_bpf *item_source_own(const struct item_source *source)
{
	return source ? source->own : NULL;
}

struct bpf_program *item_source_program(const struct item_source *source)
{
	return source->program;
}

int item_source_set_site(struct item_source *source, uint32_t index,
			 const struct wire_item_site *site)
{
	return bpf_map_update_elem(bpf_map__fd(source->maps->maps.item_sites), &index, site,
				   BPF_ANY);
}

void item_source_drop_site(struct item_source *source, uint32_t index)
{
	bpf_map_delete_elem(bpf_map__fd(source->maps->maps.item_sites), &index);
}

int item_source_use(struct item_source *source, uint32_t tgid, uint32_t item, uint64_t started_ns)
{
	const struct wire_item_key key = {.tgid = tgid, .item = item};
	const struct wire_item_use use = {.started_ns = started_ns};

	return bpf_map_update_elem(bpf_map__fd(source->maps->maps.item_uses), &key, &use, BPF_ANY);
}

/* Calls that processes were left in by longjmp() or their exit. tgid: 0, of all. */
static void forget_calls(struct item_source *source, uint32_t tgid, uint32_t first, uint32_t n)
{
	const int map = bpf_map__fd(source->maps->maps.open_calls);
	struct {
		struct wire_item_key key;
		uint64_t stack;
	} call, next;
	int code = bpf_map_get_next_key(map, NULL, &next);

	while (!code) {
		call = next;
		code = bpf_map_get_next_key(map, &call, &next);
		if ((!tgid || call.key.tgid == tgid) && call.key.item - first < n)
			bpf_map_delete_elem(map, &call);
	}
}

uint64_t item_source_leave(struct item_source *source, uint32_t tgid, uint32_t item)
{
	const int map = bpf_map__fd(source->maps->maps.item_uses);
	const struct wire_item_key key = {.tgid = tgid, .item = item};
	struct wire_item_use use;

	if (bpf_map_lookup_elem(map, &key, &use))
		return 0;
	bpf_map_delete_elem(map, &key);
	if (!(tgid & WIRE_JOB_USES)) /* calls have their processes in their keys */
		forget_calls(source, tgid, item, 1);
	return use.limited;
}

void item_source_forget_calls(struct item_source *source, uint32_t first, uint32_t n)
{
	forget_calls(source, 0, first, n);
}
