// SPDX-License-Identifier: GPL-2.0-only
/*
 * aio.bpf.c - native AIO, which the kernel accounts to storage only, not to rchar and wchar.
 *
 * If the kernel's functions can be traced, a request is counted when it completes, with the bytes
 * it moved. A completion may run in an interrupt of any process. So a submission notes to whom the
 * context of its requests (struct kioctx) belongs, and the completion looks that up.
 *
 * Elsewhere, and if the user wants it (see io.bpf.c), a request is counted at the return of
 * libaio's io_submit(), with the bytes it asked for: a program can read results from memory without
 * a call.
 */
#include "aio.bpf.h"
#include "io.bpf.h"
#include "own_stack.bpf.h"

enum { MAX_CONTEXTS = 4096 };

struct owner {
	u64 user_id; /* of the context: tells it from an earlier one at the same address */
	u32 tgid;
	u32 reserved;
};

/* struct kioctx * -> its owner */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_CONTEXTS);
	__type(key, u64);
	__type(value, struct owner);
} aio_owners SEC(".maps");

struct search {
	struct kioctx_table *table;
	u64 user_id;
	struct kioctx *found;
};

static long look_at_context(u32 index, struct search *search)
{
	struct kioctx_table *table = search->table;
	struct kioctx *context = NULL;

	bpf_probe_read_kernel(&context, sizeof(context), &table->table[index]);
	if (!context || BPF_CORE_READ(context, user_id) != search->user_id)
		return 0;
	search->found = context;
	return 1;
}

/*
 * Returns the context that a program means. user_id is the address of the context's ring, which
 * begins with an index into the kernel's table (fs/aio.c, lookup_ioctx). The ring may not be in
 * memory yet: then we look at all contexts of the table.
 */
static __always_inline struct kioctx *find_context(u64 user_id)
{
	struct task_struct *self = (void *)bpf_get_current_task();
	struct kioctx_table *table = BPF_CORE_READ(self, mm, ioctx_table);
	struct search search = {.table = table, .user_id = user_id};
	u32 n, index = 0;

	if (!table)
		return NULL;
	n = BPF_CORE_READ(table, nr);
	if (!bpf_probe_read_user(&index, sizeof(index), (void *)user_id) && index < n)
		look_at_context(index, &search);
	else
		bpf_loop(n, look_at_context, &search, 0);
	return search.found;
}

static __always_inline int note_owner(const u64 *arg)
{
	struct owner owner = {.tgid = current_tgid()};
	struct owner *known;
	u64 context;

	if (!find_proc(owner.tgid) || bpf_probe_read_kernel(&owner.user_id, sizeof(u64), arg))
		return 0;
	context = (u64)find_context(owner.user_id);
	if (!context)
		return 0;
	known = bpf_map_lookup_elem(&aio_owners, &context);
	if (known && known->tgid == owner.tgid && known->user_id == owner.user_id)
		return 0;
	if (bpf_map_update_elem(&aio_owners, &context, &owner, BPF_ANY))
		count(unknown_requests);
	return 0;
}

#if defined(__TARGET_ARCH_x86)
SEC("?fentry/__x64_sys_io_submit")
int BPF_PROG(aio_submits, const struct pt_regs *regs)
{
	return note_owner((const u64 *)&regs->di);
}

SEC("?fentry/__ia32_compat_sys_io_submit")
int BPF_PROG(aio_submits_32, const struct pt_regs *regs)
{
	return note_owner((const u64 *)&regs->bx);
}
#else
SEC("?fentry/__arm64_sys_io_submit")
int BPF_PROG(aio_submits, const struct pt_regs *regs)
{
	return note_owner((const u64 *)&regs->regs[0]);
}
#endif

/* include/linux/fs.h */
enum { IOCB_WRITE = 1 << 18 };

SEC("?fentry/aio_complete_rw")
int BPF_PROG(aio_completes, struct kiocb *kiocb, long bytes)
{
	struct aio_kiocb *request = (void *)kiocb; /* its first member */
	struct kioctx *context;
	struct owner *owner;
	u64 key;

	if (bytes <= 0)
		return 0;
	context = BPF_CORE_READ(request, ki_ctx);
	key = (u64)context;
	owner = bpf_map_lookup_elem(&aio_owners, &key);
	if (!owner || owner->user_id != BPF_CORE_READ(context, user_id))
		return 0;
	if (BPF_CORE_READ(kiocb, ki_flags) & IOCB_WRITE)
		account(owner->tgid, 0, bytes);
	else
		account(owner->tgid, bytes, 0);
	return 0;
}

/* Added to atomically: so the verifier assumes no bounds, and checks the loop's body once. */
struct submission {
	u64 requests; /* the program's struct iocb *[] */
	u64 read, written;
	u64 looks;
};

static __always_inline u64 requested(const struct iocb_head *head)
{
	return head->bytes < MAX_TRANSFER ? head->bytes : MAX_TRANSFER;
}

static __always_inline u64 requested_vectors(const struct iocb_head *head, struct submission *s)
{
	atomic_add(&s->looks, head->bytes < MAX_VECTORS ? head->bytes : MAX_VECTORS);
	if (s->looks <= MAX_LOOKS)
		return vector_bytes(head->buffer, head->bytes, 64);
	count(unknown_requests);
	return 0;
}

static long add_request(u32 i, struct submission *s)
{
	struct iocb_head head;

	if (!read_request(s->requests, i, &head)) {
		count(unknown_requests);
		return 0;
	}
	switch (head.opcode) {
	case IOCB_CMD_PREAD:
		atomic_add(&s->read, requested(&head));
		break;
	case IOCB_CMD_PWRITE:
		atomic_add(&s->written, requested(&head));
		break;
	case IOCB_CMD_PREADV:
		atomic_add(&s->read, requested_vectors(&head, s));
		break;
	case IOCB_CMD_PWRITEV:
		atomic_add(&s->written, requested_vectors(&head, s));
		break;
	}
	return 0;
}

/* At the return of libaio's io_submit(), which says how many requests the kernel accepted. */
SEC("?uretprobe")
int libaio_submitted(struct pt_regs *ctx)
{
	int n = PT_REGS_RC(ctx);
	struct submission s = {0};
	struct call call;

	have_own_stack(ctx);
	if (!pop_call(&call) || n <= 0)
		return 0;
	s.requests = call.arg[2];
	if (n > MAX_LOOKS)
		count(unknown_requests);
	bpf_loop(n < MAX_LOOKS ? n : MAX_LOOKS, add_request, &s, 0);
	account(current_tgid(), s.read, s.written);
	return 0;
}
