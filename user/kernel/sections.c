/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/sections.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "bpf/wire_call.h"
#include "kernel/kernel_btf.h"
#include "kernel/put_off.h"

static const struct section {
	const char *name; /* "x/": x/ANYTHING; "x+": that, or x */
	enum bpf_prog_type type;
	enum bpf_attach_type attach;
	const char *prefix; /* of the type that a program attaches to; NULL: it has no number */
	bool sleeps;
} sections[] = {
	/* What has a prefix is BPF_PROG_TYPE_TRACING, which prepare() makes of it. */
	{"tp_btf/", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_RAW_TP, "btf_trace_", false},
	{"iter/", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_ITER, "bpf_iter_", false},
	{"fentry/", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_FENTRY, "", false},
	{"fexit/", BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_FEXIT, "", false},
	{"raw_tp+", BPF_PROG_TYPE_RAW_TRACEPOINT, 0, NULL, false},
	{"syscall", BPF_PROG_TYPE_SYSCALL, 0, NULL, true},
	{"later.syscall", BPF_PROG_TYPE_SYSCALL, 0, NULL, true},
	{"uprobe", BPF_PROG_TYPE_KPROBE, 0, NULL, false},
	{"uprobe.s", BPF_PROG_TYPE_KPROBE, 0, NULL, true},
	{"later.uprobe.s", BPF_PROG_TYPE_KPROBE, 0, NULL, true},
	{"uretprobe", BPF_PROG_TYPE_KPROBE, 0, NULL, false},
	{"uretprobe.s", BPF_PROG_TYPE_KPROBE, 0, NULL, true},
};

enum { SECTIONS = sizeof(sections) / sizeof(*sections) };

/* The kernel's functions that programs call, by WIRE_CALL_... */
static const char *const calls[WIRE_CALLS] = {
	[WIRE_CALL_RDONLY_CAST - WIRE_CALL_FIRST] = "bpf_rdonly_cast",
	[WIRE_CALL_TASK_WORK - WIRE_CALL_FIRST] = "bpf_task_work_schedule_resume_impl",
};

/* ---- Numbers -----------------------------------------------------------------------------------
 */

struct number {
	char name[64];
	uint32_t number; /* 0: the kernel has no such type */
};

static char lacking[128]; /* the type for which a program was not loaded; "": none was */

/* The kernel is one, and libbpf's handlers of sections are the process's, too. */
static struct {
	struct number *at;
	size_t n;
} known;

static struct number *find(const char *name)
{
	for (size_t i = 0; i < known.n; i++)
		if (!strcmp(known.at[i].name, name))
			return &known.at[i];
	return NULL;
}

static struct number *find_or_add(const char *name)
{
	struct number *number = find(name), *at;

	if (number || strlen(name) >= sizeof(number->name))
		return number;
	at = realloc(known.at, (known.n + 1) * sizeof(*at));
	if (!at)
		return NULL;
	known.at = at;
	number = &at[known.n++];
	*number = (struct number){0};
	memcpy(number->name, name, strlen(name));
	return number;
}

int sections_learn_one(const char *name, uint32_t number)
{
	struct number *of = find_or_add(name);

	if (!of)
		return -ENOMEM;
	of->number = number;
	return 0;
}

uint32_t sections_number(const char *name)
{
	const struct number *number = find(name);

	return number ? number->number : 0;
}

static const struct section *section_of(const struct bpf_program *program)
{
	const char *name = bpf_program__section_name(program);

	for (size_t i = 0; i < SECTIONS; i++)
		if (sections[i].prefix &&
		    !strncmp(name, sections[i].name, strlen(sections[i].name)))
			return &sections[i];
	return NULL;
}

/* Writes the name of the type that a program attaches to. Returns false if there is none. */
static bool name_of(const struct bpf_program *program, char *name, size_t size)
{
	const struct section *section = section_of(program);

	if (!section)
		return false;
	snprintf(name, size, "%s%s", section->prefix,
		 strchr(bpf_program__section_name(program), '/') + 1);
	return true;
}

static int expect_all(const struct bpf_object *object)
{
	struct bpf_program *program = NULL;
	char name[128];

	while ((program = bpf_object__next_program(object, program)))
		if (name_of(program, name, sizeof(name)) && !find_or_add(name))
			return -ENOMEM;
	for (size_t i = 0; i < WIRE_CALLS; i++)
		if (!find_or_add(calls[i]))
			return -ENOMEM;
	return 0;
}

/* All names of these kinds that are looked for begin so; functions that are traced do not. */
static bool may_be_known(const struct btf_type *type, const char *name)
{
	if (btf_is_typedef(type))
		return !strncmp(name, "btf_trace_", 10);
	return btf_is_func(type) && !strncmp(name, "bpf_", 4);
}

int sections_learn(const struct kernel_btf *kernel, const struct bpf_object *object)
{
	const int err = expect_all(object);

	if (err)
		return err;
	for (uint32_t id = 1; id < kernel->n; id++) {
		const struct btf_type *type = kernel_btf_type(kernel, id);
		struct number *number;
		const char *name;

		if (!btf_is_typedef(type) && !btf_is_func(type))
			continue;
		name = kernel_btf_name(kernel, type->name_off);
		number = may_be_known(type, name) ? find(name) : NULL;
		if (number && !number->number)
			number->number = id;
	}
	return 0;
}

/* ---- Load --------------------------------------------------------------------------------------
 */

/* r0 = 0, instead of a function that this kernel lacks: the program never comes to call it. */
static void link_call(struct bpf_insn *insn)
{
	const uint32_t number = sections_number(calls[insn->imm - WIRE_CALL_FIRST]);

	if (number) {
		insn->src_reg = BPF_PSEUDO_KFUNC_CALL;
		insn->imm = (int32_t)number;
		return;
	}
	*insn = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0};
}

static bool is_ours_to_link(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg &&
	       insn->imm >= WIRE_CALL_FIRST && insn->imm < WIRE_CALL_FIRST + WIRE_CALLS;
}

static void link_calls(const struct bpf_program *program)
{
	/* They are the object's, which is being loaded; libbpf has no call to change one. */
	struct bpf_insn *insn = (struct bpf_insn *)bpf_program__insns(program);
	const size_t n = bpf_program__insn_cnt(program);

	for (size_t i = 0; i < n; i++) {
		if (is_ours_to_link(&insn[i]))
			link_call(&insn[i]);
		if (insn[i].code == (BPF_LD | BPF_IMM | BPF_DW))
			i++; /* it has two parts, and the second is no instruction */
	}
}

/* libbpf calls this when it is done with a program, and loads what is there then. */
static int prepare(struct bpf_program *program, struct bpf_prog_load_opts *opts, long cookie)
{
	const struct section *section = &sections[cookie];
	char name[128];

	if (section->sleeps)
		opts->prog_flags |= BPF_F_SLEEPABLE;
	if (name_of(program, name, sizeof(name))) {
		opts->attach_btf_id = sections_number(name);
		if (!opts->attach_btf_id) {
			log_verbose("%s: this kernel has no %s", bpf_program__name(program), name);
			snprintf(lacking, sizeof(lacking), "%s", name);
			return -ESRCH;
		}
		bpf_program__set_type(program, BPF_PROG_TYPE_TRACING);
	}
	link_calls(program);
	return put_off_prepare(program, opts);
}

const char *sections_why(int code)
{
	static char why[sizeof(lacking) + 32];

	if (code != -ESRCH || !*lacking)
		return strerror(-code);
	snprintf(why, sizeof(why), "this kernel has no %s", lacking);
	return why;
}

int sections_begin(void)
{
	static size_t begun;

	for (; begun < SECTIONS; begun++) {
		LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .cookie = (long)begun,
			    .prog_prepare_load_fn = prepare);
		const struct section *section = &sections[begun];
		const int code = libbpf_register_prog_handler(section->name, section->type,
							      section->attach, &opts);

		if (code < 0)
			return code;
	}
	return 0;
}

/* ---- Attach ------------------------------------------------------------------------------------
 */

/* Returns the tracepoint of a program that is not of BPF_PROG_TYPE_TRACING; or NULL. */
static const char *raw_tracepoint(const struct bpf_program *program)
{
	const char *name = bpf_program__section_name(program);

	return strncmp(name, "raw_tp/", 7) ? NULL : name + 7;
}

static bool says_to_what(const struct bpf_program *program)
{
	return raw_tracepoint(program) || section_of(program);
}

struct bpf_link *sections_attach(const struct bpf_program *program)
{
	const char *tracepoint = raw_tracepoint(program);

	return tracepoint ? bpf_program__attach_raw_tracepoint(program, tracepoint)
			  : bpf_program__attach_trace(program);
}

int sections_attach_all(const struct bpf_object_skeleton *skeleton)
{
	for (int i = 0; i < skeleton->prog_cnt; i++) {
		const struct bpf_program *program = *skeleton->progs[i].prog;
		struct bpf_link **link = skeleton->progs[i].link;

		if (*link || !bpf_program__autoload(program) || !bpf_program__autoattach(program) ||
		    !says_to_what(program))
			continue;
		*link = sections_attach(program);
		if (!*link)
			return -errno;
	}
	return 0;
}
