/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/machine_members.h"
#include "model/machine_sums.h"
#include "model/machine_users.h"

#include <errno.h>
#include <utlist.h>

enum { SCAN = 64 /* processes to look at when one has to go */ };

/* Returns false when out of memory: it stays. */
static bool forget_process(struct machine *m, struct user *user, struct member *member)
{
	if (!sums_add(m, process_of(member)))
		return false;
	DL_DELETE2(user->ended, member, ended_prev, ended_next);
	user->n_ended--;
	if (member->job)
		DL_DELETE2(member->job->members, member, job_prev, job_next);
	processes_remove(&m->processes, &member->process);
	user_release(m, user);
	return true;
}

bool members_make_room(struct processes *ps)
{
	struct machine *m = (struct machine *)ps;
	struct user *user = users_next_with_most(m);

	for (int i = 0; user && i < SCAN && i < (int)user->n_ended; i++) {
		struct member *oldest = user->ended;

		if (!oldest->pins && !oldest->process.open_phases)
			return forget_process(m, user, oldest);
		/* It is needed: do not look at it again soon. */
		DL_DELETE2(user->ended, oldest, ended_prev, ended_next);
		DL_APPEND2(user->ended, oldest, ended_prev, ended_next);
	}
	return false;
}

static void link_child(struct member *parent, struct member *child)
{
	child->parent = parent;
	DL_APPEND(parent->children, child);
}

static void unlink_child(struct member *child)
{
	if (!child->parent)
		return;
	DL_DELETE(child->parent->children, child);
	child->parent = NULL;
}

void member_link(struct machine *m, struct member *member)
{
	struct process *found = processes_of_tgid(&m->processes, process_of(member)->ppid);
	struct member *parent = found ? member_of(&found->pub) : NULL;

	if (parent && parent != member && parent->known && !process_of(parent)->end_ns)
		link_child(parent, member);
}

bool member_has_ended(const struct member *member)
{
	return member->ended_prev;
}

void member_join(struct member *member, struct job *job, bool began_in)
{
	if (member->job || !job)
		return;
	member->job = job;
	member->before = began_in ? (struct profile_usage){0} : process_of(member)->usage;
	DL_APPEND2(job->members, member, job_prev, job_next);
	job->pub.processes++;
	if (!member_has_ended(member))
		job->pub.alive++;
}

void member_leave(struct member *member)
{
	DL_DELETE2(member->job->members, member, job_prev, job_next);
	member->job = NULL;
	member->job_prev = member->job_next = NULL;
}

/* Its children become children of its nearest ancestor that is alive. */
static void leave_tree(struct member *member)
{
	struct member *parent = member->parent, *child;

	while ((child = member->children)) {
		unlink_child(child);
		if (parent)
			link_child(parent, child);
	}
	unlink_child(member);
}

int member_end(struct machine *m, struct member *member)
{
	struct user *user = user_get(m, process_of(member)->uid);

	if (!user)
		return -ENOMEM;
	m->alive--;
	leave_tree(member);
	DL_APPEND2(user->ended, member, ended_prev, ended_next);
	user->n_ended++;
	if (member->job)
		member->job->pub.alive--;
	return 0;
}

void member_meet(struct machine *m, struct member *member, struct machine_news *news)
{
	struct job *job;

	if (member->known)
		return;
	member->known = true;
	member->marked_rss[0] = member->marked_rss[1] = process_of(member)->memory.rss;
	m->alive++;
	member_link(m, member);
	job = member->parent ? member->parent->job : NULL;
	if (!member->job && job && !job->pub.end_ns) {
		member_join(member, job, false);
		news->joins = true;
	}
}
