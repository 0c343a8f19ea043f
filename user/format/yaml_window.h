/* SPDX-License-Identifier: GPL-2.0-only */
/* yaml_window.h - in which repeats of a phase what was on, as YAML. */
#ifndef QPROF_YAML_WINDOW_H
#define QPROF_YAML_WINDOW_H

#include "format/emit.h"
#include "format/run_info.h"
#include "model/profile.h"

/* Writes `window`; nothing if all was on always. */
void yaml_window(struct emit *e, const struct profile *p, const struct run_windows *windows);

#endif
