/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/machine_users.h"

#include <stdlib.h>

enum { SCAN = 64 /* users to choose from when a process has to go */ };

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

bool user_may_keep(const struct machine *m, const struct user *user, size_t n)
{
	return m->kept + n <= MACHINE_KEPT && user->kept + n <= MACHINE_KEPT - m->kept;
}

struct user *users_next_with_most(struct machine *m)
{
	struct user *most = NULL;

	for (unsigned int i = 0; i < HASH_COUNT(m->users) && (i < SCAN || !most); i++) {
		struct user *user = m->next_user ? m->next_user : m->users;

		m->next_user = user->hh.next;
		if (user->ended && (!most || user->n_ended > most->n_ended))
			most = user;
	}
	return most;
}

void users_free(struct machine *m)
{
	struct user *user, *next;

	HASH_ITER (hh, m->users, user, next) {
		HASH_DEL(m->users, user);
		free(user);
	}
}

void job_charge(struct machine *m, struct job *job, size_t n)
{
	job->charged += n;
	job->user->kept += n;
	m->kept += n;
}

void job_move(struct machine *m, struct job *job, struct user *to)
{
	struct user *from = job->user;

	from->jobs--;
	from->kept -= job->charged;
	user_release(m, from);
	job->user = to;
	to->jobs++;
	to->kept += job->charged;
}

void job_discharge(struct machine *m, struct job *job)
{
	m->kept -= job->charged;
	job->user->kept -= job->charged;
	job->user->jobs--;
	user_release(m, job->user);
}
