// SPDX-License-Identifier: GPL-2.0-only
/*
 * log.bpf.c - what chosen processes write to their stdout and stderr, each text with a snapshot at
 * that instant.
 *
 * The hook slows every system call of the machine a little. So its program is loaded and
 * attached once a process is chosen, not before (user/kernel/late_programs.h).
 *
 * The loader says which literals the lines have that it looks for. A text without them is left out
 * before a snapshot is taken, unless it goes on with a line that was told of. The next record says
 * that something is missing before it. Example, with the literal "] ":
 *   "[ 1/ 2] blk.0 - "     a record: the text, the snapshot
 *   "size = 7 MB\n"        a record: the same line
 *   "saving\n"             left out
 *   "[ 2/ 2] blk.1 - "     a record, with WIRE_TEXT_SKIPPED | WIRE_TEXT_AT_START
 *
 * A program whose output is buffered writes 4 or 8 KiB at a time. Such a text is left out whole or
 * told of whole: in pieces, a record each. They have the snapshot of the first.
 */
#include "job.bpf.h"
#include "log.bpf.h"
#include "pids.bpf.h"

enum {
	SHORT_TEXT = 64,
	MIDDLE_TEXT = 256,
	WORDS = 4, /* of 8 bytes, that are searched at a time */
	FIRSTS_AT_ONCE = WIRE_MAX_LITERALS / 2,
	/* A process may have 10,000 records a second, and so many besides after a pause. */
	RECORD_NS = 100000,
	RECORDS_AT_ONCE = 4096,
};

#if defined(__TARGET_ARCH_x86)
enum { NR_WRITE = 1, NR_WRITEV = 20, NR_EXIT_GROUP = 231 };
#else
enum { NR_WRITE = 64, NR_WRITEV = 66, NR_EXIT_GROUP = 94 };
#endif

/* Room that one program uses at a time: nothing else of ours takes a text on this CPU meanwhile. */
struct room {
	u64 piece[WIRE_TEXT_MAX / 8 + 1]; /* and what a comparison at its last byte reads */
	struct wire_checkpoint record;	  /* of all pieces, but for the text */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct room);
} rooms SEC(".maps");

/* What is being written. */
struct writing {
	struct proc *proc;
	struct wire_listening *listening;
	struct room *room;
	u64 from;   /* address */
	u64 bytes;  /* from there on */
	u32 pieces; /* of it that are looked at */
	u32 stream; /* 0: stdout, 1: stderr */
	u32 tid;
	u32 failed; /* 1: it is known what is missing */
	char last;  /* byte */
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

#define EIGHT_ONES 0x0101010101010101ull

/* The functions are global: else the verifier follows each way through loops within loops. */

/* Returns 1 if a literal begins in a word of the piece, at any of its eight bytes. */
__noinline int begins_in_word(const struct room *room, const struct wire_listening *how, u32 at)
{
	u64 here, next;

	if (!room || !how || at >= WIRE_TEXT_MAX / 8)
		return 0;
	here = room->piece[at];
	next = room->piece[at + 1];
	for (u32 i = 0; i < 8; i++) {
		for (u32 k = 0; k < WIRE_MAX_LITERALS; k++) {
			const struct wire_literal *literal = &how->literals[k];

			if (!literal->mask)
				break;
			if (((here ^ literal->bytes) & literal->mask) == 0)
				return 1;
		}
		here = here >> 8 | next << 56;
		next >>= 8;
	}
	return 0;
}

struct search {
	const struct room *room;
	const struct wire_listening *how;
	u64 first[WIRE_MAX_LITERALS]; /* first bytes, each eight times */
	u32 found;
};

/* The high bit of each byte is set that is one of these four; perhaps of others, too. */
static __always_inline u64 bytes_of(const u64 first[FIRSTS_AT_ONCE], u64 eight)
{
	u64 zeros = 0;

	for (u32 i = 0; i < FIRSTS_AT_ONCE; i++) {
		const u64 differs = eight ^ first[i];

		zeros |= (differs - EIGHT_ONES) & ~differs;
	}
	return zeros;
}

/* Returns false if none of these eight bytes begins a literal. True may be wrong. */
static __always_inline bool may_begin(const struct search *s, u64 eight)
{
	u64 zeros = bytes_of(s->first, eight);

	/* Few recipes have more. A loop that ends at the last has the verifier follow each end. */
	if (s->first[FIRSTS_AT_ONCE] != s->first[0])
		zeros |= bytes_of(s->first + FIRSTS_AT_ONCE, eight);
	return zeros & (EIGHT_ONES << 7);
}

static long search_words(u32 i, struct search *s)
{
	/* Never too large. For the verifier: a bound that it still knows after a spill. */
	const u32 at = i * WORDS & (WIRE_TEXT_MAX / 8 - WORDS);

	for (u32 k = 0; k < WORDS; k++) {
		if (may_begin(s, s->room->piece[at + k]) &&
		    begins_in_word(s->room, s->how, at + k)) {
			s->found = 1;
			return 1;
		}
	}
	return 0;
}

/*
 * Returns 1 if a literal begins in the first `bytes` of the piece. Behind the text lies a part of
 * an earlier one. So there may be a literal too many: the loader matches the whole line.
 */
__noinline int piece_has_literal(const struct room *room, const struct wire_listening *how,
				 u32 bytes)
{
	struct search s = {.room = room, .how = how};

	if (!room || !how)
		return 0;
	for (u32 i = 0; i < WIRE_MAX_LITERALS; i++)
		s.first[i] = (how->firsts >> 8 * i & 0xff) * EIGHT_ONES;
	bpf_loop((bytes + WORDS * 8 - 1) / (WORDS * 8), search_words, &s, 0);
	return s.found;
}

struct piece_search {
	const struct writing *writing;
	u32 found, failed;
};

static long search_piece(u32 i, struct piece_search *s)
{
	const u64 at = (u64)i * WIRE_TEXT_MAX;
	struct room *room = s->writing->room;
	u64 bytes = s->writing->bytes - at;

	barrier_var(bytes); /* for the verifier: the bound is on the register that is used */
	if (bytes > sizeof(room->piece) - 1)
		bytes = sizeof(room->piece) - 1;
	if (bpf_probe_read_user(room->piece, bytes, (void *)(s->writing->from + at))) {
		s->failed = 1;
		return 1;
	}
	s->found = piece_has_literal(room, s->writing->listening,
				     bytes < WIRE_TEXT_MAX ? bytes : WIRE_TEXT_MAX);
	return s->found ? 1 : 0;
}

static __always_inline bool has_literal(struct writing *w)
{
	struct piece_search s = {.writing = w};

	if (!w->listening->literals[0].mask ||
	    w->listening->skipped[w->stream & 1] & WIRE_TEXT_OPEN)
		return true;
	bpf_loop(w->pieces, search_piece, &s, 0);
	w->failed = s.failed;
	return s.found;
}

/* ---- Records ----------------------------------------------------------------------------------
 */

static __always_inline bool ends_line(const struct writing *w)
{
	return w->last == '\n' || w->last == '\r';
}

static __always_inline void leave_out(const struct writing *w)
{
	w->listening->skipped[w->stream & 1] =
		WIRE_TEXT_SKIPPED | (ends_line(w) ? WIRE_TEXT_AT_START : 0);
}

/* What could not be read, or had no room, is missing before the next text. */
static __always_inline void fail(struct writing *w)
{
	leave_out(w);
	w->failed = 1;
}

/* Sends piece i in a record that has so much room for it. */
static __always_inline void send_piece(struct writing *w, u32 i, struct wire_checkpoint *c,
				       u32 room)
{
	const u64 at = (u64)i * WIRE_TEXT_MAX, bytes = w->bytes - at;
	u64 len = bytes;

	if (!c) {
		count(lost_checkpoints);
		fail(w);
		return;
	}
	bpf_probe_read_kernel(c, sizeof(*c), &w->room->record); /* in line it is 200 instructions */
	if (i)
		c->text_state = WIRE_TEXT_AGAIN;
	barrier_var(len);
	if (len > room)
		len = room;
	c->h.size = sizeof(*c) + room;
	c->name_len = len;
	c->value = bytes;
	if (bpf_probe_read_user(c->name, len, (void *)(w->from + at))) {
		c->name_len = 0;
		count(failed_texts);
		fail(w);
	}
	submit(c);
}

/* The ring wants sizes that the verifier knows. */
#define SEND(w, i, room)                                                                           \
	send_piece(w, i,                                                                           \
		   bpf_ringbuf_reserve(&control, sizeof(struct wire_checkpoint) + (room), 0),      \
		   room)

static long send_more(u32 i, struct writing *w)
{
	SEND(w, i + 1, WIRE_TEXT_MAX);
	return w->failed ? 1 : 0;
}

static __always_inline void fill_record(const struct writing *w)
{
	u32 *skipped = &w->listening->skipped[w->stream & 1];
	struct wire_checkpoint *c = &w->room->record;

	tell_gpu(w->proc, w->tid);
	fill_checkpoint(c, w->proc, WIRE_TEXT, WIRE_TEXT_STDOUT + (w->stream & 1), w->tid);
	c->name_state = WIRE_NAME_OK;
	c->text_state = *skipped & ~WIRE_TEXT_OPEN;
	*skipped = ends_line(w) ? 0 : WIRE_TEXT_OPEN;
}

static __always_inline void send(struct writing *w)
{
	fill_record(w);
	if (w->bytes <= SHORT_TEXT)
		SEND(w, 0, SHORT_TEXT);
	else if (w->bytes <= MIDDLE_TEXT)
		SEND(w, 0, MIDDLE_TEXT);
	else
		SEND(w, 0, WIRE_TEXT_MAX);
	if (w->pieces > 1 && !w->failed)
		bpf_loop(w->pieces - 1, send_more, w, 0);
	if (w->bytes > WIRE_TEXT_PIECES * WIRE_TEXT_MAX && !w->failed)
		leave_out(w); /* the rest */
}

/* ---- Limits -----------------------------------------------------------------------------------
 */

/*
 * Returns false if the process has had more than its share of records, so that it cannot push out
 * what others say; or if the ring is half full, which is kept for all that are no texts.
 */
static __always_inline bool may_send(const struct writing *w)
{
	const u64 now = bpf_ktime_get_ns(), burst_ns = (u64)RECORD_NS * RECORDS_AT_ONCE;
	u64 next = w->listening->next_ns;

	if (config.audit && !is_within_limit(w->proc))
		return false;
	if (next + burst_ns < now)
		next = now - burst_ns;
	if (next <= now && !control_is_half_full()) {
		w->listening->next_ns = next + (u64)RECORD_NS * w->pieces;
		return true;
	}
	atomic_add(&w->listening->limited, 1);
	count(limited_texts);
	return false;
}

/* ---- Who is heard -----------------------------------------------------------------------------
 */

/* Returns false if nobody listens to the running process. */
static __always_inline bool is_heard(struct writing *w)
{
	u64 id = current_id();
	u32 tgid = id >> 32;

	w->tid = id;
	w->listening = listening_to(tgid);
	if (!w->listening || w->listening->ended)
		return false;
	w->proc = find_proc(tgid);
	return w->proc && w->proc->started_ns == w->listening->started_ns &&
	       !tree_of(w->proc->job)->finished;
}

int listen_to_child(u32 parent, u32 child, u64 started_ns)
{
	struct wire_listening *l = listening_to(parent);

	if (!l || !l->children)
		return 0;
	if (bpf_map_update_elem(&listening, &child, l, BPF_ANY)) {
		count(unheard_processes);
		return 0;
	}
	l = listening_to(child);
	if (!l)
		return 0;
	l->started_ns = started_ns;
	l->next_ns = l->limited = l->ended = 0;
	l->skipped[0] = l->skipped[1] = 0;
	return 1;
}

/* ---- Writes -----------------------------------------------------------------------------------
 */

/* Global: the verifier checks it once, and not for each piece of a writev(). */
__noinline int take_text(u32 fd, u64 from, u64 bytes)
{
	const u32 zero = 0;
	struct writing w = {
		.room = bpf_map_lookup_elem(&rooms, &zero),
		.from = from,
		.bytes = bytes,
		.pieces = bytes < WIRE_TEXT_MAX * WIRE_TEXT_PIECES
				  ? (bytes + WIRE_TEXT_MAX - 1) / WIRE_TEXT_MAX
				  : WIRE_TEXT_PIECES,
	};

	if (!bytes || !w.room || !is_heard(&w))
		return 0;
	w.stream = stream_of(fd);
	if (w.stream > 1)
		return 0;
	if (bpf_probe_read_user(&w.last, 1, (void *)(from + bytes - 1))) {
		w.failed = 1;
	} else if (has_literal(&w) && may_send(&w)) {
		send(&w);
		return 0;
	}
	if (w.failed)
		count(failed_texts);
	leave_out(&w);
	return 0;
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

/* The last that is heard of a process that is not killed: while it still has its memory. */
static __always_inline void take_end(void)
{
	u64 id = current_id();
	struct proc *proc = find_proc(id >> 32);

	if (proc)
		end_texts(proc, WIRE_TEXT_END, id);
}

/*
 * On this hook a call that is none of ours takes some 90 ns more, a write() 140. The tracepoints
 * of the two calls (syscalls:sys_enter_write) would take 40 and 210, and want a tracefs, which a
 * container has not. A trampoline on ksys_write() and do_writev() (fentry) would leave all other
 * calls alone; not every kernel lets one attach. Numbers are those of 64-bit programs.
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
