/* SPDX-License-Identifier: GPL-2.0-only */
/* waits_source.h - whether what threads sleep for counts now: bpf/waits.bpf.c. */
#ifndef QPROF_WAITS_SOURCE_H
#define QPROF_WAITS_SOURCE_H

#include <stdbool.h>

struct engine;

/* Of an engine with waits and windows: has sleeps count from now on, those that go on included; or
 * none. Once it returns, none is missed. Returns 0 or -errno. */
int waits_source_switch(struct engine *e, bool on);

#endif
