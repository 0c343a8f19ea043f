/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/engine.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/log.h"
#include "kernel/call.h"
#include "kernel/cpu_clocks.h"
#include "kernel/engine_state.h"
#include "kernel/iterator.h"
#include "kernel/procfs.h"
#include "kernel/put_off.h"
#include "kernel/sections.h"
#include "kernel/stack_source.h"
#include "kernel/storage.h"

/*
 * How old the usage of other processes may be in the checkpoints of a tree of more than 256
 * threads. To read it anew costs an audit more: the walk visits all processes of the machine.
 */
enum { RUN_STALE_NS = 1000000, AUDIT_STALE_NS = 20000000 };

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_DEBUG || log_level() < LOG_VERBOSE)
		return 0;
	return vfprintf(stderr, format, args);
}

/* ---- Load --------------------------------------------------------------------------------------
 */

static int load_failed(struct error *err, int code)
{
	/* EACCES is what the verifier says of a program, too. */
	if (code == -EPERM || (code == -EACCES && !procfs_may_load()))
		return error_set(err,
				 "cannot load BPF programs: %s; run it as root (sudo), or ask the "
				 "administrator for the service ('systemctl enable --now "
				 "qprof-bpf.socket'); 'qprof-bpf doctor' says more",
				 strerror(-code));
	return error_set(
		err,
		"cannot load BPF programs: %s; 'qprof-bpf doctor' says what this kernel lacks, "
		"-v what it objects to",
		sections_why(code));
}

/* Finds where each CPU's part of a counter is; see percpu.bpf.c. */
static int read_cpu_offsets(struct engine *e, struct error *err)
{
	struct {
		uint32_t map_fd;
	} args = {.map_fd = bpf_map__fd(e->bpf->maps.percpu_probe)};
	uint32_t answer;
	int code;

	if (e->features.rss_layout == RSS_ATOMIC)
		return 0;
	code = call_program(e->bpf->progs.read_cpu_offsets, &args, sizeof(args), &answer);
	if (code || answer)
		return error_set(err, "cannot find the kernel's per-CPU counters (%s, step %u)",
				 strerror(code ? -code : EINVAL), answer);
	return 0;
}

/* In a nested pid namespace: makes the BPF side use the pids of /proc; see pids.bpf.h. */
static int choose_pid_namespace(struct engine *e, struct error *err)
{
	struct {
		uint32_t above;
	} args = {.above = e->pids.above};
	uint32_t answer;
	int code;

	if (!e->pids.nested)
		return 0;
	code = call_program(e->bpf->progs.choose_pid_namespace, &args, sizeof(args), &answer);
	if (code || answer != (uint32_t)e->pids.self)
		return error_set(err,
				 "cannot tell which pid namespace /proc is of (%s: %d there, %u to "
				 "the kernel); run qprof-bpf in the initial one",
				 strerror(code ? -code : EINVAL), e->pids.self, answer);
	e->pid_level = e->bpf->bss->pid_level;
	return 0;
}

/* Tells the BPF side which thread it waits for, so that it can watch it; see mapped.bpf.c. */
static int name_loader(struct engine *e, struct error *err)
{
	uint32_t answer;
	int code = call_program(e->bpf->progs.name_loader, NULL, 0, &answer);

	return code ? error_set(err, "cannot run a BPF program: %s", strerror(-code)) : 0;
}

/* Returns the length of a tick: the coarse clocks advance once a tick. */
static uint64_t tick_ns(void)
{
	struct timespec tick = {0};

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return tick.tv_sec * 1000000000ull + tick.tv_nsec;
}

/* Returns true if there are CPUs that go without ticks while a thread runs alone on them. */
static bool may_lack_ticks(void)
{
	const int fd = open("/sys/devices/system/cpu/nohz_full", O_RDONLY | O_CLOEXEC);
	char first = '\0'; /* a number, if there are any; else "(null)" or the end of the line */
	const bool is_read = fd >= 0 && read(fd, &first, 1) == 1;

	if (fd >= 0)
		close(fd);
	return is_read && isdigit((unsigned char)first);
}

/* Puts a job into the ring of those that are free. */
static void offer_job(struct engine *e, uint32_t job)
{
	struct wire_free_jobs *jobs = &e->bpf->bss->free_jobs;

	e->bpf->bss->job_shares.user[job % WIRE_MAX_JOBS] = 0;
	jobs->job[jobs->given % WIRE_MAX_JOBS] = job;
	__atomic_store_n(&jobs->given, jobs->given + 1, __ATOMIC_RELEASE);
}

/* All but job 0, which is for processes in no job. */
static void fill_free_jobs(struct engine *e, uint32_t most)
{
	for (uint32_t job = 1; job < WIRE_MAX_JOBS && job <= most; job++)
		offer_job(e, job);
}

static int choose_programs(struct engine *e, const struct engine_config *config, struct error *err)
{
	const struct features_use use = {
		.audit = config->audit,
		.count_splice = config->count_splice,
		.nested = e->pids.nested,
		.listens = config->listens,
		.watches = config->watches,
		.curves = config->curves,
		.waits = config->waits,
		.windows = config->windows,
		.serves = config->serves,
		.launches = config->launches,
	};

	if (features_find(&e->features, e->bpf, &e->types.all, &use, err))
		return -1;
	e->probes = probes_new(e->bpf, e->features.uprobe_multi, e->features.calls == CALLS_PROBED);
	bpf_program__set_autoload(e->bpf->progs.item_hit, config->items);
	gpu_source_hold(e->bpf);
	/* An audit finds sites, and ends jobs. */
	if (!config->audit &&
	    (put_off(e->bpf->progs.site_hit) || put_off(e->bpf->progs.take_milestone)))
		return error_set(err, "out of memory");
	/* Any Python program may map a library that has such functions; few do. */
	if (config->items && (config->audit ? put_off_beside(e->bpf->progs.item_hit)
					    : put_off(e->bpf->progs.item_hit)))
		return error_set(err, "out of memory");
	if (put_off_beside(e->bpf->progs.process_changes) || late_programs_beside(e->bpf))
		return error_set(err, "out of memory");
	stack_source_expect(e->bpf, config->stacks, config->audit);
	storage_choose(e->bpf, config);
	return e->probes ? 0 : error_set(err, "out of memory");
}

static int load(struct engine *e, const struct engine_config *config, struct error *err)
{
	struct wire_config *c = &e->bpf->rodata->config;
	int cpus = libbpf_num_possible_cpus(), code;

	if (cpus < 1 || cpus > WIRE_MAX_CPUS)
		return error_set(err, "cannot count on %d CPUs: at most %d are supported", cpus,
				 WIRE_MAX_CPUS);
	c->self = e->pids.self;
	c->nested = e->pids.nested;
	c->follow = config->follow;
	e->bpf->bss->machine.wake_points = config->wake_points;
	c->audit = config->audit;
	c->lone_target = config->lone_target;
	c->waits = config->waits;
	c->page_shift = (uint32_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
	c->percpu_counter_type = kernel_types_struct(&e->types, "percpu_counter");
	c->refcount_struct_type = kernel_types_struct(&e->types, "refcount_struct");
	c->checkpoint_limit = config->checkpoint_limit;
	c->stale_ns = config->audit ? AUDIT_STALE_NS : RUN_STALE_NS;
	c->unadded_ns = may_lack_ticks() ? UINT64_MAX : tick_ns();
	c->max_mappings = procfs_max_mappings();
	c->point_pages = wire_point_pages((uint64_t)sysconf(_SC_PAGESIZE));
	e->capacity = capacity_make(e->bpf, config->max_processes, config->audit, cpus);
	code = qprof_bpf__load(e->bpf);
	if (!code)
		code = put_off_load_beside(e->bpf->obj);
	return code ? load_failed(err, code) : 0;
}

static int count_cost(struct engine *e, struct error *err)
{
	e->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (e->stats_fd < 0)
		return error_set(err,
				 "--cost: cannot have the kernel count BPF run times: %s; leave it "
				 "out, or try it as root",
				 strerror(errno));
	return 0;
}

static int open_object(struct engine *e, struct error *err)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = e->types.path);
	int code;

	if (kernel_types_read(&e->types, err))
		return -1;
	code = sections_begin();
	if (code)
		return error_set(err, "cannot prepare libbpf: %s", strerror(-code));
	e->bpf = qprof_bpf__open_opts(&opts);
	if (!e->bpf)
		return error_set(err, "cannot open the BPF programs: %s", strerror(errno));
	if (sections_learn(&e->types.all, e->bpf->obj))
		return error_set(err, "out of memory");
	return kernel_types_choose(&e->types, bpf_object__btf(e->bpf->obj), err);
}

int engine_new(const struct engine_config *config, struct engine **engine, struct error *err)
{
	struct engine *e = calloc(1, sizeof(*e));

	*engine = NULL;
	if (!e)
		return error_set(err, "out of memory");
	e->stats_fd = -1;
	e->types.fd = -1;
	e->always_counts = engine_kernel_counts();
	libbpf_set_print(print_libbpf);
	if (pids_look(&e->pids, err))
		goto fail;
	if (open_object(e, err))
		goto fail;
	if (config->count_cost && count_cost(e, err))
		goto fail;
	if (choose_programs(e, config, err) || load(e, config, err) || read_cpu_offsets(e, err) ||
	    choose_pid_namespace(e, err) || name_loader(e, err))
		goto fail;
	probes_mind_holders(e->probes, e->bpf->progs.find_holder, config->audit);
	kernel_types_forget_others(&e->types);
	cpu_clocks_open(e->bpf, e->clock_reason, sizeof(e->clock_reason));
	if (config->audit)
		fill_free_jobs(e, config->max_jobs ? config->max_jobs : UINT32_MAX);
	*engine = e;
	return 0;
fail:
	engine_free(e);
	return -1;
}

int engine_attach(struct engine *e, struct error *err)
{
	const int changes = bpf_program__fd(e->bpf->progs.process_changes);
	int code;

	bpf_program__set_autoattach(e->bpf->progs.track_existing, false);
	bpf_program__set_autoattach(e->bpf->progs.track_command, false);
	bpf_program__set_autoattach(e->bpf->progs.tell_processes, false);
	bpf_program__set_autoattach(e->bpf->progs.move_members, false);
	bpf_program__set_autoattach(e->bpf->progs.tell_mappings, false);
	bpf_program__set_autoattach(e->bpf->progs.tell_file_mappings, false);
	late_programs_hold(e->bpf);
	code = bpf_map_update_elem(bpf_map__fd(e->bpf->maps.changes),
				   &(uint32_t){WIRE_PROCESS_CHANGES}, &changes, BPF_ANY);
	if (!code)
		code = sections_attach_all(e->bpf->skeleton);
	if (code)
		return error_set(
			err,
			"cannot attach to the kernel's tracepoints: %s; see 'qprof-bpf doctor'",
			strerror(-code));
	stalls_attach(&e->stalls, e->bpf);
	/* After the program that counts: programs run in the order in which they were attached. */
	if (stack_source_attach(e->bpf, e->sampling))
		return error_set(err, "--stacks: cannot attach to the kernel: %s", strerror(errno));
	return 0;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	if (e->bpf && e->bpf->bss)
		engine_stop_answering(e);
	probes_free(e->probes);
	for (size_t i = 0; i < LATE_SUBJECTS; i++)
		late_programs_free(e->late[i]);
	item_source_free(e->items);
	gpu_source_free(e->gpu);
	stalls_detach(&e->stalls);
	stack_source_detach(e->sampling);
	if (e->bpf)
		put_off_end(e->bpf->obj);
	qprof_bpf__destroy(e->bpf);
	kernel_types_close(&e->types);
	if (e->stats_fd >= 0)
		close(e->stats_fd);
	free(e);
}

int engine_add_target(struct engine *e, uint32_t tgid)
{
	const uint32_t flags = WIRE_PROCESS_TARGET | WIRE_PROCESS_ATTACHED;

	return bpf_map_update_elem(bpf_map__fd(e->bpf->maps.targets), &tgid, &flags, BPF_ANY);
}

/* Whom a walk tells. */
struct telling {
	engine_process_fn process;
	void *context;
};

static bool tell_process(void *context, const void *record)
{
	const struct telling *t = context;

	t->process(t->context, record);
	return true;
}

int engine_tell_processes(struct engine *e, engine_process_fn tell, void *context)
{
	struct telling t = {.process = tell, .context = context};

	return iterator_run(e->bpf->progs.tell_processes, 0, sizeof(struct wire_process),
			    tell_process, &t);
}

/* BPF programs and maps, and no link. */
bool engine_needs(void *context, int fd, const char *link)
{
	(void)context;
	(void)fd;
	return !strcmp(link, "anon_inode:bpf-prog") || !strcmp(link, "anon_inode:bpf-map");
}

int engine_track_existing(struct engine *e, struct error *err)
{
	enum { MAX_DEPTH = 256 }; /* each walk reaches at least one generation more */
	uint32_t *targets = &e->bpf->bss->trees[0].targets;
	int code = 0;

	/* One that ends is not the last: others may be still to come. */
	__atomic_fetch_add(targets, 1, __ATOMIC_SEQ_CST);
	for (int walk = 0; walk < MAX_DEPTH && !code; walk++) {
		e->bpf->bss->newly_tracked = 0;
		code = iterator_run(e->bpf->progs.track_existing, 0, 0, NULL, NULL);
		if (!e->bpf->bss->newly_tracked)
			break;
	}
	__atomic_fetch_sub(targets, 1, __ATOMIC_SEQ_CST);
	return code ? error_set(err, "cannot walk the processes: %s", strerror(-code)) : 0;
}

int engine_track_command(struct engine *e, pid_t pid, struct error *err)
{
	const pid_t number = e->pids.above ? pids_number(pid) : pid;
	const int code =
		number ? iterator_run(e->bpf->progs.track_command, number, 0, NULL, NULL) : -ESRCH;

	return code ? error_set(err, "cannot track the command: %s", strerror(-code)) : 0;
}

bool engine_tracks(const struct engine *e, uint32_t tgid, uint64_t started_ns)
{
	const struct bpf_map *procs = e->bpf->maps.procs;
	uint64_t *proc =
		malloc(bpf_map__value_size(procs)); /* a struct proc begins with its start */
	bool is;

	/* Without memory to look, it is not taken for gone. */
	is = !proc ||
	     (!bpf_map_lookup_elem(bpf_map__fd(procs), &tgid, proc) && *proc == started_ns);
	free(proc);
	return is;
}

int engine_ask(struct bpf_program *program, void *args, uint32_t size)
{
	static const int answers[] = {0, -ESRCH, -ENOSPC, -EDQUOT};
	uint32_t answer;
	int code = call_program(program, args, size, &answer);

	if (code)
		return code;
	return answers[answer < sizeof(answers) / sizeof(*answers) ? answer : 2];
}

/* As milestone.bpf.c knows it. */
struct milestone {
	uint64_t started_ns;
	uint32_t tgid, what, told, gone, job, reserved;
};

static int milestone(struct engine *e, struct milestone *args)
{
	const int err = put_off_load(e->bpf->progs.take_milestone);

	if (err && args->what != WIRE_PROGRAM)
		__atomic_fetch_add(&e->bpf->bss->quality.lost_checkpoints, 1, __ATOMIC_RELAXED);
	return err ? err : engine_ask(e->bpf->progs.take_milestone, args, sizeof(*args));
}

int engine_milestone(struct engine *e, uint32_t tgid, enum wire_what what, bool gone, uint32_t job)
{
	struct milestone args = {.tgid = tgid, .what = what, .gone = gone, .job = job};

	return milestone(e, &args);
}

int engine_begin_job(struct engine *e, uint32_t tgid, uint64_t started_ns, uint32_t uid)
{
	struct engine_job_args args = {.started_ns = started_ns, .tgid = tgid, .uid = uid};

	return engine_ask(e->bpf->progs.join_job, &args, sizeof(args));
}

int engine_join_job(struct engine *e, uint32_t tgid, uint64_t started_ns, uint32_t job)
{
	struct engine_job_args args = {.started_ns = started_ns, .tgid = tgid, .job = job};

	return engine_ask(e->bpf->progs.join_job, &args, sizeof(args));
}

int engine_tell_programs(struct engine *e, uint32_t tgid, uint64_t started_ns, uint32_t told)
{
	struct milestone args = {
		.started_ns = started_ns, .tgid = tgid, .what = WIRE_PROGRAM, .told = told};
	const int err = engine_ask(e->bpf->progs.ask_for_programs, &args, sizeof(args));

	return err || !(told & WIRE_TOLD_NOW) ? err : milestone(e, &args);
}

int engine_free_job(struct engine *e, uint32_t job)
{
	uint32_t answer;
	const int code = call_program(e->bpf->progs.clear_job, &job, sizeof(job), &answer);

	if (code)
		return code;
	offer_job(e, job);
	return 0;
}

int engine_set_site(struct engine *e, uint32_t index, const struct wire_site *site)
{
	return bpf_map_update_elem(bpf_map__fd(e->bpf->maps.sites), &index, site, BPF_ANY);
}

void engine_know_linker(struct engine *e, const struct wire_file *file)
{
	const uint8_t yes = 1;

	bpf_map_update_elem(bpf_map__fd(e->bpf->maps.linkers), file, &yes, BPF_ANY);
}

void engine_forget_linker(struct engine *e, const struct wire_file *file)
{
	bpf_map_delete_elem(bpf_map__fd(e->bpf->maps.linkers), file);
}

int engine_begin_search(struct engine *e, uint32_t tgid, uint64_t started_ns, bool later,
			uint64_t *change)
{
	/* As begin_search() in mapped.bpf.c knows it. */
	struct {
		uint64_t started_ns, change;
		uint32_t tgid, later;
	} args = {.started_ns = started_ns, .tgid = tgid, .later = later};
	const int code = engine_ask(e->bpf->progs.begin_search, &args, sizeof(args));

	*change = args.change;
	return code;
}

void engine_searched(struct engine *e, uint32_t slot, uint64_t change)
{
	bpf_map_update_elem(bpf_map__fd(e->bpf->maps.searched), &slot, &change, BPF_ANY);
}

void engine_stop_answering(struct engine *e)
{
	__atomic_store_n(&e->bpf->bss->machine.leaving, 1, __ATOMIC_RELEASE);
}

void engine_wake_points(struct engine *e)
{
	__atomic_store_n(&e->bpf->bss->machine.wake_points, 1, __ATOMIC_RELAXED);
}

bool engine_points_wake(const struct engine *e)
{
	return e->bpf->bss->machine.wake_points;
}

bool engine_was_deaf(const struct engine *e)
{
	return __atomic_load_n(&e->bpf->bss->machine.deaf, __ATOMIC_ACQUIRE);
}

void engine_know_code(struct engine *e, const struct wire_code *code)
{
	const uint64_t ns = clock_ns(CLOCK_MONOTONIC);

	/* The map is full, mostly of programs that are long gone. */
	if (bpf_map_update_elem(bpf_map__fd(e->bpf->maps.known_code), code, &ns, BPF_ANY))
		engine_forget_code(e);
}

void engine_count_hasty(struct engine *e)
{
	__atomic_fetch_add(&e->bpf->bss->quality.hasty_starts, 1, __ATOMIC_RELAXED);
}

bool engine_hold_by_end(struct engine *e, const char *end)
{
	const size_t len = strlen(end);
	const uint32_t n = e->bpf->bss->n_argument_ends;
	struct wire_end *into = &e->bpf->data->argument_ends[n];

	if (n == WIRE_ENDS || !len || len > WIRE_END_MAX)
		return false;
	memset(into->text, 0, sizeof(into->text));
	memcpy((char *)into->text + WIRE_END_MAX - len, end, len);
	memset((char *)into->mask + WIRE_END_MAX - len, 0xff, len);
	__atomic_store_n(&e->bpf->bss->n_argument_ends, n + 1, __ATOMIC_RELEASE);
	return true;
}

void engine_forget_code(struct engine *e)
{
	int map = bpf_map__fd(e->bpf->maps.known_code);
	struct wire_code code;

	while (!bpf_map_get_next_key(map, NULL, &code) && !bpf_map_delete_elem(map, &code))
		;
}

const struct features *engine_features(const struct engine *e)
{
	return &e->features;
}

struct probes *engine_probes(struct engine *e)
{
	return e->probes;
}

struct item_source *engine_items(struct engine *e, struct error *err)
{
	if (e->items)
		return e->items;
	e->items = item_source_new(e->bpf, e->types.path, err);
	if (e->items)
		probes_add_program(e->probes, PROBE_ITEM, item_source_program(e->items));
	return e->items;
}

struct gpu_source *engine_gpu(struct engine *e, struct error *err)
{
	if (e->gpu)
		return e->gpu;
	e->gpu = gpu_source_new(e->bpf, e->types.path, err);
	if (!e->gpu)
		return NULL;
	probes_add_program(e->probes, PROBE_GPU, gpu_source_program(e->gpu, false));
	probes_add_program(e->probes, PROBE_GPU_RETURN, gpu_source_program(e->gpu, true));
	return e->gpu;
}

struct gpu_source *engine_gpu_loaded(const struct engine *e)
{
	return e->gpu;
}

/* The ring is read behind this: see submit() in state.bpf.h. */
void engine_say_gathers(struct engine *e, bool gathers)
{
	__atomic_store_n(&e->bpf->bss->machine.gathers, gathers, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void engine_say_loading(struct engine *e, bool loading)
{
	__atomic_store_n(&e->bpf->bss->machine.loading, loading, __ATOMIC_RELEASE);
}

const char *engine_clock_reason(const struct engine *e)
{
	return *e->clock_reason ? e->clock_reason : NULL;
}

const char *engine_stalls_lack(const struct engine *e)
{
	return e->stalls.lacks;
}

const struct wire_growth *engine_growth(const struct engine *e)
{
	return &e->bpf->bss->growth;
}

const struct capacity *engine_capacity(const struct engine *e)
{
	return &e->capacity;
}

unsigned int engine_pid_level(const struct engine *e)
{
	return e->pid_level;
}

int engine_urgent_fd(const struct engine *e)
{
	return bpf_map__fd(e->bpf->maps.urgent);
}

int engine_control_fd(const struct engine *e)
{
	return bpf_map__fd(e->bpf->maps.control);
}

int engine_timeline_fd(const struct engine *e)
{
	return bpf_map__fd(e->bpf->maps.timeline);
}
