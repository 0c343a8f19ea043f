// SPDX-License-Identifier: GPL-2.0-only
/*
 * io.bpf.c - the bytes that the kernel's own account (usage.bpf.h) leaves out: rchar and wchar do
 * not count splice(), tee(), vmsplice(), process_vm_readv() and process_vm_writev(). io_uring is in
 * uring.bpf.c, native AIO in aio.bpf.c.
 *
 * Nothing here runs for a process that does not make these calls. A program sees a call at the end
 * of the kernel's function (fexit). Where that cannot be traced, it sees the call at the return of
 * libc's function, if the user wants it: a probe there makes every process that maps libc copy a
 * page of it, and each fork copy the page tables of that mapping. A hook on every system call would
 * see the calls, too, and slow every process on the machine.
 *
 * Example: splice() of 64 KiB from a file to a pipe counts as 65536 read and 65536 written.
 */
#include "io.bpf.h"
#include "own_stack.bpf.h"

struct vectors {
	u64 at, bytes;
	u32 bits;
};

static long add_vector(u32 i, struct vectors *vectors)
{
	struct {
		u64 base, length;
	} wide = {0};
	struct {
		u32 base, length;
	} narrow = {0};
	bool is_narrow = vectors->bits == 32;
	long err = is_narrow ? bpf_probe_read_user(&narrow, sizeof(narrow),
						   (void *)(vectors->at + i * sizeof(narrow)))
			     : bpf_probe_read_user(&wide, sizeof(wide),
						   (void *)(vectors->at + i * sizeof(wide)));

	if (err) {
		count(unknown_requests);
		return 1;
	}
	vectors->bytes += is_narrow ? narrow.length : wide.length;
	return 0;
}

__attribute__((noinline)) u64 vector_bytes(u64 at, u32 n, u32 bits)
{
	struct vectors vectors = {.at = at, .bits = bits};

	bpf_loop(n < MAX_VECTORS ? n : MAX_VECTORS, add_vector, &vectors, 0);
	return vectors.bytes < MAX_TRANSFER ? vectors.bytes : MAX_TRANSFER;
}

/* Returns true if vmsplice() writes to the pipe: it reads only from a pipe that it cannot write. */
static __always_inline bool fills_pipe(u32 fd)
{
	struct task_struct *self = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(self, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd);
	struct file *file = NULL;

	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), &files[fd]);
	if (file)
		return BPF_CORE_READ(file, f_mode) & FMODE_WRITE;
	count(ambiguous_requests); /* another thread has closed it meanwhile */
	return true;
}

static __always_inline int copied(long bytes)
{
	if (bytes > 0)
		account(current_tgid(), bytes, bytes);
	return 0;
}

static __always_inline int vmspliced(u32 fd, long bytes)
{
	u32 tgid = current_tgid();

	if (bytes <= 0 || !find_proc(tgid))
		return 0;
	if (fills_pipe(fd))
		account(tgid, 0, bytes);
	else
		account(tgid, bytes, 0);
	return 0;
}

/* Memory of another process counts like read(2) and write(2) of its /proc/PID/mem. */
static __always_inline int read_memory(long bytes)
{
	if (bytes > 0)
		account(current_tgid(), bytes, 0);
	return 0;
}

static __always_inline int wrote_memory(long bytes)
{
	if (bytes > 0)
		account(current_tgid(), 0, bytes);
	return 0;
}

/*
 * The loader loads the programs whose functions the kernel has. On x86-64, system calls of 32-bit
 * programs have functions of their own, and their first argument in another register.
 */
#define AT_END(entry, call, name, first, counted)                                                  \
	SEC("?fexit/" entry call)                                                                  \
	int BPF_PROG(name, const struct pt_regs *regs, long bytes)                                 \
	{                                                                                          \
		u64 arg = 0;                                                                       \
                                                                                                   \
		bpf_probe_read_kernel(&arg, sizeof(arg), &regs->first);                            \
		return counted;                                                                    \
	}

#define AT_END_OF_ALL(entry, suffix, first)                                                        \
	AT_END(entry, "splice", splice_##suffix, first, copied(bytes))                             \
	AT_END(entry, "tee", tee_##suffix, first, copied(bytes))                                   \
	AT_END(entry, "vmsplice", vmsplice_##suffix, first, vmspliced(arg, bytes))                 \
	AT_END(entry, "process_vm_readv", vm_read_##suffix, first, read_memory(bytes))             \
	AT_END(entry, "process_vm_writev", vm_write_##suffix, first, wrote_memory(bytes))

#if defined(__TARGET_ARCH_x86)
AT_END_OF_ALL("__x64_sys_", done, di)
AT_END_OF_ALL("__ia32_sys_", done_32, bx)
#else
AT_END_OF_ALL("__arm64_sys_", done, regs[0])
#endif

/* At the begin of a library's function whose return needs the arguments. */
SEC("?uprobe")
int library_call_begins(struct pt_regs *ctx)
{
	struct call call = {{PT_REGS_PARM1(ctx), PT_REGS_PARM2(ctx), PT_REGS_PARM3(ctx)}};
	u64 id = current_id();

	have_own_stack(ctx);
	if (find_proc(id >> 32) && bpf_map_update_elem(&calls, &id, &call, BPF_ANY))
		count(unknown_requests);
	return 0;
}

/* At the return of libc's splice() or tee(). */
SEC("?uretprobe")
int libc_splice_done(struct pt_regs *ctx)
{
	have_own_stack(ctx);
	return copied(PT_REGS_RC(ctx));
}

SEC("?uretprobe")
int libc_vmsplice_done(struct pt_regs *ctx)
{
	struct call call;

	have_own_stack(ctx);
	return pop_call(&call) ? vmspliced(call.arg[0], PT_REGS_RC(ctx)) : 0;
}

SEC("?uretprobe")
int libc_vm_read_done(struct pt_regs *ctx)
{
	have_own_stack(ctx);
	return read_memory(PT_REGS_RC(ctx));
}

SEC("?uretprobe")
int libc_vm_write_done(struct pt_regs *ctx)
{
	have_own_stack(ctx);
	return wrote_memory(PT_REGS_RC(ctx));
}
