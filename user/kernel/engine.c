/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "log.h"

/* The names that the skeleton takes from the BPF side. */
typedef uint32_t u32;
typedef uint64_t u64;
#include "qprof.skel.h"

enum { DETACH_THREADS = 64 };

struct engine {
	struct qprof_bpf *bpf;
	struct bpf_link **links; /* of engine_attach_probe */
	size_t n_links, room;
	bool fexit;
	char fexit_reason[128];
	bool old_rss_layout;
};

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_DEBUG || log_level() < LOG_VERBOSE)
		return 0;
	return vfprintf(stderr, format, args);
}

/*
 * Whether this kernel takes an fexit program on a function: tried with the smallest one, since what
 * forbids it is a matter of configuration, privilege and architecture. 0, or -errno.
 */
static int probe_fexit(const struct btf *btf, const char *function)
{
	const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FEXIT);
	int id = btf__find_by_name_kind(btf, function, BTF_KIND_FUNC);
	int fd, link;

	if (id < 0)
		return -ENOENT;
	opts.attach_btf_id = id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "probe_fexit", "GPL", nothing, 2, &opts);
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

static void choose_fexit(struct engine *e, const struct btf *btf)
{
	int err = probe_fexit(btf, SPLICE_FUNCTION);

	if (err)
		snprintf(e->fexit_reason, sizeof(e->fexit_reason), "fexit on %s: %s",
			 SPLICE_FUNCTION, strerror(-err));
	else if (ftrace_is_off())
		snprintf(e->fexit_reason, sizeof(e->fexit_reason), "kernel.ftrace_enabled is 0");
	else
		e->fexit = true;
	bpf_program__set_autoload(e->bpf->progs.splice_done, e->fexit);
	bpf_program__set_autoload(e->bpf->progs.tee_done, e->fexit);
	bpf_program__set_autoload(e->bpf->progs.vmsplice_done, e->fexit);
	bpf_program__set_autoload(e->bpf->progs.libc_splice_done, !e->fexit);
	bpf_program__set_autoload(e->bpf->progs.libc_vmsplice_done, !e->fexit);
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

/* 6.13 made one argument, the completion, of five. */
static void choose_io_uring(struct engine *e, const struct btf *btf)
{
	unsigned int args = tracepoint_args(btf, "io_uring_complete");

	bpf_program__set_autoload(e->bpf->progs.io_uring_done, args == 3);
	bpf_program__set_autoload(e->bpf->progs.io_uring_done_old, args > 3);
}

/* Before 6.2 the counters are in a struct, from then on an array: see vmlinux.h. */
static bool has_old_rss_layout(const struct btf *btf)
{
	return btf__find_by_name_kind(btf, "mm_rss_stat", BTF_KIND_STRUCT) > 0;
}

static int choose_programs(struct engine *e, struct error *err)
{
	struct btf *btf = btf__load_vmlinux_btf();

	if (!btf)
		return error_set(
			err,
			"cannot read the kernel's type information: %s; qprof-bpf needs a kernel "
			"with CONFIG_DEBUG_INFO_BTF (/sys/kernel/btf/vmlinux)",
			strerror(errno));
	choose_fexit(e, btf);
	choose_io_uring(e, btf);
	e->old_rss_layout = has_old_rss_layout(btf);
	btf__free(btf);
	return 0;
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

	if (e->old_rss_layout)
		return 0;
	code = bpf_prog_test_run_opts(bpf_program__fd(e->bpf->progs.read_cpu_offsets), &opts);
	if (code || opts.retval)
		return error_set(err, "cannot find the kernel's per-CPU counters (%s, step %u)",
				 strerror(code ? -code : EINVAL), opts.retval);
	return 0;
}

static int load(struct engine *e, const struct engine_config *config, struct error *err)
{
	int cpus = libbpf_num_possible_cpus(), code;

	if (cpus < 1 || cpus > WIRE_MAX_CPUS)
		return error_set(err, "cannot count on %d CPUs: at most %d are supported", cpus,
				 WIRE_MAX_CPUS);
	e->bpf->rodata->config.nr_cpus = cpus;
	e->bpf->rodata->config.follow = config->follow;
	e->bpf->rodata->config.wake_points = config->wake_points;
	e->bpf->rodata->config.max_processes = bpf_map__max_entries(e->bpf->maps.procs);
	if (config->max_processes) {
		e->bpf->rodata->config.max_processes = config->max_processes;
		bpf_map__set_max_entries(e->bpf->maps.procs, config->max_processes);
		bpf_map__set_max_entries(e->bpf->maps.mms, config->max_processes);
		bpf_map__set_max_entries(e->bpf->maps.slots, config->max_processes);
		bpf_map__set_max_entries(e->bpf->maps.free_slots, config->max_processes);
		bpf_map__set_max_entries(e->bpf->maps.searched, config->max_processes);
	}
	code = qprof_bpf__load(e->bpf);
	return code ? load_failed(err, code) : 0;
}

int engine_new(const struct engine_config *config, struct engine **engine, struct error *err)
{
	struct engine *e = calloc(1, sizeof(*e));

	*engine = NULL;
	if (!e)
		return error_set(err, "out of memory");
	libbpf_set_print(print_libbpf);
	e->bpf = qprof_bpf__open();
	if (!e->bpf) {
		error_set(err, "cannot open the BPF programs: %s", strerror(errno));
		goto fail;
	}
	if (choose_programs(e, err) || load(e, config, err) || read_cpu_offsets(e, err))
		goto fail;
	*engine = e;
	return 0;
fail:
	engine_free(e);
	return -1;
}

int engine_attach(struct engine *e, struct error *err)
{
	int code;

	/* These go to places in files, which are found later. */
	bpf_program__set_autoattach(e->bpf->progs.site_hit, false);
	bpf_program__set_autoattach(e->bpf->progs.objects_changed, false);
	bpf_program__set_autoattach(e->bpf->progs.libc_splice_done, false);
	bpf_program__set_autoattach(e->bpf->progs.libc_vmsplice_done, false);
	bpf_program__set_autoattach(e->bpf->progs.track_existing, false);
	code = qprof_bpf__attach(e->bpf);
	if (code)
		return error_set(
			err,
			"cannot attach to the kernel's tracepoints: %s; see 'qprof-bpf doctor'",
			strerror(-code));
	return 0;
}

/* A share of the links: every DETACH_THREADS-th, beginning with the first. */
struct share {
	struct engine *engine;
	size_t first;
	pthread_t thread;
};

static void *destroy_share(void *arg)
{
	struct share *share = arg;
	struct engine *e = share->engine;

	for (size_t i = share->first; i < e->n_links; i += DETACH_THREADS)
		bpf_link__destroy(e->links[i]);
	return NULL;
}

/* The kernel waits for a grace period or two a probe (some 90 ms each): for many at a time, then.
 */
static void destroy_links(struct engine *e)
{
	struct share shares[DETACH_THREADS];
	size_t n = 0;

	for (; n < DETACH_THREADS && n < e->n_links; n++) {
		shares[n] = (struct share){.engine = e, .first = n};
		if (pthread_create(&shares[n].thread, NULL, destroy_share, &shares[n]))
			break;
	}
	for (size_t i = n; i < DETACH_THREADS && i < e->n_links; i++)
		destroy_share(&(struct share){.engine = e, .first = i});
	for (size_t i = 0; i < n; i++)
		pthread_join(shares[i].thread, NULL);
	free(e->links);
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	destroy_links(e);
	qprof_bpf__destroy(e->bpf);
	free(e);
}

int engine_add_target(struct engine *e, uint32_t tgid, bool running)
{
	uint32_t flags = WIRE_PROCESS_TARGET | (running ? WIRE_PROCESS_ATTACHED : 0);

	return bpf_map_update_elem(bpf_map__fd(e->bpf->maps.targets), &tgid, &flags, BPF_ANY);
}

/* One walk over all tasks. 0, or -errno. */
static int run_iterator(struct bpf_program *program)
{
	struct bpf_link *link = bpf_program__attach_iter(program, NULL);
	char none[64];
	int fd, err = 0;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0) {
		err = fd;
	} else {
		ssize_t n;

		do
			n = read(fd, none, sizeof(none));
		while (n > 0 || (n < 0 && errno == EINTR));
		err = n < 0 ? -errno : 0;
		close(fd);
	}
	bpf_link__destroy(link);
	return err;
}

int engine_track_existing(struct engine *e, struct error *err)
{
	enum { MAX_DEPTH = 256 }; /* each walk reaches at least one generation more */
	int code;

	for (int walk = 0; walk < MAX_DEPTH; walk++) {
		e->bpf->bss->newly_tracked = 0;
		code = run_iterator(e->bpf->progs.track_existing);
		if (code)
			return error_set(err, "cannot walk the processes: %s", strerror(-code));
		if (!e->bpf->bss->newly_tracked)
			break;
	}
	return 0;
}

int engine_milestone(struct engine *e, uint32_t tgid, enum wire_what what)
{
	struct {
		uint32_t tgid, what;
	} args = {.tgid = tgid, .what = what};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &args, .ctx_size_in = sizeof(args));
	int code = bpf_prog_test_run_opts(bpf_program__fd(e->bpf->progs.take_milestone), &opts);

	return code ? code : opts.retval ? -ESRCH : 0;
}

int engine_set_site(struct engine *e, uint32_t index, const struct wire_site *site)
{
	return bpf_map_update_elem(bpf_map__fd(e->bpf->maps.sites), &index, site, BPF_ANY);
}

static int keep_link(struct engine *e, struct bpf_link *link)
{
	if (e->n_links == e->room) {
		size_t room = e->room ? e->room * 2 : 64;
		struct bpf_link **links = reallocarray(e->links, room, sizeof(struct bpf_link *));

		if (!links) {
			bpf_link__destroy(link);
			return -ENOMEM;
		}
		e->links = links;
		e->room = room;
	}
	e->links[e->n_links++] = link;
	return 0;
}

int engine_attach_probe(struct engine *e, enum engine_probe probe, int fd, const char *symbol,
			uint64_t offset, uint64_t semaphore, uint32_t cookie)
{
	struct bpf_program *const programs[] = {
		[PROBE_SITE] = e->bpf->progs.site_hit,
		[PROBE_LINKER] = e->bpf->progs.objects_changed,
		[PROBE_LIBC_SPLICE] = e->bpf->progs.libc_splice_done,
		[PROBE_LIBC_VMSPLICE] = e->bpf->progs.libc_vmsplice_done,
	};
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .ref_ctr_offset = semaphore, .bpf_cookie = cookie,
		    .retprobe = probe == PROBE_LIBC_SPLICE || probe == PROBE_LIBC_VMSPLICE,
		    .func_name = symbol);
	struct bpf_link *link;
	char path[64];

	/* The file itself, whatever has become of its name since it was opened. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	link = bpf_program__attach_uprobe_opts(programs[probe], -1, path, offset, &opts);
	return link ? keep_link(e, link) : -errno;
}

void engine_searched(struct engine *e, uint32_t tgid, uint64_t change)
{
	bpf_map_update_elem(bpf_map__fd(e->bpf->maps.searched), &tgid, &change, BPF_ANY);
}

bool engine_needs_libc_probes(const struct engine *e)
{
	return !e->fexit;
}

const char *engine_fexit_reason(const struct engine *e)
{
	return e->fexit ? NULL : e->fexit_reason;
}

struct engine_backends engine_backends(const struct engine *e)
{
	return (struct engine_backends){
		.rss = e->old_rss_layout ? "tp_btf/rss_stat, mm_rss_stat (before Linux 6.2)"
					 : "tp_btf/rss_stat, percpu_counter (Linux 6.2 and later)",
		.io_calls = e->fexit ? "task->ioac rchar and wchar; tp_btf/io_uring_complete; "
				       "fexit on splice, tee, vmsplice"
				     : "task->ioac rchar and wchar; tp_btf/io_uring_complete; "
				       "uretprobes on libc's splice, tee, vmsplice",
		.io_storage = "task->ioac read_bytes and write_bytes",
		.checkpoints = "uprobe.s on USDT sites",
	};
}

int engine_control_fd(const struct engine *e)
{
	return bpf_map__fd(e->bpf->maps.control);
}

int engine_timeline_fd(const struct engine *e)
{
	return bpf_map__fd(e->bpf->maps.timeline);
}

struct wire_quality engine_quality(const struct engine *e)
{
	return e->bpf->bss->quality;
}

unsigned int engine_processes(const struct engine *e)
{
	return e->bpf->bss->tree.processes;
}
