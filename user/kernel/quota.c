// SPDX-License-Identifier: GPL-2.0-only
#include "kernel/quota.h"

#include <linux/dqblk_xfs.h>
#include <linux/quota.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_UNIT = 1024 }; /* bytes: QIF_DQBLKSIZE, that limits are counted in */

/* glibc has no quotactl_fd(2), of Linux 5.14. */
static bool ask(int fd, unsigned int command, enum quota_of of, uint32_t id, void *answer)
{
	return !syscall(SYS_quotactl_fd, fd, QCMD(command, of), id, answer);
}

/* A file system may count what each has, and refuse nothing. */
static bool is_enforced(int fd, enum quota_of of)
{
	struct fs_quota_statv state = {.qs_version = FS_QSTATV_VERSION1};
	const unsigned int flag = of == QUOTA_USER ? FS_QUOTA_UDQ_ENFD : FS_QUOTA_GDQ_ENFD;

	return ask(fd, Q_XGETQSTATV, of, 0, &state) && state.qs_flags & flag;
}

/* The soft limit holds once it was passed for longer than its file system grants. */
static uint64_t limit_of(const struct if_dqblk *block)
{
	const bool is_over = block->dqb_btime && block->dqb_btime <= (uint64_t)time(NULL);

	return (block->dqb_bsoftlimit && is_over ? block->dqb_bsoftlimit : block->dqb_bhardlimit) *
	       LIMIT_UNIT;
}

void quota_read(int fd, enum quota_of of, uint32_t id, struct quota *quota)
{
	struct if_dqblk block = {0};

	*quota = (struct quota){0};
	if (is_enforced(fd, of) && ask(fd, Q_GETQUOTA, of, id, &block))
		*quota = (struct quota){.limit = limit_of(&block), .used = block.dqb_curspace};
}
