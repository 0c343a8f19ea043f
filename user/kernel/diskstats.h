/* SPDX-License-Identifier: GPL-2.0-only */
/* diskstats.h - what block devices say themselves that they have read and written. */
#ifndef QPROF_DISKSTATS_H
#define QPROF_DISKSTATS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { DISKSTATS_MAX = 256, DISKSTATS_NAME_MAX = 32 };

struct diskstats_device {
	char name[DISKSTATS_NAME_MAX];
	uint64_t read, written; /* bytes since boot */
};

struct diskstats {
	struct diskstats_device devices[DISKSTATS_MAX];
	size_t n;
	size_t dropped; /* devices beyond */
};

/*
 * The devices that hold data themselves: whole disks, of which what lies on others (partitions,
 * device mapper, RAID, loop) is only another look; and no memory. 0, or -errno.
 */
int diskstats_read(struct diskstats *out);
/* Of the lines of /proc/diskstats; is_disk says of a name whether it is such a device. */
int diskstats_parse(FILE *file, int (*is_disk)(const char *name), struct diskstats *out);
/* What a device has read and written since `before`, in place. Devices that came later began at 0;
 * one whose counters went back is another one by now. */
void diskstats_since(struct diskstats *now, const struct diskstats *before);

#endif
