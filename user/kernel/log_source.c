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
	struct bpf_program *program;
	struct bpf_link *link; /* NULL: it is not attached */
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

static int open_alone(struct log_source *source, const struct qprof_bpf *engines)
{
	source->own = qprof_bpf__open();
	return source->own ? load_alone(source->own, engines) : -errno;
}

static int fail(int code, struct error *err)
{
	return error_set(err, "cannot load the program that hears what processes write: %s",
			 strerror(-code));
}

struct log_source *log_source_new(const struct qprof_bpf *engines, struct error *err)
{
	struct log_source *source = calloc(1, sizeof(*source));
	int code = 0;

	if (!source) {
		error_set(err, "out of memory");
		return NULL;
	}
	if (bpf_program__fd(engines->progs.call_enters) >= 0)
		source->program = engines->progs.call_enters;
	else
		code = open_alone(source, engines);
	if (source->own)
		source->program = source->own->progs.call_enters;
	if (!code)
		return source;
	log_source_free(source);
	fail(code, err);
	return NULL;
}

int log_source_attach(struct log_source *source, struct error *err)
{
	if (!source->link)
		source->link = bpf_program__attach(source->program);
	return source->link ? 0 : fail(-errno, err);
}

void log_source_detach(struct log_source *source)
{
	bpf_link__destroy(source->link);
	source->link = NULL;
}

void log_source_free(struct log_source *source)
{
	if (!source)
		return;
	log_source_detach(source);
	qprof_bpf__destroy(source->own);
	free(source);
}

const struct qprof_bpf *log_source_own(const struct log_source *source)
{
	return source ? source->own : NULL;
}
