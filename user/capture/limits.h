/* SPDX-License-Identifier: GPL-2.0-only */
/* limits.h - looks at limits of memory, for the model of how close a tree is to them, and at what a
 * run may have of CPUs. */
#ifndef QPROF_CAPTURE_LIMITS_H
#define QPROF_CAPTURE_LIMITS_H

#include "format/run_info.h"
#include "kernel/cpu_limit.h"
#include "kernel/memory_limit.h"
#include "model/headroom.h"
#include "model/profile.h"

/* The last record is the newest there is. tgid: whose address space is looked at; 0: nobody's.
 * is_apart: some of the tree is in other cgroups, so what it holds tells nothing of these. Returns
 * whether there is a limit besides the machine's. */
bool limits_look(struct headroom *h, struct memory_limits *limits, uint32_t tgid, bool is_apart);

/*
 * Who executes a program may have got another limit right before: a shell that moves itself into a
 * cgroup, systemd-run. So each is a reason to look, if there are not too many.
 */
struct limits_programs {
	unsigned int n; /* looks so far */
	uint64_t due_ns;
};

/* A program was executed. Returns whether to look. is_first: by the process whose limits count. */
bool limits_may_differ(struct limits_programs *p, bool is_first, uint64_t now_ns);

struct limits_of_cpus {
	struct cpu_limit now; /* of the first process */
	uint64_t due_ns;
	struct limits_programs programs;
};

void limits_of_cpus_begin(struct limits_of_cpus *l, uint32_t tgid);
/* A row was made: where phases begin and end. */
void limits_of_cpus_row(struct limits_of_cpus *l, struct profile *profile);
/* A process executes a program: a shell may have moved itself into a cgroup before it did. */
void limits_of_cpus_program(struct limits_of_cpus *l, uint32_t tgid);
/* At the end. What is noted is valid as long as *l. */
void limits_of_cpus_note(struct limits_of_cpus *l, struct run_cpu_limit *info);

/* For struct profile_config and machine_config. context: struct capture. */
bool limits_disk(void *context, const struct wire_written *written, bool as_root,
		 struct profile_disk *disk);
bool limits_committed(void *context, const struct wire_header *ended, uint64_t private_bytes,
		      struct profile_quota *all);

#endif
