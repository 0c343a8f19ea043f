// SPDX-License-Identifier: GPL-2.0-only
/*
 * storage.bpf.c - which files a tree reads from storage and writes (--files). Nothing of it is
 * loaded otherwise.
 *
 * Reads are seen as requests for a block device (block_bio_queue), in the task that the kernel's
 * own account charges. A request names pages; a page of the page cache knows its file. A direct
 * read has the program's own memory: there the request leads to the call (struct iomap_dio), which
 * has the file. Read-ahead belongs to the file that it is of.
 *
 * Writes are seen as the kernel accounts them: when a task makes a clean page dirty
 * (writeback_dirty_folio), or writes past the page cache. The request that stores a dirty page
 * comes later, from a thread of the kernel, and perhaps never, if the file is deleted first.
 *
 * A driver on top of others (dm, md) queues requests of its own while it handles one: these are
 * not counted again.
 *
 * Sums are told of before the first change in each step, so that the steps before have theirs.
 * Example: 3 MiB are read of a file in step 1 and 1 MiB in step 5: records say 0 at the first read,
 * 3 MiB at the first read in step 5, and 4 MiB at the end.
 */
#include "device.bpf.h"
#include "inode.bpf.h"
#include "space.bpf.h"
#include "storage.bpf.h"

enum { OP_MASK = 0xff, OP_READ = 0, OP_WRITE = 1, MAPPING_BITS = 3 };

static const u64 PATH_FACTOR = 0x9e3779b97f4a7c15;

/* A use of storage by a tracked process. */
struct use {
	struct proc *proc;
	struct whose whose;
	struct inode *inode; /* NULL: of no file that is known */
	u64 at;		     /* where in the file, if it is one and is read */
	u64 read, written;
	u32 rest; /* enum wire_stored_rest, without inode */
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
	if (config.audit && control_is_half_full()) {
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
	if (bpf_ringbuf_output(&control, record, size, 0)) {
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
	record = reserve_in_half(sizeof(*record));
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
	record->flags = s->flags | flags;
	record->run = key->run;
	bpf_ringbuf_submit(record, 0);
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

/* Returns NULL if there is no room, or the run is over. */
static __always_inline struct stored *find_file(const struct stored_key *key)
{
	struct stored *s = bpf_map_lookup_elem(&stored_files, key);
	struct wire_stored_run *run = NULL;

	if (s)
		return s;
	if (config.audit) {
		run = stored_run(key->run);
		if (!run ||
		    !has_share(stored_shares.files, share_of(run)->files, WIRE_SERVED_FILES))
			return NULL;
	}
	if (!bpf_map_update_elem(&stored_files, key, &never_used, BPF_NOEXIST) && run) {
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
	s = find_file(&key);
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
	return 0;
}

/* Finds the process that runs, and whose it is. Returns NULL if its use of storage is nobody's. */
static __always_inline struct proc *current_proc(struct whose *whose)
{
	struct proc *proc = find_proc(current_id() >> 32);

	if (!proc || proc->waiting)
		return NULL;
	if (config.audit) {
		whose->job = *(volatile u32 *)&proc->job;
		whose->run = tree_of(whose->job)->stored;
		return whose->run ? proc : NULL;
	}
	return proc;
}

/* ---- Requests ---------------------------------------------------------------------------------
 */

/*
 * Returns the file of a direct read or write, or NULL. What the request has for its end may be
 * anything: it is such a call if it leads to a file that is on the device of the request.
 */
static __always_inline struct inode *file_of_call(struct bio *bio, struct iomap_dio *dio)
{
	struct kiocb *iocb = BPF_CORE_READ(dio, iocb);
	struct inode *inode = BPF_CORE_READ(iocb, ki_filp, f_inode);

	if (!inode || !is_file(inode) || BPF_CORE_READ(inode, i_mapping, host) != inode ||
	    BPF_CORE_READ(inode, i_sb, s_bdev) != BPF_CORE_READ(bio, bi_bdev))
		return NULL;
	return inode;
}

static __always_inline struct page *first_of(struct page *page)
{
	const u64 head = BPF_CORE_READ(page, compound_head);

	return head & 1 ? (struct page *)(head - 1) : page;
}

static __always_inline u64 flag(u64 number)
{
	return 1ull << number;
}

/* The flags are the first word of a page. */
static __always_inline u64 flags_of(struct page *first)
{
	u64 flags = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), first);
	return flags;
}

/* Swap that answers at once (zram) is read past the swap cache: then nothing maps the page yet. */
static __always_inline bool is_swap(u64 flags, u64 mapping)
{
	return flags & flag(bpf_core_enum_value(enum pageflags, PG_swapbacked)) &&
	       (!mapping || flags & flag(bpf_core_enum_value(enum pageflags, PG_swapcache)));
}

/* A page of a file that is not being filled, or stored, is a buffer that a program has mapped. */
static __always_inline bool is_buffer(u64 flags, u32 op)
{
	return op == OP_READ ? flags & flag(bpf_core_enum_value(enum pageflags, PG_uptodate))
			     : !(flags & flag(bpf_core_enum_value(enum pageflags, PG_writeback)));
}

/* Returns the size of a folio. Of a large one, the second page has the number of its pages. */
static __always_inline u64 bytes_of(struct folio *folio)
{
	u64 flags = 0, pages;

	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!(flags & 1ull << bpf_core_enum_value(enum pageflags, PG_head)))
		pages = 1;
	else if (bpf_core_field_exists(folio->_nr_pages))
		pages = BPF_CORE_READ(folio, _nr_pages);
	else
		pages = BPF_CORE_READ((struct folio___old *)folio, _folio_nr_pages);
	return pages << config.page_shift;
}

static __always_inline const struct bio_vec *first_vec(struct bio *bio)
{
	const void *vecs = BPF_CORE_READ(bio, bi_io_vec);

	return vecs + BPF_CORE_READ(bio, bi_iter.bi_idx) * bpf_core_type_size(struct bio_vec);
}

static __always_inline u64 mapping_of(struct page *first)
{
	return (u64)BPF_CORE_READ((struct folio *)first, mapping);
}

/* A request for pages of the page cache, or for other memory. */
static __always_inline void find_pages(struct bio *bio, u32 op, struct use *use)
{
	const u32 meta = 1u << bpf_core_enum_value(enum req_flag_bits, __REQ_META);
	const struct bio_vec *vec = first_vec(bio);
	struct page *page = BPF_CORE_READ(vec, bv_page), *first = first_of(page);
	struct folio *folio = (struct folio *)first;
	const u64 mapping = mapping_of(first), flags = flags_of(first);

	if (is_swap(flags, mapping)) {
		use->rest = WIRE_STORED_SWAP;
	} else if (mapping & MAPPING_BITS) {
		use->rest = WIRE_STORED_DIRECT;
	} else if (!mapping) {
		use->rest = BPF_CORE_READ(bio, bi_opf) & meta ? WIRE_STORED_METADATA
							      : WIRE_STORED_OTHER;
	} else {
		use->inode = BPF_CORE_READ((struct address_space *)mapping, host);
		use->at = BPF_CORE_READ(folio, index) +
			  ((u64)page - (u64)first) / bpf_core_type_size(struct page);
		use->at = (use->at << config.page_shift) + BPF_CORE_READ(vec, bv_offset);
		if (!use->inode || !is_file(use->inode)) {
			use->inode = NULL;
			use->rest = WIRE_STORED_METADATA;
		} else if (is_buffer(flags, op)) {
			use->inode = NULL;
			use->rest = WIRE_STORED_DIRECT;
		}
	}
}

/*
 * What is stored by others than the tree, as threads of the kernel do with dirty pages, is for the
 * tree if it has written to the file. A large part of a file's life may be after the run.
 */
static __noinline int note_stored(u64 address)
{
	struct bio *bio = (struct bio *)address;
	const struct whose *writer = NULL;
	struct stored_key key = {};
	const struct stored *s;
	struct use use = {};

	find_pages(bio, OP_WRITE, &use);
	if (!use.inode)
		return 0;
	identify(use.inode, &key.file);
	if (config.audit) {
		writer = bpf_map_lookup_elem(&stored_writers, &key.file);
		if (!writer)
			return 0;
		key.run = writer->run;
	}
	s = bpf_map_lookup_elem(&stored_files, &key);
	if (s && s->written)
		begin_request(address, WIRE_DEVICE_WRITE, key.run, writer ? writer->job : 0);
	return 0;
}

SEC("?tp_btf/block_bio_queue")
int BPF_PROG(storage_asked, struct bio *bio)
{
	const u32 bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	const u32 op = BPF_CORE_READ(bio, bi_opf) & OP_MASK;
	struct task_struct *self = (void *)bpf_get_current_task();
	struct use use = {};
	struct iomap_dio *dio = BPF_CORE_READ(bio, bi_private);
	bool direct = false;
	u64 address = 0;

	if (op > OP_WRITE || !bytes || BPF_CORE_READ(self, bio_list))
		return 0;
	use.proc = current_proc(&use.whose);
	bpf_probe_read_kernel(&address, sizeof(address), ctx); /* a number, for the verifier */
	if (!use.proc) {
		if (op == OP_WRITE)
			note_stored(address);
		return 0;
	}
	search_unseen(address, use.whose.run);
	begin_request(address, op == OP_WRITE ? WIRE_DEVICE_WRITE : WIRE_DEVICE_READ, use.whose.run,
		      use.whose.job);
	use.inode = dio ? file_of_call(bio, dio) : NULL;
	if (use.inode) {
		direct = true;
		/* The call's size has these bytes already. */
		use.at = BPF_CORE_READ(dio, iocb, ki_pos) + BPF_CORE_READ(dio, size) - bytes;
	} else {
		find_pages(bio, op, &use);
		direct = !use.inode && use.rest == WIRE_STORED_DIRECT;
	}
	if (op == OP_READ)
		use.read = bytes;
	else if (direct)
		use.written = bytes; /* what is stored of the page cache was counted before */
	if (use.read || use.written)
		note_use(&use);
	return 0;
}

/* A clean folio becomes dirty. What has no storage of its own (tmpfs) does not come here. */
SEC("?tp_btf/writeback_dirty_folio")
int BPF_PROG(storage_dirtied, struct folio *folio, struct address_space *mapping)
{
	struct use use = {.rest = WIRE_STORED_METADATA};

	use.proc = current_proc(&use.whose);
	if (!use.proc || !folio || !mapping)
		return 0;
	use.inode = BPF_CORE_READ(mapping, host);
	if (!use.inode || !is_file(use.inode))
		use.inode = NULL;
	use.written = bytes_of(folio);
	note_use(&use);
	return 0;
}

/* ---- The end ----------------------------------------------------------------------------------
 */

static __always_inline void tell_total(const struct stored_key *key, struct stored *s)
{
	tell_sums(key, s, WIRE_STORED_LAST);
	s->flags |= WIRE_STORED_LAST;
}

/*
 * An inode that has left the memory keeps its numbers there until another one gets its place. But
 * evict() in fs/inode.c takes it off its file system's list, where all others are.
 */
static __always_inline bool is_evicted(struct inode *inode)
{
	return BPF_CORE_READ(inode, i_sb_list.next) ==
	       (void *)inode + bpf_core_field_offset(inode->i_sb_list);
}

/*
 * Files may have been renamed since. The memory of an inode may be another's by now. Stops while
 * there is room in the ring for what others tell.
 */
static long tell_last(struct bpf_map *map, const struct stored_key *key, struct stored *s,
		      struct last *last)
{
	const struct wire_file *file = &key->file;
	struct inode *inode = (struct inode *)s->inode;
	struct wire_file is = {};

	if (key->run != last->run || s->flags & WIRE_STORED_LAST)
		return 0;
	if (control_is_half_full()) {
		last->more = 1;
		return 1;
	}
	if (inode) {
		identify(inode, &is);
		if (is.device == file->device && is.inode == file->inode &&
		    is.generation == file->generation) {
			s->size = BPF_CORE_READ(inode, i_size);
			/* Who had no name may have been given one (O_TMPFILE). */
			if (!BPF_CORE_READ(inode, i_nlink)) {
				s->flags |= WIRE_STORED_DELETED;
			} else if (is_evicted(inode)) {
				s->flags |= WIRE_STORED_GONE;
			} else {
				s->flags &= ~WIRE_STORED_DELETED;
				tell_name(key, s, inode, ROOM_OF_END);
			}
		} else {
			s->flags |= WIRE_STORED_GONE;
		}
	}
	tell_total(key, s);
	return 0;
}

static __always_inline bool tell_all(u32 run)
{
	struct wire_stored_all *record = bpf_ringbuf_reserve(&control, sizeof(*record), 0);

	if (!record)
		return false;
	fill_header(&record->h, WIRE_STORED_ALL, sizeof(*record), 0, 0, 0, 0);
	record->run = run;
	record->reserved = 0;
	bpf_ringbuf_submit(record, 0);
	return true;
}

/*
 * Tells of all that was read and written: of the run that is served, or of the one that there is.
 * Returns 1 if there is more than the ring had room for.
 */
SEC("?syscall")
int storage_told(u32 *run)
{
	struct last last = {.run = *run};

	bpf_for_each_map_elem(&stored_rests, tell_last, &last, 0);
	bpf_for_each_map_elem(&stored_files, tell_last, &last, 0);
	bpf_for_each_map_elem(&stored_spaces, tell_last_space, &last, 0);
	if (tell_devices(last.run) || last.more)
		return 1;
	return last.run && !tell_all(last.run);
}
