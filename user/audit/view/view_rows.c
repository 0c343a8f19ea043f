/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/view/view_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { FETCH_AHEAD = 8, SECOND_NS = 1000000000 };

/* A process is busy that uses more than that in a second: more than a terminal takes to show a
 * frame, or a frame would be the reason for the next. */
static const struct machine_used idle = {
	.cpu_ns = SECOND_NS / 20,
	.calls = 1 << 20,
	.storage = 1 << 20,
};

/* Something to sort. */
struct ranked {
	uint64_t key;
	uint32_t tie; /* among equal keys the lowest comes first, so that lines stay in place */
	bool last;    /* comes after all that are not last, whatever its key */
	const void *what;
};

/* A heap in `ranked`: siblings that are not listed yet. */
struct level {
	size_t start, n;
};

/* A job that runs, by its index. */
struct tally {
	const struct machine_job *job;
	struct profile_usage usage;
	struct machine_used per_second;
	uint64_t hugetlb, gpu;
	int64_t growth;
};

struct view_rows {
	const struct machine *m;
	const struct view_wants *wants;
	struct view_totals totals;
	struct tally tallies[WIRE_MAX_JOBS];
	struct ranked jobs[MACHINE_JOBS];
	struct ranked *ranked; /* processes, or with a tree its roots */
	size_t n_ranked, cap;
	uint64_t
		*best; /* in a tree: the highest key at or below each process, by machine_index() */
	struct level *levels;
	size_t n_levels, levels_cap;
};

/* ---- Only as much order as is asked for: a heap ------------------------------------------------
 */

static bool is_before(const struct ranked *a, const struct ranked *b)
{
	if (a->last != b->last)
		return b->last;
	return a->key != b->key ? a->key > b->key : a->tie < b->tie;
}

static void sift_down(struct ranked *heap, size_t n, size_t at)
{
	const struct ranked moved = heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= n)
			break;
		if (child + 1 < n && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (!is_before(&heap[child], &moved))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = moved;
}

static void make_heap(struct ranked *heap, size_t n)
{
	for (size_t i = n / 2; i > 0; i--)
		sift_down(heap, n, i - 1);
}

/* Takes the first out of *n, at least 1. */
static struct ranked pop(struct ranked *heap, size_t *n)
{
	const struct ranked first = heap[0];

	heap[0] = heap[--*n];
	if (*n)
		sift_down(heap, *n, 0);
	return first;
}

/* ---- Figures ----------------------------------------------------------------------------------
 */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct machine_used per_second_of(const struct view_rows *v,
					 const struct profile_process *process)
{
	const double secs = (double)machine_looked_ns(v->m) / SECOND_NS;
	const struct machine_used used = machine_used(process);

	if (!v->totals.rated)
		return (struct machine_used){0};
	return (struct machine_used){
		.cpu_ns = (uint64_t)((double)used.cpu_ns / secs),
		.calls = (uint64_t)((double)used.calls / secs),
		.storage = (uint64_t)((double)used.storage / secs),
	};
}

static void add_used(struct machine_used *sum, const struct machine_used *more)
{
	sum->cpu_ns += more->cpu_ns;
	sum->calls += more->calls;
	sum->storage += more->storage;
}

static struct view_figures figures_of(const struct view_rows *v,
				      const struct profile_process *process)
{
	return (struct view_figures){
		.rss = process->memory.rss,
		.peak = process->memory.peak,
		.growth = machine_growth(process),
		.usage = process->usage,
		.per_second = per_second_of(v, process),
		.hugetlb = process->memory.hugetlb,
		.gpu = process->memory.gpu,
	};
}

static uint64_t key_of(enum view_sort sort, const struct view_figures *f)
{
	switch (sort) {
	case VIEW_BY_GROWTH: /* negative growth comes last */
		return (uint64_t)f->growth ^ (1ull << 63);
	case VIEW_BY_PEAK:
		return f->peak;
	case VIEW_BY_CALLS:
		return f->usage.io_read + f->usage.io_write;
	case VIEW_BY_STORAGE:
		return f->usage.disk_read + f->usage.disk_write;
	case VIEW_BY_CPU:
		return f->usage.cpu_ns;
	case VIEW_BY_CALLS_NOW:
		return f->per_second.calls;
	case VIEW_BY_STORAGE_NOW:
		return f->per_second.storage;
	case VIEW_BY_CPU_NOW:
		return f->per_second.cpu_ns;
	case VIEW_BY_RSS:
	case VIEW_SORTS:
		break;
	}
	return f->rss;
}

static uint64_t process_key(const struct view_rows *v, const struct profile_process *process)
{
	const struct view_figures figures = figures_of(v, process);

	return key_of(v->wants->sort, &figures);
}

/* ---- The filter -------------------------------------------------------------------------------
 */

static bool has(const struct view_wants *wants, const char *text)
{
	return text && strcasestr(text, wants->filter);
}

static bool is_filtered(const struct view_wants *wants)
{
	return wants->filter && wants->filter[0];
}

static bool process_matches(const struct view_wants *wants, const struct profile_process *process)
{
	return has(wants, process->cmdline ? process->cmdline : process->comm) ||
	       has(wants, wants->user(wants->context, process->uid)) ||
	       has(wants, wants->container(wants->context, process->cgroup));
}

static bool job_matches(const struct view_wants *wants, const struct machine_job *job)
{
	return has(wants, job->rule) || (job->root && process_matches(wants, job->root));
}

static bool is_wanted(const struct view_wants *wants, const struct profile_process *process)
{
	const struct machine_job *job = machine_job_of(process);

	return !is_filtered(wants) || process_matches(wants, process) ||
	       (job && job_matches(wants, job));
}

/* ---- Jobs -------------------------------------------------------------------------------------
 */

/* Returns the sums of a job; or NULL if another job has its index by now. */
static struct tally *tally_of(struct view_rows *v, const struct machine_job *job)
{
	struct tally *tally = &v->tallies[job->index % WIRE_MAX_JOBS];

	return tally->job == job ? tally : NULL;
}

static void begin_tallies(struct view_rows *v)
{
	size_t n;
	struct machine_job *const *jobs = machine_jobs(v->m, &n);

	for (size_t i = 0; i < n; i++)
		if (jobs[i]->alive || !jobs[i]->end_ns)
			v->tallies[jobs[i]->index % WIRE_MAX_JOBS] = (struct tally){.job = jobs[i]};
}

static struct view_figures job_figures(struct view_rows *v, const struct machine_job *job)
{
	const struct tally *tally = tally_of(v, job);
	struct view_figures f = {.peak = profile_peak_so_far(job->profile), .usage = job->usage};

	if (job->end_ns)
		return f;
	f.rss = profile_rss_now(job->profile);
	f.peak = larger(f.peak, f.rss);
	if (!tally)
		return f;
	f.growth = tally->growth;
	f.per_second = tally->per_second;
	f.hugetlb = tally->hugetlb;
	f.gpu = tally->gpu;
	/* The job knows its usage at its checkpoints; some of its processes may not be kept. */
	usage_raise(&f.usage, &tally->usage);
	return f;
}

static void rank_jobs(struct view_rows *v)
{
	size_t n;
	struct machine_job *const *jobs = machine_jobs(v->m, &n);

	for (size_t i = 0; i < n; i++) {
		const struct machine_job *job = jobs[i];
		const struct view_figures figures = job_figures(v, job);
		const bool ended = job->end_ns;

		v->totals.running_jobs += !ended;
		v->totals.ended_jobs += ended;
		if (is_filtered(v->wants) && !job_matches(v->wants, job))
			continue;
		v->jobs[v->totals.jobs++] = (struct ranked){
			.key = ended ? job->end_ns : key_of(v->wants->sort, &figures),
			.tie = (uint32_t)job->id,
			.last = ended,
			.what = job,
		};
	}
	make_heap(v->jobs, v->totals.jobs);
}

/* ---- Processes --------------------------------------------------------------------------------
 */

static void rank(struct view_rows *v, const struct profile_process *process, uint64_t key)
{
	v->ranked[v->n_ranked++] =
		(struct ranked){.key = key, .tie = process->tgid, .what = process};
}

static bool is_busy(const struct machine_used *per_second)
{
	return per_second->cpu_ns > idle.cpu_ns || per_second->calls > idle.calls ||
	       per_second->storage > idle.storage;
}

static void count_process(struct view_rows *v, const struct profile_process *process)
{
	const int64_t growth = machine_growth(process);
	const struct machine_job *job = machine_job_of(process);
	struct tally *tally = job ? tally_of(v, job) : NULL;
	const struct machine_used per_second = per_second_of(v, process);

	usage_add(&v->totals.usage, &process->usage);
	add_used(&v->totals.per_second, &per_second);
	if (tally) {
		const struct profile_usage used = machine_usage_in_job(process);

		usage_add(&tally->usage, &used);
		add_used(&tally->per_second, &per_second);
	}
	if (!profile_process_runs(process))
		return;
	v->totals.busy |= process->tgid != v->wants->self && is_busy(&per_second);
	v->totals.hugetlb += process->memory.hugetlb;
	v->totals.gpu += process->memory.gpu;
	v->totals.alive++;
	v->totals.rss += process->memory.rss;
	v->totals.growing |= growth != 0;
	if (!tally)
		return;
	tally->growth += growth;
	tally->hugetlb += process->memory.hugetlb;
	tally->gpu += process->memory.gpu;
}

static void raise_best(struct view_rows *v, const struct profile_process *parent,
		       const struct profile_process *child)
{
	uint64_t *best = &v->best[machine_index(parent)];

	*best = larger(*best, v->best[machine_index(child)]);
}

/* Sets best for the tree below root, children before parents. Returns root's. */
static uint64_t find_best(struct view_rows *v, const struct profile_process *root)
{
	const struct profile_process *at = root, *next;

	for (;;) {
		v->best[machine_index(at)] = process_key(v, at);
		next = machine_child(at);
		if (next) {
			at = next;
			continue;
		}
		while (at != root && !machine_sibling(at)) {
			raise_best(v, machine_parent(at), at);
			at = machine_parent(at);
		}
		if (at == root)
			return v->best[machine_index(root)];
		raise_best(v, machine_parent(at), at);
		at = machine_sibling(at);
	}
}

static bool is_tree(const struct view_rows *v)
{
	return v->wants->tree && !is_filtered(v->wants);
}

static void rank_processes(struct view_rows *v)
{
	size_t n;
	const struct profile_process *const *processes = machine_processes(v->m, &n);
	const bool tree = is_tree(v);

	for (size_t i = 0; i < n; i++) {
		const struct profile_process *process = processes[i];

		if (i + FETCH_AHEAD < n)
			machine_fetch(processes[i + FETCH_AHEAD]);
		count_process(v, process);
		if (!profile_process_runs(process) || !is_wanted(v->wants, process))
			continue;
		v->totals.processes++;
		if (!tree)
			rank(v, process, process_key(v, process));
		else if (!machine_parent(process))
			rank(v, process, find_best(v, process));
	}
	make_heap(v->ranked, v->n_ranked);
}

static int reserve(struct view_rows *v)
{
	size_t n;
	void *ranked, *best;

	machine_processes(v->m, &n);
	if (n <= v->cap)
		return 0;
	n += n / 4;
	ranked = reallocarray(v->ranked, n, sizeof(*v->ranked));
	if (!ranked)
		return -ENOMEM;
	v->ranked = ranked;
	best = reallocarray(v->best, n, sizeof(*v->best));
	if (!best)
		return -ENOMEM;
	v->best = best;
	v->cap = n;
	return 0;
}

/* Returns false when out of memory. */
static bool push_level(struct view_rows *v, size_t start, size_t n)
{
	struct level *levels =
		array_reserve(v->levels, v->n_levels, &v->levels_cap, sizeof(*levels));

	if (!levels)
		return false;
	v->levels = levels;
	levels[v->n_levels++] = (struct level){start, n};
	return true;
}

/* Lists the children next. There is room: a process is in `ranked` at most once. */
static bool push_children(struct view_rows *v, const struct profile_process *parent)
{
	const size_t start = v->n_ranked;

	for (const struct profile_process *child = machine_child(parent); child;
	     child = machine_sibling(child))
		rank(v, child, v->best[machine_index(child)]);
	make_heap(v->ranked + start, v->n_ranked - start);
	return v->n_ranked == start || push_level(v, start, v->n_ranked - start);
}

static size_t list_tree(struct view_rows *v, size_t first, size_t max, struct view_process *out)
{
	size_t at = 0, n = 0;

	v->n_levels = 0;
	if (!push_level(v, 0, v->n_ranked))
		return 0;
	while (v->n_levels && n < max) {
		struct level *level = &v->levels[v->n_levels - 1];
		const unsigned int depth = (unsigned int)v->n_levels - 1;
		const struct profile_process *process;

		if (!level->n) {
			v->n_ranked = level->start;
			v->n_levels--;
			continue;
		}
		process = pop(v->ranked + level->start, &level->n).what;
		if (at++ >= first)
			out[n++] = (struct view_process){process, depth, figures_of(v, process)};
		if (!push_children(v, process))
			break;
	}
	return n;
}

static size_t list_flat(struct view_rows *v, size_t first, size_t max, struct view_process *out)
{
	size_t n = 0;

	for (size_t at = 0; v->n_ranked && n < max; at++) {
		const struct profile_process *process = pop(v->ranked, &v->n_ranked).what;

		if (at >= first)
			out[n++] = (struct view_process){process, 0, figures_of(v, process)};
	}
	return n;
}

/* ---- Life, and what is asked ------------------------------------------------------------------
 */

struct view_rows *view_rows_new(void)
{
	return calloc(1, sizeof(struct view_rows));
}

void view_rows_free(struct view_rows *v)
{
	if (!v)
		return;
	free(v->ranked);
	free(v->best);
	free(v->levels);
	free(v);
}

int view_rows_scan(struct view_rows *v, const struct machine *m, const struct view_wants *wants)
{
	v->m = m;
	v->wants = wants;
	v->totals = (struct view_totals){.rated = machine_looked_ns(m)};
	v->n_ranked = 0;
	if (reserve(v))
		return -ENOMEM;
	begin_tallies(v);
	rank_processes(v);
	rank_jobs(v);
	for (size_t i = 0; i < machine_n_sums(m); i++)
		usage_add(&v->totals.usage, &machine_sum(m, i)->usage);
	return 0;
}

const struct view_totals *view_rows_totals(const struct view_rows *v)
{
	return &v->totals;
}

size_t view_rows_jobs(struct view_rows *v, size_t first, size_t max, struct view_job *jobs)
{
	size_t left = v->totals.jobs, n = 0;

	for (size_t at = 0; left && n < max; at++) {
		const struct machine_job *job = pop(v->jobs, &left).what;

		if (at >= first)
			jobs[n++] = (struct view_job){job, job_figures(v, job)};
	}
	return n;
}

size_t view_rows_processes(struct view_rows *v, size_t first, size_t max,
			   struct view_process *processes)
{
	return is_tree(v) ? list_tree(v, first, max, processes)
			  : list_flat(v, first, max, processes);
}
