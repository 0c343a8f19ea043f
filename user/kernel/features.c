/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/features.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "kernel/kernel_btf.h"
#include "kernel/late_programs.h"
#include "kernel/sections.h"
#include "kernel/skeleton.h"
#include "kernel/uprobe_multi.h"

/* The smallest program, to try what the kernel takes: r0 = 0, exit. */
static const struct bpf_insn nothing[] = {
	{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
	{.code = BPF_JMP | BPF_EXIT},
};

/* ---- fentry and fexit --------------------------------------------------------------------------
 */

#if defined(__x86_64__)
#define SPLICE_FUNCTION "__x64_sys_splice"
#else
#define SPLICE_FUNCTION "__arm64_sys_splice"
#endif

/* Attaches the smallest fentry or fexit program to a function. Returns 0, or -errno. */
static int try_tracing(const struct kernel_btf *btf, const char *function,
		       enum bpf_attach_type type)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type);
	const uint32_t id = kernel_btf_find(btf, function, BTF_KIND_FUNC);
	int fd, link;

	if (!id)
		return -ENOENT;
	opts.attach_btf_id = id;
	fd = bpf_prog_load(BPF_PROG_TYPE_TRACING, "try_tracing", "GPL", nothing, 2, &opts);
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

/* Returns the function that an fentry or fexit program is for, NULL for any other program. */
static const char *traced_function(const struct bpf_program *program)
{
	const char *section = bpf_program__section_name(program);

	if (strncmp(section, "fexit/", 6) && strncmp(section, "fentry/", 7))
		return NULL;
	return strchr(section, '/') + 1;
}

/*
 * A kernel may lack a function (calls of 32-bit programs are a matter of configuration), or refuse
 * to have it traced. libbpf would then refuse all programs, so this program is left out.
 */
static bool can_trace(struct features *f, const struct kernel_btf *btf,
		      const struct bpf_program *program, const char *function)
{
	size_t used = strlen(f->untraced);
	const uint32_t id = f->fexit ? kernel_btf_find(btf, function, BTF_KIND_FUNC) : 0;
	int err;

	if (!id)
		return false;
	err = try_tracing(btf, function, bpf_program__expected_attach_type(program));
	if (!err)
		err = sections_learn_one(function, id);
	if (!err)
		return true;
	log_verbose("%s cannot be traced: %s", function, strerror(-err));
	snprintf(f->untraced + used, sizeof(f->untraced) - used, "%s%s", used ? ", " : "",
		 function);
	return false;
}

static void choose_traced(struct features *f, struct qprof_bpf *bpf, const struct kernel_btf *btf)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, bpf->obj)
	{
		const char *function = traced_function(program);

		if (function)
			bpf_program__set_autoload(program, can_trace(f, btf, program, function));
	}
	/* A completion is counted only if its submission was seen. */
	f->aio = bpf_program__autoload(bpf->progs.aio_submits) &&
		 bpf_program__autoload(bpf->progs.aio_completes);
}

static void choose_calls(struct features *f, struct qprof_bpf *bpf, const struct kernel_btf *btf,
			 bool count_splice)
{
	int err = try_tracing(btf, SPLICE_FUNCTION, BPF_TRACE_FEXIT);

	if (err)
		snprintf(f->fexit_reason, sizeof(f->fexit_reason), "fexit on %s: %s",
			 SPLICE_FUNCTION, strerror(-err));
	else if (ftrace_is_off())
		snprintf(f->fexit_reason, sizeof(f->fexit_reason), "kernel.ftrace_enabled is 0");
	else
		f->fexit = true;
	choose_traced(f, bpf, btf);
	snprintf(f->traced_backend, sizeof(f->traced_backend),
		 "task->ioac rchar and wchar; io_uring's tracepoints; fexit on splice, tee, "
		 "vmsplice, process_vm_readv, process_vm_writev%s%s%s",
		 f->aio ? "; fentry on aio_complete_rw" : "", *f->untraced ? "; but not on " : "",
		 f->untraced);
	f->calls = f->fexit ? CALLS_TRACED : count_splice ? CALLS_PROBED : CALLS_NOT_COUNTED;
}

/* ---- The rest ----------------------------------------------------------------------------------
 */

/* Tries a file that cannot be probed: a kernel that knows the link answers EBADF. */
static bool try_uprobe_multi(void)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)TRACE_UPROBE_MULTI);
	int program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "try_multi", "GPL", nothing, 2, &opts);
	uint64_t zero = 0;
	int link;

	if (program < 0)
		return false;
	link = uprobe_multi_link(program, "/", &zero, NULL, NULL, 1, false);
	close(program);
	return link == -EBADF;
}

/* See mapped.bpf.c. An audit that serves nobody makes no program wait. */
static void choose_hold(struct features *f, struct qprof_bpf *bpf, bool programs_wait)
{
	f->holds_starts = programs_wait && sections_number("bpf_task_work_schedule_resume_impl");
	bpf_program__set_autoload(bpf->progs.hold_by_work, f->holds_starts);
}

/* Returns how many arguments a tracepoint of our programs passes, 0 if the kernel has no such
 * tracepoint. */
static unsigned int tracepoint_args(const struct kernel_btf *btf, const char *name)
{
	char symbol[64];
	const struct btf_type *type;
	uint32_t id;

	snprintf(symbol, sizeof(symbol), "btf_trace_%s", name);
	id = sections_number(symbol);
	type = id ? kernel_btf_type(btf, id) : NULL;
	type = type ? kernel_btf_type(btf, type->type) : NULL; /* a pointer ... */
	type = type ? kernel_btf_type(btf, type->type) : NULL; /* to a function */
	return type && btf_is_func_proto(type) ? btf_vlen(type) - 1u : 0;
}

/*
 * Linux 6.13 made one argument, the completion, of five. Linux 6.4 gave the submission another name
 * (2ad57931db64 "io_uring: rename trace_io_uring_submit_sqe() tracepoint") and left its first
 * argument as it was.
 */
static void choose_io_uring(struct qprof_bpf *bpf, const struct kernel_btf *btf)
{
	unsigned int args = tracepoint_args(btf, "io_uring_complete");

	bpf_program__set_autoload(bpf->progs.io_uring_submitted,
				  tracepoint_args(btf, "io_uring_submit_req") > 0);
	bpf_program__set_autoload(bpf->progs.io_uring_submitted_old,
				  tracepoint_args(btf, "io_uring_submit_sqe") > 0);
	bpf_program__set_autoload(bpf->progs.io_uring_done, args == 3);
	bpf_program__set_autoload(bpf->progs.io_uring_done_old, args > 3);
}

/* The struct is empty without CONFIG_SCHED_INFO. */
static bool has_waits(const struct kernel_btf *btf)
{
	const uint32_t id = kernel_btf_find(btf, "sched_info", BTF_KIND_STRUCT);

	return id && btf_vlen(kernel_btf_type(btf, id)) > 0;
}

/* Linux 6.8 and earlier tell the number of the task that the OOM killer has chosen, later ones the
 * task itself. */
static void choose_oom(struct features *f, struct qprof_bpf *bpf, const struct kernel_btf *btf)
{
	const unsigned int args = tracepoint_args(btf, "mark_victim");

	f->oom_kills = args;
	bpf_program__set_autoload(bpf->progs.oom_kills, args > 1);
	bpf_program__set_autoload(bpf->progs.oom_kills_old, args == 1);
	bpf_program__set_autoload(bpf->progs.signal_is_sent, args);
}

/* Returns 0; or -1 and *err, where the counters would be misread. */
static int find_rss_layout(struct features *f, const struct kernel_btf *btf, struct error *err)
{
	char why[128];

	f->rss_layout = rss_layout_of(btf, why, sizeof(why));
	if (f->rss_layout != RSS_UNKNOWN)
		return 0;
	return error_set(err,
			 "this kernel keeps its memory counts in a way that is not known: %s; "
			 "a newer qprof-bpf may know it",
			 why);
}

int features_find(struct features *f, struct qprof_bpf *bpf, const struct kernel_btf *btf,
		  const struct features_use *use, struct error *err)
{
	*f = (struct features){0};
	choose_calls(f, bpf, btf, use->count_splice);
	choose_io_uring(bpf, btf);
	bpf_program__set_autoload(bpf->progs.usage_tick,
				  use->curves && tracepoint_args(btf, "hrtimer_expire_entry"));
	choose_oom(f, bpf, btf);
	bpf_program__set_autoload(bpf->progs.task_switches, use->waits);
	bpf_program__set_autoload(bpf->progs.task_wakes,
				  use->waits && !getenv("QPROF_NO_WAKEUPS")); /* for tests */
	bpf_program__set_autoattach(bpf->progs.switch_sleepers, false);
	bpf_program__set_autoload(bpf->progs.switch_sleepers, use->waits && use->windows);
	f->uprobe_multi = try_uprobe_multi();
	choose_hold(f, bpf, !use->audit || use->serves);
	f->waits = has_waits(btf);
	/* To load a program takes the kernel some 10 ms. */
	bpf_program__set_autoload(bpf->progs.track_existing, !use->launches);
	bpf_program__set_autoload(bpf->progs.track_command, use->launches);
	bpf_program__set_autoload(bpf->progs.join_job, use->audit);
	bpf_program__set_autoload(bpf->progs.clear_job, use->audit);
	bpf_program__set_autoload(bpf->progs.take_back, use->audit && use->serves);
	bpf_program__set_autoload(bpf->progs.move_members, use->audit && use->serves);
	bpf_program__set_autoload(bpf->progs.tell_processes, use->audit);
	bpf_program__set_autoload(bpf->progs.choose_pid_namespace, use->nested);
	/* Without CONFIG_HAVE_SYSCALL_TRACEPOINTS recipes lack it, and the rest must not. */
	late_programs_expect(bpf, LATE_LOGS, use->listens && tracepoint_args(btf, "sys_enter") > 0);
	late_programs_expect(bpf, LATE_FILES,
			     use->watches && tracepoint_args(btf, "sys_enter") > 0 &&
				     tracepoint_args(btf, "sys_exit") > 0);
	return find_rss_layout(f, btf, err);
}

/* ---- In words ----------------------------------------------------------------------------------
 */

static const char *calls_backend(const struct features *f)
{
	switch (f->calls) {
	case CALLS_TRACED:
		return f->traced_backend;
	case CALLS_PROBED:
		return "task->ioac rchar and wchar; io_uring's tracepoints; uretprobes on libc's "
		       "splice, tee, vmsplice, process_vm_readv, process_vm_writev and libaio's "
		       "io_submit";
	case CALLS_NOT_COUNTED:
		break;
	}
	return "task->ioac rchar and wchar; io_uring's tracepoints";
}

static const char *checkpoint_backend(const struct features *f)
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

	return texts[f->uprobe_multi][f->holds_starts];
}

struct features_backends features_backends(const struct features *f)
{
	return (struct features_backends){
		.rss = f->rss_layout == RSS_ATOMIC
			       ? "tp_btf/rss_stat, mm_rss_stat (before Linux 6.2)"
			       : "tp_btf/rss_stat, percpu_counter (Linux 6.2 and later)",
		.io_calls = calls_backend(f),
		.io_storage = "task->ioac read_bytes and write_bytes",
		.checkpoints = checkpoint_backend(f),
		.oom_kills = f->oom_kills ? "tp_btf/mark_victim, signal_generate" : NULL,
	};
}
