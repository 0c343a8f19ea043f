// SPDX-License-Identifier: GPL-2.0-only
/*
 * log.bpf.c - what chosen processes write to their stdout and stderr, each text with a snapshot at
 * that instant.
 *
 * The hook slows every system call of the machine a little. So its program is loaded and
 * attached once a process is chosen, not before (user/kernel/log_source.h).
 *
 * The loader says which literals the lines have that it looks for. A text without them is left out
 * before a snapshot is taken, unless it goes on with a line that was told of. The next record says
 * that something is missing before it. Example, with the literal "] ":
 *   "[ 1/ 2] blk.0 - "     a record: the text, the snapshot
 *   "size = 7 MB\n"        a record: the same line
 *   "saving\n"             left out
 *   "[ 2/ 2] blk.1 - "     a record, with WIRE_TEXT_SKIPPED | WIRE_TEXT_AT_START
 */
#include "job.bpf.h"
#include "pids.bpf.h"

enum { SHORT_TEXT = 64, MIDDLE_TEXT = 256 };

#if defined(__TARGET_ARCH_x86)
enum { NR_WRITE = 1, NR_WRITEV = 20, NR_EXIT_GROUP = 231 };
#else
enum { NR_WRITE = 64, NR_WRITEV = 66, NR_EXIT_GROUP = 94 };
#endif

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WIRE_MAX_LISTENING);
	__type(key, u32); /* tgid */
	__type(value, struct wire_listening);
} listening SEC(".maps");

/* Nothing else of ours runs on this CPU while a text is read. `beyond` stays 0: a comparison at the
 * last byte reads it. */
struct text {
	char bytes[WIRE_TEXT_MAX];
	char beyond[8];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct text);
} texts SEC(".maps");

/* What is being written. */
struct writing {
	struct proc *proc;
	struct wire_listening *listening;
	const struct text *text;
	u32 stream; /* 0: stdout, 1: stderr */
	u32 len;    /* bytes of text */
	u64 bytes;  /* of the whole write */
	u32 tid;
	char last; /* the last byte of the write */
};

/* ---- Which descriptor -------------------------------------------------------------------------
 */

static __always_inline struct file *file_at(struct file **files, u32 fd)
{
	struct file *file = NULL;

	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	return file;
}

/* Returns 0 for stdout, 1 for stderr, also through a duplicate (dup(2), 3>&1); 2 for all else. */
static __always_inline u32 stream_of(u32 fd)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct file **files, *file;
	u32 max_fds;

	if (fd - 1 < 2)
		return fd - 1;
	files = BPF_CORE_READ(task, files, fdt, fd);
	max_fds = BPF_CORE_READ(task, files, fdt, max_fds);
	if (fd >= max_fds || max_fds < 3)
		return 2;
	file = file_at(files, fd);
	if (!file)
		return 2;
	return file == file_at(files, 1) ? 0 : file == file_at(files, 2) ? 1 : 2;
}

/* ---- Literals ---------------------------------------------------------------------------------
 */

struct search {
	const struct text *text;
	const struct wire_listening *listening;
	bool found;
};

static long compare_at(u32 at, struct search *s)
{
	u64 here;

	if (at >= WIRE_TEXT_MAX)
		return 1;
	__builtin_memcpy(&here, s->text->bytes + at, sizeof(here));
	for (u32 i = 0; i < WIRE_MAX_LITERALS; i++) {
		const struct wire_literal *literal = &s->listening->literals[i];

		if (literal->mask && ((here ^ literal->bytes) & literal->mask) == 0)
			s->found = true;
	}
	return s->found;
}

/* Behind the text lies a part of an earlier one. So there may be a literal too many: the loader
 * matches the whole line. */
static __always_inline bool has_literal(const struct writing *w)
{
	struct search s = {.text = w->text, .listening = w->listening};

	if (!w->listening->literals[0].mask ||
	    w->listening->skipped[w->stream & 1] & WIRE_TEXT_OPEN)
		return true;
	bpf_loop(w->len, compare_at, &s, 0);
	return s.found;
}

/* ---- Records ----------------------------------------------------------------------------------
 */

static __always_inline bool ends_line(const struct writing *w)
{
	return w->last == '\n' || w->last == '\r';
}

static __always_inline void fill_text(struct wire_checkpoint *c, const struct writing *w, u32 room)
{
	const u32 stream = w->stream & 1;

	fill_checkpoint(c, w->proc, WIRE_TEXT, stream + 1, w->tid);
	c->h.size = sizeof(*c) + room;
	c->name_state = WIRE_NAME_OK;
	c->name_len = w->len;
	c->value = w->bytes;
	c->text_state = w->listening->skipped[stream] & ~WIRE_TEXT_OPEN;
	w->listening->skipped[stream] = ends_line(w) ? 0 : WIRE_TEXT_OPEN;
	bpf_probe_read_kernel(c->name, room, w->text->bytes);
	bpf_ringbuf_submit(c, 0);
}

/* The ring wants sizes that the verifier knows. */
#define RESERVE(room) bpf_ringbuf_reserve(&control, sizeof(struct wire_checkpoint) + (room), 0)

static __always_inline bool emit(const struct writing *w)
{
	struct wire_checkpoint *c;

	if (w->len <= SHORT_TEXT) {
		c = RESERVE(SHORT_TEXT);
		if (c)
			fill_text(c, w, SHORT_TEXT);
	} else if (w->len <= MIDDLE_TEXT) {
		c = RESERVE(MIDDLE_TEXT);
		if (c)
			fill_text(c, w, MIDDLE_TEXT);
	} else {
		c = RESERVE(WIRE_TEXT_MAX);
		if (c)
			fill_text(c, w, WIRE_TEXT_MAX);
	}
	return c;
}

/* ---- Writes -----------------------------------------------------------------------------------
 */

/* Returns false if nobody listens to the running process. */
static __always_inline bool is_heard(struct writing *w)
{
	u64 id = current_id();
	u32 tgid = id >> 32;

	w->tid = id;
	w->listening = bpf_map_lookup_elem(&listening, &tgid);
	if (!w->listening)
		return false;
	w->proc = find_proc(tgid);
	return w->proc && w->proc->started_ns == w->listening->started_ns &&
	       !tree_of(w->proc->job)->finished;
}

static __always_inline void leave_out(const struct writing *w)
{
	w->listening->skipped[w->stream & 1] =
		WIRE_TEXT_SKIPPED | (ends_line(w) ? WIRE_TEXT_AT_START : 0);
}

static __always_inline void send(const struct writing *w)
{
	if (config.audit && !is_within_limit(w->proc)) {
		leave_out(w);
		return;
	}
	if (emit(w))
		return;
	atomic_add(&tree_of(w->proc->job)->epoch, 1); /* a hole in the sequence */
	count(lost_checkpoints);
	leave_out(w);
}

static __always_inline void take_text(u32 fd, u64 from, u64 bytes)
{
	const u32 zero = 0;
	struct writing w = {.bytes = bytes};
	struct text *text = bpf_map_lookup_elem(&texts, &zero);

	if (!bytes || !text || !is_heard(&w))
		return;
	w.stream = stream_of(fd);
	if (w.stream > 1)
		return;
	w.text = text;
	barrier_var(bytes); /* for the verifier: the bound is on the register that is used */
	if (bytes > WIRE_TEXT_MAX)
		bytes = WIRE_TEXT_MAX;
	w.len = bytes;
	if (bpf_probe_read_user(text->bytes, bytes, (void *)from) ||
	    bpf_probe_read_user(&w.last, 1, (void *)(from + w.bytes - 1)))
		count(failed_texts);
	else if (has_literal(&w))
		send(&w);
	else
		leave_out(&w);
}

/* The last that is heard of a process that is not killed: while it still has its memory. */
static __always_inline void take_end(void)
{
	const u32 zero = 0;
	struct writing w = {.text = bpf_map_lookup_elem(&texts, &zero)};

	if (w.text && is_heard(&w))
		send(&w);
}

/* A line comes in one piece or in a few. */
static __always_inline void take_pieces(u32 fd, u64 pieces, u64 n)
{
	struct {
		u64 base, len;
	} piece;

	for (u32 i = 0; i < WIRE_MAX_PIECES && i < n; i++) {
		if (bpf_probe_read_user(&piece, sizeof(piece),
					(void *)(pieces + i * sizeof(piece))))
			break;
		take_text(fd, piece.base, piece.len);
	}
}

/*
 * On this hook a call that is none of ours takes some 90 ns more, a write() 140. The tracepoints
 * of the two calls (syscalls:sys_enter_write) would take 40 and 210, and want a tracefs, which a
 * container has not. Numbers are those of 64-bit programs.
 */
SEC("?tp_btf/sys_enter")
int BPF_PROG(call_enters, struct pt_regs *regs, long number)
{
	if (number == NR_WRITE)
		take_text(PT_REGS_PARM1(regs), PT_REGS_PARM2(regs), PT_REGS_PARM3(regs));
	else if (number == NR_WRITEV)
		take_pieces(PT_REGS_PARM1(regs), PT_REGS_PARM2(regs), PT_REGS_PARM3(regs));
	else if (number == NR_EXIT_GROUP)
		take_end();
	return 0;
}
