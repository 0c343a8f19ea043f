/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/rules/rules_listener.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utlist.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/units.h"
#include "capture/audit_state.h"
#include "recipes/recipe_marker.h"
#include "recipes/rules_look.h"

enum {
	MAX_SUSPECTS = 16384,	/* processes of MIN_RSS and more that are known of */
	MAX_DEPTH = 64,		/* of a job's tree when it begins, for the recipes */
	MIN_RSS = 32 << 20,	/* a model is larger */
	PATIENCE = 16,		/* looks in vain after which it takes twice as much for the next */
	SLICE_NS = 1000000,	/* of looks at a time: records wait meanwhile, and gather */
	SHARE = 100,		/* of our looks, in the long run: one in so many nanoseconds */
	WAIT_NS = 1000000000,	/* for records that are behind, at most */
	FORGET_NS = 1000000000, /* between two looks for those that are settled */
	BURST_NS = 500000000,	/* that may be saved up, and that we begin with */
};

/* A process is a tgid and its start time. */
struct identity {
	uint64_t started_ns;
	uint32_t tgid, padding;
};

/* One that is large enough to be looked at. */
struct suspect {
	struct identity id;
	uint64_t rss;		    /* when it was looked at last */
	unsigned int new_code;	    /* times that it has mapped some since */
	bool moved;		    /* its memory has changed enough since */
	unsigned int looks_at_code; /* so far, in vain */
	unsigned int looks_at_all;  /* likewise, for its memory had changed */
	bool had_files;		    /* they were looked at */
	bool queued;
	struct suspect *prev, *next; /* in the queue */
	UT_hash_handle hh;
};

struct rules_listener {
	struct listener listener; /* first: see of() */
	struct rules_match *match;
	struct marker *marker; /* of the recipes; NULL: none */
	struct capture *capture;
	struct audit *audit;
	struct wake timer; /* the queue is to be gone on with */
	struct suspect *suspects, *queue;
	bool begun;	      /* those that were there before are known */
	int64_t budget_ns;    /* what looks may take yet */
	uint64_t looked_ns;   /* when the last slice was begun */
	uint64_t budgeted_ns; /* until when it was added to */
	uint64_t looks, jobs; /* so far */
	uint64_t forgot_ns;   /* when those that are settled were looked for */
	uint64_t left_out;    /* times that a process was not looked at, for there were too many */
	uint64_t cut;	      /* looks that did not see all */
	uint64_t refused;     /* jobs that there was no room for */
	uint64_t unshared;    /* jobs beyond the share of their user */
	uint64_t over;	      /* processes that ended before their job could begin */
};

static struct rules_listener *of(struct listener *listener)
{
	return (struct rules_listener *)listener;
}

/* ---- Jobs -------------------------------------------------------------------------------------
 */

/* The match has the evidence. Returns true if the process is the root of a job now. */
static bool begin_job(struct rules_listener *p, const struct profile_process *process,
		      const struct rule *rule)
{
	char evidence[MACHINE_EVIDENCE_MAX];
	int err;

	if (!rule->job)
		return false;
	rules_match_evidence(p->match, evidence);
	err = audit_begin_job(p->audit, process, rule->name, evidence);
	if (!err) {
		p->jobs++;
		log_verbose("process %u is a job: %s", process->tgid, rule->name);
	} else if (err == -EDQUOT) {
		p->unshared++;
	} else if (err == -ESRCH) {
		p->over++;
	} else if (err != -EALREADY) {
		p->refused++;
	}
	return !err;
}

/* Whether the recipes may yet find out what this process of a job is. */
static bool is_for_recipes(const struct rules_listener *p, const struct profile_process *process)
{
	return p->marker && recipe_marker_wants(p->marker, process);
}

/* ---- Suspects ---------------------------------------------------------------------------------
 */

static struct identity identity_of(const struct profile_process *process)
{
	return (struct identity){.started_ns = process->started_ns, .tgid = process->tgid};
}

static struct suspect *find(struct rules_listener *p, const struct identity *id)
{
	struct suspect *suspect;

	HASH_FIND(hh, p->suspects, id, sizeof(*id), suspect);
	return suspect;
}

static void forget(struct rules_listener *p, struct suspect *suspect)
{
	if (!suspect)
		return;
	if (suspect->queued)
		DL_DELETE(p->queue, suspect);
	HASH_DEL(p->suspects, suspect);
	free(suspect);
}

/* The process, if it runs and is in no job, or in one and for the recipes. */
static const struct profile_process *process_of_suspect(const struct rules_listener *p,
							const struct suspect *suspect)
{
	const struct profile_process *process =
		machine_process(audit_machine(p->audit), suspect->id.tgid);

	if (!process || process->started_ns != suspect->id.started_ns || process->end_ns)
		return NULL;
	return !machine_job_of(process) || is_for_recipes(p, process) ? process : NULL;
}

/* Those whose end was not heard of, for a record was lost, and those that are in a job by now. */
static void forget_settled(struct rules_listener *p)
{
	struct suspect *suspect = NULL, *next;

	HASH_ITER (hh, p->suspects, suspect, next) {
		if (!process_of_suspect(p, suspect))
			forget(p, suspect);
	}
}

static struct suspect *add(struct rules_listener *p, const struct identity *id)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct suspect *suspect;

	if (HASH_COUNT(p->suspects) >= MAX_SUSPECTS && now - p->forgot_ns >= FORGET_NS) {
		forget_settled(p);
		p->forgot_ns = now;
	}
	suspect = HASH_COUNT(p->suspects) < MAX_SUSPECTS ? calloc(1, sizeof(*suspect)) : NULL;
	if (!suspect) {
		p->left_out++;
		return NULL;
	}
	suspect->id = *id;
	HASH_ADD(hh, p->suspects, id, sizeof(suspect->id), suspect);
	if (suspect->hh.tbl)
		return suspect;
	free(suspect);
	p->left_out++;
	return NULL;
}

static void enqueue(struct rules_listener *p, struct suspect *suspect)
{
	if (!suspect || suspect->queued)
		return;
	suspect->queued = true;
	DL_APPEND(p->queue, suspect);
}

/* How much more it takes for a look, after so many in vain. */
static unsigned int doublings(unsigned int looks)
{
	const unsigned int n = looks / PATIENCE;

	return n < 16 ? n : 16;
}

static bool has_moved(const struct suspect *suspect, uint64_t rss)
{
	const uint64_t moved = rss > suspect->rss ? rss - suspect->rss : suspect->rss - rss;
	const uint64_t step = suspect->rss / 8 > MIN_RSS ? suspect->rss / 8 : MIN_RSS;

	return moved >= step << doublings(suspect->looks_at_all);
}

/* Called when the memory of a process has changed, or what it maps. */
static void note_change(struct rules_listener *p, const struct profile_process *process,
			bool has_new_code)
{
	const struct identity id = identity_of(process);
	struct suspect *suspect = find(p, &id);

	if (!suspect && process->memory.rss >= MIN_RSS)
		suspect = add(p, &id);
	if (!suspect)
		return;
	suspect->moved |= has_moved(suspect, process->memory.rss);
	suspect->new_code += has_new_code;
	if (suspect->moved || suspect->new_code >= 1u << doublings(suspect->looks_at_code))
		enqueue(p, suspect);
}

/* ---- Records ----------------------------------------------------------------------------------
 */

static void judge_exec(struct rules_listener *p, const struct wire_process *exec,
		       const struct profile_process *process)
{
	const struct identity id = identity_of(process);
	bool in_job = machine_job_of(process);
	const struct rule *rule = in_job ? NULL : look_at_exec(p->match, exec);

	if (!p->begun && process->flags & WIRE_PROCESS_ATTACHED) {
		/* It ran before the audit: it can be a job once its children are known. */
		if (rule && !find(p, &id))
			enqueue(p, add(p, &id));
		return;
	}
	forget(p, find(p, &id)); /* it was another program */
	if (rule)
		in_job = begin_job(p, process, rule);
	if (in_job && p->marker)
		recipe_marker_meet(p->marker, process, exec);
}

/* Those that were in the tree of a job when it began. Deeper ones come when they change. */
static void judge_tree(struct rules_listener *p, const struct profile_process *process,
		       unsigned int depth)
{
	const struct identity id = identity_of(process);
	struct suspect *suspect = find(p, &id);

	recipe_marker_found(p->marker, process);
	if (is_for_recipes(p, process))
		enqueue(p, suspect ? suspect : add(p, &id));
	if (depth == MAX_DEPTH)
		return;
	for (process = machine_child(process); process; process = machine_sibling(process))
		judge_tree(p, process, depth + 1);
}

static void record(struct listener *listener, const struct wire_header *record,
		   const struct machine_news *news)
{
	struct rules_listener *p = of(listener);
	const struct profile_process *process = news->process;
	struct identity id;

	if (news->job_began && p->marker)
		judge_tree(p, news->job->root, 0);
	if (news->job_ended && p->marker)
		recipe_marker_leave(p->marker, audit_machine(p->audit), news->job);
	if (record->kind == WIRE_CHECKPOINT || !process)
		return;
	if (record->kind == WIRE_EXIT) {
		id = identity_of(process);
		forget(p, find(p, &id));
		return;
	}
	if (process->end_ns)
		return;
	if (record->kind == WIRE_EXEC)
		judge_exec(p, (const void *)record, process);
	else if (machine_job_of(process) && !is_for_recipes(p, process))
		return;
	else if (record->kind != WIRE_FORK || process->flags & WIRE_PROCESS_ATTACHED)
		note_change(p, process, record->kind == WIRE_MAPPED);
}

/* ---- Looks ------------------------------------------------------------------------------------
 */

static void look(struct rules_listener *p, struct suspect *suspect)
{
	const struct profile_process *process = process_of_suspect(p, suspect);
	/* All that a program has mapped is the dearest part; a library more makes no file. */
	const bool files = suspect->moved || !suspect->had_files;
	const struct rule *rule;
	bool cut;

	DL_DELETE(p->queue, suspect);
	suspect->queued = false;
	if (!process) {
		forget(p, suspect);
		return;
	}
	p->looks++;
	suspect->looks_at_all += suspect->moved;
	suspect->looks_at_code += !suspect->moved;
	suspect->moved = false;
	suspect->new_code = 0;
	suspect->rss = process->memory.rss;
	if (machine_job_of(process)) {
		recipe_marker_meet(p->marker, process, NULL);
		return;
	}
	rule = look_at_process(&(struct look_matches){{p->match}, 1}, process, files, &cut)
		       ? rules_match_verdict(p->match)
		       : NULL;
	suspect->had_files |= files && rules_match_asks(p->match, RULE_FILE);
	p->cut += cut;
	if (rule && begin_job(p, process, rule) && p->marker)
		recipe_marker_meet(p->marker, process, NULL);
}

static void add_to_budget(struct rules_listener *p, uint64_t now)
{
	const int64_t earned = (int64_t)((now - p->budgeted_ns) / SHARE);

	p->budgeted_ns = now;
	p->budget_ns = p->budget_ns + earned < BURST_NS ? p->budget_ns + earned : BURST_NS;
}

/* Until there is enough for a slice. */
static uint64_t pause_ns(const struct rules_listener *p)
{
	return p->budget_ns > 0 ? SLICE_NS : (uint64_t)(SLICE_NS - p->budget_ns) * SHARE;
}

static void batch(struct listener *listener)
{
	struct rules_listener *p = of(listener);
	uint64_t began, now;

	p->begun = true;
	if (!p->queue)
		return;
	began = now = clock_ns(CLOCK_MONOTONIC);
	/* On a machine that never lets us catch up, now and then all the same. */
	if (capture_is_behind(p->capture) && now - p->looked_ns < WAIT_NS)
		return;
	p->looked_ns = now;
	add_to_budget(p, now);
	while (p->queue && p->budget_ns > 0 && now - began < SLICE_NS) {
		const uint64_t before = now;

		look(p, p->queue);
		now = clock_ns(CLOCK_MONOTONIC);
		/* Not CPU time: records wait also while we do. */
		p->budget_ns -= (int64_t)(now - before);
	}
	timer_set(p->timer.fd, p->queue ? pause_ns(p) : 0);
}

/* ---- Life -------------------------------------------------------------------------------------
 */

/* The batch comes after each wake-up. */
static void timer_fired(struct wake *wake)
{
	timer_clear(wake->fd);
}

static int start(struct listener *listener, struct capture *c, struct error *err)
{
	struct rules_listener *p = of(listener);

	p->capture = c;
	p->audit = audit_of(c);
	p->budget_ns = BURST_NS;
	p->budgeted_ns = clock_ns(CLOCK_MONOTONIC);
	p->timer = (struct wake){timer_new(), timer_fired, p};
	if (p->timer.fd < 0 || capture_add(c, &p->timer))
		return error_set(err, "cannot set up the timer of the rules: %s", strerror(errno));
	return 0;
}

static void warn(struct rules_listener *p, uint64_t n, const char *what)
{
	char text[160];

	if (!n)
		return;
	units_counted(text, sizeof(text), n, what);
	capture_warn(p->capture, "jobs recognised by rules", text);
}

static void finish(struct listener *listener)
{
	struct rules_listener *p = of(listener);
	const struct suspect *waiting;
	char looks[UNITS_TEXT_MAX], jobs[UNITS_TEXT_MAX];
	uint64_t n = 0;

	for (waiting = p->queue; waiting; waiting = waiting->next)
		n += !waiting->looks_at_all;
	warn(p, n, "process(es) not yet looked at when the audit ended");
	warn(p, p->left_out,
	     "time(s) that a process was not looked at: more than 16384 have 32 MiB");
	warn(p, p->cut,
	     "look(s) did not see all: more than 8192 files mapped, 2048 open, or 20 ms");
	warn(p, p->refused, "process(es) matched and could not become jobs: too many run already");
	warn(p, p->unshared,
	     "process(es) matched and could not become jobs: their users had their share");
	warn(p, p->over, "process(es) matched and ended before they could become jobs");
	log_verbose("rules: %s, %s", units_counted(looks, sizeof(looks), p->looks, "look(s)"),
		    units_counted(jobs, sizeof(jobs), p->jobs, "job(s)"));
}

static void close_listener(struct listener *listener)
{
	struct rules_listener *p = of(listener);
	struct suspect *suspect = NULL, *next;

	if (p->timer.fd >= 0)
		close(p->timer.fd);
	HASH_ITER (hh, p->suspects, suspect, next) {
		forget(p, suspect);
	}
	rules_match_free(p->match);
	free(p);
}

struct listener *rules_listener_new(const struct rules *rules, struct marker *marker)
{
	struct rules_listener *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->listener = (struct listener){.start = start,
					.record = record,
					.batch = batch,
					.finish = finish,
					.close = close_listener};
	p->timer.fd = -1;
	p->marker = marker;
	p->match = rules_match_new(rules);
	if (p->match)
		return &p->listener;
	free(p);
	return NULL;
}
