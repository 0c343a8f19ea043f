/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/stack_source.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel/engine_state.h"
#include "kernel/kernel_symbols.h"
#include "kernel/ring.h"
#include "kernel/sections.h"

enum { REST_MS = 100 };

struct stack_source {
	struct ring *ring;
	int map;
	struct stack_handler tell;
	void *context;
};

static struct bpf_program *program_of(const struct qprof_bpf *engines, size_t link)
{
	struct bpf_program *const programs[STACK_LINKS] = {
		engines->progs.sample_growth,
		engines->progs.sample_cpu,
		engines->progs.sample_job_growth,
	};

	return programs[link];
}

static void configure(struct wire_config *config, unsigned int samples)
{
	const uint32_t pages = WIRE_STACK_STEP / (uint32_t)sysconf(_SC_PAGESIZE);
	struct kernel_symbol fault = {0};

	if (samples & STACKS_OF_CPU)
		fault = kernel_symbols_find("asm_exc_page_fault");
	config->fault_entry = fault.at;
	config->fault_entry_bytes = fault.bytes;
	config->stacks = samples & STACKS_OF_MEMORY ? 1 : 0;
	config->stack_pages = pages ? pages : 1;
}

void stack_source_expect(struct qprof_bpf *engines, unsigned int samples, bool audit)
{
	const bool wants[STACK_LINKS] = {
		samples & STACKS_OF_MEMORY && !audit,
		samples & STACKS_OF_CPU,
		samples & STACKS_OF_MEMORY && audit,
	};

	configure(&engines->rodata->config, samples);
	bpf_map__set_autocreate(engines->maps.sampled_jobs, samples && audit);
	if (samples && audit)
		engines->bss->growth.from_ns = WIRE_NO_SAMPLES;
	bpf_map__set_autocreate(engines->maps.growing, samples & STACKS_OF_MEMORY);
	bpf_map__set_autocreate(engines->maps.growing_on_gpu, samples & STACKS_OF_MEMORY);
	bpf_map__set_autocreate(engines->maps.sampled, samples & STACKS_OF_CPU);
	bpf_map__set_autocreate(engines->maps.cpu_samplers, samples & STACKS_OF_CPU);
	bpf_map__set_autocreate(engines->maps.stacks, samples);
	bpf_map__set_autocreate(engines->maps.pythons, samples);
	bpf_map__set_autocreate(engines->maps.python_codes, samples);
	bpf_map__set_autocreate(engines->maps.python_frames, samples);
	for (size_t i = 0; i < STACK_LINKS; i++) {
		bpf_program__set_autoload(program_of(engines, i), wants[i]);
		bpf_program__set_autoattach(program_of(engines, i), false);
	}
}

int stack_source_attach(const struct qprof_bpf *engines, struct bpf_link *links[STACK_LINKS])
{
	for (size_t i = 0; i < STACK_LINKS; i++) {
		if (!bpf_program__autoload(program_of(engines, i)))
			continue;
		links[i] = sections_attach(program_of(engines, i));
		if (!links[i])
			return -1;
	}
	return 0;
}

void stack_source_detach(struct bpf_link *links[STACK_LINKS])
{
	for (size_t i = 0; i < STACK_LINKS; i++)
		bpf_link__destroy(links[i]);
}

void stack_source_switch(struct engine *e, uint64_t from_ns)
{
	__atomic_store_n(&e->bpf->bss->growth.from_ns, from_ns, __ATOMIC_RELAXED);
}

/* ---- Jobs of an audit -------------------------------------------------------------------------
 */

static struct wire_tree *tree_of(const struct engine *e, uint32_t job)
{
	return &e->bpf->bss->trees[job % WIRE_MAX_JOBS];
}

int stack_source_begin_job(struct engine *e, uint32_t job, uint64_t from_ns, uint32_t *run)
{
	const uint32_t number = e->sampled_runs + 1 ? e->sampled_runs + 1 : 1;
	const struct wire_sampled_job begun = {.from_ns = from_ns, .run = number};

	if (bpf_map_update_elem(bpf_map__fd(e->bpf->maps.sampled_jobs), &job, &begun, BPF_ANY))
		return -errno;
	e->sampled_runs = *run = number;
	__atomic_store_n(&tree_of(e, job)->sampled, number, __ATOMIC_RELEASE);
	/* If it was not over by now, what follows is sampled. */
	return __atomic_load_n(&tree_of(e, job)->finished, __ATOMIC_SEQ_CST) ? -ESRCH : 0;
}

int stack_source_end_job(struct engine *e, uint32_t job, uint32_t run,
			 struct wire_sampled_job *counted)
{
	uint32_t expected = run;

	__atomic_compare_exchange_n(&tree_of(e, job)->sampled, &expected, 0, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	return bpf_map_lookup_elem(bpf_map__fd(e->bpf->maps.sampled_jobs), &job, counted) ? -errno
											  : 0;
}

/* ---- The ring ---------------------------------------------------------------------------------
 */

static int take(void *context, void *data, size_t size)
{
	const struct stack_source *source = context;
	const struct wire_stack *sample = data;

	if (size == sizeof(struct wire_python_code) + WIRE_PYTHON_LINES ||
	    size == sizeof(struct wire_python_code) + WIRE_PYTHON_MOST_LINES)
		source->tell.code(source->context, data, size - sizeof(struct wire_python_code));
	else if ((size == sizeof(*sample) ||
		  (size == offsetof(struct wire_stack, python) && wire_stack_is_again(sample))) &&
		 sample->len <= WIRE_STACK_BYTES && sample->n_python <= WIRE_PYTHON_FRAMES &&
		 sample->kind >= WIRE_STACK_ANON && sample->kind <= WIRE_STACK_GPU)
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
	source->map = bpf_map__fd(e->bpf->maps.stacks);
	source->ring = ring_new(source->map, take, source);
	if (source->ring)
		return source;
	free(source);
	return NULL;
}

void stack_source_free(struct stack_source *source)
{
	if (!source)
		return;
	ring_free(source->ring);
	free(source);
}

int stack_source_fd(const struct stack_source *source)
{
	return source->map;
}

void stack_source_read(struct stack_source *source)
{
	ring_consume(source->ring);
}

uint64_t stack_source_written(const struct stack_source *source)
{
	return ring_written(source->ring);
}

bool stack_source_was_told(const struct stack_source *source, uint64_t written)
{
	return ring_read_so_far(source->ring) >= written;
}

void stack_source_read_rest(struct stack_source *source)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	ring_consume(source->ring);
	for (int i = 0; i < REST_MS && ring_has_more(source->ring); i++) {
		nanosleep(&nap, NULL);
		ring_consume(source->ring);
	}
}
