/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * file.bpf.h - which files of certain names chosen processes read and write: a snapshot where that
 * begins, and one where it ends.
 *
 * A file is known by the name that it was opened by: a model of huggingface's cache is a link to a
 * file whose name is its hash. Example, of a program that looks at a model and maps it:
 *   openat("/m/x.gguf") = 3     one of the names: the handle is remembered
 *   read(3, ...)                a record: x.gguf begins to be read (use 1)
 *   mmap(..., 3) = [a, b)
 *   close(3)                    the mapping is still there: nothing
 *   munmap(a, b - a)            a record: use 1 ends
 *
 * The use of a file begins with the first read or mapping by any of the process's handles, and ends
 * when the last of them is closed. The kernel tells of no read of a mapping. So the mapping that
 * was made last keeps the use going after its handle is closed: until it is unmapped, or the
 * process begins to read another of these files.
 *
 * Threads that race for one handle may lose the end of a use. The loader ends it with the process.
 */
#ifndef QPROF_FILE_BPF_H
#define QPROF_FILE_BPF_H

#include "descriptors.bpf.h"
#include "file_name.bpf.h"
#include "pids.bpf.h"
#include "snapshot.bpf.h"

enum {
	MAX_WATCHED = 1024,	/* processes */
	MAX_HANDLES = 4096,	/* files that they have open */
	MAX_USES = 1024,	/* files in use, in each direction */
	MAX_DESCRIPTORS = 4096, /* of a process, that are searched for a duplicate */
	USES_A_SECOND = 100,	/* of a process: so that it cannot push out the records of others */
};

/* ---- What is known ----------------------------------------------------------------------------
 */

/* Bits: in which directions a file is used. */
enum { USE_READ = 1, USE_WRITE = 2 };

/* What the loader asks for. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_WATCHED);
	__type(key, u32); /* tgid */
	__type(value, struct wire_watching);
} watching __weak SEC(".maps");

/* A process that has opened one of the files. */
struct reader {
	u64 started_ns;
	u64 last;      /* inode of the file that it began to read last */
	u64 from, to;  /* where it mapped that; empty: nowhere */
	u32 held;      /* bits of uses that the mapping keeps, as its handle is closed */
	u32 handles;   /* open */
	u64 window_ns; /* begin of the second in which its uses are counted */
	u32 uses;      /* since then */
	u32 any;       /* 1: a use has begun, ever */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_WATCHED);
	__type(key, u32); /* tgid */
	__type(value, struct reader);
} readers __weak SEC(".maps");

struct handle {
	u64 inode;
	u32 met;    /* bits: it was read, written */
	u32 shares; /* bits of the uses that it is part of: not one of too many */
	u32 name_len;
	u32 unused;
	char name[WIRE_NAME_MAX]; /* the end of its path */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_HANDLES);
	__type(key, struct wire_handle_key); /* at: struct file */
	__type(value, struct handle);
} handles __weak SEC(".maps");

struct use {
	u32 id;
	u32 shares; /* handles and mappings that keep it going */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_USES);
	__type(key, struct wire_handle_key); /* at: struct inode; bits: one of them */
	__type(value, struct use);
} uses __weak SEC(".maps");

extern u32 last_use; /* number of the use that began last */

/* Room for one program at a time: nothing else of ours opens a file on this CPU meanwhile. */
struct opening {
	struct path_room room;
	struct handle handle;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct opening);
} openings __weak SEC(".maps");

/*
 * What happens, to the program that these events share (file_changes): a tail call has the
 * arguments of the event, and nothing that says which it is.
 */
enum file_event { FILE_CALL = 1, FILE_SUBMITTED, FILE_COMPLETED, FILE_COMPLETED_OLD };

/* As with openings: no other event comes between on this CPU. */
struct happening {
	u32 event;
	u32 tid; /* of whom */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct happening);
} happenings __weak SEC(".maps");

static __always_inline void say_what_happens(enum file_event event)
{
	const u32 zero = 0;
	struct happening *h = bpf_map_lookup_elem(&happenings, &zero);

	if (h)
		*h = (struct happening){.event = event, .tid = bpf_get_current_pid_tgid()};
}

/* Ends the program, and begins file_changes. */
#define lead_to_file_changes(ctx, event)                                                           \
	do {                                                                                       \
		say_what_happens(event);                                                           \
		bpf_tail_call(ctx, &changes, WIRE_FILE_CHANGES);                                   \
		count(unwatched_files); /* nobody is there */                                      \
	} while (0)

/* Who makes a call, and what is to be told of it. That is told last: calls nest only so deep. */
struct caller {
	u32 tgid, tid;
	struct reader *reader;
	u32 ended[2]; /* numbers of uses, read and written; 0: none */
	u32 begun;    /* the same, after those have ended */
	u32 bit;      /* of what has begun */
	const struct handle *handle;
};

/* Returns false if the running process has opened none of the files. */
static __always_inline bool is_reader(struct caller *c)
{
	const u64 id = current_id();

	*c = (struct caller){.tgid = id >> 32, .tid = id};
	c->reader = bpf_map_lookup_elem(&readers, &c->tgid);
	return c->reader;
}

/* ---- Descriptors ------------------------------------------------------------------------------
 */

struct descriptors {
	struct file **files, *file;
	u32 except, found;
};

static long is_duplicate(u32 fd, struct descriptors *d)
{
	if (fd == d->except || file_at(d->files, fd) != d->file)
		return 0;
	d->found = 1;
	return 1;
}

outlined struct handle *handle_of(const struct caller *c, u64 file)
{
	const struct wire_handle_key key = {.at = file, .tgid = c->tgid};

	return file ? bpf_map_lookup_elem(&handles, &key) : NULL;
}

static __always_inline struct handle *handle_at(const struct caller *c, u32 fd)
{
	struct file **files;
	u32 max;

	return handle_of(c, (u64)file_of(fd, &files, &max));
}

/* ---- Records ----------------------------------------------------------------------------------
 */

/* The functions are global: else the verifier goes through them once for each way to a call. */

/* Tells of the use of that number, in a direction. */
int tell_begin(const struct handle *h, u32 tgid, u32 tid, u32 id, u32 bit);
/* id: the use that ends; 0: the process does. */
int tell_end(u32 tgid, u32 tid, u32 id);

static __always_inline void tell(struct caller *c)
{
	for (u32 i = 0; i < 2; i++)
		if (c->ended[i])
			tell_end(c->tgid, c->tid, c->ended[i]);
	if (c->begun)
		tell_begin(c->handle, c->tgid, c->tid, c->begun, c->bit);
	c->ended[0] = 0;
	c->ended[1] = 0;
	c->begun = 0;
}

/* ---- Uses -------------------------------------------------------------------------------------
 */

/* Returns the number of the use, if that ends it; or 0. */
static __always_inline u32 end_share(const struct caller *c, u64 inode, u32 bit)
{
	const struct wire_handle_key key = {.at = inode, .tgid = c->tgid, .bits = bit};
	struct use *use = bpf_map_lookup_elem(&uses, &key);
	u32 id;

	if (!use || __sync_fetch_and_add(&use->shares, -1) != 1)
		return 0;
	id = use->id;
	bpf_map_delete_elem(&uses, &key);
	return id;
}

static __noinline int end_shares(struct caller *c, u64 inode, u32 bits)
{
	if (bits & USE_READ)
		c->ended[0] = end_share(c, inode, USE_READ);
	if (bits & USE_WRITE)
		c->ended[1] = end_share(c, inode, USE_WRITE);
	return 0;
}

/* The mapping counts no more. */
static __always_inline void leave_mapping(struct caller *c)
{
	struct reader *r = c->reader;
	const u32 held = r->held;

	r->held = 0;
	r->from = 0;
	r->to = 0;
	if (held)
		end_shares(c, r->last, held);
}

static __always_inline bool may_begin(struct reader *r)
{
	const u64 now = bpf_ktime_get_ns();

	if (now - r->window_ns > 1000000000) {
		r->window_ns = now;
		r->uses = 0;
	}
	return r->uses++ < USES_A_SECOND;
}

/* Returns false if there is no room for another use. */
static __always_inline bool begin_use(struct caller *c, const struct handle *h,
				      const struct wire_handle_key *key)
{
	const struct use new = {.id = atomic_add(&last_use, 1) + 1, .shares = 1};

	if (!may_begin(c->reader) || bpf_map_update_elem(&uses, key, &new, BPF_NOEXIST)) {
		count(unwatched_files);
		return false;
	}
	c->reader->any = 1;
	c->begun = new.id;
	c->bit = key->bits;
	c->handle = h;
	return true;
}

/* A handle is used in this direction for the first time. */
static __noinline int join_use(struct caller *c, struct handle *h, u32 bit)
{
	const struct wire_handle_key key = {.at = h->inode, .tgid = c->tgid, .bits = bit};
	struct use *use;

	if (bit == USE_READ && c->reader->last != h->inode) {
		leave_mapping(c);
		c->reader->last = h->inode;
	}
	use = bpf_map_lookup_elem(&uses, &key);
	if (use)
		atomic_add(&use->shares, 1);
	else if (!begin_use(c, h, &key))
		return 0;
	__sync_fetch_and_or(&h->shares, bit);
	return 0;
}

static __always_inline void use_handle(struct caller *c, struct handle *h, u32 bit)
{
	if (h->met & bit || __sync_fetch_and_or(&h->met, bit) & bit)
		return;
	join_use(c, h, bit);
	tell(c);
}

enum { NO_DESCRIPTOR = ~0u };

static __always_inline void use_descriptor(struct caller *c, u32 fd, u32 bit)
{
	const bool is_one = fd != NO_DESCRIPTOR && c->reader->handles;
	struct handle *h = is_one ? handle_at(c, fd) : NULL;

	if (h)
		use_handle(c, h, bit);
}

/* ---- Opened and closed ------------------------------------------------------------------------
 */

/* The mapping that this process made last takes over what its handle had a share in. */
static __always_inline u32 hand_over(struct reader *r, const struct handle *h)
{
	if (r->last != h->inode || r->from == r->to || r->held)
		return h->shares;
	r->held = h->shares;
	return 0;
}

static __noinline int forget_handle(struct caller *c, const struct wire_handle_key *key)
{
	struct handle *h = bpf_map_lookup_elem(&handles, key);
	u32 shares;
	u64 inode;

	if (!h)
		return 0;
	shares = hand_over(c->reader, h);
	inode = h->inode;
	bpf_map_delete_elem(&handles, key);
	atomic_add(&c->reader->handles, -1);
	end_shares(c, inode, shares);
	return 0;
}

/* except: a descriptor that is about to go. */
static __always_inline void close_handle(struct caller *c, u64 file, u32 except)
{
	const struct wire_handle_key key = {.at = file, .tgid = c->tgid};
	struct descriptors d = {.file = (struct file *)file, .except = except};
	u32 max;

	if (!handle_of(c, file))
		return;
	file_of(0, &d.files, &max);
	bpf_loop(max < MAX_DESCRIPTORS ? max : MAX_DESCRIPTORS, is_duplicate, &d, 0);
	if (!d.found)
		forget_handle(c, &key);
	tell(c);
}

static __always_inline bool is_regular(struct file *file)
{
	return (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) == S_IFREG;
}

static __always_inline struct reader *find_or_add_reader(u32 tgid, u64 started_ns)
{
	const struct reader new = {.started_ns = started_ns};

	bpf_map_update_elem(&readers, &tgid, &new, BPF_NOEXIST);
	return bpf_map_lookup_elem(&readers, &tgid);
}

/* o->room has the path, of len bytes. met: directions of which nobody is to be told. */
static __noinline int add_handle(const struct wire_watching *how, struct opening *o, u32 len,
				 struct file *file, u32 met)
{
	const u64 id = current_id();
	struct caller c = {.tgid = id >> 32, .tid = id};
	struct wire_handle_key key = {.tgid = c.tgid};
	u32 from = len > WIRE_NAME_MAX - 1 ? len - (WIRE_NAME_MAX - 1) : 0;

	barrier_var(from);
	if (!file || !is_regular(file) || from > PATH_BYTES)
		return 0;
	if (met)
		count(unwatched_files);
	c.reader = find_or_add_reader(c.tgid, how->started_ns);
	if (!c.reader) {
		count(unwatched_files);
		return 0;
	}
	key.at = (u64)file;
	o->handle.inode = (u64)BPF_CORE_READ(file, f_inode);
	o->handle.met = met;
	o->handle.name_len = len - from;
	bpf_probe_read_kernel(o->handle.name, WIRE_NAME_MAX, o->room.path + from);
	if (bpf_map_update_elem(&handles, &key, &o->handle, BPF_NOEXIST))
		count(unwatched_files);
	else
		atomic_add(&c.reader->handles, 1);
	return 0;
}

/* A handle may have ended otherwise than by close(): then its address is used again. */
static __always_inline void forget_former(struct caller *c, const struct file *file)
{
	struct wire_handle_key key = {.at = (u64)file};

	if (!is_reader(c) || !c->reader->handles)
		return;
	key.tgid = c->tgid;
	forget_handle(c, &key);
	tell(c);
}

/* Returns NULL if nobody watches the running process. */
static __always_inline const struct wire_watching *watched(struct opening **o)
{
	const u32 zero = 0, tgid = current_id() >> 32;

	*o = bpf_map_lookup_elem(&openings, &zero);
	return *o ? bpf_map_lookup_elem(&watching, &tgid) : NULL;
}

#endif
