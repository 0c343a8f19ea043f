/* SPDX-License-Identifier: GPL-2.0-only */
/* layout.h - the lane and the colour of each phase in a picture of the run. */
#ifndef QPROF_LAYOUT_H
#define QPROF_LAYOUT_H

#include "format/recording.h"

enum { LAYOUT_LANES = 10 };

struct layout_place {
	/* 0 is the outermost lane; gaps have the last. LAYOUT_LANES: every lane is taken, the phase
	 * is not shown. */
	uint32_t lane;
	/*
	 * Groups have numbers from 0, in the order of their first phases. Phases whose names differ
	 * only in digits ("layer 0", "layer 1") are in one group.
	 */
	uint32_t group;
};

struct layout {
	struct layout_place *places; /* of each of r->phases */
	uint32_t lanes;		     /* lanes in use */
};

/* Returns 0, and layout_free must follow; or -ENOMEM. */
int layout_phases(struct layout *layout, const struct recording *r);
void layout_free(struct layout *layout);

#endif
