/* SPDX-License-Identifier: GPL-2.0-only */
/* Ranks: what launchers say in the environment, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "model/rank.h"

/* On the heap, so that a sanitizer sees a byte too many. */
static struct rank of(const char *text, size_t len)
{
	char *copy = malloc(len ? len : 1);
	struct rank rank;

	memcpy(copy, text, len);
	rank = rank_of(copy, len);
	free(copy);
	return rank;
}

#define OF(text) of(text, sizeof(text))

static void test_launchers(void **state)
{
	struct rank r = OF("PATH=/bin\0RANK=3\0LOCAL_RANK=1\0WORLD_SIZE=4\0HOME=/");

	(void)state;
	assert_true(r.is_known && r.rank == 3 && r.world == 4 && r.has_local && r.local == 1);
	r = OF("OMPI_COMM_WORLD_SIZE=2\0OMPI_COMM_WORLD_RANK=0");
	assert_true(r.is_known && r.rank == 0 && r.world == 2 && !r.has_local);
	r = OF("PMI_RANK=1\0PMI_SIZE=2");
	assert_true(r.is_known && r.rank == 1);
	r = OF("SLURM_PROCID=7\0SLURM_NTASKS=8\0SLURM_LOCALID=3");
	assert_true(r.is_known && r.rank == 7 && r.local == 3);
	/* torchrun under srun: the inner one counts. */
	r = OF("SLURM_PROCID=0\0SLURM_NTASKS=2\0RANK=5\0WORLD_SIZE=8");
	assert_true(r.is_known && r.rank == 5 && r.world == 8);
}

static void test_none(void **state)
{
	(void)state;
	assert_false(OF("").is_known);
	assert_false(of("", 0).is_known);
	assert_false(OF("RANK=0\0WORLD_SIZE=1").is_known);
	assert_false(OF("RANK=4\0WORLD_SIZE=4").is_known);
	assert_false(OF("RANK=-1\0WORLD_SIZE=4").is_known);
	assert_false(OF("RANK= 1\0WORLD_SIZE=4").is_known);
	assert_false(OF("RANK=1x\0WORLD_SIZE=4").is_known);
	assert_false(OF("RANK=\0WORLD_SIZE=4").is_known);
	assert_false(OF("RANK=1\0WORLD_SIZE=99999999999999999999").is_known);
	assert_false(OF("XRANK=1\0WORLD_SIZES=4").is_known);
	assert_false(OF("RANK=1").is_known);
	/* Cut in its midst: 4 might have been 48. */
	assert_false(of("RANK=1\0WORLD_SIZE=4", sizeof("RANK=1\0WORLD_SIZE=4") - 1).is_known);
	assert_false(of("RANK", 4).is_known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launchers),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
