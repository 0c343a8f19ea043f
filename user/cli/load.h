/* SPDX-License-Identifier: GPL-2.0-only */
/* load.h - the profile that a user names. */
#ifndef QPROF_LOAD_H
#define QPROF_LOAD_H

#include "format/recording.h"

/* Of the file at path; "-" is stdin. As recording_read. */
int load_recording(struct recording *r, const char *path, struct error *err);

#endif
