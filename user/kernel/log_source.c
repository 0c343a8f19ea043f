/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/log_source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel/skeleton.h"

struct log_source {
	struct qprof_bpf *own; /* NULL: the engine has loaded the program */
	struct bpf_link *link;
};

static int share_maps(struct qprof_bpf *own, const struct qprof_bpf *engines)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, own->obj)
	{
		const struct bpf_map *other =
			bpf_object__find_map_by_name(engines->obj, bpf_map__name(map));
		int err = other ? bpf_map__reuse_fd(map, bpf_map__fd(other)) : -ENOENT;

		if (err)
			return err;
	}
	return 0;
}

/*
 * Opens the object once more, and loads that one program of it, with the maps and variables of the
 * engine's: a program cannot be loaded into an object later. That takes three times as long.
 */
static int load_alone(struct qprof_bpf *own, const struct qprof_bpf *engines)
{
	struct bpf_program *program = NULL;
	const int err = share_maps(own, engines);

	while ((program = bpf_object__next_program(own->obj, program)))
		bpf_program__set_autoload(program, program == own->progs.call_enters);
	/* What is dead code for this run is so by the engine's constants, which are frozen. */
	memcpy(own->rodata, engines->rodata, sizeof(*own->rodata));
	return err ? err : qprof_bpf__load(own);
}

static int attach(struct log_source *source, const struct qprof_bpf *bpf)
{
	source->link = bpf_program__attach(bpf->progs.call_enters);
	return source->link ? 0 : -errno;
}

static int open_alone(struct log_source *source, const struct qprof_bpf *engines)
{
	int err;

	source->own = qprof_bpf__open();
	if (!source->own)
		return -errno;
	err = load_alone(source->own, engines);
	return err ? err : attach(source, source->own);
}

struct log_source *log_source_new(const struct qprof_bpf *engines, struct error *err)
{
	struct log_source *source = calloc(1, sizeof(*source));
	const bool loaded = bpf_program__fd(engines->progs.call_enters) >= 0;
	int code;

	if (!source) {
		error_set(err, "out of memory");
		return NULL;
	}
	code = loaded ? attach(source, engines) : open_alone(source, engines);
	if (!code)
		return source;
	log_source_free(source);
	error_set(err, "cannot load the program that hears what processes write: %s",
		  strerror(-code));
	return NULL;
}

void log_source_free(struct log_source *source)
{
	if (!source)
		return;
	bpf_link__destroy(source->link);
	qprof_bpf__destroy(source->own);
	free(source);
}

const struct qprof_bpf *log_source_own(const struct log_source *source)
{
	return source ? source->own : NULL;
}
