/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * job_files_listener.h - has files counted for each job of an audit (--files), and says of each
 * that has ended which it used most (machine_job.files). It comes before all who tell of these.
 */
#ifndef QPROF_JOB_FILES_LISTENER_H
#define QPROF_JOB_FILES_LISTENER_H

#include <stdbool.h>

#include "capture/listener.h"

/* base_names: files are named without their directories. Returns NULL when out of memory. */
struct listener *job_files_listener_new(bool base_names);

#endif
