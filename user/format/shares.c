/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/shares.h"

const struct share_words share_words[N_SHARES] = {
	[SHARE_RAN] = {"RAN", "computing", "cpu",
		       "ran on a CPU, but for what freed memory or waited for a GPU"},
	[SHARE_FOR_CPU] = {"FOR CPU", "waiting for a CPU", "for-cpu",
			   "ready to run, without a CPU"},
	[SHARE_THROTTLED] = {"QUOTA", "stopped by a quota", "throttled",
			     "ready to run, but a CPU quota stopped the cgroup"},
	[SHARE_STORAGE] = {"STORAGE", "storage", "storage", "slept until I/O was done"},
	[SHARE_RECLAIM] = {"RECLAIM", "freeing memory", "reclaim",
			   "asked for memory, and had to free some first"},
	[SHARE_GPU] = {"FOR GPU", "waiting for a GPU", "for-gpu",
		       "in a call that waits for a GPU: it slept, or ran to look again"},
	[SHARE_LOCKS] = {"LOCKS", "locks", "locks", "slept in futex(2) for another thread"},
	[SHARE_SLEPT] = {"SLEPT", "other sleep", "slept", "slept for a child, a pipe, a timer"},
};

bool shares_known(const struct recording *r, const struct recording_phase *phase)
{
	enum { ROUNDED_NS = 2000 }; /* by microseconds, in the file */

	return !recording_in_windows(r, "waits") ||
	       (phase->window_ns && phase->window_ns + ROUNDED_NS >= phase->duration_ns);
}

uint64_t shares_of(uint64_t share[N_SHARES], const struct profile_usage *usage)
{
	uint64_t all = 0;

	share[SHARE_RAN] = since(usage->reclaim_cpu_ns + usage->gpu_wait_cpu_ns, usage->cpu_ns);
	share[SHARE_THROTTLED] = smaller_of(usage->throttled_ns, usage->cpu_wait_ns);
	share[SHARE_FOR_CPU] = usage->cpu_wait_ns - share[SHARE_THROTTLED];
	share[SHARE_STORAGE] = usage->storage_wait_ns;
	share[SHARE_RECLAIM] = usage->reclaim_ns;
	share[SHARE_GPU] = usage->gpu_wait_ns;
	share[SHARE_LOCKS] = usage->lock_wait_ns;
	share[SHARE_SLEPT] = usage->sleep_ns;
	for (int i = 0; i < N_SHARES; i++)
		all += share[i];
	return all;
}
