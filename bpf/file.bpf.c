// SPDX-License-Identifier: GPL-2.0-only
/*
 * file.bpf.c - files that chosen processes use.
 *
 * Both hooks slow every system call of the machine a little. So their programs are loaded and
 * attached once a process is chosen, not before (user/kernel/late_programs.h).
 */
#include "aio.bpf.h"
#include "file.bpf.h"
#include "file_calls.bpf.h"
#include "file_uring.bpf.h"

u32 last_use;

enum {
	USES_A_CALL = 8,    /* of native AIO */
	MAP_SHARED_BIT = 1, /* in MAP_SHARED and MAP_SHARED_VALIDATE, not in MAP_PRIVATE */
	MAP_ANONYMOUS = 0x20,
	PROT_WRITE = 2,
};

/* ---- Records ----------------------------------------------------------------------------------
 */

static __always_inline struct proc *proc_of_reader(u32 tgid)
{
	const struct reader *reader = bpf_map_lookup_elem(&readers, &tgid);
	struct proc *proc = reader ? find_proc(tgid) : NULL;

	return proc && proc->started_ns == reader->started_ns && !tree_of(proc->job)->finished
		       ? proc
		       : NULL;
}

static __always_inline void lose_record(struct proc *proc)
{
	atomic_add(&tree_of(proc->job)->epoch, 1); /* a hole in the sequence */
	count(lost_checkpoints);
}

int tell_begin(const struct handle *h, u32 tgid, u32 tid, u32 id, u32 bit)
{
	struct proc *proc = proc_of_reader(tgid);
	struct wire_checkpoint *cp;
	struct wire_opened *opened;

	if (!h || !proc)
		return 0;
	tell_gpu(proc, tid);
	cp = bpf_ringbuf_reserve(&control, sizeof(*cp) + sizeof(*opened), 0);
	if (!cp) {
		lose_record(proc);
		return 0;
	}
	fill_checkpoint(cp, proc, WIRE_FILE, bit == USE_WRITE ? WIRE_FILE_WRITTEN : WIRE_FILE_READ,
			tid);
	opened = (void *)cp->name;
	cp->h.size = sizeof(*cp) + sizeof(*opened);
	cp->name_state = WIRE_NAME_OK;
	cp->name_len = sizeof(opened->file) + (h->name_len & (WIRE_NAME_MAX - 1));
	cp->value = id;
	opened->file = h->inode;
	bpf_probe_read_kernel(opened->path, sizeof(opened->path), h->name);
	submit(cp);
	return 0;
}

int tell_end(u32 tgid, u32 tid, u32 id)
{
	struct proc *proc = proc_of_reader(tgid);
	struct wire_checkpoint *cp;

	if (!proc)
		return 0;
	tell_gpu(proc, tid);
	cp = bpf_ringbuf_reserve(&control, sizeof(*cp), 0);
	if (!cp) {
		lose_record(proc);
		return 0;
	}
	fill_checkpoint(cp, proc, WIRE_FILE, WIRE_FILE_DONE, tid);
	cp->h.size = sizeof(*cp);
	cp->value = id;
	submit(cp);
	return 0;
}

/* ---- Mappings ---------------------------------------------------------------------------------
 */

/* A mapping that may be written to the file writes it; any other reads it. */
static __always_inline u32 bit_of_mapping(u64 prot, u64 flags)
{
	return flags & MAP_SHARED_BIT && prot & PROT_WRITE ? USE_WRITE : USE_READ;
}

static __always_inline void has_mapped(const struct caller *c, u64 at, u64 len, u64 flags, u32 fd)
{
	struct handle *h;

	if (flags & MAP_ANONYMOUS || !c->reader->handles || at > -4096ull)
		return;
	h = handle_at(c, fd);
	if (!h || h->inode != c->reader->last)
		return;
	c->reader->from = at;
	c->reader->to = at + len;
}

static __always_inline void unmap(struct caller *c, u64 from, u64 len)
{
	struct reader *r = c->reader;
	const u64 to = from + len;

	if (from >= r->to || to <= r->from)
		return;
	if (from > r->from && to < r->to)
		return; /* a hole */
	if (from > r->from)
		r->to = from;
	else if (to < r->to)
		r->from = to;
	else
		leave_mapping(c);
	tell(c);
}

/* ---- Opened and closed ------------------------------------------------------------------------
 */

static __always_inline void close_file(struct caller *c, u32 fd)
{
	struct file **files;
	u32 max;

	if (c->reader->handles)
		close_handle(c, (u64)file_of(fd, &files, &max), fd);
}

static __always_inline void has_opened(struct caller *c, u64 path, long fd)
{
	struct opening *o;
	const struct wire_watching *how = watched(&o);
	struct file **files, *file;
	u32 max;
	long len;

	if (!how || fd < 0)
		return;
	file = file_of(fd, &files, &max);
	forget_former(c, file);
	len = bpf_probe_read_user_str(o->room.path, PATH_BYTES, (void *)path);
	if (len > 1 && len < PATH_BYTES && is_wanted(how, &o->room, len - 1))
		add_handle(how, o, len - 1, file, 0);
}

/* ---- Native AIO -------------------------------------------------------------------------------
 */

/* The first request of a list that uses a file in a direction that was not met. */
struct unmet {
	struct caller *c;
	u64 requests;
	u32 n;
	u32 bit; /* 0: there is none */
	struct handle *handle;
};

static __always_inline u32 bit_of_request(const struct iocb_head *head)
{
	if (head->opcode == IOCB_CMD_PREAD || head->opcode == IOCB_CMD_PREADV)
		return USE_READ;
	return head->opcode == IOCB_CMD_PWRITE || head->opcode == IOCB_CMD_PWRITEV ? USE_WRITE : 0;
}

static long look_at_request(u32 i, struct unmet *unmet)
{
	struct iocb_head head;
	struct handle *h;
	u32 bit;

	if (!read_request(unmet->requests, i, &head))
		return 1;
	bit = bit_of_request(&head);
	h = bit ? handle_at(unmet->c, head.fd) : NULL;
	if (!h || h->met & bit)
		return 0;
	unmet->handle = h;
	unmet->bit = bit;
	return 1;
}

static long use_unmet(u32 i, struct unmet *unmet)
{
	unmet->bit = 0;
	bpf_loop(unmet->n, look_at_request, unmet, 0);
	if (!unmet->bit || !unmet->handle)
		return 1;
	use_handle(unmet->c, unmet->handle, unmet->bit);
	return 0;
}

/* Files that are used for the first time are few. What one call leaves is for the next. */
static __always_inline void use_requests(struct caller *c, u64 n, u64 requests)
{
	struct unmet unmet = {.c = c, .requests = requests, .n = n < MAX_LOOKS ? n : MAX_LOOKS};

	if (c->reader->handles)
		short_loop(USES_A_CALL, use_unmet, &unmet);
}

/* ---- Hooks ------------------------------------------------------------------------------------
 */

/* While the process still has its memory. */
static __always_inline void end_reader(const struct caller *c)
{
	if (c->reader->any)
		tell_end(c->tgid, c->tid, 0);
}

/* Says of which descriptors a call uses the files. Returns false for a call that is none of these.
 */
static __always_inline bool find_used(enum act act, struct pt_regs *regs, u32 *read, u32 *written)
{
	*read = *written = NO_DESCRIPTOR;
	if (act == READS) {
		*read = PT_REGS_PARM1_CORE(regs);
	} else if (act == WRITES) {
		*written = PT_REGS_PARM1_CORE(regs);
	} else if (act == COPIES || act == SPLICES) {
		*read = PT_REGS_PARM1_CORE(regs);
		*written = PT_REGS_PARM3_CORE(regs);
	} else if (act == SENDS) {
		*read = PT_REGS_PARM2_CORE(regs);
		*written = PT_REGS_PARM1_CORE(regs);
	} else if (act == MAPS) {
		const u64 prot = PT_REGS_PARM3_CORE(regs), flags = PT_REGS_PARM4_CORE_SYSCALL(regs);
		const u32 fd = flags & MAP_ANONYMOUS ? NO_DESCRIPTOR : PT_REGS_PARM5_CORE(regs);

		if (bit_of_mapping(prot, flags) == USE_READ)
			*read = fd;
		else
			*written = fd;
	} else {
		return false;
	}
	return true;
}

static __always_inline void call(struct caller *c, struct pt_regs *regs, u64 number)
{
	const enum act act = act_of(number);
	u32 read, written;

	if (!is_reader(c))
		return;
	if (find_used(act, regs, &read, &written)) {
		use_descriptor(c, read, USE_READ);
		use_descriptor(c, written, USE_WRITE);
	} else if (act == UNMAPS) {
		unmap(c, PT_REGS_PARM1_CORE(regs), PT_REGS_PARM2_CORE(regs));
	} else if (act == CLOSES) {
		close_file(c, PT_REGS_PARM1_CORE(regs));
	} else if (act == SUBMITS) {
		use_requests(c, PT_REGS_PARM2_CORE(regs), PT_REGS_PARM3_CORE(regs));
	} else if (act == ENDS) {
		end_reader(c);
	}
}

/* Returns 0 if it was of another task, were a kernel to let that come between. Outlined: the frames
 * of all nested calls share 512 bytes of stack. */
outlined enum file_event what_happens(void)
{
	const u32 zero = 0;
	const struct happening *h = bpf_map_lookup_elem(&happenings, &zero);

	return h && h->tid == (u32)bpf_get_current_pid_tgid() ? h->event : 0;
}

/*
 * What may begin or end the use of a file, in one program: the verifier goes through all that a
 * program calls, and a snapshot is 8,000 instructions to it. Volatile: what an event does not have
 * is not read.
 */
SEC("?raw_tp")
int file_changes(const volatile u64 *args)
{
	const enum file_event event = what_happens();
	struct caller c;

	if (event == FILE_CALL)
		call(&c, (struct pt_regs *)args[0], args[1]);
	else if (event == FILE_SUBMITTED)
		uring_submitted(&c, (struct io_kiocb *)args[0]);
	else if (event == FILE_COMPLETED)
		uring_completed(&c, (struct io_kiocb *)args[1],
				BPF_CORE_READ((struct io_uring_cqe *)args[2], res));
	else if (event == FILE_COMPLETED_OLD)
		uring_completed(&c, (struct io_kiocb *)args[1], args[3]);
	else
		count(unwatched_files);
	return 0;
}

SEC("?raw_tp/sys_enter")
int file_call_enters(const volatile u64 *args)
{
	const enum act act = act_of(args[1]);
	struct caller c;

	if (act != NOTHING && act != OPENS && act != OPENS_AT && is_reader(&c))
		lead_to_file_changes((void *)args, FILE_CALL);
	return 0;
}

/* Not one of those, since each call of the machine comes here: its number is read at once. */
SEC("?tp_btf/sys_exit")
int BPF_PROG(file_call_leaves, struct pt_regs *regs, long result)
{
	const enum act act = act_of(number_of_ended(regs));
	struct caller c;

	if (act == OPENS)
		has_opened(&c, PT_REGS_PARM1(regs), result);
	else if (act == OPENS_AT)
		has_opened(&c, PT_REGS_PARM2(regs), result);
	else if (act == MAPS && is_reader(&c))
		has_mapped(&c, result, PT_REGS_PARM2(regs), PT_REGS_PARM4_SYSCALL(regs),
			   PT_REGS_PARM5(regs));
	return 0;
}
