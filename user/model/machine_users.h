/* SPDX-License-Identifier: GPL-2.0-only */
/* machine_users.h - whose processes and jobs take up room, and how much room they may take. */
#ifndef QPROF_MACHINE_USERS_H
#define QPROF_MACHINE_USERS_H

#include "model/machine_state.h"

/* Exists while the user has ended processes or jobs. */
struct user {
	uint32_t uid;
	struct member *ended; /* processes that can go, the oldest first */
	size_t n_ended;
	size_t kept; /* of MACHINE_KEPT */
	size_t jobs; /* kept */
	UT_hash_handle hh;
};

/* Returns NULL when out of memory. */
struct user *user_get(struct machine *m, uint32_t uid);
/* Forgets the user, if nothing of it is kept. */
void user_release(struct machine *m, struct user *user);
/* Returns whether the user may keep n rows, metrics or phases more: as many as it leaves for all
 * others. */
bool user_may_keep(const struct machine *m, const struct user *user, size_t n);
/* Looks at the next few users, or at more until there is one with ended processes that can go.
 * Returns the user with most of them, or NULL. */
struct user *users_next_with_most(struct machine *m);
void users_free(struct machine *m);

/* Notes that the job keeps n rows, metrics or phases more, at its user's expense. */
void job_charge(struct machine *m, struct job *job, size_t n);
/* Moves the job, and what it keeps, from its user to another. */
void job_move(struct machine *m, struct job *job, struct user *to);
/* Gives back what the job keeps. Its user may be gone afterwards. */
void job_discharge(struct machine *m, struct job *job);

#endif
