/* SPDX-License-Identifier: GPL-2.0-only */
/* quota.h - how much room a file system leaves to a user or a group. */
#ifndef QPROF_QUOTA_H
#define QPROF_QUOTA_H

#include <stdint.h>

enum quota_of { QUOTA_USER, QUOTA_GROUP };

struct quota {
	uint64_t limit, used; /* bytes; a limit of 0: there is none */
};

/* fd: anything of the file system. There is no limit, either, if the kernel does not answer. */
void quota_read(int fd, enum quota_of of, uint32_t id, struct quota *quota);

#endif
