/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/machine_sums.h"
#include "base/amounts.h"

#include <stdlib.h>

/* Returns the sum that the process goes into, or NULL when out of memory. The last sum is for all
 * processes that have none. */
static struct sum *sum_of(struct machine *m, const struct profile_process *pub)
{
	struct {
		uint32_t uid, padding;
		uint64_t cgroup;
	} owner = {.uid = pub->uid, .cgroup = pub->cgroup};
	struct sum *sum;

	if (m->n_sums == MACHINE_SUMS - 1) {
		owner.uid = UINT32_MAX;
		owner.cgroup = 0;
	}
	HASH_FIND(hh, m->by_owner, &owner, sizeof(owner), sum);
	if (sum)
		return sum;
	sum = calloc(1, sizeof(*sum));
	if (!sum)
		return NULL;
	_Static_assert(offsetof(struct machine_sum, cgroup) == 8, "the key is uid and cgroup");
	sum->pub.uid = owner.uid;
	sum->pub.cgroup = owner.cgroup;
	HASH_ADD_KEYPTR(hh, m->by_owner, &sum->pub, sizeof(owner), sum);
	if (!sum->hh.tbl) {
		free(sum);
		return NULL;
	}
	m->sums[m->n_sums++] = sum;
	return sum;
}

bool sums_add(struct machine *m, const struct profile_process *pub)
{
	struct sum *sum = sum_of(m, pub);

	if (!sum)
		return false;
	m->losses.forgotten_processes++;
	sum->pub.processes++;
	raise_to(&sum->pub.peak_rss, pub->memory.peak);
	usage_add(&sum->pub.usage, &pub->usage);
	return true;
}

void sums_free(struct machine *m)
{
	HASH_CLEAR(hh, m->by_owner);
	for (size_t i = 0; i < m->n_sums; i++)
		free(m->sums[i]);
}

size_t machine_n_sums(const struct machine *m)
{
	return m->n_sums;
}

const struct machine_sum *machine_sum(const struct machine *m, size_t i)
{
	return &m->sums[i]->pub;
}
