/* SPDX-License-Identifier: GPL-2.0-only */
/* machine_members.h - the processes of a machine: the tree of processes that are alive, and which
 * ended processes go. */
#ifndef QPROF_MACHINE_MEMBERS_H
#define QPROF_MACHINE_MEMBERS_H

#include "model/machine_state.h"

/* For processes.make_room: removes the process that ended first and that nobody needs. */
bool members_make_room(struct processes *ps);
/* Meets a process at its first record: it is alive, has a parent, and perhaps the parent's job.
 * Comes after members_reserve(). */
void member_meet(struct machine *m, struct member *member, struct machine_news *news);
/* Puts the process below its parent, if that is known. */
void member_link(struct machine *m, struct member *member);
/* Makes room for a process that joins a job. Returns 0 or -ENOMEM. */
int members_reserve(struct machine *m);
/* Puts the process into the job, unless it is in one or job is NULL. began_in: it has used all that
 * it has used as one of the job. Comes after members_reserve(). */
void member_join(struct machine *m, struct member *member, struct job *job, bool began_in);
/* Takes the process out of its job, if it is in one. */
void member_leave(struct member *member);
/* Takes note of the end of a process. */
void member_end(struct machine *m, struct member *member);
/* Returns whether its end was taken note of. */
bool member_has_ended(const struct member *member);

#endif
