/* SPDX-License-Identifier: GPL-2.0-only */
/* view_files.h - draws the files of a job in the live view of an audit, in lines below the job. */
#ifndef QPROF_VIEW_FILES_H
#define QPROF_VIEW_FILES_H

#include "audit/view/terminal.h"
#include "model/job_files.h"

/* Puts the file that was used most on a line, from a column on, and says how many more there are.
 * There must be one. */
void view_put_files(struct terminal *t, unsigned int line, unsigned int column,
		    const struct job_files *files);

#endif
