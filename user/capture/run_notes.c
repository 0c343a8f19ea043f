/* SPDX-License-Identifier: GPL-2.0-only */
/* What listeners have for the file of a run. */
#include "capture/run.h"

void run_note_closest(struct capture *c, const struct run_closest *closest)
{
	c->info.closest = *closest;
}

void run_note_gpus(struct capture *c, const struct run_gpus *gpus)
{
	c->info.gpus = gpus;
}

void run_note_stacks(struct capture *c, const struct stacks *stacks)
{
	c->info.stacks = stacks;
}

void run_note_windows(struct capture *c, const struct run_windows *windows)
{
	c->info.windows = windows;
}
