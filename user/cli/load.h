/* SPDX-License-Identifier: GPL-2.0-only */
/* load.h - the profile that a user names on the command line. */
#ifndef QPROF_LOAD_H
#define QPROF_LOAD_H

#include "format/recording.h"

/* Reads the file at path, or stdin for "-". Returns what recording_read() does. */
int load_recording(struct recording *r, const char *path, struct error *err);

#endif
