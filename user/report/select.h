/* SPDX-License-Identifier: GPL-2.0-only */
/* select.h - the phases and processes that options ask for, in the order that they ask for. */
#ifndef QPROF_SELECT_H
#define QPROF_SELECT_H

#include "report/renderer.h"

/*
 * Arrays of pointers into r, to be freed; *n of them, of which options->top may be shown. NULL when
 * out of memory.
 */
const struct recording_phase **select_phases(const struct recording *r,
					     const struct render_options *options, size_t *n);
const struct recording_process **select_processes(const struct recording *r,
						  const struct render_options *options, size_t *n);

#endif
