/* SPDX-License-Identifier: GPL-2.0-only */
/* view_files.h - draws the files of a job in the live view of an audit, in lines below the job. */
#ifndef QPROF_VIEW_FILES_H
#define QPROF_VIEW_FILES_H

#include "audit/view/terminal.h"
#include "model/job_files.h"

/* Returns how many lines files take, at most `most`; NULL: none. */
unsigned int view_files_lines(const struct job_files *files, unsigned int most);
/* Puts those that were used most, from a line and a column on. The last line says how many more
 * there are. Returns how many lines there are. */
unsigned int view_put_files(struct terminal *t, unsigned int line, unsigned int column,
			    const struct job_files *files, unsigned int most);

#endif
