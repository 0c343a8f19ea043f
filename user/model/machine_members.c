/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/machine_members.h"
#include "model/machine_sums.h"
#include "model/machine_users.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

enum {
	RECHECKED = 2, /* processes that are perhaps not needed any more, each time that one goes */
	SCAN = 64,     /* of these, and of a user's, if there is none other */
};

/* A job has it for its root, or phases of it go on. */
static bool is_needed(const struct member *member)
{
	return member->pins || member->process.open_phases;
}

static void keep_needed(struct machine *m, struct member *member)
{
	DL_APPEND(m->needed, member);
}

/* Returns false when out of memory. */
static bool keep_ended(struct machine *m, struct member *member)
{
	struct user *user = user_get(m, process_of(member)->uid);

	if (!user)
		return false;
	DL_APPEND(user->ended, member);
	user->n_ended++;
	return true;
}

static void leave_ended(struct user *user, struct member *member)
{
	DL_DELETE(user->ended, member);
	user->n_ended--;
}

/* Looks at a few of those that were needed, in turn: who is not any more may go. */
static void recheck(struct machine *m, int n)
{
	for (int i = 0; i < n && m->needed; i++) {
		struct member *member = m->needed;

		DL_DELETE(m->needed, member);
		if (is_needed(member) || !keep_ended(m, member))
			keep_needed(m, member);
	}
}

/* Returns false when out of memory: it stays. */
static bool forget_process(struct machine *m, struct user *user, struct member *member)
{
	if (!sums_add(m, process_of(member)))
		return false;
	leave_ended(user, member);
	member_leave(member);
	free(member->looked);
	processes_remove(&m->processes, &member->process);
	user_release(m, user);
	return true;
}

static struct user *who_gives(struct machine *m)
{
	struct user *user = users_next_with_most(m);

	if (user)
		return user;
	recheck(m, SCAN);
	return users_next_with_most(m);
}

/*
 * Those that are needed are elsewhere, so that nobody's keep others from going: a user may have
 * thousands of jobs that are over, and each keeps its root.
 */
bool members_make_room(struct processes *ps)
{
	struct machine *m = (struct machine *)ps;

	recheck(m, RECHECKED);
	for (int i = 0; i < SCAN; i++) {
		struct user *user = who_gives(m);
		struct member *oldest = user ? user->ended : NULL;

		if (!oldest)
			return false;
		if (!is_needed(oldest))
			return forget_process(m, user, oldest);
		leave_ended(user, oldest); /* since it has ended */
		keep_needed(m, oldest);
		user_release(m, user);
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
	return member->ended;
}

int members_reserve(struct machine *m)
{
	if (!m->spare)
		m->spare = calloc(1, sizeof(*m->spare));
	return m->spare ? 0 : -ENOMEM;
}

void member_join(struct machine *m, struct member *member, struct job *job, bool began_in)
{
	struct membership *in = m->spare;

	if (member->in || !job || job->pub.id == member->left)
		return;
	m->spare = NULL;
	*in = (struct membership){.job = job, .member = member};
	if (!began_in)
		in->before = process_of(member)->usage;
	DL_APPEND(job->members, in);
	member->in = in;
	job->pub.processes++;
	if (!member_has_ended(member))
		job->pub.alive++;
}

void member_leave(struct member *member)
{
	if (!member->in)
		return;
	member->left = member->in->job->pub.id;
	DL_DELETE(member->in->job->members, member->in);
	free(member->in);
	member->in = NULL;
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

void member_end(struct machine *m, struct member *member)
{
	m->alive--;
	leave_tree(member);
	member->ended = true;
	if (is_needed(member) || !keep_ended(m, member))
		keep_needed(m, member);
	if (member->in)
		member->in->job->pub.alive--;
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
	job = member->parent ? job_of_member(member->parent) : NULL;
	if (!member->in && job && !job->pub.end_ns) {
		member_join(m, member, job, false);
		news->joins = true;
	}
}
