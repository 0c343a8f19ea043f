// SPDX-License-Identifier: GPL-2.0-only
#include "model/rank.h"

#include <stdlib.h>
#include <string.h>

/* Who sets which names: the innermost launcher first, since a script under srun may run torchrun.
 */
static const struct {
	const char *rank, *world, *local;
} launchers[] = {
	/* PyTorch: torchrun, accelerate, DeepSpeed; also HPC schedulers in its name. */
	{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
	{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}, /* MPICH, Intel MPI */
	{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

/* Returns the value of a variable, or NULL. */
static const char *value_of(const char *environment, size_t len, const char *name)
{
	const size_t name_len = strlen(name);

	while (len) {
		const size_t n = strnlen(environment, len);

		if (n == len) /* it was cut */
			return NULL;
		if (n > name_len && environment[name_len] == '=' &&
		    !memcmp(environment, name, name_len))
			return environment + name_len + 1;
		environment += n + 1;
		len -= n + 1;
	}
	return NULL;
}

static bool number_of(const char *environment, size_t len, const char *name, uint32_t *number)
{
	const char *text = value_of(environment, len, name);
	unsigned long value;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	value = strtoul(text, &end, 10);
	if (*end || value >= RANK_MAX)
		return false;
	*number = (uint32_t)value;
	return true;
}

struct rank rank_of(const char *environment, size_t len)
{
	for (size_t i = 0; i < sizeof(launchers) / sizeof(*launchers); i++) {
		struct rank found = {0};

		if (!number_of(environment, len, launchers[i].rank, &found.rank) ||
		    !number_of(environment, len, launchers[i].world, &found.world) ||
		    found.world < 2 || found.rank >= found.world)
			continue;
		found.is_known = true;
		found.has_local = number_of(environment, len, launchers[i].local, &found.local);
		return found;
	}
	return (struct rank){0};
}
