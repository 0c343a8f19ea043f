/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/cpu_clocks.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel/call.h"
#include "kernel/skeleton.h"

/* Gives the BPF side a clock event on one CPU: see sched_clock.bpf.h. Returns 0, or -errno. */
static int open_cpu_clock(struct qprof_bpf *bpf, uint32_t cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
	};
	struct {
		uint32_t fd, cpu;
	} args = {.cpu = cpu};
	int fd = (int)syscall(__NR_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC), err;
	uint32_t answer = 0;

	if (fd < 0)
		return -errno;
	args.fd = fd;
	/* From now on the map keeps the event alive. */
	err = bpf_map_update_elem(bpf_map__fd(bpf->maps.cpu_clocks), &cpu, &fd, BPF_ANY);
	if (!err)
		err = call_program(bpf->progs.read_cpu_clock, &args, sizeof(args), &answer);
	close(fd);
	return err ? err : answer ? -EINVAL : 0;
}

void cpu_clocks_open(struct qprof_bpf *bpf, char *why, size_t size)
{
	const uint32_t cpus = bpf->rodata->config.nr_cpus;

	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		int err = open_cpu_clock(bpf, cpu);

		if (!err || err == -ENODEV) /* it is offline */
			continue;
		snprintf(why, size, "the software clock of CPU %u (perf_event_open): %s", cpu,
			 strerror(-err));
		return;
	}
}
