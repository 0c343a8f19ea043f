/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel side says of itself: its programs, what they cost, what they lost. */
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel/engine_state.h"
#include "kernel/put_off.h"

static int ask_program(const struct bpf_program *program, struct engine_program *answer)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_program__fd(program); /* -errno of one that was not loaded */

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return -1;
	*answer = (struct engine_program){
		.name = bpf_program__name(program),
		.fd = fd,
		.verified_insns = info.verified_insns,
		.run_ns = info.run_time_ns,
		.runs = info.run_cnt,
		.missed = info.recursion_misses,
	};
	return 0;
}

/* Describes the programs of an object behind the n that are there. Returns how many there are. */
static size_t ask_programs(const struct qprof_bpf *bpf, struct engine_program *programs, size_t n,
			   size_t room)
{
	struct bpf_program *program = NULL;

	while (bpf && n < room && (program = bpf_object__next_program(bpf->obj, program)))
		n += !ask_program(program, &programs[n]);
	return n;
}

size_t engine_programs(const struct engine *e, struct engine_program *programs, size_t room)
{
	size_t n = ask_programs(e->bpf, programs, 0, room);

	for (size_t i = 0; i < LATE_SUBJECTS; i++)
		n = ask_programs(late_programs_own(e->late[i]), programs, n, room);
	n = ask_programs(item_source_own(e->items), programs, n, room);
	return ask_programs(gpu_source_own(e->gpu), programs, n, room);
}

int engine_load_all(struct engine *e, struct error *err)
{
	const int code = put_off_load_all(e->bpf->obj);

	return code ? error_set(err, "cannot load a BPF program: %s", strerror(-code)) : 0;
}

bool engine_kernel_counts(void)
{
	FILE *file = fopen("/proc/sys/kernel/bpf_stats_enabled", "re");
	bool on = file && fgetc(file) == '1';

	if (file)
		fclose(file);
	return on;
}

enum { MAX_PROGRAMS = 128 };

/* What one timer misses, the next one tells. */
static bool is_of_ticks(const struct engine *e, const struct engine_program *program)
{
	return program->fd == bpf_program__fd(e->bpf->progs.usage_tick) ||
	       program->fd == bpf_program__fd(e->bpf->progs.sample_cpu);
}

uint64_t engine_missed_events(const struct engine *e)
{
	struct engine_program programs[MAX_PROGRAMS];
	const size_t n = engine_programs(e, programs, MAX_PROGRAMS);
	uint64_t missed = 0;

	for (size_t i = 0; i < n; i++)
		missed += is_of_ticks(e, &programs[i]) ? 0 : programs[i].missed;
	return missed;
}

bool engine_gpu_sums(const struct engine *e, struct wire_gpu_sums *sums)
{
	static const uint32_t run; /* jobs are an audit's */

	return !bpf_map_lookup_elem(bpf_map__fd(e->bpf->maps.gpu_trees), &run, sums);
}

static bool is_for_waits(const struct engine *e, const struct engine_program *program)
{
	return program->fd == bpf_program__fd(e->bpf->progs.task_switches) ||
	       program->fd == bpf_program__fd(e->bpf->progs.task_wakes);
}

struct engine_cost engine_cost(const struct engine *e)
{
	struct engine_program programs[MAX_PROGRAMS];
	struct engine_cost cost = {
		.counted = e->stats_fd >= 0 || (e->always_counts && engine_kernel_counts()),
		.wait_ns = __atomic_load_n(&e->bpf->bss->machine.waited_ns, __ATOMIC_RELAXED),
	};
	const size_t n = cost.counted ? engine_programs(e, programs, MAX_PROGRAMS) : 0;

	for (size_t i = 0; i < n; i++) {
		cost.run_ns += programs[i].run_ns;
		cost.runs += programs[i].runs;
		if (is_for_waits(e, &programs[i])) {
			cost.switch_ns += programs[i].run_ns;
			cost.switches += programs[i].runs;
		}
	}
	return cost;
}

const struct wire_job_shares *engine_job_shares(const struct engine *e)
{
	return &e->bpf->bss->job_shares;
}

struct wire_quality engine_quality(const struct engine *e)
{
	return e->bpf->bss->quality;
}
