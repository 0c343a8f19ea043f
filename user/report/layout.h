/* SPDX-License-Identifier: GPL-2.0-only */
/* layout.h - where phases go in a picture of the run, and in which colour. */
#ifndef QPROF_LAYOUT_H
#define QPROF_LAYOUT_H

#include "format/recording.h"

enum { LAYOUT_LANES = 10 };

struct layout_place {
	/* From 0, the outermost. LAYOUT_LANES: as many are open already, there is no room. */
	uint32_t lane;
	/*
	 * From 0, in the order in which they are first seen. Phases whose names differ in digits
	 * only ("layer 0", "layer 1") are of one group.
	 */
	uint32_t group;
};

struct layout {
	struct layout_place *places; /* one for each of r->phases */
	uint32_t lanes;		     /* that are used */
};

/* 0, or -ENOMEM and nothing to free. To be freed with layout_free. */
int layout_phases(struct layout *layout, const struct recording *r);
void layout_free(struct layout *layout);

#endif
