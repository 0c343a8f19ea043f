/* SPDX-License-Identifier: GPL-2.0-only */
/* yaml_stacks.h - which code made memory grow, and used CPU time, as YAML. */
#ifndef QPROF_YAML_STACKS_H
#define QPROF_YAML_STACKS_H

#include "format/emit.h"
#include "model/stacks.h"

/* Writes `stacks`; nothing for NULL. */
void yaml_stacks(struct emit *e, const struct profile *p, const struct stacks *stacks);

#endif
