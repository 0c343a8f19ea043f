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
	u64 path; /* another number for another path */
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
	w->at = parent;
	return 0;
}

/* Tells of a path that was not told. It is of its file system: the mount point is user space's to
 * find. */
static __noinline int tell_name(const struct wire_file *file, struct stored *s, struct inode *inode,
				u32 room)
{
	struct walk w = {.at = name_of(inode)};
	struct wire_stored_name *record;
	u32 size;

	record = bpf_map_lookup_elem(&stored_rooms, &room);
	if (!file || !s || !record || !w.at)
		return 0;
	w.room = record;
	bpf_loop(MAX_PARTS, walk_up, &w, 0);
	if (!w.len || w.path == s->path)
		return 0;
	size = offsetof(struct wire_stored_name, parts) + w.len;
	barrier_var(size);
	if (size > sizeof(*record))
		return 0;
	fill_header(&record->h, WIRE_STORED_NAME, size, 0, s->tgid, s->tgid, 0);
	record->file = *file;
	record->cut = !w.whole;
	record->len = w.len;
	record->mounts = s->mounts;
	record->reserved = 0;
	if (bpf_ringbuf_output(&control, record, size, 0))
		count(storage.lost);
	else
		s->path = w.path;
	return 0;
}

/* ---- Sums -------------------------------------------------------------------------------------
 */

static __noinline int tell_sums(const struct wire_file *file, const struct stored *s, u32 flags)
{
	struct wire_stored *record;
	const u64 id = current_id();

	if (!file || !s)
		return 0;
	record = bpf_ringbuf_reserve(&control, sizeof(*record), 0);
	if (!record) {
		count(storage.lost);
		return 0;
	}
	fill_header(&record->h, WIRE_STORED, sizeof(*record), 0, id >> 32, id, 0);
	record->file = *file;
	record->size = s->size;
	record->read = s->read;
	record->written = s->written;
	record->distinct = s->distinct;
	record->flags = s->flags | flags;
	record->reserved = 0;
	bpf_ringbuf_submit(record, 0);
	return 0;
}

/*
 * Tells of the sums before the first change in a step. They are read before the epoch is taken:
 * whoever loses that race adds to the new step.
 */
static __always_inline bool begin_step(const struct wire_file *file, struct stored *s, u64 epoch)
{
	const u64 before = *(volatile u64 *)&s->epoch;
	struct stored now;

	if (before == epoch)
		return false;
	__builtin_memcpy(&now, s, sizeof(now));
	if (__sync_val_compare_and_swap(&s->epoch, before, epoch) != before)
		return false;
	tell_sums(file, &now, 0);
	return true;
}

static const struct stored never_used = {.epoch = ~0ull};

static __always_inline struct stored *find_file(const struct wire_file *file)
{
	struct stored *s = bpf_map_lookup_elem(&stored_files, file);

	if (s)
		return s;
	bpf_map_update_elem(&stored_files, file, &never_used, BPF_NOEXIST);
	return bpf_map_lookup_elem(&stored_files, file);
}

/* ---- Which blocks -----------------------------------------------------------------------------
 */

struct spread {
	struct piece_key key;
	u64 first, last; /* blocks of the file that were read */
	u64 fresh;	 /* that were not read before */
	bool vague;
};

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

static const struct piece unread;

static long note_piece(u32 i, struct spread *s)
{
	struct piece *piece;

	s->key.piece = (s->first >> PIECE_BITS) + i;
	if (s->key.piece > s->last >> PIECE_BITS)
		return 1;
	piece = bpf_map_lookup_elem(&stored_pieces, &s->key);
	if (!piece) {
		bpf_map_update_elem(&stored_pieces, &s->key, &unread, BPF_NOEXIST);
		piece = bpf_map_lookup_elem(&stored_pieces, &s->key);
	}
	if (!piece) {
		s->vague = true;
		return 1;
	}
	_Pragma("clang loop unroll(disable)") for (u32 w = 0; w < WIRE_STORED_PIECE_WORDS; w++)
		s->fresh +=
		set_bits(&piece->words[w], (s->key.piece << PIECE_BITS) + (w << BLOCK_BITS), s);
	return 0;
}

static __noinline int note_blocks(const struct wire_file *file, struct stored *s, u64 at, u64 bytes)
{
	struct spread spread = {.first = at >> WIRE_STORED_BLOCK_SHIFT,
				.last = (at + bytes - 1) >> WIRE_STORED_BLOCK_SHIFT};

	if (!file || !s || !bytes)
		return 0;
	spread.key.file = *file;
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
	const struct wire_file file = {.inode = rest};
	struct stored *s = bpf_map_lookup_elem(&stored_rests, &rest);

	if (!s)
		return;
	begin_step(&file, s, epoch);
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

static __noinline int note_use(const struct use *use)
{
	const u64 epoch = tree_of(use->proc->job)->epoch;
	struct inode *inode = use->inode;
	struct wire_file file = {};
	struct stored *s;
	u64 name;

	if (!inode) {
		note_rest(use, use->rest, epoch);
		return 0;
	}
	identify(inode, &file);
	if (use->written) {
		use->proc->written_to = file.device;
		use->proc->written_ns = bpf_ktime_get_ns();
		note_space(file.device, use->written);
	}
	s = find_file(&file);
	if (!s) {
		count(storage.beyond);
		note_rest(use, WIRE_STORED_OTHER, epoch);
		return 0;
	}
	note_user(s);
	s->inode = (u64)inode;
	s->size = BPF_CORE_READ(inode, i_size);
	if (!BPF_CORE_READ(inode, i_nlink))
		s->flags |= WIRE_STORED_DELETED;
	if (begin_step(&file, s, epoch)) {
		name = fingerprint(inode);
		if (name && name != s->name) {
			s->name = name;
			tell_name(&file, s, inode, ROOM_OF_EVENT);
		}
	}
	if (use->read)
		note_blocks(&file, s, use->at, use->read);
	atomic_add(&s->read, use->read);
	atomic_add(&s->written, use->written);
	return 0;
}

static __always_inline struct proc *current_proc(void)
{
	struct proc *proc = find_proc(current_id() >> 32);

	return proc && !proc->waiting ? proc : NULL;
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
	struct wire_file file = {};
	const struct stored *s;
	struct use use = {};

	find_pages(bio, OP_WRITE, &use);
	if (!use.inode)
		return 0;
	identify(use.inode, &file);
	s = bpf_map_lookup_elem(&stored_files, &file);
	if (s && s->written)
		begin_request(address, WIRE_DEVICE_WRITE);
	return 0;
}

SEC("?tp_btf/block_bio_queue")
int BPF_PROG(storage_asked, struct bio *bio)
{
	const u32 bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	const u32 op = BPF_CORE_READ(bio, bi_opf) & OP_MASK;
	struct task_struct *self = (void *)bpf_get_current_task();
	struct use use = {.proc = current_proc()};
	struct iomap_dio *dio = BPF_CORE_READ(bio, bi_private);
	bool direct = false;
	u64 address = 0;

	if (op > OP_WRITE || !bytes || BPF_CORE_READ(self, bio_list))
		return 0;
	bpf_probe_read_kernel(&address, sizeof(address), ctx); /* a number, for the verifier */
	if (!use.proc) {
		if (op == OP_WRITE)
			note_stored(address);
		return 0;
	}
	search_unseen(address);
	begin_request(address, op == OP_WRITE ? WIRE_DEVICE_WRITE : WIRE_DEVICE_READ);
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
	struct use use = {.proc = current_proc(), .rest = WIRE_STORED_METADATA};

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

static __always_inline void tell_total(const struct wire_file *file, struct stored *s)
{
	tell_sums(file, s, WIRE_STORED_LAST);
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
static long tell_last(struct bpf_map *map, const struct wire_file *file, struct stored *s,
		      u32 *more)
{
	struct inode *inode = (struct inode *)s->inode;
	struct wire_file is = {};

	if (s->flags & WIRE_STORED_LAST)
		return 0;
	if (control_is_half_full()) {
		*more = 1;
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
				tell_name(file, s, inode, ROOM_OF_END);
			}
		} else {
			s->flags |= WIRE_STORED_GONE;
		}
	}
	tell_total(file, s);
	return 0;
}

/* Tells of all that was read and written. Returns 1 if there is more than the ring had room for. */
SEC("?syscall")
int storage_told(void *context)
{
	u32 more = 0;

	_Pragma("clang loop unroll(disable)") for (u32 rest = 0; rest < WIRE_STORED_RESTS; rest++)
	{
		const struct wire_file file = {.inode = rest};
		const u32 key = rest;
		struct stored *s = bpf_map_lookup_elem(&stored_rests, &key);

		if (s && (s->read || s->written) && !(s->flags & WIRE_STORED_LAST))
			tell_total(&file, s);
	}
	bpf_for_each_map_elem(&stored_files, tell_last, &more, 0);
	bpf_for_each_map_elem(&stored_spaces, tell_last_space, &more, 0);
	return tell_devices() || more;
}
