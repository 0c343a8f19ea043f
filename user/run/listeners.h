/* SPDX-License-Identifier: GPL-2.0-only */
/* listeners.h - what listens to a run. Each function returns NULL when out of memory. */
#ifndef QPROF_RUN_LISTENERS_H
#define QPROF_RUN_LISTENERS_H

#include "capture/listener.h"

/* Writes the profile to path ("-" is stdout), which must outlive the listener. */
struct listener *profile_listener_new(const char *path);

/* Shows one line on the terminal at stderr while the run goes on. */
struct listener *live_listener_new(void);

/* Writes a table for people to stderr at the end: totals, phases, processes. width is the columns
 * that there are; colour: escapes are wanted. */
struct listener *summary_listener_new(unsigned int width, bool colour);

#endif
