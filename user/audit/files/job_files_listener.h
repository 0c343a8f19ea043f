/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * job_files_listener.h - has files counted for each job of an audit (--files), and says of each
 * that has ended which it used most (machine_job.files). It comes before all who tell of these.
 */
#ifndef QPROF_JOB_FILES_LISTENER_H
#define QPROF_JOB_FILES_LISTENER_H

#include <stdbool.h>

#include "capture/listener.h"
#include "model/job_files.h"
#include "model/machine.h"

/* base_names: files are named without their directories. Returns NULL when out of memory. */
struct listener *job_files_listener_new(bool base_names);

/* Looks at what a job that goes on has used so far; late_ns is not told. The kernel side walks over
 * the files of all jobs for it. The caller frees what is returned; NULL: nobody knows. l: a
 * job_files_listener_new(). */
struct job_files *job_files_so_far(struct listener *l, const struct machine_job *job);

#endif
