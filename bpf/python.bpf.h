/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * python.bpf.h - the functions of Python that a thread is in, for stack.bpf.c: the frames that the
 * interpreter keeps. An interpreter is known by the address of _PyRuntime in the memory of its
 * process, and by its version, which says where it has what; the loader finds both.
 *
 * A thread of the interpreter is the one whose number is pthread_self(), for which glibc and musl
 * have the base of the segment fs. (Its native number is that of its pid namespace, and Python
 * before 3.11 does not keep it.)
 *
 * A code object tells its names and lines once, when it is seen first: the process may be gone
 * before the loader could read them. Its memory may become another one's, as that of the body of a
 * module which was imported does: then the name is the same, and the first line. So a frame also
 * has a digest of what differs, the path and the table of lines.
 */
#ifndef QPROF_PYTHON_BPF_H
#define QPROF_PYTHON_BPF_H

#include "stack.bpf.h"

/* Frames have a place for each event that asks for them: a timer may interrupt a walk. */
enum { PYTHON_OF_GROWTH, PYTHON_OF_CPU, PYTHON_OF_GPU, PYTHON_EVENTS };

enum {
	MAX_PYTHONS = 8192,
	MAX_PYTHON_CODES = 65536,
	MAX_PYTHON_THREADS = 4096,  /* that are looked through for the one that runs */
	MAX_PYTHON_SHIMS = 128,	    /* frames that stand for calls by C code */
	PYTHON_OWNED_BY_CSTACK = 3, /* FRAME_OWNED_BY_CSTACK: no function's frame */
	PYTHON_TYPE = 8,	    /* offset of ob_type of an object */
	PYTHON_SIZE = 16,	    /* of ob_size, and of the length of a text */
	PYTHON_TEXT_STATE = 32,
	PYTHON_BYTES = 32,	  /* of the bytes of a bytes object */
	PYTHON_PATH_END = 64,	  /* bytes of a path that tell it from others */
	MAX_CODE_BYTES = 1 << 20, /* of code objects, told with a sample; others follow later */
};

/* By memory, as in struct wire_stack. One that is gone has an address that another may get: what
 * is read by it then is no code object, and the frames are nobody's. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_PYTHONS);
	__type(key, u64);
	__type(value, struct wire_python);
} pythons __weak SEC(".maps");

struct python_code {
	u64 program, code;
};

/* What was told of. */
struct python_told {
	u64 name;
	u32 line, digest;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_PYTHON_CODES);
	__type(key, struct python_code);
	__type(value, struct python_told);
} python_codes __weak SEC(".maps");

/* The frames, until there is a place for them in the ring: code objects go before their sample. */
struct python_frames {
	struct wire_python_frame frame[WIRE_PYTHON_FRAMES];
	u32 told; /* bytes of code objects; here, the verifier knows no values of it to follow */
	u32 busy; /* 1: in use, of an event that others may interrupt: gpu_stack.bpf.h */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PYTHON_EVENTS);
	__type(key, u32);
	__type(value, struct python_frames);
} python_frames __weak SEC(".maps");

struct python_walk {
	struct wire_python is;
	u64 program;
	u64 interpreter, thread, self; /* of the search of a thread */
	u64 frame;
	u32 n;
	u32 end;   /* enum wire_python_end */
	u32 event; /* PYTHON_OF_... */
};

static __always_inline u64 user_word(u64 at)
{
	u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)at);
	return word;
}

static __always_inline u32 user_half(u64 at)
{
	u32 half = 0;

	bpf_probe_read_user(&half, sizeof(half), (void *)at);
	return half;
}

static __always_inline u8 user_byte(u64 at)
{
	u8 byte = 0;

	bpf_probe_read_user(&byte, sizeof(byte), (void *)at);
	return byte;
}

/* Reads at most `most` bytes, in a way in which the verifier can see the bound. */
static __always_inline bool read_bytes(void *into, u64 n, u32 most, u64 at)
{
	if (n > most)
		n = most;
	barrier_var(n);
	return n <= most && !bpf_probe_read_user(into, n, (void *)at);
}

/* ---- Code objects ----------------------------------------------------------------------------
 */

/* last: of a text that is longer than there is room for, its end. */
static __always_inline void copy_python_text(struct wire_python_text *into,
					     const struct wire_python *is, u64 text, bool last)
{
	const u32 state = user_half(text + PYTHON_TEXT_STATE);
	const u32 kind = state >> 2 & 7;
	const u64 len = user_word(text + PYTHON_SIZE);
	const bool is_compact = state >> 5 & 1;
	const u64 bytes = len * kind, most = WIRE_PYTHON_TEXT;
	u64 at = text + (state >> 6 & 1 ? is->text_ascii : is->text_other);

	into->len = len;
	into->width = 0;
	if (!is_compact || (kind != 1 && kind != 2 && kind != 4) || len >> 31)
		return;
	if (last && bytes > most)
		at += bytes - most;
	if (read_bytes(into->bytes, bytes, most, at))
		into->width = kind;
}

/* room: for its table of lines, of `len` bytes. Returns false if the ring has none. */
static __always_inline bool send_python_code(const struct python_walk *w, u32 *told,
					     const struct wire_python_frame *f, u64 lines, u64 len,
					     const u32 room)
{
	struct wire_python_code *c;

	if (*told + room > MAX_CODE_BYTES)
		return false;
	c = bpf_ringbuf_reserve(&stacks, sizeof(*c) + room, 0);
	if (!c)
		return false;
	*told += room;
	c->program = w->program;
	c->code = f->code;
	c->name = f->name;
	c->line = f->line;
	c->digest = f->digest;
	c->lines_kind = w->is.lines_kind;
	copy_python_text(&c->name_text, &w->is, f->name, false);
	copy_python_text(&c->path_text, &w->is, user_word(f->code + w->is.code_path), true);
	c->lines_len = read_bytes(c->lines, len, room, lines + PYTHON_BYTES) ? len : 0;
	bpf_ringbuf_submit(c, BPF_RB_NO_WAKEUP);
	return true;
}

/* Tells of a code object, if that was not done. One for which there is no room has no name yet. */
static __always_inline void tell_python_code(const struct python_walk *w, u32 *bytes,
					     const struct wire_python_frame *f)
{
	const struct python_code key = {w->program, f->code};
	const struct python_told now = {f->name, f->line, f->digest};
	const struct python_told *told = bpf_map_lookup_elem(&python_codes, &key);
	u64 lines, len;
	bool sent;

	if (told && told->name == now.name && told->line == now.line && told->digest == now.digest)
		return;
	lines = user_word(f->code + w->is.code_lines);
	len = user_word(lines + PYTHON_SIZE);
	sent = len <= WIRE_PYTHON_LINES
		       ? send_python_code(w, bytes, f, lines, len, WIRE_PYTHON_LINES)
		       : send_python_code(w, bytes, f, lines, len, WIRE_PYTHON_MOST_LINES);
	if (sent)
		bpf_map_update_elem(&python_codes, &key, &now, BPF_ANY);
}

/* ---- Frames ----------------------------------------------------------------------------------
 */

static __always_inline u64 mix(u64 digest, u64 word)
{
	digest = (digest ^ word) * 0x9e3779b97f4a7c15;
	return digest ^ digest >> 32;
}

/* Of the lines, the length and both ends; of the path, the length and the end. */
static __always_inline u32 digest_of_code(const struct wire_python *is, u64 code)
{
	const u64 lines = user_word(code + is->code_lines), n = user_word(lines + PYTHON_SIZE);
	const u64 path = user_word(code + is->code_path), len = user_word(path + PYTHON_SIZE);
	const u32 state = user_half(path + PYTHON_TEXT_STATE);
	const u64 bytes = len * (state >> 2 & 7);
	u64 at = path + (state >> 6 & 1 ? is->text_ascii : is->text_other), digest;
	u64 end[PYTHON_PATH_END / 8] = {0};

	if (bytes > sizeof(end))
		at += bytes - sizeof(end);
	read_bytes(end, bytes, sizeof(end), at);
	digest = mix(n, len);
	digest = mix(digest, user_word(lines + PYTHON_BYTES));
	digest = mix(digest, user_word(lines + PYTHON_BYTES + (n > 8 ? n - 8 : 0)));
	for (u32 i = 0; i < PYTHON_PATH_END / 8; i++)
		digest = mix(digest, end[i]);
	return digest;
}

/* Returns whether the frame is a function's. */
static __always_inline bool fill_python_frame(const struct python_walk *w,
					      struct wire_python_frame *f)
{
	const struct wire_python *is = &w->is;

	f->code = user_word(w->frame + is->frame_code);
	if (!f->code || user_word(f->code + PYTHON_TYPE) != is->code_type)
		return false;
	f->name = user_word(f->code + is->code_name);
	f->line = user_half(f->code + is->code_line);
	if (is->code_bytes == WIRE_PYTHON_NO_FIELD)
		f->at = user_half(w->frame + is->frame_at) * is->at_unit;
	else
		f->at = user_word(w->frame + is->frame_at) - (f->code + is->code_bytes);
	/* Before 3.11 C code calls the interpreter for each function. */
	f->entered = is->frame_owner == WIRE_PYTHON_NO_FIELD ||
		     (is->frame_entered != WIRE_PYTHON_NO_FIELD &&
		      user_byte(w->frame + is->frame_entered));
	f->digest = digest_of_code(is, f->code);
	return true;
}

/* The frame stands for a call by C code: of the function before it. */
static __always_inline bool is_python_shim(const struct python_walk *w)
{
	return w->is.frame_owner != WIRE_PYTHON_NO_FIELD &&
	       user_byte(w->frame + w->is.frame_owner) == PYTHON_OWNED_BY_CSTACK;
}

static long walk_python_frame(u32 i, void *context)
{
	struct python_walk *w = context;
	struct python_frames *frames = bpf_map_lookup_elem(&python_frames, &w->event);
	struct wire_python_frame *f;

	if (!frames)
		return 1;
	if (!w->frame) {
		w->end = WIRE_PYTHON_WHOLE;
		return 1;
	}
	if (is_python_shim(w)) {
		if (w->n)
			frames->frame[(w->n - 1) % WIRE_PYTHON_FRAMES].entered = 1;
	} else {
		if (w->n >= WIRE_PYTHON_FRAMES)
			return 1;
		f = &frames->frame[w->n % WIRE_PYTHON_FRAMES];
		if (!fill_python_frame(w, f)) {
			w->end = WIRE_PYTHON_UNREADABLE;
			return 1;
		}
		tell_python_code(w, &frames->told, f);
		w->n++;
	}
	w->frame = user_word(w->frame + w->is.frame_back);
	return 0;
}

/* ---- Threads ---------------------------------------------------------------------------------
 */

static __always_inline u64 python_frame_of(const struct python_walk *w)
{
	const u64 frame = user_word(w->thread + w->is.frame);

	return w->is.frame_in == WIRE_PYTHON_NO_FIELD ? frame : user_word(frame + w->is.frame_in);
}

/* A thread may have a state in several interpreters: of those, the one with a frame. */
static long look_at_python_thread(u32 i, void *context)
{
	struct python_walk *w = context;

	if (!w->thread) {
		w->interpreter = user_word(w->interpreter + w->is.next_interpreter);
		if (!w->interpreter)
			return 1;
		w->thread = user_word(w->interpreter + w->is.first_thread);
		return 0;
	}
	if (user_word(w->thread + w->is.thread_id) == w->self) {
		w->frame = python_frame_of(w);
		if (w->frame)
			return 1;
	}
	w->thread = user_word(w->thread + w->is.next_thread);
	return 0;
}

static __always_inline bool find_python_frame(struct python_walk *w)
{
	w->interpreter = user_word(w->is.runtime + w->is.first_interpreter);
	if (!w->interpreter)
		return false;
	w->thread = user_word(w->interpreter + w->is.first_thread);
	bpf_loop(MAX_PYTHON_THREADS, look_at_python_thread, w, 0);
	return w->frame;
}

/* A child has what its parent had when it was forked, until the loader has looked at it. */
static __always_inline const struct wire_python *find_python(struct task_struct *task, u64 memory)
{
	const struct wire_python *is = bpf_map_lookup_elem(&pythons, &memory);
	u64 parents;

	if (is)
		return is;
	parents = (u64)BPF_CORE_READ(task, real_parent, mm);
	return parents ? bpf_map_lookup_elem(&pythons, &parents) : NULL;
}

/* Follows the frames of the thread that runs. Returns their number; they are in python_frames, at
 * the event's place. */
static __noinline u32 walk_python(struct task_struct *task, u64 memory, u64 program, u32 event,
				  u32 *end)
{
	const struct wire_python *is = find_python(task, memory);
	struct python_frames *frames = bpf_map_lookup_elem(&python_frames, &event);
	struct python_walk w = {.program = program, .end = WIRE_PYTHON_CUT, .event = event};

	*end = WIRE_PYTHON_NONE;
	if (!is || !frames)
		return 0;
	frames->told = 0;
	w.is = *is;
	if (bpf_core_field_exists(task->thread.fsbase))
		w.self = BPF_CORE_READ(task, thread.fsbase);
	if (!w.self)
		return 0;
	if (!find_python_frame(&w)) {
		*end = w.thread ? WIRE_PYTHON_CROWDED : WIRE_PYTHON_NONE;
		return 0;
	}
	bpf_loop(WIRE_PYTHON_FRAMES + MAX_PYTHON_SHIMS, walk_python_frame, &w, 0);
	*end = w.end;
	return w.n;
}

#endif
