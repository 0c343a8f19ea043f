/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/put_off.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/log.h"

/* A program that waits, with all that libbpf would have loaded it with. */
struct waiting {
	struct bpf_program *program;
	struct waiting *next;
	struct bpf_prog_load_opts opts;
	struct bpf_insn *insns;
	void *func_info, *line_info;
	size_t n;
	bool beside;	/* a thread is to load it */
	bool is_loaded; /* by the thread, once that has ended: */
	pthread_t thread;
	int fd; /* or -errno */
};

/* sections.h calls for each program of the process. */
static struct waiting *all;

static struct waiting **find(const struct bpf_program *program)
{
	struct waiting **w = &all;

	while (*w && (*w)->program != program)
		w = &(*w)->next;
	return w;
}

/* libbpf 1.5's function takes options that may be written to. */
static int load_it(struct waiting *w)
{
	return bpf_prog_load(bpf_program__type(w->program), bpf_program__name(w->program), "GPL",
			     w->insns, w->n, &w->opts);
}

static void *load_beside(void *waiting)
{
	struct waiting *w = waiting;

	w->fd = load_it(w);
	return NULL;
}

/* Without a thread it is loaded when it is waited for. Signals are for others. */
static void begin_thread(struct waiting *w)
{
	sigset_t all_signals, before;

	sigfillset(&all_signals);
	pthread_sigmask(SIG_SETMASK, &all_signals, &before);
	w->is_loaded = !pthread_create(&w->thread, NULL, load_beside, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Returns a descriptor of the program, or -errno. */
static int take(struct waiting *w)
{
	if (!w->is_loaded)
		return load_it(w);
	pthread_join(w->thread, NULL);
	w->is_loaded = false;
	return w->fd;
}

static void forget(struct waiting **place)
{
	struct waiting *w = *place;
	const int fd = w->is_loaded ? take(w) : -1;

	if (fd >= 0)
		close(fd);
	*place = w->next;
	free(w->insns);
	free(w->func_info);
	free(w->line_info);
	free(w);
}

static void *copy(const void *from, size_t size)
{
	void *to = malloc(size ? size : 1);

	return to && size ? memcpy(to, from, size) : to;
}

/* Keeps what there is to load. What libbpf closes once it has loaded all is not kept. */
static int keep(struct waiting *w, const struct bpf_prog_load_opts *opts)
{
	w->n = bpf_program__insn_cnt(w->program);
	w->insns = copy(bpf_program__insns(w->program), w->n * sizeof(*w->insns));
	w->func_info =
		copy(opts->func_info, (size_t)opts->func_info_cnt * opts->func_info_rec_size);
	w->line_info =
		copy(opts->line_info, (size_t)opts->line_info_cnt * opts->line_info_rec_size);
	if (!w->insns || !w->func_info || !w->line_info)
		return -ENOMEM;
	/* A newer libbpf than that of the headers has more in it. */
	memcpy(&w->opts, opts, opts->sz < sizeof(w->opts) ? opts->sz : sizeof(w->opts));
	w->opts.sz = sizeof(w->opts);
	w->opts.func_info = opts->func_info_cnt ? w->func_info : NULL;
	w->opts.line_info = opts->line_info_cnt ? w->line_info : NULL;
	w->opts.fd_array = NULL;
	w->opts.log_level = 0;
	w->opts.log_buf = NULL;
	w->opts.log_size = 0;
	return 0;
}

/* r0 = 0, exit. */
static int load_nothing(struct bpf_program *program, struct bpf_prog_load_opts *opts)
{
	struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};

	opts->func_info_cnt = opts->line_info_cnt = 0;
	opts->func_info = opts->line_info = NULL;
	return bpf_program__set_insns(program, nothing, sizeof(nothing) / sizeof(*nothing));
}

int put_off_prepare(struct bpf_program *program, struct bpf_prog_load_opts *opts)
{
	struct waiting *w = *find(program);
	int err;

	if (!w)
		return 0;
	err = keep(w, opts);
	if (!err && w->beside)
		begin_thread(w);
	return err ? err : load_nothing(program, opts);
}

static int add(struct bpf_program *program, bool beside)
{
	struct waiting *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct waiting){.program = program, .next = all, .beside = beside};
	all = w;
	return 0;
}

int put_off(struct bpf_program *program)
{
	return add(program, false);
}

int put_off_beside(struct bpf_program *program)
{
	return add(program, true);
}

static int load(struct waiting *w)
{
	const struct bpf_program *program = w->program;
	const int fd = take(w);
	int err;

	if (fd < 0)
		return fd;
	err = dup3(fd, bpf_program__fd(program), O_CLOEXEC) < 0 ? -errno : 0;
	close(fd);
	return err;
}

int put_off_load(struct bpf_program *program)
{
	struct waiting **w = find(program);
	int err;

	if (!*w)
		return 0;
	err = (*w)->insns ? load(*w) : -EINVAL;
	if (err)
		log_info("cannot load the BPF program %s: %s", bpf_program__name(program),
			 strerror(-err));
	else
		forget(w);
	return err;
}

static int load_those(const struct bpf_object *object, bool all_of_them)
{
	struct bpf_program *program = NULL;
	int err = 0;

	while (!err && (program = bpf_object__next_program(object, program))) {
		const struct waiting *w = *find(program);

		if (w && (w->beside || all_of_them))
			err = put_off_load(program);
	}
	return err;
}

int put_off_load_beside(const struct bpf_object *object)
{
	return load_those(object, false);
}

int put_off_load_all(const struct bpf_object *object)
{
	return load_those(object, true);
}

void put_off_end(const struct bpf_object *object)
{
	struct bpf_program *program = NULL;

	while ((program = bpf_object__next_program(object, program))) {
		struct waiting **w = find(program);

		if (*w)
			forget(w);
	}
}
