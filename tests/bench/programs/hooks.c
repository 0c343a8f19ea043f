/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hooks.c - attaches and detaches within milliseconds, so that "with" and "without" can be measured
 * side by side on a machine whose speed wanders:
 *   hooks rss_stat | sys_exit    a program that does nothing, on that tracepoint
 *   hooks switches               the same on sched_switch, and one on sched_wakeup
 *   hooks usdt FILE              the same on the probe qprof:mark of FILE, in all processes
 *   hooks calls FILE             the same at the begin and the return of cuMemAlloc_v2 and
 *                                cuMemFree_v2 of FILE, a libcuda.so.1
 *   hooks ours PID               what qprof-bpf has on the whole machine when it profiles PID
 *   hooks waits PID              the same with --waits
 *   hooks files PID              the same with --files
 *   hooks stats                  nothing, but the kernel counts the run time of BPF programs
 *
 * Says "ready"; then each line of its input attaches or detaches, and is answered by "on" or "off".
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "kernel/engine.h"
#include "trivial.skel.h"

enum { MAX_TRIVIAL = 3, MAX_PROGRAMS = 64 };

/* What is attached, and what it takes to attach it again. */
static struct {
	int programs[MAX_PROGRAMS]; /* of tracepoints */
	size_t n_programs;
	struct bpf_program *usdt;
	struct bpf_program *call, *call_return;
	const char *file; /* of these */
	bool stats;

	int fds[MAX_PROGRAMS];
	size_t n_fds;
	struct bpf_link *links[4]; /* of these */
	size_t n_links;
	struct ring_buffer *rings; /* of ours: what they hold is thrown away */
} hooks;

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "hooks: %s: %s\n", what, why);
	exit(1);
}

static void hold(int fd, const char *what)
{
	if (fd < 0)
		fail(what, strerror(errno));
	hooks.fds[hooks.n_fds++] = fd;
}

static void keep_link(struct bpf_link *link)
{
	if (!link)
		fail(hooks.file, strerror(errno));
	hooks.links[hooks.n_links++] = link;
}

static void attach_calls(void)
{
	static const char *const functions[] = {"cuMemAlloc_v2", "cuMemFree_v2"};

	for (size_t i = 0; i < 2; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, begins, .func_name = functions[i]);
		LIBBPF_OPTS(bpf_uprobe_opts, returns, .func_name = functions[i], .retprobe = true);

		keep_link(bpf_program__attach_uprobe_opts(hooks.call_return, -1, hooks.file, 0,
							  &returns));
		keep_link(bpf_program__attach_uprobe_opts(hooks.call, -1, hooks.file, 0, &begins));
	}
}

static void attach(void)
{
	for (size_t i = 0; i < hooks.n_programs; i++)
		hold(bpf_raw_tracepoint_open(NULL, hooks.programs[i]), "attach");
	if (hooks.stats)
		hold(bpf_enable_stats(BPF_STATS_RUN_TIME), "bpf_enable_stats");
	if (hooks.usdt)
		keep_link(bpf_program__attach_usdt(hooks.usdt, -1, hooks.file, "qprof", "mark",
						   NULL));
	if (hooks.call)
		attach_calls();
}

static void detach(void)
{
	while (hooks.n_fds)
		close(hooks.fds[--hooks.n_fds]);
	while (hooks.n_links)
		bpf_link__destroy(hooks.links[--hooks.n_links]);
	if (hooks.rings)
		ring_buffer__consume(hooks.rings);
}

static void load_trivial(const char *what, const char *file)
{
	struct trivial_bpf *bpf = trivial_bpf__open();
	struct bpf_program *programs[MAX_TRIVIAL] = {0};

	if (!bpf)
		fail("trivial.bpf.c", strerror(errno));
	if (!strcmp(what, "switches"))
		programs[1] = bpf->progs.trivial_sched_wakeup;
	if (!strcmp(what, "storage")) {
		programs[1] = bpf->progs.trivial_block_rq_complete;
		programs[2] = bpf->progs.trivial_writeback_dirty_folio;
	}
	programs[0] = file			 ? bpf->progs.trivial_usdt
		      : programs[2]		 ? bpf->progs.trivial_block_bio_queue
		      : programs[1]		 ? bpf->progs.trivial_sched_switch
		      : strcmp(what, "rss_stat") ? bpf->progs.trivial_sys_exit
						 : bpf->progs.trivial_rss_stat;
	for (size_t i = 0; i < MAX_TRIVIAL && programs[i]; i++)
		bpf_program__set_autoload(programs[i], true);
	if (trivial_bpf__load(bpf))
		fail("trivial.bpf.c", strerror(errno));
	if (file) {
		hooks.usdt = programs[0];
		hooks.file = file;
		return;
	}
	for (size_t i = 0; i < MAX_TRIVIAL && programs[i]; i++)
		hooks.programs[hooks.n_programs++] = bpf_program__fd(programs[i]);
}

static void load_calls(const char *file)
{
	struct trivial_bpf *bpf = trivial_bpf__open();

	if (!bpf)
		fail("trivial.bpf.c", strerror(errno));
	hooks.call = bpf->progs.trivial_call;
	hooks.call_return = bpf->progs.trivial_return;
	hooks.file = file;
	bpf_program__set_autoload(hooks.call, true);
	bpf_program__set_autoload(hooks.call_return, true);
	if (trivial_bpf__load(bpf))
		fail("trivial.bpf.c", strerror(errno));
}

static int throw_away(void *context, void *data, size_t size)
{
	(void)context;
	(void)data;
	(void)size;
	return 0;
}

/* Those of the programs that go to a tracepoint or a function: others cannot be attached so. */
static void take_tracepoints(const struct engine *e)
{
	struct engine_program programs[MAX_PROGRAMS];
	size_t n = engine_programs(e, programs, MAX_PROGRAMS);

	for (size_t i = 0; i < n && i < MAX_PROGRAMS; i++) {
		int fd = bpf_raw_tracepoint_open(NULL, programs[i].fd);

		if (fd < 0)
			continue;
		close(fd);
		hooks.programs[hooks.n_programs++] = programs[i].fd;
	}
}

static void load_ours(const char *pid, const char *what)
{
	const struct engine_config config = {
		.follow = true, .waits = !strcmp(what, "waits"), .files = !strcmp(what, "files")};
	struct engine *e;
	struct error err = {0};

	if (engine_new(&config, &e, &err))
		fail("qprof-bpf's engine", err.text);
	errno = -engine_add_target(e, (uint32_t)strtoul(pid, NULL, 10));
	if (errno)
		fail(pid, strerror(errno));
	if (engine_track_existing(e, &err))
		fail(pid, err.text);
	hooks.rings = ring_buffer__new(engine_control_fd(e), throw_away, NULL, NULL);
	if (!hooks.rings || ring_buffer__add(hooks.rings, engine_timeline_fd(e), throw_away, NULL))
		fail("ring buffers", strerror(errno));
	take_tracepoints(e);
}

static void prepare(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc == 2 && (!strcmp(what, "rss_stat") || !strcmp(what, "sys_exit") ||
			  !strcmp(what, "switches") || !strcmp(what, "storage"))) {
		load_trivial(what, NULL);
	} else if (argc == 3 && !strcmp(what, "usdt")) {
		load_trivial(what, argv[2]);
	} else if (argc == 3 && !strcmp(what, "calls")) {
		load_calls(argv[2]);
	} else if (argc == 3 &&
		   (!strcmp(what, "ours") || !strcmp(what, "waits") || !strcmp(what, "files"))) {
		load_ours(argv[2], what);
	} else if (argc == 2 && !strcmp(what, "stats")) {
		hooks.stats = true;
	} else {
		fputs("usage: hooks rss_stat | sys_exit | switches | storage | usdt FILE | calls "
		      "FILE | "
		      "ours PID | waits PID | files PID | stats\n",
		      stderr);
		exit(2);
	}
}

static void say(const char *what)
{
	puts(what);
	fflush(stdout);
}

/* What is attached goes with the process. */
int main(int argc, char **argv)
{
	char line[16];
	bool on = false;

	prepare(argc, argv);
	say("ready");
	while (fgets(line, sizeof(line), stdin)) {
		on ? detach() : attach();
		on = !on;
		say(on ? "on" : "off");
	}
	return 0;
}
