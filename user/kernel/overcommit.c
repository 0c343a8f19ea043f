/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/overcommit.h"

#include <stdio.h>
#include <time.h>

#include "kernel/procfs.h"

enum {
	NEVER = 2,	 /* OVERCOMMIT_NEVER of linux/mman.h */
	MOST_TRIES = 50, /* a millisecond each, while a process gives its memory back */
};

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

/*
 * Reads what is promised, with what the process had. Returns false if nobody knows whether that is
 * in it: the process gave it back meanwhile.
 */
static bool read_with(pid_t pid, uint64_t started_ns, uint64_t private_bytes,
		      struct procfs_memory *memory)
{
	const bool has_ended = procfs_has_ended(pid, started_ns);

	if (procfs_memory(memory))
		return false;
	if (has_ended)
		memory->committed += private_bytes;
	return has_ended || procfs_has_memory(pid, started_ns);
}

bool overcommit_read(pid_t pid, uint64_t started_ns, uint64_t private_bytes, bool may_wait,
		     struct overcommit *found)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	struct procfs_memory memory;
	bool knows = false;

	if (!is_refused())
		return false;
	for (int i = 0; i < (may_wait ? MOST_TRIES : 1) && !knows; i++) {
		if (i)
			nanosleep(&pause, NULL);
		knows = read_with(pid, started_ns, private_bytes, &memory);
	}
	if (!knows || !memory.commit_limit)
		return false;
	*found = (struct overcommit){memory.committed, memory.commit_limit};
	return true;
}
