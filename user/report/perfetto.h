/* SPDX-License-Identifier: GPL-2.0-only */
/* perfetto.h - the parts of a trace in Perfetto's format. */
#ifndef QPROF_PERFETTO_H
#define QPROF_PERFETTO_H

#include "perfetto.pb.h"

#include <stdio.h>

#include "report/trace.h"

/* Sequences: what packets refer to by a number is of their own. Each is in order of time. */
enum { PERFETTO_EVENTS = 1, PERFETTO_STACKS = 2 };

enum { PERFETTO_SEQUENCE_STARTS = 1, PERFETTO_SEQUENCE_GOES_ON = 2 }; /* sequence_flags */

/* Writes a packet, of PERFETTO_EVENTS if it does not say. */
void perfetto_put(FILE *out, pp_TracePacket *packet);
uint64_t perfetto_uuid_of_track(uint32_t track);

/* Writes the stacks of the run and of its phases, if the profile has any. Returns 0, or -1 and
 * *err. */
int perfetto_put_stacks(FILE *out, const struct trace *t, const struct render_options *options,
			struct error *err);

#endif
