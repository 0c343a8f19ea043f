/* SPDX-License-Identifier: GPL-2.0-only */
/* select.h - the phases and processes that the options ask for, in their order. */
#ifndef QPROF_SELECT_H
#define QPROF_SELECT_H

#include "report/renderer.h"

/*
 * Return *n pointers into r, or NULL when out of memory; the caller frees the array. It has all
 * that match, not only the options->top first. Gaps come after all pairs: they tell of the same
 * time once more.
 */
const struct recording_phase **select_phases(const struct recording *r,
					     const struct render_options *options, size_t *n);
/* The same, with the time in no phase beside the pairs. */
const struct recording_phase **select_all_time(const struct recording *r,
					       const struct render_options *options, size_t *n);
const struct recording_process **select_processes(const struct recording *r,
						  const struct render_options *options, size_t *n);

#endif
