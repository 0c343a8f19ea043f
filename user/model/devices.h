/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * devices.h - how disks served a tree, as the kernel side tells it (wire_storage.h): the sums of a
 * disk before the first request that ends in each step, and at last.
 */
#ifndef QPROF_MODEL_DEVICES_H
#define QPROF_MODEL_DEVICES_H

#include "model/profile.h"

enum { DEVICES_MAX_TOLD = 262144 }; /* records that are kept, of all disks */

/* What a disk had done until then. */
struct device_told {
	uint64_t time_ns;
	struct wire_device_sums sums;
};

struct known_device {
	uint32_t device;
	struct profile_device pub;
	struct wire_device_sums sums;
	char *name;
	struct profile_device_use *uses;
	struct device_told *told;
	size_t n_told, cap;
	bool steps_lost; /* there was no room for a record */
};

struct devices {
	struct known_device *list; /* at most WIRE_DEVICES */
	size_t n, cap;
	struct profile_device *pubs; /* after devices_finish() */
	size_t n_told;		     /* of all disks */
};

/* Take a record. Return 0 or -ENOMEM. */
int devices_feed(struct devices *devices, const struct wire_device *record);
int devices_feed_times(struct devices *devices, const struct wire_device_times *record);
/* Finds what they did during phases. Returns 0 or -ENOMEM. */
int devices_finish(struct devices *devices, const struct profile_phase *phases, size_t n_phases);
void devices_free(struct devices *devices);

#endif
