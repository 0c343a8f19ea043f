/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * stored_use.bpf.h - a use of a file or of storage by a tracked process: whose it is, what the file
 * is called, and what the sums were before the step.
 *
 * Sums are told of before the first change in each step, so that the steps before have theirs.
 * Example: 3 MiB are read of a file in step 1 and 1 MiB in step 5: records say 0 at the first read,
 * 3 MiB at the first read in step 5, and 4 MiB at the end.
 */
#ifndef QPROF_STORED_USE_BPF_H
#define QPROF_STORED_USE_BPF_H

#include "inode.bpf.h"
#include "space.bpf.h"
#include "storage.bpf.h"

static const u64 PATH_FACTOR = 0x9e3779b97f4a7c15;

/* A use of storage by a tracked process. */
struct use {
	struct proc *proc;
	struct whose whose;
	struct inode *inode; /* NULL: of no file that is known */
	u64 at;		     /* where in the file, if it is one and is read */
	u64 read, written;
	u64 called; /* read by a call, whether storage or the page cache had it */
	u32 rest;   /* enum wire_stored_rest, without inode */
};

static __always_inline bool is_file(struct inode *inode)
{
	return (BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFREG;
}

/* ---- Names ------------------------------------------------------------------------------------
 */

/* Returns one of the names of a file: NULL if it has none. What the memory of a file that is gone
 * says is checked. */
static __always_inline struct dentry *name_of(struct inode *inode)
{
	void *alias = BPF_CORE_READ(inode, i_dentry.first);
	struct dentry *dentry = alias - bpf_core_field_offset(struct dentry, d_u.d_alias);

	return alias && BPF_CORE_READ(dentry, d_inode) == inode ? dentry : NULL;
}

/* Returns what is another number after a rename. */
static __always_inline u64 fingerprint(struct inode *inode)
{
	struct dentry *dentry = name_of(inode);

	return dentry ? (u64)dentry ^ (u64)BPF_CORE_READ(dentry, d_parent) ^
				BPF_CORE_READ(dentry, d_name.hash_len)
		      : 0;
}

struct walk {
	struct wire_stored_name *room;
	struct dentry *at;
	u64 path;      /* another number for another path */
	u64 directory; /* the same, but for the last part */
	u32 len;
	bool whole;
};

static long walk_up(u32 i, struct walk *w)
{
	struct dentry *at = w->at, *parent = BPF_CORE_READ(at, d_parent);
	u32 len = w->len;
	long n;

	if (parent == at) {
		w->whole = true;
		return 1;
	}
	barrier_var(len); /* for the verifier: the bound is on the register that is used */
	if (!parent || len >= WIRE_STORED_NAME_MAX)
		return 1;
	n = bpf_probe_read_kernel_str(w->room->parts + len, WIRE_STORED_PART_MAX,
				      BPF_CORE_READ(at, d_name.name));
	if (n <= 1)
		return 1;
	w->len = len + n;
	w->path = (w->path ^ BPF_CORE_READ(at, d_name.hash_len)) * PATH_FACTOR;
	if (i)
		w->directory = (w->directory ^ BPF_CORE_READ(at, d_name.hash_len)) * PATH_FACTOR;
	w->at = parent;
	return 0;
}

/* The one that is told is the youngest that anybody looked up, perhaps where the user may not. */
static __always_inline bool has_other_names(struct inode *inode, struct dentry *name)
{
	return BPF_CORE_READ(inode, i_nlink) > 1 || BPF_CORE_READ(name, d_u.d_alias.next);
}

/*
 * Tells of a path that was not told. It is of its file system: the mount point is user space's to
 * find. At the end nobody may have the file open, and others may have moved it to where the user
 * who is served cannot look: he is told of another name in the same directory, and of no other.
 */
static __noinline int tell_name(const struct stored_key *key, struct stored *s, struct inode *inode,
				u32 room)
{
	struct walk w = {.at = name_of(inode)};
	struct wire_stored_name *record;
	u32 size;

	record = bpf_map_lookup_elem(&stored_rooms, &room);
	if (!key || !s || !record || !w.at || (key->run && has_other_names(inode, w.at)))
		return 0;
	if (control_is_half_full()) {
		count(storage.lost);
		return 0;
	}
	w.room = record;
	bpf_loop(MAX_PARTS, walk_up, &w, 0);
	if (!w.len || w.path == s->path)
		return 0;
	if (key->run && room == ROOM_OF_END && w.directory != s->directory)
		return 0;
	size = offsetof(struct wire_stored_name, parts) + w.len;
	barrier_var(size);
	if (size > sizeof(*record))
		return 0;
	fill_header(&record->h, WIRE_STORED_NAME, size, 0, s->tgid, s->tgid, 0);
	record->file = key->file;
	record->cut = !w.whole;
	record->len = w.len;
	record->mounts = s->mounts;
	record->run = key->run;
	if (submit_copy(record, size)) {
		count(storage.lost);
		return 0;
	}
	s->path = w.path;
	s->directory = w.directory;
	return 0;
}

/* ---- Sums -------------------------------------------------------------------------------------
 */

static __noinline int tell_sums(const struct stored_key *key, const struct stored *s, u32 flags)
{
	struct wire_stored *record;
	const u64 id = current_id();

	if (!key || !s)
		return 0;
	/* Checkpoints come first. What is told at last waits for room. */
	record = control_is_half_full() && !flags
			 ? NULL
			 : bpf_ringbuf_reserve(&control, sizeof(*record), 0);
	if (!record) {
		count(storage.lost);
		return 0;
	}
	fill_header(&record->h, WIRE_STORED, sizeof(*record), 0, id >> 32, id, 0);
	record->file = key->file;
	record->size = s->size;
	record->read = s->read;
	record->written = s->written;
	record->distinct = s->distinct;
	record->called = s->called;
	record->flags = s->flags | flags;
	record->run = key->run;
	submit(record);
	return 0;
}

/*
 * Tells of the sums before the first change in a step. They are read before the epoch is taken:
 * whoever loses that race adds to the new step.
 */
static __always_inline bool begin_step(const struct stored_key *key, struct stored *s, u64 epoch)
{
	const u64 before = *(volatile u64 *)&s->epoch;
	struct stored now;

	if (before == epoch)
		return false;
	__builtin_memcpy(&now, s, sizeof(now));
	if (__sync_val_compare_and_swap(&s->epoch, before, epoch) != before)
		return false;
	tell_sums(key, &now, 0);
	return true;
}

static const struct stored never_used = {.epoch = ~0ull};

/* Whether there is room for one more, of which all users have so many, and one has so many. */
static __always_inline bool has_share(u64 all, u64 own, u64 most)
{
	return all < most && own < most - all;
}

/* Returns what all runs of its user have. */
#define share_of(of_run) (&stored_shares.of[(of_run)->share & (WIRE_STORED_USERS - 1)])

/* Returns NULL if there is no room, or the run is over. Files that only calls have used may not
 * take all of it: a program may read thousands of small ones before it comes to its weights. */
static __always_inline struct stored *find_file(const struct stored_key *key, bool only_called)
{
	struct stored *s = bpf_map_lookup_elem(&stored_files, key);
	struct wire_stored_run *run = NULL;

	if (s)
		return s;
	if (only_called && stored_shares.called >= config.called_files)
		return NULL;
	if (config.audit) {
		run = stored_run(key->run);
		if (!run ||
		    !has_share(stored_shares.files, share_of(run)->files, WIRE_SERVED_FILES))
			return NULL;
	}
	if (bpf_map_update_elem(&stored_files, key, &never_used, BPF_NOEXIST))
		return bpf_map_lookup_elem(&stored_files, key);
	atomic_add(&stored_shares.called, only_called);
	if (run) {
		atomic_add(&run->files, 1);
		atomic_add(&share_of(run)->files, 1);
		atomic_add(&stored_shares.files, 1);
	}
	return bpf_map_lookup_elem(&stored_files, key);
}

/* ---- Which blocks -----------------------------------------------------------------------------
 */

struct spread {
	struct piece_key key;
	u64 first, last; /* blocks of the file that were read */
	u64 fresh;	 /* that were not read before */
	bool vague;
};

static const struct piece unread;

/* As find_file(). */
static __always_inline struct piece *find_piece(const struct piece_key *key)
{
	struct piece *piece = bpf_map_lookup_elem(&stored_pieces, key);
	struct wire_stored_run *run = NULL;

	if (piece)
		return piece;
	if (config.audit) {
		run = stored_run(key->of.run);
		if (!run ||
		    !has_share(stored_shares.pieces, share_of(run)->pieces, WIRE_STORED_PIECES))
			return NULL;
	}
	if (!bpf_map_update_elem(&stored_pieces, key, &unread, BPF_NOEXIST) && run) {
		atomic_add(&run->pieces, 1);
		atomic_add(&share_of(run)->pieces, 1);
		atomic_add(&stored_shares.pieces, 1);
	}
	return bpf_map_lookup_elem(&stored_pieces, key);
}

static __always_inline u32 ones(u64 word)
{
	word -= word >> 1 & 0x5555555555555555;
	word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return word * 0x0101010101010101 >> 56;
}

/* Sets the bits of one word. Returns how many were not set before. */
static __always_inline u32 set_bits(u64 *word, u64 base, const struct spread *s)
{
	const u64 first = s->first > base ? s->first - base : 0;
	const u64 last = s->last < base + 63 ? s->last - base : 63;
	u64 bits;

	if (s->last < base || s->first > base + 63)
		return 0;
	bits = ~0ull << (first & 63) & ~0ull >> (63 - last & 63);
	return ones(bits & ~__sync_fetch_and_or(word, bits));
}

static long note_piece(u32 i, struct spread *s)
{
	struct piece *piece;

	s->key.piece = (s->first >> PIECE_BITS) + i;
	if (s->key.piece > s->last >> PIECE_BITS)
		return 1;
	piece = find_piece(&s->key);
	if (!piece) {
		s->vague = true;
		return 1;
	}
	_Pragma("clang loop unroll(disable)") for (u32 w = 0; w < WIRE_STORED_PIECE_WORDS; w++)
		s->fresh +=
		set_bits(&piece->words[w], (s->key.piece << PIECE_BITS) + (w << BLOCK_BITS), s);
	return 0;
}

static __noinline int note_blocks(const struct stored_key *key, struct stored *s, u64 at, u64 bytes)
{
	struct spread spread = {.first = at >> WIRE_STORED_BLOCK_SHIFT,
				.last = (at + bytes - 1) >> WIRE_STORED_BLOCK_SHIFT};

	if (!key || !s || !bytes)
		return 0;
	spread.key.of = *key;
	spread.vague = (spread.last >> PIECE_BITS) - (spread.first >> PIECE_BITS) >= MAX_SPREAD;
	bpf_loop(MAX_SPREAD, note_piece, &spread, 0);
	atomic_add(&s->distinct, spread.fresh << WIRE_STORED_BLOCK_SHIFT);
	if (spread.vague)
		s->flags |= WIRE_STORED_VAGUE;
	return 0;
}

/* ---- Uses -------------------------------------------------------------------------------------
 */

static __always_inline void note_rest(const struct use *use, u32 rest, u64 epoch)
{
	const struct stored_key key = {.file.inode = rest, .run = use->whose.run};
	struct stored *s = find_kept(&stored_rests, &key, key.run, &never_used);

	if (!s)
		return;
	begin_step(&key, s, epoch);
	atomic_add(&s->read, use->read);
	atomic_add(&s->written, use->written);
	atomic_add(&s->called, use->called);
}

/* A file has the name that its first user sees. */
static __always_inline void note_user(struct stored *s)
{
	struct task_struct *self = (void *)bpf_get_current_task();

	if (s->tgid)
		return;
	s->mounts = BPF_CORE_READ(self, nsproxy, mnt_ns, ns.inum);
	s->tgid = current_id() >> 32;
}

/* Requests that store it are for this run now. */
static __always_inline void note_writer(const struct wire_file *file, const struct whose *whose)
{
	const struct whose *last = bpf_map_lookup_elem(&stored_writers, file);

	if (!last || last->run != whose->run)
		bpf_map_update_elem(&stored_writers, file, whose, BPF_ANY);
}

static __noinline int note_use(const struct use *use)
{
	const u64 epoch = tree_of(use->whose.job)->epoch;
	struct stored_key key = {.run = use->whose.run};
	struct inode *inode = use->inode;
	struct stored *s;
	u64 name;

	if (!inode) {
		note_rest(use, use->rest, epoch);
		return 0;
	}
	identify(inode, &key.file);
	if (use->written) {
		use->proc->written_to = key.file.device;
		use->proc->written_ns = bpf_ktime_get_ns();
		note_space(key.file.device, key.run, use->written);
	}
	s = find_file(&key, !use->read && !use->written);
	if (!s) {
		count(storage.beyond);
		note_rest(use, WIRE_STORED_OTHER, epoch);
		return 0;
	}
	if (config.audit && use->written)
		note_writer(&key.file, &use->whose);
	note_user(s);
	s->inode = (u64)inode;
	s->size = BPF_CORE_READ(inode, i_size);
	if (!BPF_CORE_READ(inode, i_nlink))
		s->flags |= WIRE_STORED_DELETED;
	if (begin_step(&key, s, epoch)) {
		name = fingerprint(inode);
		if (name && name != s->name) {
			s->name = name;
			tell_name(&key, s, inode, ROOM_OF_EVENT);
		}
	}
	if (use->read)
		note_blocks(&key, s, use->at, use->read);
	atomic_add(&s->read, use->read);
	atomic_add(&s->written, use->written);
	atomic_add(&s->called, use->called);
	return 0;
}

/* Finds the process that runs, and whose it is. Returns NULL if its use of storage is nobody's. */
static __always_inline struct proc *current_proc(struct whose *whose)
{
	struct proc *proc = find_proc(current_id() >> 32);

	if (!proc || proc->waiting)
		return NULL;
	whose->job = *(volatile u32 *)&proc->job;
	if (tree_of(whose->job)->finished) /* the account ends there, too */
		return NULL;
	if (!config.audit)
		return proc;
	whose->run = tree_of(whose->job)->stored;
	return whose->run ? proc : NULL;
}

#endif
