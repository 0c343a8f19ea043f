/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/rank_asked.h"

#include <stdlib.h>

#include "kernel/procfs.h"
#include "kernel/procfs_aside.h"
#include "model/rank.h"

enum { ENVIRONMENT_MAX = 128 << 10 /* bytes that are looked at */ };

struct rank rank_asked(void *context, uint32_t tgid, uint64_t started_ns)
{
	char *environment = malloc(ENVIRONMENT_MAX);
	struct rank found = {0};
	ssize_t len;

	(void)context;
	if (!environment)
		return found;
	len = procfs_aside_environ((pid_t)tgid, environment, ENVIRONMENT_MAX);
	if (len > 0 && procfs_is_still((pid_t)tgid, started_ns))
		found = rank_of(environment, (size_t)len);
	free(environment);
	return found;
}
