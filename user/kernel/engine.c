/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/engine.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "kernel/rss_layout.h"
#include "kernel/pids.h"

/* The names that the skeleton takes from the BPF side. */
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
#include "qprof.skel.h"

enum { DETACH_THREADS = 32, DETACH_MS = 2000, RELEASE_NS = 50000000 };

/* How old the usage of others may be in the checkpoints of a tree of more than 256 threads. In an
 * audit, where a checkpoint is one of many things that go on, reading it may cost less. */
enum { RUN_STALE_NS = 1000000, AUDIT_STALE_NS = 20000000 };

/* A link that libbpf knows, or one that it does not yet: then link is NULL. */
struct attached {
	struct bpf_link *link;
	int fd;
	uint32_t group;
};

struct engine {
	struct qprof_bpf *bpf;
	struct attached *attached; /* by engine_attach_places */
	size_t n_attached, room;
	bool multi; /* one link can hold many uprobes */
	bool fexit;
	bool aio; /* native AIO is traced */
	enum engine_calls calls;
	char fexit_reason[128];
	char untraced[512]; /* functions that the kernel has and lets nobody trace, in a row; or ""
			     */
	char traced_backend[768];
	bool holds_starts;
	enum rss_layout rss_layout;
	char clock_reason[128]; /* why a CPU has no clock that the BPF side can read; or "" */
	struct pids_view pids;
	uint32_t pid_level; /* of our pid namespace; 0: it is the initial one */
	bool always_counts; /* the kernel counted run times when we came */
	int stats_fd;	    /* while it is open, the kernel counts them; -1 without */
};

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_DEBUG || log_level() < LOG_VERBOSE)
		return 0;
	return vfprintf(stderr, format, args);
}

/* The smallest program, to try what the kernel takes: r0 = 0, exit. */
static const struct bpf_insn nothing[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	{.code = BPF_JMP | BPF_EXIT},
};

/*
 * Whether this kernel takes an fentry or fexit program on a function: tried with the smallest one,
 * since what forbids it is a matter of configuration, privilege, architecture and of the function.
 * 0, or -errno.
 */
static int probe_traced(const struct btf *btf, const char *function, enum bpf_attach_type type)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type);
	int id = btf__find_by_name_kind(btf, function, BTF_KIND_FUNC);
	int fd, link;

	if (id < 0)
		return -ENOENT;
	opts.attach_btf_id = id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "probe_traced", "GPL", nothing, 2, &opts);
	if (fd < 0)
		return fd;
	link = bpf_raw_tracepoint_open(NULL, fd);
	close(fd);
	if (link < 0)
		return link;
	close(link);
	return 0;
}

/* With ftrace switched off, fexit attaches and never fires. */
static bool ftrace_is_off(void)
{
	FILE *file = fopen("/proc/sys/kernel/ftrace_enabled", "re");
	bool off = file && fgetc(file) == '0';

	if (file)
		fclose(file);
	return off;
}

#if defined(__x86_64__)
#define SPLICE_FUNCTION "__x64_sys_splice"
#else
#define SPLICE_FUNCTION "__arm64_sys_splice"
#endif

/* What a program is attached to by fentry or fexit, NULL for another's section. */
static const char *traced_function(const struct bpf_program *program)
{
	const char *section = bpf_program__section_name(program);

	if (strncmp(section, "fexit/", 6) && strncmp(section, "fentry/", 7))
		return NULL;
	return strchr(section, '/') + 1;
}

/*
 * Of the functions, those that the kernel has (32-bit programs' calls are a matter of
 * configuration) and lets one trace: one that is not to be traced would make libbpf refuse all
 * programs.
 */
static bool can_trace(struct engine *e, const struct btf *btf, const struct bpf_program *program,
		      const char *function)
{
	size_t used = strlen(e->untraced);
	int err;

	if (!e->fexit || btf__find_by_name_kind(btf, function, BTF_KIND_FUNC) <= 0)
		return false;
	err = probe_traced(btf, function, bpf_program__expected_attach_type(program));
	if (!err)
		return true;
	log_verbose("%s cannot be traced: %s", function, strerror(-err));
	snprintf(e->untraced + used, sizeof(e->untraced) - used, "%s%s", used ? ", " : "",
		 function);
	return false;
}

static void choose_traced(struct engine *e, const struct btf *btf)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, e->bpf->obj)
	{
		const char *function = traced_function(program);

		if (function)
			bpf_program__set_autoload(program, can_trace(e, btf, program, function));
	}
	/* Where it is not seen who submits, nobody's completions are counted. */
	e->aio = bpf_program__autoload(e->bpf->progs.aio_submits) &&
		 bpf_program__autoload(e->bpf->progs.aio_completes);
}

static void name_traced(struct engine *e)
{
	snprintf(e->traced_backend, sizeof(e->traced_backend),
		 "task->ioac rchar and wchar; io_uring's tracepoints; fexit on splice, tee, "
		 "vmsplice, process_vm_readv, process_vm_writev%s%s%s",
		 e->aio ? "; fentry on aio_complete_rw" : "", *e->untraced ? "; but not on " : "",
		 e->untraced);
}

static void choose_calls(struct engine *e, const struct btf *btf, bool wanted)
{
	int err = probe_traced(btf, SPLICE_FUNCTION, BPF_TRACE_FEXIT);

	if (err)
		snprintf(e->fexit_reason, sizeof(e->fexit_reason), "fexit on %s: %s",
			 SPLICE_FUNCTION, strerror(-err));
	else if (ftrace_is_off())
		snprintf(e->fexit_reason, sizeof(e->fexit_reason), "kernel.ftrace_enabled is 0");
	else
		e->fexit = true;
	choose_traced(e, btf);
	name_traced(e);
	e->calls = e->fexit ? CALLS_TRACED : wanted ? CALLS_PROBED : CALLS_NOT_COUNTED;
}

/*
 * From 6.6 one link attaches a program to many places of a file (89ae89f53d20 "bpf: Add multi
 * uprobe link"), and lets go of them after one grace period instead of one for each. libbpf 1.1
 * does not know it, so the numbers are here; include/uapi/linux/bpf.h.
 */
enum { TRACE_UPROBE_MULTI = 48, UPROBE_MULTI_RETURN = 1 };

struct uprobe_multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, semaphores, cookies;
	uint32_t count, multi_flags, pid, reserved;
};

/* The link's descriptor, or -errno. */
static int uprobe_multi_link(int program, const char *path, const uint64_t *offsets,
			     const uint64_t *semaphores, const uint64_t *cookies, uint32_t n,
			     bool returns)
{
	const struct uprobe_multi_attr attr = {
		.prog_fd = program,
		.attach_type = TRACE_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.semaphores = (uintptr_t)semaphores,
		.cookies = (uintptr_t)cookies,
		.count = n,
		.multi_flags = returns ? UPROBE_MULTI_RETURN : 0,
	};
	long fd = syscall(__NR_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

/* Tried with a file that cannot be probed: a kernel that knows the link says so by EBADF. */
static bool probe_multi(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)TRACE_UPROBE_MULTI);
	int program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "probe_multi", "GPL", nothing, 2, &opts);
	uint64_t zero = 0;
	int link;

	if (program < 0)
		return false;
	link = uprobe_multi_link(program, "/", &zero, NULL, NULL, 1, false);
	close(program);
	return link == -EBADF;
}

/* The programs that are attached to a place in a file, when it is found. */
static struct bpf_program *probe_program(const struct engine *e, enum engine_probe probe)
{
	switch (probe) {
	case PROBE_SITE:
		return e->bpf->progs.site_hit;
	case PROBE_LINKER:
		return e->bpf->progs.objects_changed;
	case PROBE_CALL:
		return e->bpf->progs.library_call_begins;
	case PROBE_LIBC_VMSPLICE:
		return e->bpf->progs.libc_vmsplice_done;
	case PROBE_LIBAIO_SUBMIT:
		return e->bpf->progs.libaio_submitted;
	case PROBE_LIBC_SPLICE:
		return e->bpf->progs.libc_splice_done;
	case PROBE_LIBC_VM_READ:
		return e->bpf->progs.libc_vm_read_done;
	case PROBE_LIBC_VM_WRITE:
		return e->bpf->progs.libc_vm_write_done;
	}
	return NULL;
}

static bool counts_calls(enum engine_probe probe)
{
	return probe >= PROBE_CALL;
}

static bool at_return(enum engine_probe probe)
{
	return probe > PROBE_CALL;
}

static void choose_probes(struct engine *e)
{
	e->multi = probe_multi();
	for (enum engine_probe probe = 0; probe <= PROBE_LIBC_VM_WRITE; probe++) {
		struct bpf_program *program = probe_program(e, probe);

		bpf_program__set_autoload(program,
					  !counts_calls(probe) || e->calls == CALLS_PROBED);
		if (e->multi)
			bpf_program__set_expected_attach_type(
				program, (enum bpf_attach_type)TRACE_UPROBE_MULTI);
		bpf_program__set_autoattach(program, false);
	}
}

/*
 * Whether a program is held at its exec that no dynamic linker makes wait; see mapped.bpf.c. In an
 * audit nobody is.
 */
static void choose_hold(struct engine *e, const struct btf *btf, bool audit)
{
	const char *schedule = "bpf_task_work_schedule_resume_impl";

	e->holds_starts = !audit && btf__find_by_name_kind(btf, schedule, BTF_KIND_FUNC) > 0;
	bpf_program__set_autoload(e->bpf->progs.hold_by_work, e->holds_starts);
}

/* How many arguments a tracepoint passes, 0 if the kernel has no such tracepoint. */
static unsigned int tracepoint_args(const struct btf *btf, const char *name)
{
	char symbol[64];
	const struct btf_type *type;
	int id;

	snprintf(symbol, sizeof(symbol), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, symbol, BTF_KIND_TYPEDEF);
	type = id < 0 ? NULL : btf__type_by_id(btf, id);
	type = type ? btf__type_by_id(btf, type->type) : NULL; /* a pointer ... */
	type = type ? btf__type_by_id(btf, type->type) : NULL; /* to a function */
	return type && btf_is_func_proto(type) ? btf_vlen(type) - 1u : 0;
}

/*
 * 6.13 made one argument, the completion, of five. 6.4 gave the submission another name
 * (2ad57931db64 "io_uring: rename trace_io_uring_submit_sqe() tracepoint"); its first argument is
 * the same.
 */
static void choose_io_uring(struct engine *e, const struct btf *btf)
{
	unsigned int args = tracepoint_args(btf, "io_uring_complete");

	bpf_program__set_autoload(e->bpf->progs.io_uring_submitted,
				  tracepoint_args(btf, "io_uring_submit_req") > 0);
	bpf_program__set_autoload(e->bpf->progs.io_uring_submitted_old,
				  tracepoint_args(btf, "io_uring_submit_sqe") > 0);
	bpf_program__set_autoload(e->bpf->progs.io_uring_done, args == 3);
	bpf_program__set_autoload(e->bpf->progs.io_uring_done_old, args > 3);
}

/* 0, or -1 and *err: the counters would be misread. */
static int choose_rss_layout(struct engine *e, const struct btf *btf, struct error *err)
{
	char why[128];

	e->rss_layout = rss_layout_of(btf, why, sizeof(why));
	if (e->rss_layout != RSS_UNKNOWN)
		return 0;
	return error_set(err,
			 "this kernel keeps its memory counts in a way that is not known: %s; "
			 "a newer qprof-bpf may know it",
			 why);
}

static int choose_programs(struct engine *e, const struct engine_config *config, struct error *err)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int code;

	if (!btf)
		return error_set(
			err,
			"cannot read the kernel's type information: %s; qprof-bpf needs a kernel "
			"with CONFIG_DEBUG_INFO_BTF (/sys/kernel/btf/vmlinux)",
			strerror(errno));
	choose_calls(e, btf, config->count_splice);
	choose_io_uring(e, btf);
	choose_probes(e);
	choose_hold(e, btf, config->audit);
	code = choose_rss_layout(e, btf, err);
	/* Loading a program takes the kernel some 10 ms. */
	bpf_program__set_autoload(e->bpf->progs.join_job, config->audit);
	bpf_program__set_autoload(e->bpf->progs.tell_processes, config->audit);
	bpf_program__set_autoload(e->bpf->progs.choose_pid_namespace, e->pids.nested);
	btf__free(btf);
	return code;
}

static int load_failed(struct error *err, int code)
{
	if (code == -EPERM || code == -EACCES)
		return error_set(err,
				 "cannot load BPF programs: %s; run it as root (sudo), or see "
				 "'qprof-bpf doctor'",
				 strerror(-code));
	return error_set(
		err,
		"cannot load BPF programs: %s; 'qprof-bpf doctor' says what this kernel lacks, "
		"-v what it objects to",
		strerror(-code));
}

/* Learns where each CPU's part of a counter is; see percpu.bpf.c. */
static int read_cpu_offsets(struct engine *e, struct error *err)
{
	struct {
		uint32_t map_fd;
	} args = {.map_fd = bpf_map__fd(e->bpf->maps.percpu_probe)};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &args, .ctx_size_in = sizeof(args));
	int code;

	if (e->rss_layout == RSS_ATOMIC)
		return 0;
	code = bpf_prog_test_run_opts(bpf_program__fd(e->bpf->progs.read_cpu_offsets), &opts);
	if (code || opts.retval)
		return error_set(err, "cannot find the kernel's per-CPU counters (%s, step %u)",
				 strerror(code ? -code : EINVAL), opts.retval);
	return 0;
}

/* A clock event on one CPU for the BPF side: see sched_clock.bpf.h. 0, or -errno. */
static int open_cpu_clock(struct engine *e, uint32_t cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
	};
	struct {
		uint32_t fd, cpu;
	} args = {.cpu = cpu};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &args, .ctx_size_in = sizeof(args));
	int fd = (int)syscall(__NR_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	args.fd = fd;
	/* The map holds the event from now on. */
	err = bpf_map_update_elem(bpf_map__fd(e->bpf->maps.cpu_clocks), &cpu, &fd, BPF_ANY);
	if (!err)
		err = bpf_prog_test_run_opts(bpf_program__fd(e->bpf->progs.read_cpu_clock), &opts);
	close(fd);
	return err ? err : opts.retval ? -EINVAL : 0;
}

/* Without them CPU time is exact to a tick for each thread, and no better. */
static void open_cpu_clocks(struct engine *e)
{
	const uint32_t cpus = e->bpf->rodata->config.nr_cpus;

	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		int err = open_cpu_clock(e, cpu);

		if (!err || err == -ENODEV) /* it is offline */
			continue;
		snprintf(e->clock_reason, sizeof(e->clock_reason),
			 "the software clock of CPU %u (perf_event_open): %s", cpu, strerror(-err));
		return;
	}
}

/* In a nested pid namespace: has the BPF side speak of pids as /proc does; see pids.bpf.h. */
static int choose_pid_namespace(struct engine *e, struct error *err)
{
	struct {
		uint32_t above;
	} args = {.above = e->pids.above};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &args, .ctx_size_in = sizeof(args));
	int code;

	if (!e->pids.nested)
		return 0;
	code = bpf_prog_test_run_opts(bpf_program__fd(e->bpf->progs.choose_pid_namespace), &opts);
	if (code || opts.retval != (uint32_t)e->pids.self)
		return error_set(err,
				 "cannot tell which pid namespace /proc is of (%s: %d there, %u to "
				 "the kernel); run qprof-bpf in the initial one",
				 strerror(code ? -code : EINVAL), e->pids.self, opts.retval);
	e->pid_level = e->bpf->bss->pid_level;
	return 0;
}

/* Programs look at how the thread is that they wait for; see mapped.bpf.c. */
static int name_loader(struct engine *e, struct error *err)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int code = bpf_prog_test_run_opts(bpf_program__fd(e->bpf->progs.name_loader), &opts);

	return code ? error_set(err, "cannot run a BPF program: %s", strerror(-code)) : 0;
}

/* Room for so many processes at a time; `parts` has some for each of them on each CPU. */
static void size_maps(struct qprof_bpf *bpf, unsigned int processes, unsigned int cpus)
{
	bpf->rodata->config.max_processes = processes;
	bpf->rodata->config.nr_cpus = cpus;
	bpf_map__set_max_entries(bpf->maps.procs, processes);
	bpf_map__set_max_entries(bpf->maps.slots, processes);
	bpf_map__set_max_entries(bpf->maps.free_slots, processes);
	bpf_map__set_max_entries(bpf->maps.searched, processes);
	bpf_map__set_max_entries(bpf->maps.works, processes);
	bpf_map__set_max_entries(bpf->maps.mms, processes);
	bpf_map__set_max_entries(bpf->maps.free_mms, processes);
	bpf_map__set_max_entries(bpf->maps.mm_slots, processes);
	bpf_map__set_max_entries(bpf->maps.parts, processes * cpus);
	bpf_map__set_max_entries(bpf->maps.cpu_clocks, cpus);
}

/* The coarse clocks advance once a tick. */
static uint64_t tick_ns(void)
{
	struct timespec tick = {0};

	clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
	return tick.tv_sec * 1000000000ull + tick.tv_nsec;
}

/* 0 is of those that are in no job. */
static void fill_free_jobs(struct engine *e)
{
	for (uint32_t job = 1; job < WIRE_MAX_JOBS; job++)
		engine_free_job(e, job);
}

static int load(struct engine *e, const struct engine_config *config, struct error *err)
{
	int cpus = libbpf_num_possible_cpus(), code;
	unsigned int processes = config->max_processes;

	if (cpus < 1 || cpus > WIRE_MAX_CPUS)
		return error_set(err, "cannot count on %d CPUs: at most %d are supported", cpus,
				 WIRE_MAX_CPUS);
	e->bpf->rodata->config.self = e->pids.self;
	e->bpf->rodata->config.nested = e->pids.nested;
	e->bpf->rodata->config.follow = config->follow;
	e->bpf->rodata->config.wake_points = config->wake_points;
	e->bpf->rodata->config.audit = config->audit;
	e->bpf->rodata->config.checkpoint_limit = config->checkpoint_limit;
	e->bpf->rodata->config.stale_ns = config->audit ? AUDIT_STALE_NS : RUN_STALE_NS;
	e->bpf->rodata->config.tick_ns = tick_ns();
	size_maps(e->bpf, processes ? processes : bpf_map__max_entries(e->bpf->maps.procs), cpus);
	code = qprof_bpf__load(e->bpf);
	return code ? load_failed(err, code) : 0;
}

/* kernel.bpf_stats_enabled: what was set there, whoever else has the kernel count. */
static bool kernel_counts(void)
{
	FILE *file = fopen("/proc/sys/kernel/bpf_stats_enabled", "re");
	bool on = file && fgetc(file) == '1';

	if (file)
		fclose(file);
	return on;
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

int engine_new(const struct engine_config *config, struct engine **engine, struct error *err)
{
	struct engine *e = calloc(1, sizeof(*e));

	*engine = NULL;
	if (!e)
		return error_set(err, "out of memory");
	e->stats_fd = -1;
	e->always_counts = kernel_counts();
	libbpf_set_print(print_libbpf);
	if (pids_look(&e->pids, err))
		goto fail;
	e->bpf = qprof_bpf__open();
	if (!e->bpf) {
		error_set(err, "cannot open the BPF programs: %s", strerror(errno));
		goto fail;
	}
	if (config->count_cost && count_cost(e, err))
		goto fail;
	if (choose_programs(e, config, err) || load(e, config, err) || read_cpu_offsets(e, err) ||
	    choose_pid_namespace(e, err) || name_loader(e, err))
		goto fail;
	open_cpu_clocks(e);
	if (config->audit)
		fill_free_jobs(e);
	*engine = e;
	return 0;
fail:
	engine_free(e);
	return -1;
}

int engine_attach(struct engine *e, struct error *err)
{
	int code;

	bpf_program__set_autoattach(e->bpf->progs.track_existing, false);
	bpf_program__set_autoattach(e->bpf->progs.tell_processes, false);
	bpf_program__set_autoattach(e->bpf->progs.tell_mappings, false);
	code = qprof_bpf__attach(e->bpf);
	if (code)
		return error_set(
			err,
			"cannot attach to the kernel's tracepoints: %s; see 'qprof-bpf doctor'",
			strerror(-code));
	return 0;
}

/* A share of what is attached: every DETACH_THREADS-th, beginning with the first. */
struct share {
	struct engine *engine;
	size_t first;
	pthread_t thread;
};

static void detach(struct attached *a)
{
	if (a->link)
		bpf_link__destroy(a->link);
	else
		close(a->fd);
}

static void *detach_share(void *arg)
{
	struct share *share = arg;
	struct engine *e = share->engine;

	for (size_t i = share->first; i < e->n_attached; i += DETACH_THREADS)
		detach(&e->attached[i]);
	return NULL;
}

/* The kernel waits for a grace period or two for each (some 90 ms): for many at a time, then. */
static void detach_in_parallel(struct engine *e)
{
	struct share shares[DETACH_THREADS];
	size_t n = 0;

	for (; n < DETACH_THREADS && n < e->n_attached; n++) {
		shares[n] = (struct share){.engine = e, .first = n};
		if (pthread_create(&shares[n].thread, NULL, detach_share, &shares[n]))
			break;
	}
	for (size_t i = n; i < DETACH_THREADS && i < e->n_attached; i++)
		detach_share(&(struct share){.engine = e, .first = i});
	for (size_t i = 0; i < n; i++)
		pthread_join(shares[i].thread, NULL);
}

static int compare_fds(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/*
 * Pipes, sockets and files that others wait for the end of, with all else but the links: the
 * descriptors between theirs.
 */
static void close_others(const struct engine *e)
{
	int *kept = calloc(e->n_attached, sizeof(*kept));
	unsigned int next = 0;

	if (!kept)
		return;
	for (size_t i = 0; i < e->n_attached; i++)
		kept[i] =
			e->attached[i].link ? bpf_link__fd(e->attached[i].link) : e->attached[i].fd;
	qsort(kept, e->n_attached, sizeof(*kept), compare_fds);
	for (size_t i = 0; i < e->n_attached; i++) {
		if ((unsigned int)kept[i] > next)
			close_range(next, kept[i] - 1, 0);
		next = kept[i] + 1;
	}
	close_range(next, ~0u, 0);
	free(kept);
}

/*
 * The kernel waits for every program that is at a probe, and one may sleep in it for as long as its
 * owner likes (its argument in memory that a userfaultfd does not serve). Whoever closes the last
 * descriptor does the waiting, and cannot even be killed. So a child does: we wait for it, but not
 * for ever.
 */
static void detach_all(struct engine *e)
{
	struct pollfd done = {.events = POLLIN};
	pid_t child = e->n_attached ? fork() : -1;

	if (!child) {
		close_others(e);
		detach_in_parallel(e);
		_exit(0);
	}
	if (child < 0) {
		detach_in_parallel(e);
		return;
	}
	for (size_t i = 0; i < e->n_attached; i++)
		detach(&e->attached[i]);
	done.fd = pidfd_open(child, 0);
	if (done.fd < 0 || poll(&done, 1, DETACH_MS) > 0)
		waitpid(child, NULL, 0);
	else
		log_error("a process hangs in a probe, which cannot be removed before it goes on "
			  "or is "
			  "killed; process %d waits for that",
			  child);
	if (done.fd >= 0)
		close(done.fd);
}

/* What a thread detaches. */
struct released {
	size_t n;
	struct attached attached[];
};

static void *detach_released(void *arg)
{
	struct released *released = arg;

	for (size_t i = 0; i < released->n; i++)
		detach(&released->attached[i]);
	free(released);
	return NULL;
}

/*
 * The kernel takes the breakpoints away at once, and then waits for every program that is at a
 * probe: it may be one that waits for us. So a thread detaches, and is not waited for for long.
 */
static void detach_aside(struct released *released)
{
	struct timespec until;
	pthread_t thread;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += RELEASE_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_create(&thread, NULL, detach_released, released))
		detach_released(released);
	else if (pthread_timedjoin_np(thread, NULL, &until))
		pthread_detach(thread);
}

void engine_detach_group(struct engine *e, uint32_t group)
{
	struct released *released =
		malloc(sizeof(*released) + e->n_attached * sizeof(*e->attached));
	size_t kept = 0;

	if (released)
		released->n = 0;
	for (size_t i = 0; i < e->n_attached; i++) {
		if (e->attached[i].group != group)
			e->attached[kept++] = e->attached[i];
		else if (released)
			released->attached[released->n++] = e->attached[i];
		else
			detach(&e->attached[i]);
	}
	e->n_attached = kept;
	if (released && released->n)
		detach_aside(released);
	else
		free(released);
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	if (e->bpf && e->bpf->bss)
		engine_stop_answering(e);
	detach_all(e);
	free(e->attached);
	qprof_bpf__destroy(e->bpf);
	if (e->stats_fd >= 0)
		close(e->stats_fd);
	free(e);
}

int engine_add_target(struct engine *e, uint32_t tgid, bool running)
{
	uint32_t flags = WIRE_PROCESS_TARGET | (running ? WIRE_PROCESS_ATTACHED : 0);

	return bpf_map_update_elem(bpf_map__fd(e->bpf->maps.targets), &tgid, &flags, BPF_ANY);
}

/* What takes the records of an iterator; one of both, or none. */
struct listener {
	engine_process_fn process;
	engine_mapping_fn mapping;
	void *context;
	uint64_t last_end; /* of the mapping before */
};

/*
 * False: that was all. Mappings come in the order of their addresses. When somebody was about to
 * change them meanwhile, the kernel (6.1 to 6.18) does not end when it has come to the end: it
 * begins once more where it had to let go of their lock, again and again.
 */
static bool hand_out(struct listener *to, const char *record)
{
	const struct wire_mapping *m = (const struct wire_mapping *)record;

	if (to->process)
		to->process(to->context, (const struct wire_process *)record);
	if (!to->mapping)
		return true;
	if (m->start < to->last_end)
		return false;
	to->last_end = m->end;
	to->mapping(to->context, m);
	return true;
}

/* What an iterator writes: whole records, but not whole in each read. 0, or -errno. */
static int read_records(int fd, struct listener *to)
{
	const size_t size = to->process ? sizeof(struct wire_process) : sizeof(struct wire_mapping);
	_Alignas(uint64_t) char bytes[32768];
	size_t have = 0;
	ssize_t n;

	for (;;) {
		size_t at;

		n = read(fd, bytes + have, sizeof(bytes) - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		have += n;
		for (at = 0; have - at >= size; at += size)
			if (!hand_out(to, bytes + at))
				return 0;
		have -= at;
		memmove(bytes, bytes + at, have);
	}
}

/* One walk; over all tasks if pid is 0. 0, or -errno. */
static int run_iterator(struct bpf_program *program, pid_t pid, struct listener *to)
{
	union bpf_iter_link_info info = {.task = {.tid = pid}};
	/* Set one by one: libbpf wants the padding behind them to be 0, which an initializer with
	 * values may leave as it was. */
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);
	struct bpf_link *link;
	int fd, err;

	opts.link_info = pid ? &info : NULL;
	opts.link_info_len = pid ? sizeof(info) : 0;
	link = bpf_program__attach_iter(program, &opts);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	err = fd < 0 ? fd : read_records(fd, to);
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err;
}

int engine_tell_processes(struct engine *e, engine_process_fn tell, void *context)
{
	struct listener to = {.process = tell, .context = context};

	return run_iterator(e->bpf->progs.tell_processes, 0, &to);
}

int engine_tell_mappings(struct engine *e, pid_t pid, uint64_t address, engine_mapping_fn tell,
			 void *context)
{
	struct listener to = {.mapping = tell, .context = context};
	const pid_t number = e->pids.above ? pids_number(pid) : pid;

	if (!number)
		return -ESRCH;
	e->bpf->bss->asked_address = address;
	return run_iterator(e->bpf->progs.tell_mappings, number, &to);
}

int engine_track_existing(struct engine *e, struct error *err)
{
	enum { MAX_DEPTH = 256 }; /* each walk reaches at least one generation more */
	int code;

	for (int walk = 0; walk < MAX_DEPTH; walk++) {
		e->bpf->bss->newly_tracked = 0;
		code = run_iterator(e->bpf->progs.track_existing, 0, &(struct listener){0});
		if (code)
			return error_set(err, "cannot walk the processes: %s", strerror(-code));
		if (!e->bpf->bss->newly_tracked)
			break;
	}
	return 0;
}

bool engine_tracks(const struct engine *e, uint32_t tgid, uint64_t started_ns)
{
	const struct bpf_map *procs = e->bpf->maps.procs;
	uint64_t *proc =
		malloc(bpf_map__value_size(procs)); /* a struct proc begins with its start */
	bool is;

	/* Unknown is not gone. */
	is = !proc ||
	     (!bpf_map_lookup_elem(bpf_map__fd(procs), &tgid, proc) && *proc == started_ns);
	free(proc);
	return is;
}

int engine_milestone(struct engine *e, uint32_t tgid, enum wire_what what, bool gone, uint32_t job)
{
	struct {
		uint32_t tgid, what, gone, job;
	} args = {.tgid = tgid, .what = what, .gone = gone, .job = job};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &args, .ctx_size_in = sizeof(args));
	int code = bpf_prog_test_run_opts(bpf_program__fd(e->bpf->progs.take_milestone), &opts);

	if (code)
		return code;
	return opts.retval == 1 ? -ESRCH : opts.retval ? -ENOSPC : 0;
}

int engine_join_job(struct engine *e, uint32_t tgid, uint32_t root)
{
	struct {
		uint32_t tgid, root;
	} args = {.tgid = tgid, .root = root};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &args, .ctx_size_in = sizeof(args));
	int code = bpf_prog_test_run_opts(bpf_program__fd(e->bpf->progs.join_job), &opts);

	if (code)
		return code;
	return opts.retval == 1 ? -ESRCH : opts.retval ? -ENOSPC : 0;
}

void engine_free_job(struct engine *e, uint32_t job)
{
	struct wire_free_jobs *jobs = &e->bpf->bss->free_jobs;

	jobs->job[jobs->given % WIRE_MAX_JOBS] = job;
	__atomic_store_n(&jobs->given, jobs->given + 1, __ATOMIC_RELEASE);
}

int engine_set_site(struct engine *e, uint32_t index, const struct wire_site *site)
{
	return bpf_map_update_elem(bpf_map__fd(e->bpf->maps.sites), &index, site, BPF_ANY);
}

static int make_room(struct engine *e, size_t more)
{
	size_t room = e->room ? e->room : 64;
	struct attached *attached;

	while (room < e->n_attached + more)
		room *= 2;
	attached = reallocarray(e->attached, room, sizeof(*attached));
	if (!attached)
		return -ENOMEM;
	e->attached = attached;
	e->room = room;
	return 0;
}

/* One link for all places. The file is named by the descriptor, whatever became of its name since.
 */
static int attach_multi(struct engine *e, enum engine_probe probe, uint32_t group, const char *path,
			const struct engine_place *places, size_t n)
{
	uint64_t *words = calloc(3 * n, sizeof(*words));
	uint64_t *offsets, *semaphores, *cookies;
	int fd;

	if (!words)
		return -ENOMEM;
	offsets = words;
	semaphores = words + n;
	cookies = words + 2 * n;
	for (size_t i = 0; i < n; i++) {
		offsets[i] = places[i].offset;
		semaphores[i] = places[i].semaphore;
		cookies[i] = places[i].cookie;
	}
	fd = uprobe_multi_link(bpf_program__fd(probe_program(e, probe)), path, offsets, semaphores,
			       cookies, n, at_return(probe));
	free(words);
	if (fd < 0)
		return fd;
	e->attached[e->n_attached++] = (struct attached){.fd = fd, .group = group};
	return 0;
}

/* A perf event for each place: what kernels before 6.6 have. */
static int attach_singly(struct engine *e, enum engine_probe probe, uint32_t group,
			 const char *path, const struct engine_place *places, size_t n)
{
	const size_t before = e->n_attached;

	for (size_t i = 0; i < n; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .ref_ctr_offset = places[i].semaphore,
			    .bpf_cookie = places[i].cookie, .retprobe = at_return(probe));
		struct bpf_link *link = bpf_program__attach_uprobe_opts(
			probe_program(e, probe), -1, path, places[i].offset, &opts);
		int err = -errno;

		if (link) {
			e->attached[e->n_attached++] =
				(struct attached){.link = link, .fd = -1, .group = group};
			continue;
		}
		while (e->n_attached > before)
			bpf_link__destroy(e->attached[--e->n_attached].link);
		return err;
	}
	return 0;
}

int engine_attach_places(struct engine *e, enum engine_probe probe, uint32_t group, int fd,
			 const struct engine_place *places, size_t n)
{
	int err = make_room(e, e->multi ? 1 : n);
	char path[64];

	if (err)
		return err;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return e->multi ? attach_multi(e, probe, group, path, places, n)
			: attach_singly(e, probe, group, path, places, n);
}

bool engine_holds_starts(const struct engine *e)
{
	return e->holds_starts;
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

void engine_searched(struct engine *e, uint32_t slot, uint64_t change)
{
	bpf_map_update_elem(bpf_map__fd(e->bpf->maps.searched), &slot, &change, BPF_ANY);
}

void engine_stop_answering(struct engine *e)
{
	__atomic_store_n(&e->bpf->bss->machine.leaving, 1, __ATOMIC_RELEASE);
}

bool engine_was_deaf(const struct engine *e)
{
	return __atomic_load_n(&e->bpf->bss->machine.deaf, __ATOMIC_ACQUIRE);
}

void engine_know_code(struct engine *e, const struct wire_code *code)
{
	struct timespec now;
	uint64_t ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ns = now.tv_sec * 1000000000ull + now.tv_nsec;
	/* Full: of programs long gone. */
	if (bpf_map_update_elem(bpf_map__fd(e->bpf->maps.known_code), code, &ns, BPF_ANY))
		engine_forget_code(e);
}

void engine_forget_code(struct engine *e)
{
	int map = bpf_map__fd(e->bpf->maps.known_code);
	struct wire_code code;

	while (!bpf_map_get_next_key(map, NULL, &code) && !bpf_map_delete_elem(map, &code))
		;
}

enum engine_calls engine_calls(const struct engine *e)
{
	return e->calls;
}

bool engine_traces_aio(const struct engine *e)
{
	return e->aio;
}

const char *engine_untraced(const struct engine *e)
{
	return *e->untraced ? e->untraced : NULL;
}

const char *engine_clock_reason(const struct engine *e)
{
	return *e->clock_reason ? e->clock_reason : NULL;
}

const char *engine_fexit_reason(const struct engine *e)
{
	return e->fexit ? NULL : e->fexit_reason;
}

static const char *calls_backend(const struct engine *e)
{
	switch (e->calls) {
	case CALLS_TRACED:
		return e->traced_backend;
	case CALLS_PROBED:
		return "task->ioac rchar and wchar; io_uring's tracepoints; uretprobes on libc's "
		       "splice, tee, vmsplice, process_vm_readv, process_vm_writev and libaio's "
		       "io_submit";
	case CALLS_NOT_COUNTED:
		break;
	}
	return "task->ioac rchar and wchar; io_uring's tracepoints";
}

static const char *checkpoint_backend(const struct engine *e)
{
	static const char *const texts[2][2] = {
		{
			"uprobes, sleepable, on USDT sites; starts not held",
			"uprobes, sleepable, on USDT sites; starts held by task work",
		},
		{
			"uprobe_multi, sleepable, on USDT sites; starts not held",
			"uprobe_multi, sleepable, on USDT sites; starts held by task work",
		},
	};

	return texts[e->multi][e->holds_starts];
}

struct engine_backends engine_backends(const struct engine *e)
{
	return (struct engine_backends){
		.rss = e->rss_layout == RSS_ATOMIC
			       ? "tp_btf/rss_stat, mm_rss_stat (before Linux 6.2)"
			       : "tp_btf/rss_stat, percpu_counter (Linux 6.2 and later)",
		.io_calls = calls_backend(e),
		.io_storage = "task->ioac read_bytes and write_bytes",
		.checkpoints = checkpoint_backend(e),
	};
}

unsigned int engine_pid_level(const struct engine *e)
{
	return e->pid_level;
}

int engine_control_fd(const struct engine *e)
{
	return bpf_map__fd(e->bpf->maps.control);
}

int engine_timeline_fd(const struct engine *e)
{
	return bpf_map__fd(e->bpf->maps.timeline);
}

static int ask_program(const struct bpf_program *program, struct engine_program *answer)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);
	int fd = bpf_program__fd(program); /* -errno of one that was not loaded */

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
		return -1;
	*answer = (struct engine_program){
		.name = bpf_program__name(program),
		.fd = fd,
		.verified_insns = info.verified_insns,
		.run_ns = info.run_time_ns,
		.runs = info.run_cnt,
		.missed = info.recursion_misses,
	};
	return 0;
}

size_t engine_programs(const struct engine *e, struct engine_program *programs, size_t room)
{
	struct bpf_program *program = NULL;
	size_t n = 0;

	while (n < room && (program = bpf_object__next_program(e->bpf->obj, program)))
		n += !ask_program(program, &programs[n]);
	return n;
}

enum { MAX_PROGRAMS = 64 };

uint64_t engine_missed_events(const struct engine *e)
{
	struct engine_program programs[MAX_PROGRAMS];
	const size_t n = engine_programs(e, programs, MAX_PROGRAMS);
	uint64_t missed = 0;

	for (size_t i = 0; i < n; i++)
		missed += programs[i].missed;
	return missed;
}

struct engine_cost engine_cost(const struct engine *e)
{
	struct engine_program programs[MAX_PROGRAMS];
	struct engine_cost cost = {
		.counted = e->stats_fd >= 0 || (e->always_counts && kernel_counts()),
		.wait_ns = __atomic_load_n(&e->bpf->bss->machine.waited_ns, __ATOMIC_RELAXED),
	};
	const size_t n = cost.counted ? engine_programs(e, programs, MAX_PROGRAMS) : 0;

	for (size_t i = 0; i < n; i++) {
		cost.run_ns += programs[i].run_ns;
		cost.runs += programs[i].runs;
	}
	return cost;
}

struct wire_quality engine_quality(const struct engine *e)
{
	return e->bpf->bss->quality;
}
