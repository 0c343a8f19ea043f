/* SPDX-License-Identifier: GPL-2.0-only */
/* disks.h - what all reports say of how disks served a run. */
#ifndef QPROF_DISKS_H
#define QPROF_DISKS_H

#include "base/units.h"
#include "format/recording.h"

/* Returns how much a disk read and wrote in a second in which it was busy; 0: it was not. */
uint64_t disk_speed(const struct recording_requests *read, const struct recording_requests *write,
		    uint64_t busy_ns);

/* "0.98 ms", "12 ms": of a request. Writes into out (UNITS_TEXT_MAX bytes) and returns it. */
char *disk_time(char *out, uint64_t ns);

enum { DISKS_TEXT_MAX = 1024, DISKS_SENTENCES = 5 };
/*
 * "vda was busy for 41.0 s of the 42.0 s of Load, with 90.0 MiB/s". i: of its phases, or n_uses for
 * the run. Returns text (DISKS_TEXT_MAX bytes), or NULL: it was not busy for most of it, or the
 * phase is too short to matter.
 */
char *disk_sentence(char *text, const struct recording *r, const struct recording_device *device,
		    size_t i);

#endif
