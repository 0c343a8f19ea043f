/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/overcommit.h"

#include <stdio.h>

#include "kernel/procfs.h"

enum { NEVER = 2 /* OVERCOMMIT_NEVER of linux/mman.h */ };

static bool is_refused(void)
{
	FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
	int mode = 0;

	if (!file)
		return false;
	if (fscanf(file, "%d", &mode) != 1)
		mode = 0;
	fclose(file);
	return mode == NEVER;
}

bool overcommit_read(pid_t pid, uint64_t started_ns, uint64_t private_bytes,
		     struct overcommit *found)
{
	struct procfs_memory memory;
	bool has_ended;

	if (!is_refused())
		return false;
	has_ended = procfs_has_ended(pid, started_ns); /* first: then its memory is not in both */
	if (procfs_memory(&memory) || !memory.commit_limit)
		return false;
	*found = (struct overcommit){memory.committed + (has_ended ? private_bytes : 0),
				     memory.commit_limit};
	return true;
}
