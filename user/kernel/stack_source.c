/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/stack_source.h"

#include <stdlib.h>

#include <bpf/libbpf.h>

#include "kernel/engine_state.h"

struct stack_source {
	struct ring_buffer *ring;
	struct stack_handler tell;
	void *context;
};

void stack_source_expect(struct qprof_bpf *engines, bool expected)
{
	bpf_map__set_autocreate(engines->maps.growing, expected);
	bpf_map__set_autocreate(engines->maps.stacks, expected);
	bpf_map__set_autocreate(engines->maps.pythons, expected);
	bpf_map__set_autocreate(engines->maps.python_codes, expected);
	bpf_map__set_autocreate(engines->maps.python_frames, expected);
	bpf_program__set_autoload(engines->progs.sample_growth, expected);
	bpf_program__set_autoattach(engines->progs.sample_growth, false);
}

struct bpf_link *stack_source_attach(const struct qprof_bpf *engines)
{
	return bpf_program__attach(engines->progs.sample_growth);
}

static int take(void *context, void *data, size_t size)
{
	const struct stack_source *source = context;
	const struct wire_stack *sample = data;

	if (size == sizeof(struct wire_python_code) + WIRE_PYTHON_LINES ||
	    size == sizeof(struct wire_python_code) + WIRE_PYTHON_MOST_LINES)
		source->tell.code(source->context, data, size - sizeof(struct wire_python_code));
	else if (size == sizeof(*sample) && sample->len <= WIRE_STACK_BYTES &&
		 sample->n_python <= WIRE_PYTHON_FRAMES && sample->kind >= WIRE_STACK_ANON &&
		 sample->kind <= WIRE_STACK_SHMEM)
		source->tell.sample(source->context, sample);
	return 0;
}

struct stack_source *stack_source_new(const struct engine *e, struct stack_handler tell,
				      void *context)
{
	struct stack_source *source = calloc(1, sizeof(*source));

	if (!source)
		return NULL;
	source->tell = tell;
	source->context = context;
	source->ring = ring_buffer__new(bpf_map__fd(e->bpf->maps.stacks), take, source, NULL);
	if (source->ring)
		return source;
	free(source);
	return NULL;
}

void stack_source_free(struct stack_source *source)
{
	if (!source)
		return;
	ring_buffer__free(source->ring);
	free(source);
}

int stack_source_fd(const struct stack_source *source)
{
	return ring_buffer__epoll_fd(source->ring);
}

void stack_source_read(struct stack_source *source)
{
	ring_buffer__consume(source->ring);
}
