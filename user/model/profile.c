/* SPDX-License-Identifier: GPL-2.0-only */
/* The model's door: each record goes to the subjects that it is about. Totals. */
#include "base/amounts.h"
#include "model/charge.h"
#include "model/profile_among.h"
#include "model/profile_state.h"
#include "model/trends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct profile *profile_new_among(const struct profile_config *config, struct processes *ps)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->config = *config;
	p->processes = ps ? ps : &p->own;
	p->own.max = PROFILE_MAX_PROCESSES;
	p->own.size = sizeof(struct process) + sizeof(struct holding);
	p->own.losses = &p->losses;
	p->fed = calloc(1, sizeof(*p->fed));
	phases_init(&p->phases, PROFILE_MAX_PHASES, p->processes, &p->losses);
	if (!p->fed || timeline_init(&p->timeline, config->no_timeline) ||
	    process_timeline_init(&p->process_timeline, config->no_timeline) ||
	    curve_init(&p->curve, config->no_timeline)) {
		profile_free(p);
		return NULL;
	}
	return p;
}

struct profile *profile_new(const struct profile_config *config)
{
	return profile_new_among(config, NULL);
}

void profile_keep_phases(struct profile *p, size_t max)
{
	p->phases.max = max < PROFILE_MAX_PHASES ? max : PROFILE_MAX_PHASES;
}

void profile_used(struct profile *p, const struct profile_usage *usage)
{
	if (!p->finished)
		usage_raise(&p->usage, usage);
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	phases_free(&p->phases);
	timeline_free(&p->timeline);
	process_timeline_free(&p->process_timeline);
	curve_free(&p->curve);
	gpu_curve_free(&p->gpu_curve);
	processes_free(&p->own);
	summaries_free(&p->summaries);
	deaths_free(&p->deaths);
	gpus_free(&p->gpus);
	files_free(&p->files);
	spaces_free(&p->spaces);
	devices_free(&p->devices);
	free(p->trends);
	names_free(&p->names);
	free(p->metrics);
	free(p->fed);
	free(p);
}

uint64_t profile_rel_ns(const struct profile *p, uint64_t time_ns)
{
	return time_ns > p->start_ns ? time_ns - p->start_ns : 0;
}

uint64_t profile_start_ns(const struct profile *p)
{
	return p->start_ns;
}

double profile_unix_secs(const struct profile *p, uint64_t time_ns)
{
	return (double)((int64_t)time_ns + p->config.realtime_offset_ns) / 1e9;
}

static void note_tree(struct profile *p, const struct profile_point *point)
{
	timeline_point(&p->timeline, point);
	if (point->time_ns < p->rss_now_ns)
		return;
	p->rss_now = point_rss(point);
	p->rss_now_ns = point->time_ns;
	p->swap_now = point->swap;
	p->needs_now = point->anon + point->shmem + point->swap;
}

static int feed_point(struct profile *p, const struct wire_point *wire)
{
	const uint64_t page = p->config.page_size;
	const uint64_t time_ns = wire->h.time_ns;
	struct process *process;
	struct profile_point point = {
		.time_ns = time_ns,
		.file = wire->tree_file * page,
		.anon = wire->tree_anon * page,
		.shmem = wire->tree_shmem * page,
		.swap = wire->tree_swap * page,
	};
	struct peak peak = {
		.rss = wire->tree_peak * page,
		.from_ns = p->rss_now_ns && p->rss_now_ns < time_ns ? p->rss_now_ns : time_ns,
		.to_ns = time_ns,
	};
	int err;

	/* After the run there is only the teardown of its processes. */
	if (p->finished && time_ns > p->end_ns)
		return 0;
	process = processes_point(p->processes, wire, page);
	if (!p->config.no_timeline)
		sharing_of_point(&point, wire->inherited * page,
				 sharing_point(&p->sharing, p->processes, process, wire, page));
	err = process_timeline_point(&p->process_timeline, p->processes, process, wire, &point,
				     page);
	if (err)
		return err;
	peak_fold(&p->peak, &peak);
	peak = (struct peak){.rss = point_rss(&point), .from_ns = time_ns, .to_ns = time_ns};
	if (time_ns > p->last_ns)
		peak_fold(&p->tail, &peak);
	note_tree(p, &point);
	sharing_note(&p->totals, &point, wire->inherited * page,
		     profile_is_among_others(p) ? 0 : p->own.live);
	return 0;
}

static void feed_usage(struct profile *p, const struct wire_usage_point *wire)
{
	struct profile_usage usage = usage_from_wire(&wire->tree);

	within_forget(&p->within, &usage);
	curve_point(&p->curve, wire->h.time_ns, &usage, false);
}

static void note_name(struct profile_losses *losses, const struct profile_name *name)
{
	losses->unreadable_names += name->unreadable;
	losses->cut_names += name->cut;
	losses->invalid_utf8_names += name->invalid_utf8;
}

static bool add_metric(struct profile *p, const struct wire_checkpoint *cp)
{
	const struct profile_metric value = metric_from_wire(cp);

	if (!row_metrics_add(p->metrics, p->name.text, &value))
		return false;
	p->losses.unreadable_metrics += value.kind == PROFILE_UNREADABLE;
	return true;
}

static bool add_summary(struct profile *p, const struct wire_checkpoint *cp)
{
	const struct interned *name = names_find(&p->names, &p->name);
	const struct profile_metric value = metric_from_wire(cp);

	if (!name && p->summaries.n < PROFILE_MAX_SUMMARIES)
		name = names_intern(&p->names, &p->name);
	p->losses.unreadable_metrics += value.kind == PROFILE_UNREADABLE;
	return name && summaries_set(&p->summaries, name, &value);
}

static bool add_definition(struct profile *p)
{
	const struct interned *text = names_find(&p->names, &p->name);

	if (!text && p->summaries.n_definitions < PROFILE_MAX_SUMMARIES)
		text = names_intern(&p->names, &p->name);
	return text && summaries_define(&p->summaries, text);
}

/* `metric`, `summary`, `define`, `failed`, `item`: the site tells them apart. An item is for a
 * marker. */
static void feed_metric(struct profile *p, const struct wire_checkpoint *cp)
{
	const char *site =
		p->config.site_name ? p->config.site_name(p->config.context, cp->site) : NULL;
	bool taken = true;

	site = site ? site : "";
	if (!strcmp(site, "summary"))
		taken = add_summary(p, cp);
	else if (!strcmp(site, "define"))
		taken = add_definition(p);
	else if (!strcmp(site, "failed"))
		deaths_fail(&p->deaths, cp, p->name.text, phases_of(&p->phases, cp->h.tgid),
			    p->config.page_size, &p->losses);
	else if (strcmp(site, "item") != 0)
		taken = add_metric(p, cp);
	p->losses.dropped_metrics += !taken;
}

static void make_step_text(struct profile *p, enum wire_what what)
{
	const char *suffix = what == WIRE_BEGIN ? " Start" : what == WIRE_END ? " End" : "";
	char *end = stpcpy(p->fed->step_text, p->name.text);

	stpcpy(end, suffix);
}

static const struct profile_checkpoint *make_step(struct profile *p,
						  const struct wire_checkpoint *cp,
						  const struct profile_memory *tree,
						  const struct profile_memory *own)
{
	make_step_text(p, cp->what);
	timeline_peak(&p->timeline, &p->step_peak);
	p->fed->step = (struct profile_checkpoint){
		.step = p->fed->step_text,
		.name = p->name,
		.what = cp->what,
		.number = pairing_number(cp),
		.time_ns = cp->h.time_ns,
		.rel_ns = profile_rel_ns(p, cp->h.time_ns),
		.unix_secs = profile_unix_secs(p, cp->h.time_ns),
		.started_ns = cp->h.started_ns,
		.seq = cp->seq,
		.tgid = cp->h.tgid,
		.tid = cp->h.tid,
		.tree = *tree,
		.own = *own,
		.tree_usage = p->usage,
		.own_usage = usage_from_wire(&cp->own.usage),
		.inherited = cp->inherited * p->config.page_size,
		.charge = p->charge,
		.charged = p->charged,
		.throttled = p->throttled,
		.processes = cp->processes,
		.buffered = cp->text_state & WIRE_TEXT_BUFFERED,
		.metrics = p->metrics ? p->metrics->list : NULL,
		.n_metrics = p->metrics ? p->metrics->n : 0,
	};
	within_forget(&p->within, &p->fed->step.own_usage);
	p->fed->step.tree.step_peak = p->step_peak.rss;
	p->fed->step.tree.gpu_step_peak = p->step_peak.gpu;
	p->step_peak = (struct peak){0};
	p->charged = (struct profile_charged){0};
	p->throttled = (struct profile_throttled){0};
	if (p->metrics)
		p->metrics->joined = true;
	p->totals.checkpoints++;
	return &p->fed->step;
}

/* The run begins with WIRE_START, or with the first record if that was lost. */
static void note_run(struct profile *p, const struct wire_header *h, enum wire_what what)
{
	if (!p->any_record || (what == WIRE_START && !p->started))
		p->start_ns = h->time_ns;
	p->any_record = true;
	p->started |= what == WIRE_START;
	if (what == WIRE_FINISH) {
		p->finished = true;
		p->end_ns = h->time_ns;
	}
}

/* Checkpoints of two CPUs may come in the wrong order. What is missing is what the highest number
 * lacks. */
static void note_seq(struct profile *p, uint32_t seq)
{
	const uint64_t given = p->received + p->losses.missing_checkpoints;
	const uint64_t total = (uint64_t)seq + 1 > given ? (uint64_t)seq + 1 : given;

	p->received++;
	p->losses.missing_checkpoints = total > p->received ? total - p->received : 0;
}

/* Returns a peak that a checkpoint tells of: it was at some time since the last checkpoint. */
static struct peak peak_before(const struct profile *p, const struct wire_checkpoint *cp,
			       uint64_t rss)
{
	const uint64_t time_ns = cp->h.time_ns;

	return (struct peak){
		.rss = rss,
		.from_ns = p->last_ns && p->last_ns < time_ns ? p->last_ns : time_ns,
		.to_ns = time_ns,
		.charge = cp->charged * p->config.page_size,
	};
}

static void note_gpu_peaks(const struct profile_memory *tree, struct peak *step,
			   struct peak *overall)
{
	step->gpu = tree->gpu_step_peak;
	step->pinned = tree->pinned_step_peak;
	overall->gpu = tree->peak_gpu;
	overall->pinned = tree->peak_pinned;
}

/* The kernel side begins a new peak with each checkpoint. Metrics and texts are such checkpoints: a
 * step has the peaks of those before it. */
static void note_peaks(struct profile *p, uint64_t time_ns, const struct peak *step,
		       const struct peak *overall)
{
	if (p->step_peak.to_ns == 0)
		p->step_peak = *step;
	else
		peak_fold(&p->step_peak, step);
	peak_fold(&p->peak, overall);
	if (p->tail.to_ns <= time_ns)
		p->tail = (struct peak){0};
	raise_to(&p->last_ns, time_ns);
}

static void note_checkpoint_tree(struct profile *p, const struct wire_checkpoint *cp,
				 const struct profile_memory *tree,
				 const struct profile_usage *usage)
{
	const uint64_t page = p->config.page_size;
	const uint64_t own_shmem = cp->own.memory.shmem * page;
	struct profile_point point = {
		.time_ns = cp->h.time_ns,
		.file = tree->file,
		.anon = tree->anon,
		.shmem = tree->shmem,
		.swap = tree->swap,
	};

	/* What others hold was told by points, which may be from before or after this. */
	sharing_of_point(&point, cp->inherited * page, cp->processes > 1 ? own_shmem : point.shmem);
	p->usage = *usage;
	curve_point(&p->curve, cp->h.time_ns, &p->usage, true);
	raise_to(&p->totals.peak_hugetlb, tree->hugetlb);
	note_tree(p, &point);
	sharing_note(&p->totals, &point, cp->inherited * page, cp->processes);
	sharing_note_most(&p->totals, &cp->most, page);
}

static void read_name(struct profile *p, const struct wire_checkpoint *cp)
{
	static const struct profile_name start = {.text = "Start"}, end = {.text = "End"};
	static const struct profile_name none = {.text = ""};

	if (WIRE_IS_HEARD(cp->what))
		p->name = none;
	else if (cp->what == WIRE_START)
		p->name = start;
	else if (cp->what == WIRE_FINISH)
		p->name = end;
	else
		name_read(&p->config, cp, &p->name, p->fed->name_text);
}

/* Whoever marks phases may be one of several that run the same script. */
static void ask_rank(const struct profile *p, struct process *process,
		     const struct wire_checkpoint *cp)
{
	struct profile_process *pub = &process->pub;

	if (pub->rank_asked || !p->config.rank || (cp->what != WIRE_BEGIN && cp->what != WIRE_MARK))
		return;
	pub->rank_asked = true;
	pub->rank = p->config.rank(p->config.context, pub->tgid, pub->started_ns);
}

/* Who hit it, and what that process has. */
static void note_processes(struct profile *p, const struct wire_checkpoint *cp,
			   const struct phase_event *event, const struct profile_memory *own)
{
	p->who = event->process;
	if (cp->what == WIRE_START && !p->first)
		p->first = event->process;
	main_peak_checkpoint(&p->main_peak, event->process && event->process == p->first,
			     p->config.page_size, cp);
	if (cp->what == WIRE_FINISH) {
		/* Of a process that was gone already, the record has nothing. */
		p->last = cp->h.started_ns ? event->process : NULL;
		p->last_own = event->own;
	}
	if (!event->process)
		return;
	ask_rank(p, event->process, cp);
	processes_checkpoint(event->process, cp, p->config.page_size);
	within_forget(&p->within, &event->process->pub.usage);
	gpu_of_process(event->process, own);
}

static int feed_checkpoint(struct profile *p, const struct wire_checkpoint *cp,
			   const struct profile_checkpoint **step)
{
	const uint64_t time_ns = cp->h.time_ns;
	struct profile_memory tree = memory_from_wire(&cp->tree.memory, p->config.page_size);
	struct profile_memory own = memory_from_wire(&cp->own.memory, p->config.page_size);
	struct peak step_peak = peak_before(p, cp, tree.step_peak);
	struct peak overall = peak_before(p, cp, tree.peak);
	struct phase_event event = {
		.what = cp->what,
		.tgid = cp->h.tgid,
		.tid = cp->h.tid,
		.text_state = cp->text_state,
		.name = &p->name,
		.number = pairing_number(cp),
		.now = {.time_ns = time_ns,
			.rss = tree.rss,
			.needs = tree.anon + tree.shmem + tree.swap,
			.swap = tree.swap,
			.sums = {cp->grown, cp->given_back, cp->ended, cp->gpu_grown},
			.usage = usage_of_tree(cp),
			.charge = charge_from_wire(cp, p->config.page_size)},
		.own = own_moment(cp, p->config.page_size),
	};
	char renamed_text[NAME_TEXT_MAX];
	struct profile_name renamed;
	int err = processes_get(p->processes, &cp->h, &event.process);

	if (err)
		return err;
	if (cp->what == WIRE_METRIC && !p->metrics) {
		p->metrics = calloc(1, sizeof(*p->metrics));
		if (!p->metrics)
			return -ENOMEM;
	}
	gpus_join(&p->gpus, cp, &tree, &own);
	event.now.gpu = tree.gpu;
	note_gpu_peaks(&tree, &step_peak, &overall);
	read_name(p, cp);
	within_usage(&p->within, &event.now.usage, time_ns);
	event.now.window_ns = p->within.open_ns;
	event.renamed = name_read_new(cp, &renamed, renamed_text) ? &renamed : NULL;
	/* Open phases had this peak, whether or not the rest succeeds. */
	phases_fold(&p->phases, &step_peak);
	err = phases_step(&p->phases, &p->names, &event);
	if (err)
		return err;
	row_metrics_drop_joined(p->metrics);
	note_run(p, &cp->h, cp->what);
	if (!(cp->text_state & WIRE_TEXT_AGAIN))
		note_seq(p, cp->seq);
	note_name(&p->losses, &p->name);
	note_peaks(p, time_ns, &step_peak, &overall);
	note_checkpoint_tree(p, cp, &tree, &event.now.usage);
	p->charge = event.now.charge;
	if (p->charge.now)
		p->last_charge = p->charge;
	if (!p->first_charge.now)
		p->first_charge = p->charge;
	note_processes(p, cp, &event, &own);
	p->gpu_now = tree.gpu;
	p->sums_now = event.now.sums;
	if (cp->what == WIRE_METRIC)
		feed_metric(p, cp);
	else if (!WIRE_IS_HEARD(cp->what) && !(cp->text_state & WIRE_TEXT_DIED))
		*step = make_step(p, cp, &tree, &own);
	return 0;
}

void profile_exit(struct profile *p, const struct process *process,
		  const struct wire_process *event)
{
	const uint64_t step_peak = event->memory.step_peak * p->config.page_size;

	phases_exit(&p->phases, process, step_peak);
	deaths_exit(&p->deaths, event, &p->losses);
	if (process != p->first)
		return;
	main_peak_exit(&p->main_peak, step_peak);
}

static int feed_process(struct profile *p, const struct wire_process *event)
{
	struct process *process;
	int err;

	if (event->h.kind == WIRE_EXIT && p->finished && event->h.time_ns > p->end_ns) {
		processes_ended_later(p->processes, event);
		deaths_exit(&p->deaths, event, &p->losses);
		return 0;
	}
	err = processes_event(p->processes, event, p->config.page_size, &process);
	if (err)
		return err;
	if (process)
		within_forget(&p->within, &process->pub.usage);
	if (process && !process->pub.end_ns)
		process_timeline_joined(process);
	if (process && event->h.kind == WIRE_EXIT)
		profile_exit(p, process, event);
	note_run(p, &event->h, 0);
	return 0;
}

static int feed_death(struct profile *p, const struct wire_header *record)
{
	const char *phase = phases_of(&p->phases, record->tgid);

	return deaths_feed(&p->deaths, record, phase, &p->config, &p->losses);
}

int profile_feed(struct profile *p, const struct wire_header *record,
		 const struct profile_checkpoint **step)
{
	const void *data = record;
	int err;

	*step = NULL;
	switch ((enum wire_kind)record->kind) {
	case WIRE_CHECKPOINT:
		return feed_checkpoint(p, data, step);
	case WIRE_FORK:
	case WIRE_EXEC:
	case WIRE_EXIT:
		if (p->config.copies)
			copies_changed(&p->files.copies, record->time_ns);
		return feed_process(p, data);
	case WIRE_LEFT: /* of a run that is served: it has no copies */
		p->losses.withheld_processes++;
		processes_lose(p->processes, record);
		return 0;
	case WIRE_DEATH:
	case WIRE_ENDING:
		return feed_death(p, record);
	case WIRE_POINT:
		err = feed_point(p, data);
		if (!err)
			note_run(p, record, 0);
		return err;
	case WIRE_USAGE:
		feed_usage(p, data);
		note_run(p, record, 0);
		return 0;
	case WIRE_GPU:
	case WIRE_GPU_POINT:
	case WIRE_GPU_REFUSED:
		return profile_feed_gpu(p, record);
	case WIRE_STORED:
		return files_feed(&p->files, data);
	case WIRE_STORED_NAME:
		return files_name(&p->files, data, &p->config);
	case WIRE_SPACE:
		return spaces_feed(&p->spaces, data);
	case WIRE_DEVICE:
		return devices_feed(&p->devices, data);
	case WIRE_DEVICE_HOW_LONG:
		return devices_feed_times(&p->devices, data);
	case WIRE_GPU_CODE:
	case WIRE_MAPPED:
	case WIRE_STORED_ALL:
	case WIRE_JOINED: /* the service makes WIRE_FORK of it */
		break;
	}
	return 0;
}

static int finish_timeline(struct profile *p)
{
	const struct phases *phases = &p->phases;
	int err = timeline_finish(&p->timeline, p->start_ns, phases->peaks, phases->n, &p->peak,
				  &p->totals.peak_time_ns);

	if (!err)
		err = process_timeline_finish(&p->process_timeline, p->processes);
	curve_finish(&p->curve, p->start_ns, p->end_ns);
	gpu_curve_finish(&p->gpu_curve, p->start_ns, p->end_ns);
	p->losses.thinned_points = p->timeline.thinned + p->process_timeline.thinned +
				   p->curve.thinned + p->gpu_curve.thinned;
	return err;
}

static void finish_main_peak(struct profile *p)
{
	const struct main_peak *since_start = &p->main_peak;
	const struct profile_process *main_process = profile_is_among_others(p)
							     ? (p->first ? &p->first->pub : NULL)
							     : processes_main(&p->own);
	struct profile_totals *totals = &p->totals;

	totals->main_peak_rss = main_process ? main_process->memory.peak : 0;
	totals->main_peak_known = true;
	if (!profile_is_among_others(p) || totals->main_peak_rss > since_start->before)
		return;
	totals->main_peak_rss = since_start->told;
	totals->main_peak_known =
		main_process && p->finished && since_start->whole && !p->losses.missing_checkpoints;
}

static void finish_totals(struct profile *p)
{
	struct profile_totals *totals = &p->totals;
	struct profile_usage sum;

	totals->duration_ns = profile_rel_ns(p, p->end_ns);
	totals->peak_rss = p->peak.rss;
	totals->peak_gpu = p->peak.gpu;
	totals->peak_pinned = p->peak.pinned;
	raise_to(&totals->peak_gpu, p->gpus.peak);
	raise_to(&totals->peak_pinned, p->gpus.peak_pinned);
	totals->gpu_processes = p->gpus.processes;
	finish_main_peak(p);
	/* The tree had at least what each process had. This helps where the record of the tree's
	 * peak was lost. A job's processes may have had their peaks before the job. */
	if (!profile_is_among_others(p)) {
		raise_to(&totals->peak_rss, processes_highest(&p->own));
		raise_to(&totals->peak_hugetlb, processes_highest_hugetlb(&p->own));
	}
	totals->charge_peak = charge_peak(&p->first_charge, &p->last_charge, p->peak.charge);
	totals->charge_peak.at_least |=
		totals->charge_peak.bytes && (!p->finished || !p->charge.now);
	totals->processes = (uint32_t)p->own.n;
	totals->usage = p->usage;
	totals->window_ns = p->within.open_ns;
	if (p->finished || profile_is_among_others(p))
		return;
	/* WIRE_FINISH was lost. The last record of each process says what it has used. */
	processes_usage(&p->own, &sum);
	usage_raise(&totals->usage, &sum);
}

static int find_trends(struct profile *p)
{
	struct trends trends = {0};
	int err = 0;

	for (size_t i = 0; !err && i < p->phases.n; i++) {
		const struct profile_phase *phase = &p->phases.list[i];
		struct trend_phase repeat = {
			.name = phase->name,
			.is_pair = phase->kind == PROFILE_PHASE_PAIR,
			.figures = {[TREND_MEMORY] = (double)phase->end_rss,
				    [TREND_NEEDS] = (double)phase->end_needs,
				    [TREND_SWAP] = (double)phase->end_swap,
				    [TREND_PEAK] = (double)phase->peak_rss,
				    [TREND_GPU] = (double)phase->end_gpu,
				    [TREND_GPU_PEAK] = (double)phase->peak_gpu,
				    [TREND_TIME] = (double)(phase->end_ns - phase->start_ns)},
		};

		trend_used(&repeat, &phase->usage);
		if (phase->closed)
			err = trends_add(&trends, &repeat);
	}
	if (!err)
		err = trends_find(&trends, &p->trends, &p->n_trends);
	trends_free(&trends);
	return err;
}

int profile_finish(struct profile *p, uint64_t now_ns)
{
	struct moment now = {
		.rss = p->rss_now,
		.needs = p->needs_now,
		.swap = p->swap_now,
		.gpu = p->gpu_now,
		.sums = p->sums_now,
		.window_ns = p->within.open_ns,
		.usage = p->usage,
	};
	int err;

	if (!p->finished) {
		p->end_ns = now_ns;
		phases_fold(&p->phases, &p->tail);
	} else {
		now.charge = p->charge;
	}
	now.time_ns = p->end_ns;
	row_metrics_drop_joined(p->metrics);
	if (p->metrics) {
		p->losses.dropped_metrics += p->metrics->n;
		p->metrics->n = 0;
	}
	phases_finish(&p->phases, &now, p->last, &p->last_own);
	gpus_finish(&p->gpus);
	finish_totals(p);
	err = finish_timeline(p);
	if (!err && p->config.files)
		err = files_finish(&p->files, &p->config, p->phases.list, p->phases.n,
				   &p->totals.usage, p->end_ns, &p->losses);
	if (!err && p->config.files)
		err = spaces_finish(&p->spaces, &p->files, p->end_ns, &p->losses);
	if (!err && p->config.files)
		err = devices_finish(&p->devices, p->phases.list, p->phases.n);
	if (!err)
		err = deaths_name_files(&p->deaths, &p->files, p->config.base_names);
	return err || p->config.no_timeline ? err : find_trends(p);
}
