/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose processes there are, which are kept, and what is left of the others. */
#include "model/machine_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

enum { SCAN = 64 /* users, or processes, that are looked at for one to give way */ };

/* NULL when out of memory. */
struct user *user_get(struct machine *m, uint32_t uid)
{
	struct user *user;

	HASH_FIND(hh, m->users, &uid, sizeof(uid), user);
	if (user)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	HASH_ADD(hh, m->users, uid, sizeof(user->uid), user);
	if (user->hh.tbl)
		return user;
	free(user);
	return NULL;
}

void user_release(struct machine *m, struct user *user)
{
	if (user->ended || user->jobs)
		return;
	if (m->next_user == user)
		m->next_user = user->hh.next;
	HASH_DEL(m->users, user);
	free(user);
}

/* One user gets no more than is left for all others. */
bool user_may_keep(const struct machine *m, const struct user *user, size_t n)
{
	return m->kept + n <= MACHINE_KEPT && user->kept + n <= MACHINE_KEPT - m->kept;
}

/* The sum that a process goes into; the last one is for all for which there is none. */
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

static void sums_add(struct machine *m, const struct profile_process *pub)
{
	struct sum *sum = sum_of(m, pub);

	m->losses.forgotten_processes++;
	if (!sum)
		return;
	sum->pub.processes++;
	raise_to(&sum->pub.peak_rss, pub->memory.peak);
	usage_add(&sum->pub.usage, &pub->usage);
}

/* Of the users that come next, the one with most ended processes. */
static struct user *user_with_most(struct machine *m)
{
	struct user *most = NULL;

	for (int i = 0; m->users && i < SCAN; i++) {
		struct user *user = m->next_user ? m->next_user : m->users;

		m->next_user = user->hh.next;
		if (user->ended && (!most || user->n_ended > most->n_ended))
			most = user;
	}
	return most;
}

static void forget_process(struct machine *m, struct user *user, struct process *process)
{
	DL_DELETE2(user->ended, process, ended_prev, ended_next);
	user->n_ended--;
	if (process->pub.job)
		DL_DELETE2(job_of(process)->members, process, job_prev, job_next);
	sums_add(m, &process->pub);
	processes_remove(&m->processes, process);
	user_release(m, user);
}

/* The one that ended first and that nobody needs; those that are needed go to the end. */
bool members_make_room(struct processes *ps)
{
	struct machine *m = (struct machine *)ps;
	struct user *user = user_with_most(m);

	for (int i = 0; user && i < SCAN && i < (int)user->n_ended; i++) {
		struct process *oldest = user->ended;

		if (!oldest->pins && !oldest->open_phases) {
			forget_process(m, user, oldest);
			return true;
		}
		DL_DELETE2(user->ended, oldest, ended_prev, ended_next);
		DL_APPEND2(user->ended, oldest, ended_prev, ended_next);
	}
	return false;
}

static void link_child(struct process *parent, struct process *child)
{
	child->pub.parent = &parent->pub;
	DL_APPEND(parent->children, child);
}

static void unlink_child(struct process *child)
{
	struct process *parent = process_of(child->pub.parent);

	if (!parent)
		return;
	DL_DELETE(parent->children, child);
	child->pub.parent = NULL;
}

void member_link(struct machine *m, struct process *process)
{
	struct process *parent = processes_of_tgid(&m->processes, process->pub.ppid);

	if (parent && parent != process && parent->known && !parent->pub.end_ns)
		link_child(parent, process);
}

/* And its end was taken note of. */
bool member_has_ended(const struct process *process)
{
	return process->ended_prev;
}

void member_join(struct process *process, struct job *job)
{
	if (process->pub.job || !job)
		return;
	process->pub.job = &job->pub;
	DL_APPEND2(job->members, process, job_prev, job_next);
	job->pub.processes++;
	if (!member_has_ended(process))
		job->pub.alive++;
}

/* Its children are its nearest living ancestor's from now on. */
static void leave_tree(struct process *process)
{
	struct process *parent = process_of(process->pub.parent), *child;

	while ((child = process->children)) {
		unlink_child(child);
		if (parent)
			link_child(parent, child);
	}
	unlink_child(process);
}

int member_end(struct machine *m, struct process *process)
{
	struct user *user = user_get(m, process->pub.uid);

	if (!user)
		return -ENOMEM;
	m->alive--;
	leave_tree(process);
	DL_APPEND2(user->ended, process, ended_prev, ended_next);
	user->n_ended++;
	if (process->pub.job)
		process->pub.job->alive--;
	return 0;
}

/* What the first record of a process says of it. */
void member_meet(struct machine *m, struct process *process, struct machine_news *news)
{
	const struct process *parent;

	process->known = true;
	m->alive++;
	member_link(m, process);
	parent = process_of(process->pub.parent);
	if (!process->pub.job && parent && job_of(parent) && !job_of(parent)->pub.end_ns) {
		member_join(process, job_of(parent));
		news->joins = true;
	}
}
