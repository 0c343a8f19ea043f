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
	/* Of these a profile of a run tells alone, and what is told of checkpoints has come. */
	deaths_free(&p->deaths);
	p->deaths = (struct deaths){.n_refused = 0};
	free(p->gpus.told);
	p->gpus.told = NULL;
	p->gpus.n_told = 0;
}

int profile_take_out(struct profile *p)
{
	return phases_take_out(&p->phases);
}
