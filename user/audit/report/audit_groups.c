/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/report/audit_groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct entry {
	struct audit_group group;
	UT_hash_handle hh;
};

struct grouping {
	const struct audit_report *report;
	enum audit_grouping by;
	struct entry *entries;
	bool failed;
};

/* Returns the group of that name, or NULL when out of memory. */
static struct audit_group *find_or_add(struct grouping *g, const char *name)
{
	struct entry *entry;

	HASH_FIND_STR(g->entries, name, entry);
	if (entry)
		return &entry->group;
	entry = calloc(1, sizeof(*entry));
	if (!entry) {
		g->failed = true;
		return NULL;
	}
	snprintf(entry->group.name, sizeof(entry->group.name), "%s", name);
	entry->group.runtime = "";
	HASH_ADD_STR(g->entries, group.name, entry);
	if (entry->hh.tbl)
		return &entry->group;
	free(entry);
	g->failed = true;
	return NULL;
}

static struct audit_group *group_of_container(struct grouping *g, uint64_t id)
{
	const struct cgroup *cgroup = cgroups_get(g->report->cgroups, id);
	struct audit_group *group = find_or_add(g, cgroup->container);

	if (group && !group->pod[0])
		memcpy(group->pod, cgroup->pod, sizeof(group->pod));
	if (group)
		group->runtime = cgroup->runtime;
	return group;
}

static struct audit_group *group_of_user(struct grouping *g, uint32_t uid)
{
	char name[GROUP_NAME_MAX];
	struct audit_group *group;

	/* The name is the number until collect(), which looks up each once. */
	snprintf(name, sizeof(name), "%u", uid);
	group = find_or_add(g, name);
	if (group)
		group->uid = uid;
	return group;
}

static struct audit_group *group_of(struct grouping *g, uint32_t uid, uint64_t cgroup)
{
	return g->by == BY_CONTAINER ? group_of_container(g, cgroup) : group_of_user(g, uid);
}

static void add_process(struct grouping *g, const struct profile_process *process)
{
	struct audit_group *group = group_of(g, process->uid, process->cgroup);

	if (!group)
		return;
	group->processes++;
	group->alive += profile_process_runs(process);
	if (profile_process_runs(process))
		group->rss += process->memory.rss;
	if (process->memory.peak > group->largest_peak)
		group->largest_peak = process->memory.peak;
	usage_add(&group->usage, &process->usage);
}

static void add_sum(struct grouping *g, const struct machine_sum *sum)
{
	struct audit_group *group = group_of(g, sum->uid, sum->cgroup);

	if (!group)
		return;
	group->processes += sum->processes;
	if (sum->peak_rss > group->largest_peak)
		group->largest_peak = sum->peak_rss;
	usage_add(&group->usage, &sum->usage);
}

static int by_memory(const void *a, const void *b)
{
	const struct audit_group *x = a, *y = b;

	if (x->rss != y->rss)
		return x->rss < y->rss ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* Moves the entries to an array, in order. */
static struct audit_group *collect(struct grouping *g, size_t *n)
{
	struct entry *entry, *next;
	struct audit_group *groups;

	*n = 0;
	groups = calloc(HASH_COUNT(g->entries) + 1, sizeof(*groups));
	HASH_ITER (hh, g->entries, entry, next) {
		HASH_DEL(g->entries, entry);
		if (groups)
			groups[(*n)++] = entry->group;
		free(entry);
	}
	if (!groups)
		return NULL;
	qsort(groups, *n, sizeof(*groups), by_memory);
	for (size_t i = 0; g->by == BY_USER && i < *n; i++)
		snprintf(groups[i].name, sizeof(groups[i].name), "%s",
			 user_names_get(g->report->users, groups[i].uid));
	return groups;
}

struct audit_group *audit_groups(const struct audit_report *report, enum audit_grouping by,
				 size_t *n)
{
	const struct machine *m = report->machine;
	struct grouping g = {.report = report, .by = by};
	struct audit_group *groups, *group;
	size_t count;
	const struct profile_process *const *processes = machine_processes(m, &count);
	struct machine_job *const *jobs;

	for (size_t i = 0; i < count; i++)
		add_process(&g, processes[i]);
	for (size_t i = 0; i < machine_n_sums(m); i++)
		add_sum(&g, machine_sum(m, i));
	jobs = machine_jobs(m, &count);
	for (size_t i = 0; i < count; i++) {
		if (!jobs[i]->root)
			continue;
		group = group_of(&g, jobs[i]->root->uid, jobs[i]->root->cgroup);
		if (group)
			group->jobs++;
	}
	groups = collect(&g, n);
	if (!g.failed)
		return groups;
	free(groups);
	*n = 0;
	return NULL;
}
