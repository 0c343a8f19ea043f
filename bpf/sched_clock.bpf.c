// SPDX-License-Identifier: GPL-2.0-only
/* sched_clock.bpf.c - finds where the loader's clock events have the clock; see sched_clock.bpf.h.
 */
#include "sched_clock.bpf.h"

u64 cpu_clock_at[WIRE_MAX_CPUS];
s64 cpu_clock_counted[WIRE_MAX_CPUS];
s64 sched_clock_ahead;
u64 sched_clock_seen_ns;

struct cpu_clock_args {
	u32 fd; /* of a perf event of PERF_COUNT_SW_CPU_CLOCK, in the calling process */
	u32 cpu;
};

static __always_inline u64 word_at(const void *at)
{
	u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), at);
	return word;
}

/* Finds where an event has the clock of its last read. Returns 0; else it is no such event. */
SEC("syscall")
int read_cpu_clock(struct cpu_clock_args *args)
{
	struct task_struct *self = (void *)bpf_get_current_task();
	struct file **fds = BPF_CORE_READ(self, files, fdt, fd);
	const u32 cpu = args->cpu & (WIRE_MAX_CPUS - 1);
	struct perf_event *event;
	struct file *file = (void *)word_at(&fds[args->fd]);

	if (!file)
		return 1;
	event = BPF_CORE_READ(file, private_data);
	if (!event)
		return 1;
	if (!word_at(&event->hw.prev_count)) /* a new one has its start there */
		return 1;
	cpu_clock_at[cpu] = (u64)&event->hw.prev_count;
	return 0;
}
