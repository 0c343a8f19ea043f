/* SPDX-License-Identifier: GPL-2.0-only */
/* What a capture says of itself: where its figures come from, what they lack, what went wrong. */
#include <stdlib.h>
#include <string.h>

#include "base/aside.h"
#include "base/log.h"
#include "capture/capture.h"
#include "format/quality.h"

void capture_warn(void *context, const char *what, const char *why)
{
	struct capture *c = context;
	struct run_quality *q = &c->quality;
	struct run_warning *warning = &c->warnings[q->n_warnings];

	log_verbose("%s: %s", what, why);
	q->warned++;
	for (size_t i = 0; i < q->n_warnings; i++)
		if (!strcmp(c->warnings[i].what, what) && !strcmp(c->warnings[i].why, why))
			return;
	if (q->n_warnings == CAPTURE_MAX_WARNINGS) {
		q->dropped_warnings++;
		return;
	}
	warning->what = strdup(what);
	warning->why = strdup(why);
	if (warning->what && warning->why) {
		q->n_warnings++;
		return;
	}
	free(warning->what);
	free(warning->why);
	q->dropped_warnings++;
}

void capture_count_dropped_row(struct capture *c)
{
	c->quality.dropped_rows++;
}

/* What io_read and io_write lack: at most two notes. */
static size_t calls_notes(const struct capture *c, const char **notes)
{
	const struct features *features = engine_features(c->engine);
	size_t n = 0;

	switch (features->calls) {
	case CALLS_TRACED:
		if (!features->aio)
			notes[n++] =
				"native AIO (io_submit) is not counted in io_read and io_write on "
				"this kernel; what it does O_DIRECT is in disk_read and disk_write";
		if (*features->untraced)
			notes[n++] =
				"some of the kernel's functions cannot be traced here, and what "
				"goes through them is not counted in io_read and io_write: "
				"io_calls names them";
		return n;
	case CALLS_PROBED:
		notes[0] = "splice, tee, vmsplice, process_vm_readv, process_vm_writev and native "
			   "AIO (io_submit) are seen at the functions of libc and libaio on this "
			   "kernel: calls made without them, and by 32-bit programs, are not "
			   "counted";
		notes[1] = "native AIO counts as what was asked for: a request that fails or comes "
			   "out short counts in full";
		return 2;
	case CALLS_NOT_COUNTED:
		notes[0] = "splice, tee, vmsplice, process_vm_readv, process_vm_writev and native "
			   "AIO (io_submit) are not counted in io_read and io_write on this "
			   "kernel; --count-splice counts those made through libc and libaio";
		return 1;
	}
	return 0;
}

/* What the service says of the kernel side; it ended if there is no account. */
static void take_account(struct capture *c, const struct source *source)
{
	struct run_quality *q = &c->quality;
	const struct source_account *account = &source->account;

	q->kernel = account->kernel;
	q->bad_records = account->bad_records;
	q->missed_events = account->missed_events;
	q->unsearched_files = account->unsearched_files;
	q->limited_searches = account->limited_searches;
	q->unread_processes = account->unread_processes;
	q->hanging_helpers = account->hanging_helpers;
}

/* What each source of figures leaves out or blurs on this kernel; docs/exactness.md has the
 * reasons. Returns how many notes were set. */
size_t capture_notes(const struct capture *c, const char *notes[CAPTURE_MAX_NOTES])
{
	static const char by_tick[] = QUALITY_CPU_BY_TICK
		": one that ends loses what it ran since; the teardown of a process after its exit "
		"is not in it";
	const struct source *source = c->options->source;
	size_t n = 0;

	if (source)
		return source->notes(source, notes, CAPTURE_MAX_NOTES);
	notes[n++] = engine_clock_reason(c->engine)
			     ? by_tick
			     : "cpu_time leaves out the teardown of a process after its exit";
	notes[n++] = "io_read and io_write are the kernel's rchar and wchar plus what those leave "
		     "out and is counted here: see io_calls; send and recv are in neither";
	notes[n++] =
		"disk_write counts pages when they are dirtied, as /proc/PID/io does: of a large "
		"folio all, also where one block of it changes and is written back; what was "
		"truncated before it was written is in total_disk_write_cancelled_mb";
	notes[n++] = "what is swapped in is in disk_read, what is swapped out is in nothing";
	notes[n++] = "hugetlb memory is in no RSS; it is looked up at checkpoints and as processes "
		     "start, exec and exit, so peak_hugetlb_mb is the highest of these";
	notes[n++] =
		engine_features(c->engine)->waits && c->options->engine.waits
			? "cpu_wait of a thread that waits for a CPU has that wait up to the row, "
			  "throttled once it is over"
		: engine_features(c->engine)->waits
			? "cpu_wait of a thread that waits for a CPU has that wait once it is over"
			: "this kernel does not keep how long threads wait for a CPU "
			  "(CONFIG_SCHED_INFO): cpu_wait is 0";
	if (*engine_stalls_lack(c->engine))
		notes[n++] = engine_stalls_lack(c->engine);
	if (engine_pid_level(c->engine))
		notes[n++] = "qprof-bpf ran in a nested pid namespace: pids are those that ps "
			     "shows there, and processes outside of it are not seen";
	n += calls_notes(c, notes + n);
	return n;
}

static void fill_backends(struct capture *c)
{
	const struct features_backends from = features_backends(engine_features(c->engine));

	c->info.backend_rss = from.rss;
	c->info.backend_io_calls = from.io_calls;
	c->info.backend_io_storage = from.io_storage;
	c->info.backend_checkpoints = from.checkpoints;
	c->info.backend_oom_kills = from.oom_kills;
}

void capture_fill_info(struct capture *c)
{
	c->info.version = QPROF_VERSION;
	c->info.hostname = c->uts.nodename;
	c->info.kernel = c->uts.release;
	c->info.started_at = c->began.tv_sec + c->began.tv_nsec / 1e9;
	if (!c->options->source)
		fill_backends(c);
}

const struct run_info *capture_info(const struct capture *c)
{
	return &c->info;
}

uint64_t capture_began_ns(const struct capture *c)
{
	return (uint64_t)c->began.tv_sec * 1000000000 + c->began.tv_nsec;
}

const struct run_quality *capture_quality(struct capture *c)
{
	struct run_quality *q = &c->quality;

	q->warnings = c->warnings;
	if (c->discovery) {
		q->unsearched_files = discovery_unsearched(c->discovery);
		q->limited_searches = discovery_put_off(c->discovery);
	}
	if (c->options->source) {
		take_account(c, c->options->source);
		return q;
	}
	q->hanging_helpers = aside_hanging();
	if (c->engine && !c->finishing) {
		q->kernel = engine_quality(c->engine);
		q->bad_records = rings_bad_records(c->rings);
		q->missed_events = engine_missed_events(c->engine);
	}
	return q;
}

void capture_fill_account(struct capture *c)
{
	const bool has_engine = c->engine;
	const struct engine_cost cost =
		has_engine ? engine_cost(c->engine) : (struct engine_cost){0};
	struct marker *marker = c->options->marker;

	if (c->rings && rings_are_stuck(c->rings))
		capture_warn(c, "the kernel side",
			     "a record was begun and not written within two seconds: it and what "
			     "came after it are missing");
	if (marker)
		c->quality.recipes = marker->tell(marker, c, &c->quality.n_recipes);
	if (has_engine && engine_was_deaf(c->engine))
		capture_warn(c, "the search of new code for probes",
			     "a program waited for it, and qprof-bpf, which was stopped or held "
			     "up, did nothing for 100 ms: after that no program waited, and the "
			     "first checkpoints of those that started may be missing");
	capture_quality(c);
	c->quality.cost = (struct run_cost){
		.counted = cost.counted,
		.bpf_run_ns = cost.run_ns,
		.bpf_runs = cost.runs,
		.bpf_wait_ns = cost.wait_ns,
		.bpf_switch_ns = cost.switch_ns,
		.bpf_switches = cost.switches,
		.own_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
	};
	c->quality.notes = c->notes;
	c->quality.n_notes = capture_notes(c, c->notes);
}

void capture_say_warnings(const struct capture *c)
{
	for (size_t i = 0; i < c->quality.n_warnings; i++)
		log_info("%s: %s", c->warnings[i].what, c->warnings[i].why);
}
