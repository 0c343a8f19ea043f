/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/recorded.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/amounts.h"
#include "base/units.h"
#include "base/arena.h"
#include "format/fields.h"
#include "format/trending.h"

enum { SCHEMA_VERSION = 1 };

/* Memory beside RSS: its key is there only if there is some. */
#define PUT(record, item, key, member, from)                                                       \
	(item).member = (from).member;                                                             \
	field_put(record, &(item), key, (item).member);
#define PUT_NOW(member, key, h, m, t, since_, record, item, from)                                  \
	PUT(record, item, key, member, from)
#define PUT_HIGHEST(member, k, key, m, t, since_, record, item, from)                              \
	PUT(record, item, key, peak_##member, from)

/* The number of bytes: beside two decimals of a MiB that do not say it. */
#define PUT_EXACT(record, item, key, bytes)                                                        \
	field_put(record, &(item), key, !units_mb_is_whole(bytes));

struct recording_run recorded_run(const struct run_info *info)
{
	struct recording_run run = {
		.has = field_all(&record_run),
		.version = (char *)info->version,
		.schema_version = SCHEMA_VERSION,
		.hostname = (char *)info->hostname,
		.kernel = (char *)info->kernel,
		.started_at = info->started_at,
		.memory_limit = info->memory_limit,
		.memory_limit_of = (char *)info->memory_limit_of,
		.memory_cgroup = (char *)info->memory_cgroup,
		.memory_cgroup_is_own = info->memory_cgroup_is_own,
		.command = (char **)info->command,
		.pids = (uint32_t *)info->pids,
		.n_pids = info->n_pids,
		.backends =
			{
				.rss = (char *)info->backend_rss,
				.io_calls = (char *)info->backend_io_calls,
				.io_storage = (char *)info->backend_io_storage,
				.checkpoints = (char *)info->backend_checkpoints,
				.oom_kills = (char *)info->backend_oom_kills,
			},
	};

	while (info->command && info->command[run.n_command])
		run.n_command++;
	run.backends.has = field_all(&record_backends);
	field_put(&record_backends, &run.backends, "oom_kills", info->backend_oom_kills);
	field_put(&record_run, &run, "memory_limit_mb", info->memory_limit);
	field_put(&record_run, &run, "memory_limit_of", info->memory_limit);
	field_put(&record_run, &run, "memory_cgroup", info->memory_cgroup);
	field_put(&record_run, &run, "memory_cgroup_is_own", info->memory_cgroup_is_own);
	field_put(&record_run, &run, "command", info->command);
	field_put(&record_run, &run, "pids", !info->command && info->n_pids);
	return run;
}

/* Nothing is 0: a group whose processes have nothing is not looked at. */
static void put_charge(struct recording_step *row)
{
	const struct profile_charged *parts = &row->charged;
	const bool known = parts->anon || parts->shmem || parts->file || parts->kernel;

	field_put(&record_step, row, "cgroup_memory_mb", row->charge);
	field_put(&record_step, row, "cgroup_anon_mb", known);
	field_put(&record_step, row, "cgroup_shmem_mb", known);
	field_put(&record_step, row, "cgroup_file_mb", known);
	field_put(&record_step, row, "cgroup_kernel_mb", known);
}

struct recording_step recorded_step(const struct profile_checkpoint *step)
{
	struct recording_step row = {
		.has = field_all(&record_step),
		.pid = step->tgid,
		.tid = step->tid,
		.step = (char *)step->step,
		.unix_secs = step->unix_secs,
		.rel_ns = step->rel_ns,
		.rss = step->tree.rss,
		.peak = step->tree.step_peak,
		.gpu_peak = step->tree.gpu_step_peak,
		.usage = step->tree_usage,
		.charge = step->charge.now,
		.charged = step->charged,
		.throttled = step->throttled,
		.metrics = (struct profile_metric *)step->metrics,
		.n_metrics = step->n_metrics,
		.buffered = step->buffered,
	};

	PUT_EXACT(&record_step, row, "cpu_memory_bytes", row.rss)
	PUT_EXACT(&record_step, row, "disk_read_bytes", row.usage.disk_read)
	PUT_EXACT(&record_step, row, "disk_write_bytes", row.usage.disk_write)
	field_put(&record_step, &row, "gpu_device_used_mb", false); /* it is known later */
	MEMORY_BESIDE(PUT_NOW, &record_step, row, step->tree)
	field_put(&record_step, &row, "gpu_memory_mb", step->tree.has_gpu);
	field_put(&record_step, &row, "gpu_step_peak_memory_mb", step->tree.has_gpu);
	put_charge(&row);
	field_put(&record_step, &row, "cgroup_throttled_secs", row.throttled.is_known);
	field_put(&record_step, &row, "metrics", row.n_metrics);
	field_put(&record_step, &row, "buffered", row.buffered);
	field_leave_none(&record_step, &row);
	return row;
}

struct recording_totals recorded_totals(const struct profile_totals *totals,
					const struct run_gpus *gpus)
{
	struct recording_totals t = {
		.has = field_all(&record_totals),
		.duration_ns = totals->duration_ns,
		.peak_rss = totals->peak_rss,
		.main_peak_rss = totals->main_peak_rss,
		.charge_peak = totals->charge_peak,
		.max_charged = totals->max_charged,
		.driver_share = gpus ? gpus->driver_share : 0,
		.gpu_processes = totals->gpu_processes,
		.usage = totals->usage,
	};

	field_put(&record_totals, &t, "main_peak_memory_mb", totals->main_peak_known);
	PUT_EXACT(&record_totals, t, "peak_memory_bytes", t.peak_rss)
	field_put(&record_totals, &t, "cgroup_peak_memory_mb", t.charge_peak.bytes);
	field_put(&record_totals, &t, "cgroup_peak_at_least", t.charge_peak.at_least);
	field_put(&record_totals, &t, "cgroup_needs_mb", t.max_charged);
	field_put(&record_totals, &t, "gpu_driver_share_mb", t.driver_share);
	MEMORY_BESIDE(PUT_HIGHEST, &record_totals, t, *totals)
	field_leave_none(&record_totals, &t);
	return t;
}

/* The bits of the own_ fields that only grow. */
static uint64_t own_usage_bits(void)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < N_QUANTITIES; i++) {
		char key[64];
		const int len = snprintf(key, sizeof(key), "own_%s", quantities[i].key);
		const size_t field = field_find(&record_phase, key, (size_t)len);

		if (field < record_phase.n_fields)
			bits |= 1ull << field;
	}
	return bits;
}

struct recording_phase recorded_phase(const struct profile *p, const struct profile_phase *phase)
{
	struct recording_phase recorded = {
		.has = field_all(&record_phase),
		.kind = phase->kind,
		.name = (char *)phase->name,
		.to = (char *)phase->to,
		.depth = phase->depth,
		.pid = phase->tgid,
		.tid = phase->tid,
		.closed = phase->closed,
		.buffered = phase->buffered,
		.start_ns = profile_rel_ns(p, phase->start_ns),
		.duration_ns = phase->end_ns - phase->start_ns,
		.start_rss = phase->start_rss,
		.end_rss = phase->end_rss,
		.peak_rss = phase->peak_rss,
		.delta_rss = (int64_t)(phase->end_rss - phase->start_rss),
		.end_charge = phase->charge.now,
		.charge_peak = phase->charge_peak,
		.peak_gpu = phase->peak_gpu,
		.peak_pinned = phase->peak_pinned,
		.delta_gpu = (int64_t)(phase->end_gpu - phase->start_gpu),
		.usage = phase->usage,
		.parent = phase->parent,
		.own_peak = phase->own.peak_rss,
		.own_delta = (int64_t)(phase->own.end_rss - phase->own.start_rss),
		.own_usage = phase->own.usage,
	};

	field_put(&record_phase, &recorded, "to", phase->to);
	field_put(&record_phase, &recorded, "end_cgroup_memory_mb", recorded.end_charge);
	field_put(&record_phase, &recorded, "cgroup_peak_memory_mb", recorded.charge_peak.bytes);
	field_put(&record_phase, &recorded, "cgroup_peak_at_least", recorded.charge_peak.at_least);
	field_put(&record_phase, &recorded, "gpu_peak_memory_mb", recorded.peak_gpu);
	field_put(&record_phase, &recorded, "gpu_delta_memory_mb", recorded.peak_gpu);
	field_put(&record_phase, &recorded, "pinned_host_peak_memory_mb", recorded.peak_pinned);
	field_put(&record_phase, &recorded, "closed", !phase->closed);
	field_put(&record_phase, &recorded, "buffered", phase->buffered);
	field_put(&record_phase, &recorded, "parent", phase->parent != PROFILE_NO_PARENT);
	field_put(&record_phase, &recorded, "own_peak_memory_mb", phase->own.has_memory);
	field_put(&record_phase, &recorded, "own_delta_memory_mb", phase->own.has_delta);
	field_leave_none(&record_phase, &recorded);
	if (!phase->own.has_usage)
		recorded.has &= ~own_usage_bits();
	return recorded;
}

struct recording_phase recorded_outside(const struct profile *p, const struct profile_outside *part)
{
	struct recording_phase recorded = {
		.has = field_all(&record_outside),
		.name = (char *)part->name,
		.stretches = part->stretches,
		.start_ns = profile_rel_ns(p, part->start_ns),
		.duration_ns = part->duration_ns,
		.peak_rss = part->peak_rss,
		.delta_rss = part->delta_rss,
		.usage = part->usage,
	};

	field_leave_none(&record_outside, &recorded);
	return recorded;
}

struct recording_process recorded_process(const struct profile_process *process, uint64_t start_ns)
{
	const struct profile_memory *memory = &process->memory;
	const bool killed = WIFSIGNALED((int)process->exit_code);
	struct recording_process recorded = {
		.has = field_all(&record_process),
		.pid = process->tgid,
		.ppid = process->ppid,
		.comm = (char *)process->comm,
		.cmdline = (char *)process->cmdline,
		.cmdline_cut = process->cmdline_cut,
		.start_ns = since(start_ns, process->first_ns),
		.end_ns = since(start_ns, process->end_ns),
		.ended = process->end_ns,
		.exit_code = WEXITSTATUS(process->exit_code),
		.exit_signal = killed ? WTERMSIG(process->exit_code) : 0,
		.flags = process->flags,
		.rank = process->rank.rank,
		.local_rank = process->rank.local,
		.world_size = process->rank.world,
		.peak_rss = memory->peak,
		.file = memory->file,
		.anon = memory->anon,
		.shmem = memory->shmem,
		.swap = memory->swap,
		.usage = process->usage,
	};

	field_put(&record_process, &recorded, "cmdline_cut", recorded.cmdline_cut);
	field_put(&record_process, &recorded, "end_secs", recorded.ended);
	field_put(&record_process, &recorded, "exit_code", recorded.ended && !killed);
	field_put(&record_process, &recorded, "exit_signal", recorded.ended && killed);
	field_put(&record_process, &recorded, "rank", process->rank.is_known);
	field_put(&record_process, &recorded, "local_rank", process->rank.has_local);
	field_put(&record_process, &recorded, "world_size", process->rank.is_known);
	MEMORY_BESIDE(PUT_NOW, &record_process, recorded, *memory)
	MEMORY_BESIDE(PUT_HIGHEST, &record_process, recorded, *memory)
	field_leave_none(&record_process, &recorded);
	return recorded;
}

struct recording_point recorded_point(const struct profile *p, const struct profile_point *point)
{
	struct recording_point recorded = {
		.has = field_all(&record_point),
		.time_ns = profile_rel_ns(p, point->time_ns),
		.file = point->file,
		.anon = point->anon,
		.shmem = point->shmem,
		.swap = point->swap,
		.inherited = point->inherited,
		.repeated_shmem = point->repeated_shmem,
		.peak = point->peak,
	};

	field_put(&record_point, &recorded, "step_peak_mb", point->peak);
	return recorded;
}

struct recording_track_point recorded_track_point(const struct profile *p,
						  const struct profile_process_point *point)
{
	return (struct recording_track_point){
		.has = field_all(&record_track_point),
		.time_ns = profile_rel_ns(p, point->time_ns),
		.file = point->share.file,
		.anon = point->share.anon,
		.shmem = point->share.shmem,
		.swap = point->share.swap,
		.process = point->share.process,
	};
}

struct recording_usage_point recorded_usage_point(const struct profile *p,
						  const struct profile_usage_point *point)
{
	return (struct recording_usage_point){
		.has = field_all(&record_usage_point),
		.time_ns = profile_rel_ns(p, point->time_ns),
		.usage = point->usage,
	};
}

struct recording_peak recorded_peak(const struct profile *p,
				    struct recording_share shares[PROFILE_MAX_SHARES])
{
	const struct profile_at_peak at = profile_at_peak(p);
	size_t n_processes;
	const struct profile_process *const *processes = profile_processes(p, &n_processes);
	struct recording_peak peak = {
		.has = at.tree.time_ns ? field_all(&record_peak) : 0,
		.time_ns = profile_rel_ns(p, profile_totals(p)->peak_time_ns),
		.file = at.tree.file,
		.anon = at.tree.anon,
		.shmem = at.tree.shmem,
		.swap = at.tree.swap,
		.inherited = at.tree.inherited,
		.repeated_shmem = at.tree.repeated_shmem,
		.repeated_file = at.repeated_file,
		.least = at.least,
		.shares = shares,
	};

	for (; peak.n_shares < at.n_shares && peak.n_shares < PROFILE_MAX_SHARES; peak.n_shares++) {
		const struct profile_share *share = &at.shares[peak.n_shares];

		shares[peak.n_shares] = (struct recording_share){
			.has = UINT64_MAX,
			.process = share->process,
			.pid = processes[share->process]->tgid,
			.file = share->file,
			.anon = share->anon,
			.shmem = share->shmem,
			.swap = share->swap,
		};
	}
	return peak;
}

struct recording_shared recorded_shared(const struct profile_totals *totals)
{
	static char note[] =
		"The most at any time, each an upper bound: memory of children since fork that "
		"they may not have written to, and shmem and file pages while there was more than "
		"one process, which may map the same.";

	return (struct recording_shared){
		.has = field_all(&record_shared),
		.inherited = totals->max_inherited,
		.shmem = totals->max_shared_shmem,
		.files = totals->max_shared_file,
		.note = note,
	};
}

static int record_outside_phases(struct recording *r, const struct profile *p)
{
	size_t n;
	const struct profile_outside *parts = profile_outside(p, &n);

	for (; r->n_outside < n; r->n_outside++) {
		struct recording_phase *list =
			arena_grow(r->arena, r->outside, r->n_outside, sizeof(*list));

		if (!list)
			return -ENOMEM;
		r->outside = list;
		list[r->n_outside] = recorded_outside(p, &parts[r->n_outside]);
	}
	return 0;
}

static int record_phases(struct recording *r, const struct profile *p)
{
	size_t n;
	const struct profile_phase *phases = profile_phases(p, &n);

	for (; r->n_phases < n; r->n_phases++) {
		struct recording_phase *list =
			arena_grow(r->arena, r->phases, r->n_phases, sizeof(*list));

		if (!list)
			return -ENOMEM;
		r->phases = list;
		list[r->n_phases] = recorded_phase(p, &phases[r->n_phases]);
	}
	return record_outside_phases(r, p) ? -ENOMEM : recording_complete_phases(r);
}

static int record_processes(struct recording *r, const struct profile *p)
{
	size_t n;
	const struct profile_process *const *processes = profile_processes(p, &n);

	for (; r->n_processes < n; r->n_processes++) {
		struct recording_process *list =
			arena_grow(r->arena, r->processes, r->n_processes, sizeof(*list));

		if (!list)
			return -ENOMEM;
		r->processes = list;
		list[r->n_processes] =
			recorded_process(processes[r->n_processes], profile_start_ns(p));
	}
	return 0;
}

static int record_deaths(struct recording *r, const struct profile *p)
{
	size_t n;
	const struct profile_death *deaths = profile_deaths(p, &n);

	for (; r->n_deaths < n; r->n_deaths++) {
		struct recording_death *list =
			arena_grow(r->arena, r->deaths, r->n_deaths, sizeof(*list));

		if (!list)
			return -ENOMEM;
		r->deaths = list;
		if (recorded_death(p, &deaths[r->n_deaths], r->arena, &list[r->n_deaths]))
			return -ENOMEM;
	}
	return 0;
}

/* The only GPU that the run can see, if that is so. */
static uint64_t room_of_gpu(const struct run_gpus *gpus)
{
	return gpus && gpus->n == 1 ? since(gpus->driver_share, gpus->list[0].total) : 0;
}

int recorded_trends(const struct profile *p, const struct run_info *info, struct arena *arena,
		    struct recording_trend **list, size_t *n)
{
	size_t n_found;
	const struct trend *found = profile_trends(p, &n_found);

	const struct trending_limits limits = {
		.memory = info->memory_limit,
		.gpu = room_of_gpu(info->gpus),
	};

	return trending_record(found, n_found, &limits, arena, list, n);
}

struct recording_closest recorded_closest(const struct profile *p, const struct run_info *info)
{
	const struct run_closest *closest = &info->closest;
	struct recording_closest recorded = {
		.has = closest->limit ? field_all(&record_closest) : 0,
		.phase = (char *)profile_phase_at(p, closest->time_ns),
		.time_ns = profile_rel_ns(p, closest->time_ns),
		.left = closest->left,
		.limit = closest->limit,
		.of = (char *)closest->of,
	};

	field_put(&record_closest, &recorded, "phase", closest->limit && recorded.phase);
	return recorded;
}

struct recording_cpu_limit recorded_cpu_limit(const struct run_info *info)
{
	const struct run_cpu_limit *limit = &info->cpu_limit;
	struct recording_cpu_limit recorded = {
		.has = limit->cpus || limit->quota_ns ? field_all(&record_cpu_limit) : 0,
		.cpus = limit->cpus,
		.of = (char *)limit->of,
		.quota_ns = limit->quota_ns,
		.period_ns = limit->period_ns,
		.throttled_ns = limit->throttled_ns,
		.throttled_periods = limit->throttled_periods,
	};

	field_put(&record_cpu_limit, &recorded, "cpus", limit->cpus);
	for (size_t i = 1; i < record_cpu_limit.n_fields && !limit->quota_ns; i++)
		field_put(&record_cpu_limit, &recorded, record_cpu_limit.fields[i].key, false);
	return recorded;
}

int recorded_profile(struct recording *r, const struct profile *p, const struct run_info *info)
{
	if (!r->arena)
		return -ENOMEM;
	r->totals = recorded_totals(profile_totals(p), info->gpus);
	r->peak.has = field_all(&record_peak);
	r->peak.time_ns = profile_rel_ns(p, profile_totals(p)->peak_time_ns);
	if (record_phases(r, p) || record_processes(r, p) || record_deaths(r, p) ||
	    recorded_gpus(p, info->gpus, r->arena, &r->gpus, &r->n_gpus) ||
	    recorded_gpu_refusals(p, r->arena, &r->gpu_refusals, &r->n_gpu_refusals))
		return -ENOMEM;
	r->closest = recorded_closest(p, info);
	r->cpu_limit = recorded_cpu_limit(info);
	r->run.memory_limit = info->memory_limit;
	r->run.memory_limit_of = (char *)info->memory_limit_of;
	r->run.memory_cgroup_is_own = info->memory_cgroup_is_own;
	r->run.backends.oom_kills = (char *)info->backend_oom_kills;
	return recorded_trends(p, info, r->arena, &r->trends, &r->n_trends);
}
