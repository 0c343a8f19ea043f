// SPDX-License-Identifier: GPL-2.0-only
/*
 * percpu.bpf.c - finds where each CPU keeps its part of a percpu counter. Runs once at start.
 *
 * A per-CPU pointer is no address: the kernel adds __per_cpu_offset[cpu] to it. That array is in no
 * BTF and, without CONFIG_KALLSYMS_ALL, in no kallsyms. But of a per-CPU map we can read both: the
 * raw pointer in its struct bpf_array, and the address on each CPU through
 * bpf_map_lookup_percpu_elem(). Their difference is the offset, for every per-CPU pointer.
 *
 * Example: the map's raw pointer is 0x60de0, and its value on CPU 3 is at 0xffff88813bd60de0. The
 * offset of CPU 3 is 0xffff88813bd00000. A counter with `counters` at 0x71fa4 then has its part for
 * CPU 3 at 0xffff88813bd71fa4.
 */
#include "state.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} percpu_probe SEC(".maps");

u64 percpu_seen; /* an address goes through here: read back, it is a number to the verifier */

struct percpu_args {
	u32 map_fd; /* of percpu_probe, in the calling process */
};

SEC("syscall")
int read_cpu_offsets(struct percpu_args *args)
{
	struct task_struct *self = (void *)bpf_get_current_task();
	struct file **fds = BPF_CORE_READ(self, files, fdt, fd);
	struct file *file = NULL;
	struct bpf_array *array;
	u32 zero = 0;
	u64 raw;

	if (bpf_probe_read_kernel(&file, sizeof(file), &fds[args->map_fd]) || !file)
		return 1;
	array = BPF_CORE_READ(file, private_data);
	raw = (u64)BPF_CORE_READ(array, pptrs[0]);
	if (!raw)
		return 2;
	for (u32 cpu = 0; cpu < config.nr_cpus && cpu < WIRE_MAX_CPUS; cpu++) {
		void *seen = bpf_map_lookup_percpu_elem(&percpu_probe, &zero, cpu);

		if (!seen)
			return 3;
		*(volatile u64 *)&percpu_seen = (u64)seen;
		cpu_offset[cpu] = *(volatile u64 *)&percpu_seen - raw;
	}
	for (u32 cpu = config.nr_cpus; cpu % WIRE_GROUP_CPUS && cpu < WIRE_MAX_CPUS; cpu++)
		cpu_offset[cpu] = cpu_offset[0];
	return 0;
}
