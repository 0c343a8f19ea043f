/* SPDX-License-Identifier: GPL-2.0-only */
/* Jobs of an audit that are served as runs: of a command that waits for its exec, or of processes
 * that run already. */
#include "kernel/engine_state.h"

#include <errno.h>
#include <string.h>

#include "kernel/call.h"
#include "kernel/iterator.h"

enum { SERVES_COMMAND = 1, SERVES_RUNNING = 2 }; /* enum serving in job.bpf.c */

/* A walk reaches at least one generation more. */
enum { MAX_WALKS = 256 };

static struct wire_tree *tree_of(const struct engine *e, uint32_t job)
{
	return &e->bpf->bss->trees[job % WIRE_MAX_JOBS];
}

int engine_serve(struct engine *e, uint32_t tgid, uint32_t uid, uint32_t *job, uint64_t *started_ns)
{
	struct engine_job_args args = {.tgid = tgid, .uid = uid, .serves = SERVES_COMMAND};
	const int err = engine_ask(e->bpf->progs.join_job, &args, sizeof(args));

	*job = args.job;
	*started_ns = args.started_ns;
	return err;
}

bool engine_serves(const struct engine *e, uint32_t job)
{
	return __atomic_load_n(&tree_of(e, job)->served, __ATOMIC_ACQUIRE);
}

static void serve_no_more(struct engine *e, uint32_t job)
{
	__atomic_store_n(&tree_of(e, job)->served, 0, __ATOMIC_RELEASE);
}

bool engine_take_back(struct engine *e, uint32_t job, uint32_t tgid, uint64_t started_ns)
{
	struct engine_job_args args = {.started_ns = started_ns, .tgid = tgid, .job = job};
	uint32_t answer;

	if (call_program(e->bpf->progs.take_back, &args, sizeof(args), &answer) || !answer)
		return false;
	engine_free_job(e, job);
	return true;
}

void engine_stop_serving(struct engine *e, uint32_t job, uint32_t tgid, uint64_t started_ns)
{
	if (!engine_take_back(e, job, tgid, started_ns))
		serve_no_more(e, job);
}

/* ---- Processes that run already ---------------------------------------------------------------
 */

/* Walks until nobody moves any more. Returns how many did, or -errno. */
static int move(struct engine *e, const struct wire_moving *how)
{
	struct wire_moving *moving = &e->bpf->bss->moving;
	uint32_t all = 0;

	*moving = *how;
	for (int walk = 0; walk < MAX_WALKS; walk++) {
		int err;

		moving->moved = moving->served = 0;
		err = iterator_run(e->bpf->progs.move_members, 0, 0, NULL, NULL);
		if (err)
			return err;
		if (!moving->moved)
			break;
		all += moving->moved;
	}
	return (int)all;
}

static int tell_left_out(struct engine *e, const struct wire_moving *how)
{
	struct wire_moving *moving = &e->bpf->bss->moving;

	*moving = *how;
	moving->tells = 1;
	return iterator_run(e->bpf->progs.move_members, 0, 0, NULL, NULL);
}

/* The job begins with all that are in it now. */
static int start(struct engine *e, const struct engine_running *who, uint32_t job)
{
	int err = -ESRCH;

	for (size_t i = 0; i < who->n && err == -ESRCH; i++)
		err = engine_milestone(e, who->tgids[i], WIRE_START, false, 0);
	/* From now on the exit of the last target ends it. */
	__atomic_store_n(&tree_of(e, job)->finished, 0, __ATOMIC_SEQ_CST);
	return err;
}

int engine_serve_running(struct engine *e, const struct engine_running *who, uint32_t *job)
{
	struct engine_job_args args = {.uid = who->uid, .serves = SERVES_RUNNING};
	struct wire_moving how = {.gid = who->gid, .self = who->self};
	int err = engine_ask(e->bpf->progs.join_job, &args, sizeof(args));

	*job = 0;
	if (err)
		return err;
	how.job = args.job;
	how.n_targets = (uint32_t)who->n;
	memcpy(how.target, who->tgids, who->n * sizeof(*who->tgids));
	err = move(e, &how);
	if (!err) { /* nobody has come: no record is of that job */
		err = e->bpf->bss->moving.served ? -EBUSY : -ESRCH;
		serve_no_more(e, args.job);
		engine_free_job(e, args.job);
		return err;
	}
	if (err > 0 && e->bpf->bss->moving.served)
		err = -EBUSY;
	if (err > 0)
		err = tell_left_out(e, &how);
	if (err >= 0)
		err = start(e, who, args.job);
	if (!err && __atomic_load_n(&tree_of(e, args.job)->targets, __ATOMIC_SEQ_CST) != who->n)
		err = -ESRCH;
	if (err)
		engine_stop_serving_running(e, args.job);
	else
		*job = args.job;
	return err;
}

void engine_stop_serving_running(struct engine *e, uint32_t job)
{
	const struct wire_moving how = {.job = job, .leaves = 1};

	/* A child that is being born at this moment may stay, and is the job's until its end. */
	move(e, &how);
	serve_no_more(e, job);
}
