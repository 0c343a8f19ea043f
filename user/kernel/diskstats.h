/* SPDX-License-Identifier: GPL-2.0-only */
/* diskstats.h - how much block devices have read and written, by their own account. */
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
 * Reads the devices that hold data themselves: whole disks. Partitions, device mapper, RAID and
 * loop devices show the same data again, and RAM disks are memory. Returns 0, or -errno.
 */
int diskstats_read(struct diskstats *out);
/* Parses lines of /proc/diskstats. is_disk returns true for the name of a device to be kept. */
int diskstats_parse(FILE *file, int (*is_disk)(const char *name), struct diskstats *out);
/*
 * Subtracts what the devices had in `before`. Nothing is subtracted for a device that came later,
 * or whose counters went back: it is another device by now.
 */
void diskstats_since(struct diskstats *now, const struct diskstats *before);

#endif
