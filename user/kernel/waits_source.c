/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/waits_source.h"

#include <time.h>

#include "base/clock.h"
#include "kernel/engine_state.h"
#include "kernel/iterator.h"

static int walk(struct engine *e, bool at_end)
{
	e->bpf->bss->waits_end = at_end;
	return iterator_run(e->bpf->progs.switch_sleepers, 0, 0, NULL, NULL);
}

static void count_from(struct engine *e, uint64_t ns)
{
	__atomic_store_n(&e->bpf->bss->waits_from_ns, ns, __ATOMIC_SEQ_CST);
}

int waits_source_switch(struct engine *e, bool on)
{
	int err;

	if (on) {
		count_from(e, clock_ns(CLOCK_MONOTONIC));
		return walk(e, false);
	}
	err = walk(e, true);
	count_from(e, WIRE_NO_WAITS);
	return err;
}
