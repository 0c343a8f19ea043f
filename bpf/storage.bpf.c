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
 */
#include "device.bpf.h"
#include "stored_use.bpf.h"

enum { OP_MASK = 0xff, OP_READ = 0, OP_WRITE = 1, MAPPING_BITS = 3 };

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
		if (!writer || !stored_run(writer->run)) /* it may be over */
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

/* Returns the flags of a file as they are now. The memory of an inode may be another's by now: if
 * it is not, it has the size, too. */
static __always_inline u32 flags_now(const struct wire_file *file, const struct stored *s,
				     u64 *size)
{
	struct inode *inode = (struct inode *)s->inode;
	struct wire_file is = {};

	if (!inode)
		return s->flags;
	identify(inode, &is);
	if (is.device != file->device || is.inode != file->inode ||
	    is.generation != file->generation)
		return s->flags | WIRE_STORED_GONE;
	*size = BPF_CORE_READ(inode, i_size);
	if (!BPF_CORE_READ(inode, i_nlink))
		return s->flags | WIRE_STORED_DELETED;
	if (is_evicted(inode))
		return s->flags | WIRE_STORED_GONE;
	/* What had no name may have been given one (O_TMPFILE). */
	return s->flags & ~WIRE_STORED_DELETED;
}

/* Files may have been renamed since. Stops while there is room in the ring for what others tell. */
static long tell_last(struct bpf_map *map, const struct stored_key *key, struct stored *s,
		      struct last *last)
{
	struct inode *inode = (struct inode *)s->inode;

	if (key->run != last->run || s->flags & WIRE_STORED_LAST)
		return 0;
	if (control_is_half_full()) {
		last->more = 1;
		return 1;
	}
	s->flags = flags_now(&key->file, s, &s->size);
	if (inode && !(s->flags & (WIRE_STORED_DELETED | WIRE_STORED_GONE)))
		tell_name(key, s, inode, ROOM_OF_END);
	tell_total(key, s);
	return 0;
}

/* As tell_last(): of the sums. */
static long tell_last_space(struct bpf_map *map, const struct device_key *of, struct space *space,
			    struct last *last)
{
	if (space->told || of->run != last->run)
		return 0;
	if (control_is_half_full()) {
		last->more = 1;
		return 1;
	}
	tell_space(of, space->written, WIRE_STORED_LAST);
	space->told = 1;
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
	submit(record);
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

/* ---- While it goes on ---------------------------------------------------------------------------
 */

struct wire_stored_largest stored_largest;

static __always_inline u64 amount_of(const struct wire_stored_use *use)
{
	return use->read + use->written;
}

/* Of those that are the largest so far, the smallest gives way to a larger one. */
static long keep_largest(struct bpf_map *map, const struct stored_key *key, struct stored *s,
			 struct last *last)
{
	const struct wire_stored_use use = {.file = key->file,
					    .read = *(volatile u64 *)&s->read,
					    .written = *(volatile u64 *)&s->written};
	struct wire_stored_use *smallest = &stored_largest.of[0];
	u64 size;

	if (key->run != last->run || !amount_of(&use))
		return 0;
	stored_largest.read += use.read;
	stored_largest.written += use.written;
	if (!use.file.device) /* of no file */
		return 0;
	stored_largest.files++;
	for (u32 i = 1; i < WIRE_STORED_LARGEST; i++)
		if (amount_of(&stored_largest.of[i]) < amount_of(smallest))
			smallest = &stored_largest.of[i];
	if (amount_of(smallest) >= amount_of(&use))
		return 0;
	*smallest = use;
	smallest->flags = flags_now(&key->file, s, &size);
	return 0;
}

/* Looks at the files that a run of an audit has used most so far. The loader, which alone calls it,
 * has emptied `stored_largest`. */
SEC("?syscall")
int storage_looked_at(u32 *run)
{
	struct last last = {.run = *run};

	bpf_for_each_map_elem(&stored_rests, keep_largest, &last, 0);
	bpf_for_each_map_elem(&stored_files, keep_largest, &last, 0);
	return 0;
}
