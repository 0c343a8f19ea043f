/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/log_source.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "kernel/late_load.h"
#include "kernel/skeleton.h"

struct log_source {
	struct qprof_bpf *own; /* NULL: the engine has loaded the program */
	struct bpf_program *program;
	struct bpf_link *link; /* NULL: it is not attached */
};

static int open_alone(struct log_source *source, const struct qprof_bpf *engines)
{
	int code;

	source->own = late_load(engines, "call_enters", &code);
	return code;
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
