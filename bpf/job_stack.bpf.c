// SPDX-License-Identifier: GPL-2.0-only
/*
 * job_stack.bpf.c - which code makes the memory of a job grow (qprof-bpf -a --stacks): what
 * stack.bpf.c is in a run, for the jobs of an audit that the loader has marked.
 *
 * A CPU runs one job after the other. So what grows until the next sample is counted by job, of all
 * CPUs, and the sample has the weight of all that grew in its job since the one before. A job that
 * is sampled has a gap of its own: that of others does not depend on it. There are no phases.
 *
 * What grows elsewhere costs a look at the mark of the job.
 */
#include "stack_sample.bpf.h"

enum { LEVEL = WIRE_STACK_LEVEL / WIRE_STACK_OF_JOBS };

static __always_inline void take_job_sample(struct wire_sampled_job *j, u64 weight,
					    struct task_struct *task, const struct mm_rss *m,
					    int member)
{
	u32 end, n = walk_python(task, m->key, program_of(task, m), PYTHON_OF_GROWTH, &end);
	struct wire_stack *s = bpf_ringbuf_reserve(&stacks, sizeof(*s), 0);

	if (!s) {
		atomic_add(&j->lost, 1);
		return;
	}
	fill_stack(s, task, m, PYTHON_OF_GROWTH, n, end);
	s->kind = kind_of_pages(member);
	s->run = j->run;
	s->weight = s->late = weight;
	s->first_epoch = s->epoch = s->since_ns = 0;
	submit_sample(s);
}

/* Returns the weight of the sample that is due now, or 0: two CPUs may find so at once. */
static __always_inline u64 due(struct wire_sampled_job *j, u64 pages)
{
	u64 weight, mean;

	atomic_add(&j->pending, pages);
	if ((s64)atomic_add(&j->left, -(s64)pages) > (s64)pages)
		return 0;
	weight = __sync_lock_test_and_set(&j->pending, 0);
	if (!weight)
		return 0;
	mean = wire_stack_mean(config.stack_pages, atomic_add(&j->samples, 1), LEVEL);
	*(volatile s64 *)&j->left = (s64)random_gap(mean);
	return weight;
}

SEC("?tp_btf/rss_stat")
int BPF_PROG(sample_job_growth, struct mm_struct *mm, int member)
{
	struct growing *g = here(&growing);
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct wire_sampled_job *j;
	const struct mm_rss *m;
	u64 pages, weight;
	u32 job;

	if (!g || !g->change)
		return 0;
	pages = g->change;
	g->change = 0;
	m = find_mm((u64)mm);
	if (!m)
		return 0;
	job = job_of(m->rss);
	j = bpf_map_lookup_elem(&sampled_jobs, &job);
	if (!j || !sampled_run(job))
		return 0;
	atomic_add(&j->grown, pages);
	if (BPF_CORE_READ(task, mm) != mm || BPF_CORE_READ(task, flags) & PF_KTHREAD) {
		atomic_add(&j->elsewhere, pages);
		return 0;
	}
	weight = due(j, pages);
	if (weight)
		take_job_sample(j, weight, task, m, member);
	return 0;
}
