/* SPDX-License-Identifier: GPL-2.0-only */
/* profile_fed.h - a model that a test feeds with records of its own. Include <cmocka.h> first. */
#ifndef QPROF_PROFILE_FED_H
#define QPROF_PROFILE_FED_H

#include "records.h"

static inline struct profile *new_profile(void)
{
	const struct profile_config config = {.page_size = RECORDS_PAGE};
	struct profile *p = profile_new(&config);

	assert_non_null(p);
	return p;
}

static inline void feed(struct profile *p, const union record *r)
{
	const struct profile_checkpoint *step;

	assert_int_equal(profile_feed(p, &r->h, &step), 0);
}

#endif
