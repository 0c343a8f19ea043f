/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/metrics/meter.h"
#include "base/amounts.h"
#include "base/hash.h"
#include "model/pairing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct key {
	uint64_t started_ns, tgid;
};

/* A process that is alive, and what was counted of it. */
struct metered_process {
	struct key key;
	struct series *series;
	char command[WIRE_COMM_LEN + 1]; /* when it was forked, or executed its program */
	uint64_t job, cgroup;		 /* of the label set */
	struct profile_usage seen;	 /* what was counted */
	uint64_t earlier_peak;		 /* before it executed its program */
	unsigned int look;		 /* the last that saw it */
	UT_hash_handle hh;
};

/* The label set of a phase of that name. */
struct step {
	char name[METRIC_VALUE_MAX + 1];
	struct series *series;
};

enum { RECENT_STEPS = 8 };

/* A job that runs. */
struct metered_job {
	struct machine_job *model;
	uint64_t id;
	uint32_t index; /* of the job */
	struct series *series;
	char name[METER_NAME_MAX];
	uint32_t uid;
	size_t steps; /* names of phases that nobody had before it */
	struct step recent[RECENT_STEPS];
	size_t next_recent; /* the one that is replaced next */
	struct pairing phases;
};

struct meter {
	struct meter_config config;
	struct metrics *metrics;
	struct series *machine;
	struct metered_process *processes;
	struct metered_job *jobs[WIRE_MAX_JOBS];
	unsigned int look;
};

/* ---- Names ------------------------------------------------------------------------------------
 */

static bool is_interpreter(const char *comm)
{
	static const char *const names[] = {"bash", "sh", "dash", "zsh", "perl", "ruby", "node"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(comm, names[i]))
			return true;
	return !strncmp(comm, "python", strlen("python"));
}

struct word {
	const char *at;
	size_t len;
};

static bool next_word(const char **rest, struct word *word)
{
	*rest += strspn(*rest, " ");
	*word = (struct word){*rest, strcspn(*rest, " ")};
	*rest += word->len;
	return word->len;
}

static struct word base_of(struct word path)
{
	const char *slash = memrchr(path.at, '/', path.len);

	if (!slash)
		return path;
	return (struct word){slash + 1, (size_t)(path.at + path.len - slash - 1)};
}

/* Returns the letter of a one-letter option, which may have a value; or NUL. */
static char letter_of(const struct word *option)
{
	return option->len == 2 ? option->at[1] : '\0';
}

/* Returns the first argument that is no option, or the module of Python's -m. A one-liner has
 * neither. */
static struct word script_of(const char *comm, const char *cmdline)
{
	const bool is_python = !strncmp(comm, "python", strlen("python"));
	const char one_liner = is_python || strstr(comm, "sh") ? 'c' : 'e';
	struct word word;

	next_word(&cmdline, &word); /* the interpreter */
	while (next_word(&cmdline, &word)) {
		const char letter = *word.at == '-' ? letter_of(&word) : '\0';

		if (*word.at != '-')
			return base_of(word);
		if (letter == one_liner)
			break;
		if (is_python && letter == 'm') {
			next_word(&cmdline, &word);
			return word;
		}
		if (is_python && (letter == 'W' || letter == 'X'))
			next_word(&cmdline, &word);
	}
	return (struct word){0};
}

char *meter_job_name(char *out, const char *comm, const char *cmdline)
{
	struct word word = {0};

	if (cmdline && is_interpreter(comm))
		word = script_of(comm, cmdline);
	if (!word.len)
		word = (struct word){comm, strlen(comm)};
	if (word.len >= METER_NAME_MAX)
		word.len = METER_NAME_MAX - 1;
	memcpy(out, word.at, word.len);
	out[word.len] = '\0';
	return out;
}

/* ---- Processes --------------------------------------------------------------------------------
 */

static struct metered_job *metered_job_of(const struct meter *meter,
					  const struct machine_job *model)
{
	struct metered_job *job = model ? meter->jobs[model->index % WIRE_MAX_JOBS] : NULL;

	return job && job->id == model->id ? job : NULL;
}

static const char *container_label(const struct meter *meter, uint64_t cgroup)
{
	return meter->config.container(meter->config.context, cgroup);
}

static struct metered_process *find(const struct meter *meter, const struct profile_process *pub)
{
	const struct key key = {pub->started_ns, pub->tgid};
	struct metered_process *found;

	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): it loses the bytes */
	HASH_FIND(hh, meter->processes, &key, sizeof(key), found);
	return found;
}

/* Moves a process to the label set that it belongs to now. */
static void bind(struct meter *meter, struct metered_process *process,
		 const struct profile_process *pub, uint64_t now_ns)
{
	const struct metered_job *job = metered_job_of(meter, machine_job_of(pub));
	struct series *before = process->series;
	char pid[16];
	const char *values[METRIC_MAX_LABELS] = {
		process->command, container_label(meter, pub->cgroup), job ? job->name : "", pid};

	snprintf(pid, sizeof(pid), "%u", pub->tgid);
	process->job = job ? job->id : 0;
	process->cgroup = pub->cgroup;
	process->series = series_take(meter->metrics, METRIC_PROCESS, values, pub->uid, now_ns);
	if (before)
		series_drop(meter->metrics, before, now_ns);
}

static bool is_bound_elsewhere(const struct meter *meter, const struct metered_process *process,
			       const struct profile_process *pub)
{
	const struct metered_job *job = metered_job_of(meter, machine_job_of(pub));

	return process->job != (job ? job->id : 0) || process->cgroup != pub->cgroup;
}

static void copy_command(struct metered_process *process, const struct profile_process *pub)
{
	_Static_assert(sizeof(process->command) == sizeof(pub->comm), "comm");
	memcpy(process->command, pub->comm, sizeof(process->command));
}

/* Returns NULL when out of memory: the next look meets the process again. */
static struct metered_process *meet(struct meter *meter, const struct profile_process *pub,
				    uint64_t now_ns)
{
	struct metered_process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->key = (struct key){pub->started_ns, pub->tgid};
	HASH_ADD(hh, meter->processes, key, sizeof(process->key), process);
	if (!process->hh.tbl) {
		free(process);
		return NULL;
	}
	copy_command(process, pub);
	bind(meter, process, pub, now_ns);
	return process;
}

static uint64_t count_more(uint64_t *seen, uint64_t now)
{
	const uint64_t more = since(*seen, now);

	*seen += more;
	return more;
}

/* Counts what a process has used since it was last looked at, and how large it was. */
static void count(struct meter *meter, struct metered_process *process,
		  const struct profile_process *pub)
{
	uint64_t more;

#define COUNT_EVERYWHERE(member)                                                                   \
	COUNT_TOTALS(member)                                                                       \
	series_add(process->series, M_PROCESS_##member, more);
#define COUNT_IF_ANY(member)   COUNT_EVERYWHERE(member)
#define COUNT_IF_ASKED(member) COUNT_EVERYWHERE(member)
#define COUNT_TOTALS(member)                                                                       \
	more = count_more(&process->seen.member, pub->usage.member);                               \
	series_add(meter->machine, M_MACHINE_##member, more);
#define COUNT_IN_RUNS(member)
#define COUNT_IN_TREES(member)
#define COUNT(member, s, u, where, ...) COUNT_##where(member)
	USAGE_QUANTITIES(COUNT, )
	/* If the process was larger under an earlier program, only its sizes at looks are known. */
	series_raise(process->series, M_PROCESS_PEAK,
		     pub->memory.peak > process->earlier_peak ? pub->memory.peak : pub->memory.rss);
}

static void forget(struct meter *meter, struct metered_process *process, uint64_t now_ns)
{
	series_drop(meter->metrics, process->series, now_ns);
	HASH_DEL(meter->processes, process);
	free(process);
}

static struct metered_process *find_or_meet(struct meter *meter, const struct profile_process *pub,
					    uint64_t now_ns)
{
	struct metered_process *process = find(meter, pub);

	return process ? process : meet(meter, pub, now_ns);
}

static void on_fork(struct meter *meter, const struct profile_process *pub, uint64_t now_ns)
{
	struct metered_process *process = find_or_meet(meter, pub, now_ns);

	if (process && !(pub->flags & WIRE_PROCESS_ATTACHED))
		series_add(process->series, M_PROCESS_STARTS, 1);
}

static void on_exec(struct meter *meter, const struct profile_process *pub, uint64_t now_ns)
{
	struct metered_process *process = find(meter, pub);

	/* The command line of a process from before the audit comes as an exec at its first moment.
	 */
	if (process && now_ns == pub->first_ns)
		return;
	if (process) {
		count(meter, process, pub);
		process->earlier_peak = pub->memory.peak;
		copy_command(process, pub);
		bind(meter, process, pub, now_ns);
	} else {
		process = meet(meter, pub, now_ns);
	}
	if (process)
		series_add(process->series, M_PROCESS_STARTS, 1);
}

static void on_exit_of(struct meter *meter, const struct profile_process *pub, uint64_t now_ns)
{
	struct metered_process *process = find_or_meet(meter, pub, now_ns);

	if (!process)
		return;
	count(meter, process, pub);
	forget(meter, process, now_ns);
}

/* ---- Jobs and their phases --------------------------------------------------------------------
 */

static void end_job(struct meter *meter, struct metered_job *job, uint64_t now_ns)
{
	meter->jobs[job->index] = NULL;
	for (size_t i = 0; i < RECENT_STEPS; i++)
		if (job->recent[i].series)
			series_drop(meter->metrics, job->recent[i].series, now_ns);
	series_drop(meter->metrics, job->series, now_ns);
	pairing_free(&job->phases);
	free(job);
}

static void begin_job(struct meter *meter, struct machine_job *model, uint64_t now_ns)
{
	struct metered_job **at = &meter->jobs[model->index % WIRE_MAX_JOBS], *job;
	const struct profile_process *root = model->root;
	struct metered_process *process = find(meter, root);
	char uid[16];

	if (*at) /* its end was lost */
		end_job(meter, *at, now_ns);
	*at = job = calloc(1, sizeof(*job));
	if (!job)
		return;
	pairing_init(&job->phases, METER_DEPTH);
	job->model = model;
	job->id = model->id;
	job->index = model->index % WIRE_MAX_JOBS;
	job->uid = root->uid;
	meter_job_name(job->name, process ? process->command : root->comm, root->cmdline);
	snprintf(uid, sizeof(uid), "%u", root->uid);
	job->series = series_take(
		meter->metrics, METRIC_JOB,
		(const char *const[METRIC_MAX_LABELS]){job->name, model->rule,
						       container_label(meter, root->cgroup), uid},
		root->uid, now_ns);
	series_add(job->series, M_JOB_STARTS, 1);
	if (!process)
		return;
	count(meter, process, root); /* until now it was in no job */
	bind(meter, process, root, now_ns);
}

/* Returns the label set of a phase of that name. A job may bring along METER_STEPS new names. */
static struct series *step_series(struct meter *meter, struct metered_job *job, const char *name,
				  uint64_t now_ns)
{
	const char *const values[METRIC_MAX_LABELS] = {job->name, name};
	const char *const others[METRIC_MAX_LABELS] = {job->name, "other"};
	const bool is_new = !series_known(meter->metrics, METRIC_STEP, values);
	const bool is_too_much = is_new && job->steps >= METER_STEPS;

	job->steps += is_new;
	return series_take(meter->metrics, METRIC_STEP, is_too_much ? others : values, job->uid,
			   now_ns);
}

/* The same of one that the job came to a moment ago, without a search: there may be thousands in a
 * second. */
static struct series *recent_step(struct meter *meter, struct metered_job *job, const char *name,
				  uint64_t now_ns)
{
	struct step *step;

	for (size_t i = 0; i < RECENT_STEPS; i++)
		if (job->recent[i].series && !strcmp(job->recent[i].name, name))
			return job->recent[i].series;
	step = &job->recent[job->next_recent++ % RECENT_STEPS];
	if (step->series)
		series_drop(meter->metrics, step->series, now_ns);
	snprintf(step->name, sizeof(step->name), "%s", name);
	step->series = step_series(meter, job, name, now_ns);
	return step->series;
}

static void count_phase(struct meter *meter, struct metered_job *job,
			const struct open_phase *ended, uint64_t now_ns)
{
	char name[METRIC_VALUE_MAX + 1];
	struct series *series;

	snprintf(name, sizeof(name), "%s", ended->text);
	series = recent_step(meter, job, name, now_ns);
	series_raise(series, M_STEP_PEAK, ended->peak.rss);
	series_add(series, M_STEP_TIME, since(ended->start_ns, now_ns));
	series_add(series, M_STEP_RUNS, 1);
}

static void raise_peaks(const struct metered_job *job, const struct machine_job *model)
{
	series_raise(job->series, M_JOB_PEAK, profile_peak_so_far(model->profile));
	series_raise(job->series, M_JOB_GPU_PEAK, model->gpu_peak);
}

/* What the tree had since the last checkpoint, whichever phases were open had. */
static void fold_peak(struct metered_job *job, uint64_t rss)
{
	pairing_fold(&job->phases, &(struct peak){.rss = rss});
}

static void finish_phases(struct meter *meter, struct metered_job *job, uint64_t now_ns)
{
	const struct open_phase *ended;

	while ((ended = pairing_finish(&job->phases)))
		count_phase(meter, job, ended, now_ns);
}

static void count_step(struct meter *meter, struct metered_job *job,
		       const struct profile_checkpoint *step)
{
	const struct pairing_hit hit = pairing_hit_of(step);
	struct pairing_change change;

	if (step->what == WIRE_FINISH) {
		finish_phases(meter, job, step->time_ns);
		return;
	}
	if (!pairing_step(&job->phases, &hit, &change) && change.ended)
		count_phase(meter, job, change.ended, step->time_ns);
	if (step->what != WIRE_START)
		series_add(job->series, M_JOB_CHECKPOINTS, 1);
}

static void on_checkpoint_record(struct meter *meter, const struct wire_checkpoint *cp,
				 const struct machine_news *news)
{
	const uint64_t step_peak = cp->tree.memory.step_peak * meter->config.page_size;
	struct metered_job *job;

	if (news->job_began)
		begin_job(meter, news->job, cp->h.time_ns);
	job = metered_job_of(meter, news->job);
	if (!job)
		return;
	/* A metric is no step, and has a peak all the same. */
	fold_peak(job, step_peak);
	if (news->step)
		count_step(meter, job, news->step);
	if (news->job_ended)
		raise_peaks(job, news->job);
}

static void count_root_exit(struct metered_job *job, uint32_t exit_code)
{
	enum metric result = M_JOB_SUCCESSES;

	if (exit_code & 0x7f) /* as wait(2) has it */
		result = M_JOB_SIGNALS;
	else if (exit_code >> 8 & 0xff)
		result = M_JOB_FAILURES;
	series_add(job->series, result, 1);
}

/* ---- Records, and looks -----------------------------------------------------------------------
 */

static void on_process_record(struct meter *meter, const struct wire_header *record,
			      const struct machine_news *news)
{
	const struct profile_process *pub = news->process;
	struct metered_job *job = metered_job_of(meter, news->job);

	if (record->kind == WIRE_FORK)
		on_fork(meter, pub, record->time_ns);
	else if (record->kind == WIRE_EXEC)
		on_exec(meter, pub, record->time_ns);
	else
		on_exit_of(meter, pub, record->time_ns);
	if (!job || record->kind != WIRE_EXIT)
		return;
	if (news->job->root == pub)
		count_root_exit(job, pub->exit_code);
	if (!news->job_is_over)
		return;
	fold_peak(job, profile_peak_since_checkpoint(news->job->profile));
	finish_phases(meter, job, record->time_ns);
	raise_peaks(job, news->job);
	end_job(meter, job, record->time_ns);
}

void meter_took(struct meter *meter, const struct wire_header *record,
		const struct machine_news *news)
{
	if (record->kind == WIRE_CHECKPOINT && news->job)
		on_checkpoint_record(meter, (const struct wire_checkpoint *)record, news);
	else if (news->process && (record->kind == WIRE_FORK || record->kind == WIRE_EXEC ||
				   record->kind == WIRE_EXIT))
		on_process_record(meter, record, news);
}

static void look_at_process(struct meter *meter, const struct profile_process *pub, uint64_t now_ns)
{
	struct metered_process *process = find_or_meet(meter, pub, now_ns);

	if (!process)
		return;
	count(meter, process, pub);
	if (is_bound_elsewhere(meter, process, pub)) {
		bind(meter, process, pub, now_ns);
		count(meter, process, pub); /* how large it is */
	}
	process->look = meter->look;
	series_add(process->series, M_PROCESSES, 1);
	series_add(process->series, M_PROCESS_RSS, pub->memory.rss);
#define ADD_BESIDE(member, ...) series_add(process->series, M_PROCESS_##member, pub->memory.member);
	MEMORY_BESIDE(ADD_BESIDE, )
#undef ADD_BESIDE
}

/* Forgets processes whose end was lost. */
static void sweep(struct meter *meter, uint64_t now_ns)
{
	struct metered_process *process, *next;

	HASH_ITER (hh, meter->processes, process, next)
		if (process->look != meter->look)
			forget(meter, process, now_ns);
}

/* Of jobs with the same labels, the one that is worst off. */
static void lower(struct series *series, enum metric metric, uint64_t value)
{
	const uint64_t before = series_value(series, metric);

	if (value && (!before || value < before))
		series_set(series, metric, value);
}

static void look_at_limits(struct meter *meter, const struct metered_job *job)
{
	uint64_t left = 0, ns = 0;

	if (meter->config.limits)
		meter->config.limits(meter->config.context, job->model, &left, &ns);
	lower(job->series, M_JOB_LEFT, left);
	lower(job->series, M_JOB_TO_LIMIT, ns);
}

static void look_at_jobs(struct meter *meter)
{
	for (size_t i = 0; i < WIRE_MAX_JOBS; i++) {
		const struct metered_job *job = meter->jobs[i];

		if (!job || !machine_job_runs(job->model))
			continue;
		series_add(job->series, M_JOBS, 1);
		series_add(job->series, M_JOB_RSS, profile_rss_now(job->model->profile));
		series_add(job->series, M_JOB_GPU, job->model->gpu);
		raise_peaks(job, job->model);
		look_at_limits(meter, job);
	}
}

void meter_look(struct meter *meter, const struct machine *m, uint64_t now_ns)
{
	static const enum metric gauges[] = {
		M_PROCESSES, M_PROCESS_RSS, M_JOBS,	    M_JOB_RSS,
		M_JOB_GPU,   M_JOB_LEFT,    M_JOB_TO_LIMIT, MEMORY_BESIDE(METRIC_BESIDE, )};
	size_t n, alive = 0;
	const struct profile_process *const *processes = machine_processes(m, &n);

	meter->look++;
	for (size_t i = 0; i < sizeof(gauges) / sizeof(*gauges); i++)
		metrics_clear(meter->metrics, gauges[i]);
	for (size_t i = 0; i < n; i++) {
		if (!profile_process_runs(processes[i]))
			continue;
		look_at_process(meter, processes[i], now_ns);
		alive++;
	}
	if (HASH_COUNT(meter->processes) > alive)
		sweep(meter, now_ns);
	look_at_jobs(meter);
	metrics_tidy(meter->metrics, now_ns);
}

/* ---- Life -------------------------------------------------------------------------------------
 */

struct meter *meter_new(const struct meter_config *config)
{
	struct meter *meter = calloc(1, sizeof(*meter));

	if (!meter)
		return NULL;
	meter->config = *config;
	meter->metrics = metrics_new(&config->metrics);
	if (!meter->metrics) {
		free(meter);
		return NULL;
	}
	meter->machine = metrics_only(meter->metrics, METRIC_MACHINE);
	return meter;
}

void meter_free(struct meter *meter)
{
	struct metered_process *process, *next;

	if (!meter)
		return;
	process = meter->processes;
	HASH_CLEAR(hh, meter->processes);
	for (; process; process = next) {
		next = process->hh.next;
		free(process);
	}
	for (size_t i = 0; i < WIRE_MAX_JOBS; i++) {
		if (meter->jobs[i])
			pairing_free(&meter->jobs[i]->phases);
		free(meter->jobs[i]);
	}
	metrics_free(meter->metrics);
	free(meter);
}

struct metrics *meter_metrics(struct meter *meter)
{
	return meter->metrics;
}
