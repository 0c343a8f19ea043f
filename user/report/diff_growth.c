/* SPDX-License-Identifier: GPL-2.0-only */
/* diff_growth.c - the limit for what each repeat of a phase leaves behind, of the new side. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "format/trending.h"
#include "report/diff.h"

int diff_note_growth(struct diff *d, const struct recording *r)
{
	for (size_t i = 0; i < r->n_trends; i++) {
		struct diff_growth *list =
			array_reserve(d->growths, d->n_growths, &d->cap_growths, sizeof(*list));
		char *phase = strdup(r->trends[i].phase);

		if (list)
			d->growths = list;
		if (!list || !phase) {
			free(phase);
			return -ENOMEM;
		}
		list[d->n_growths++] = (struct diff_growth){
			phase, trending_knows_needs(&r->trends[i]) ? r->trends[i].needs
								   : r->trends[i].rss};
	}
	return 0;
}

int diff_judge_growth(struct diff *d)
{
	int err = 0;

	for (size_t i = 0; d->max_growth && i < d->n_growths && !err; i++) {
		const struct diff_breach breach = {
			.limit = d->max_growth_text,
			.name = d->growths[i].phase,
			.is_growth = true,
			.metric = COMPARE_PEAK, /* its unit */
			.new = d->growths[i].each,
			.most = d->max_growth,
		};

		if (breach.new > breach.most)
			err = diff_add_breach(d, &breach);
	}
	return err;
}

void diff_free_growth(struct diff *d)
{
	for (size_t i = 0; i < d->n_growths; i++)
		free(d->growths[i].phase);
	free(d->growths);
}
