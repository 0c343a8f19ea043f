/* SPDX-License-Identifier: GPL-2.0-only */
/* A profile that is finished, and that nobody looks at for long. */
#include "model/profile_among.h"
#include "model/profile_state.h"

#include <stdlib.h>

void profile_put_away(struct profile *p)
{
	phases_put_away(&p->phases);
	free(p->metrics);
	free(p->fed);
	p->metrics = NULL;
	p->fed = NULL;
}

int profile_take_out(struct profile *p)
{
	return phases_take_out(&p->phases);
}
