/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vmlinux.h - the kernel types that the BPF side touches, and nothing more.
 *
 * Not a dump: each struct names only the members that are read, and CO-RE finds them in the running
 * kernel at load time. Where a member changed over time there is a flavour (___since or ___old; the
 * loader ignores the suffix) with the kernel and commit it belongs to; the code asks for what
 * exists with bpf_core_field_exists(), never for a version.
 */
/* The name of the guard tells libbpf's bpf_tracing.h that registers have the kernel's names. */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef signed short __s16;
typedef unsigned int __u32;
typedef signed int __s32;
typedef unsigned long long __u64;
typedef signed long long __s64;
typedef __u8 u8;
typedef __u16 u16;
typedef __s16 s16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
typedef _Bool bool;
typedef int pid_t;
/* For bpf_helper_defs.h, which speaks of network types that nothing here uses. */
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
#define true 1
#define false 0
#define NULL ((void *)0)

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1 << 10,
};

#define BPF_F_CURRENT_CPU 0xffffffffULL

enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next, *prev;
};

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	s64 counter;
} atomic64_t;

/* Begins with an int that is not 0 while it is held: struct qspinlock on x86-64 and arm64. */
typedef struct raw_spinlock {
} raw_spinlock_t;

/* rss_stat[4] from 6.2 (f1a7941243c1 "mm: convert mm's rss stats into percpu_counter") */
struct percpu_counter {
	raw_spinlock_t lock;
	s64 count;
	s32 *counters; /* __percpu */
};

enum { NR_MM_COUNTERS = 4 };

struct file;
struct kioctx_table;

/* Where the kernel has the place to which functions return that have return probes. */
struct xol_area {
	unsigned long vaddr;
};

struct uprobes_state {
	struct xol_area *xol_area;
};

/* Without CONFIG_PREEMPT_RT, which has another one. */
struct rw_semaphore {
	atomic64_t count, owner;
};

struct task_struct;

/* From 6.1 on: the tree of a process's mappings. */
struct maple_tree {
	void *ma_root;
};

struct maple_range_64 {
	unsigned long pivot[1];
	void *slot[1];
};

struct maple_arange_64 {
	unsigned long pivot[1];
	void *slot[1];
};

struct mm_struct {
	struct rw_semaphore mmap_lock;
	struct maple_tree mm_mt;
	struct task_struct *owner; /* CONFIG_MEMCG */
	struct percpu_counter rss_stat[NR_MM_COUNTERS];
	atomic_t mm_users;
	unsigned long start_code, arg_start, arg_end;
	unsigned long exec_vm, total_vm, data_vm, locked_vm;
	int map_count;
	unsigned long start_stack, env_end;
	struct file *exe_file;
	struct kioctx_table *ioctx_table;
	struct uprobes_state uprobes_state;
	unsigned long saved_auxv[1];
	atomic64_t hugetlb_usage; /* CONFIG_HUGETLB_PAGE */
	unsigned long flags;
};

/* From 6.18 on. */
typedef struct {
	unsigned long __mm_flags[1];
} mm_flags_t___bitmap;

struct mm_struct___bitmap {
	mm_flags_t___bitmap flags;
};

/* Before 6.2. A thread keeps what it did in up to 64 page faults to itself (SPLIT_RSS_COUNTING). */
struct mm_rss_stat___old {
	atomic64_t count[NR_MM_COUNTERS];
};

struct mm_struct___old {
	struct mm_rss_stat___old rss_stat;
};

struct task_rss_stat___old {
	int count[NR_MM_COUNTERS];
};

struct task_struct___old {
	struct task_rss_stat___old rss_stat;
};

/* CONFIG_TASK_XACCT gives the first two, CONFIG_TASK_IO_ACCOUNTING the rest. */
struct task_io_accounting {
	u64 rchar, wchar;
	u64 read_bytes, write_bytes, cancelled_write_bytes;
};

struct task_struct;

/* kernel/sched/sched.h. In ns of sched_clock_cpu(), as of the last update of this run queue. */
struct rq {
	u64 clock, clock_task; /* the second without interrupts and what a hypervisor took */
	struct task_struct *curr;
};

struct cfs_rq {
	struct rq *rq; /* CONFIG_FAIR_GROUP_SCHED */
	/* With CONFIG_CFS_BANDWIDTH, since 6.6: for how long it was stopped, by whichever cgroup's
	 * quota, and since when it is; 0: it is not. */
	u64 throttled_clock_self, throttled_clock_self_time;
};

struct sched_entity {
	u64 exec_start, sum_exec_runtime;
	struct cfs_rq *cfs_rq; /* CONFIG_FAIR_GROUP_SCHED */
};

/* The kernel's has an atomic_long_t. (Not empty: clang 19 crashes at the address of such a member.)
 */
struct local64 {
	s64 value;
};

struct hw_perf_event {
	struct local64 prev_count;
};

struct perf_event {
	struct local64 count;
	struct hw_perf_event hw;
};

struct pid_namespace;

struct upid {
	int nr;
	struct pid_namespace *ns;
};

/* A process has a number in each pid namespace down to its own: numbers[0..level]. */
struct pid {
	unsigned int level;
	struct upid numbers[1]; /* without a size from 6.5 on */
};

/* linux/pid.h */
enum pid_type { PIDTYPE_PID, PIDTYPE_TGID, PIDTYPE_PGID, PIDTYPE_SID, PIDTYPE_MAX };

enum {
	RLIMIT_DATA = 2,
	RLIMIT_STACK = 3,
	RLIMIT_MEMLOCK = 8,
	RLIMIT_AS = 9,
	RLIM_NLIMITS = 16,
};

struct rlimit {
	unsigned long rlim_cur;
};

struct signal_struct {
	atomic_t live;
	int nr_threads;
	struct pid *pids[PIDTYPE_MAX];
	struct list_head thread_head;
	struct rlimit rlim[RLIM_NLIMITS];
	int group_exit_code;
	unsigned int flags;
};

struct block_device;

struct gendisk {
	struct block_device *part0; /* the whole disk */
	char disk_name[32];
};

struct block_device {
	struct gendisk *bd_disk;
	u32 bd_dev;
};

struct super_block {
	u32 s_dev;
	unsigned long s_iflags;
	unsigned long s_magic;
	struct block_device *s_bdev;
};

struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

struct address_space {
	struct inode *host;
	struct rb_root_cached i_mmap;
};

struct hlist_node {
	struct hlist_node *next, **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

typedef struct {
	u32 val;
} kuid_t;

typedef struct {
	u32 val;
} kgid_t;

struct inode {
	u16 i_mode;
	kuid_t i_uid;
	kgid_t i_gid;
	struct hlist_head i_dentry;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	u32 i_nlink;
	struct list_head i_sb_list;
	u32 i_generation;
	s64 i_size;
};

struct timespec64 {
	s64 tv_sec;
	long tv_nsec;
};

struct inode___old {
	struct timespec64 i_ctime;
};

/* From 6.6 (13bc24457850 "fs: rename i_ctime field to __i_ctime") */
struct inode___since_6_6 {
	struct timespec64 __i_ctime;
};

/* From 6.11 (3aa63a569c64 "fs: switch timespec64 fields in inode to discrete integers") */
struct inode___since_6_11 {
	s64 i_ctime_sec;
	u32 i_ctime_nsec;
};

struct vfsmount {
	int mnt_flags;
};

struct qstr {
	u64 hash_len;
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	union {
		struct hlist_node d_alias; /* in its inode's i_dentry */
	} d_u;
};

/* fs/mount.h */
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	unsigned int f_mode;
	struct path f_path;
	void *private_data;
};

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags, vm_pgoff;
	struct mm_struct *vm_mm;
	struct {
		struct rb_node rb;
	} shared;
	struct file *vm_file;
	struct anon_vma *anon_vma; /* only told from NULL */
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* Until 6.3 two numbers of 32 bits, the low ones first (f122a08b197d). */
typedef struct {
	u64 val;
} kernel_cap_t;

struct user_namespace {
	int level;
};

struct cred {
	kuid_t uid, suid, euid, fsuid;
	kgid_t gid, sgid, egid, fsgid;
	kernel_cap_t cap_permitted, cap_effective;
	struct user_namespace *user_ns;
};

struct kernfs_node {
	struct kernfs_node *__parent; /* from 6.15 */
	const char *name;
	u64 id;
};

/* Until 6.14 (633488947ef6 "kernfs: Use RCU to access kernfs_node::parent") */
struct kernfs_node___old {
	struct kernfs_node___old *parent;
};

struct cgroup {
	struct kernfs_node *kn;
};

enum cgroup_subsys_id { memory_cgrp_id };

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
	u64 serial_nr; /* no other ever has the same */
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp;
};

struct sched_info {
	unsigned long long run_delay;	 /* with CONFIG_SCHED_INFO */
	unsigned long long last_arrival; /* when it last got a CPU */
	unsigned long long last_queued;	 /* since when it is ready, without a CPU; 0: it is not */
};

/* In pages. */
struct page_counter {
	atomic64_t usage; /* atomic_long_t */
	unsigned long max;
	unsigned long watermark; /* the highest usage */
};

struct mem_cgroup {
	struct cgroup_subsys_state css; /* first in each kernel */
	struct page_counter memory;
	struct page_counter memsw; /* v1; in a union with `swap` of v2 */
	bool oom_lock;		   /* from 6.12 on only with CONFIG_MEMCG_V1 */
};

union __sifields {
	struct {
		void *_addr;
	} _sigfault;
};

struct kernel_siginfo {
	int si_code;
	union __sifields _sifields;
};

struct sigaction {
	void *sa_handler;
};

struct k_sigaction {
	struct sigaction sa;
};

struct sighand_struct {
	struct k_sigaction action[1];
};

typedef struct {
	unsigned long sig[1];
} sigset_t;

struct ns_common {
	unsigned int inum;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
};

struct thread_info {
	u32 cpu;
	unsigned long flags;
	u32 status; /* on x86 */
};

struct thread_struct {
	unsigned long fsbase; /* on x86-64 */
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state; /* `state` until 5.13 */
	unsigned int flags;
	unsigned int in_iowait : 1;
	int on_cpu;
	struct sched_entity se;
	struct mm_struct *mm;
	int exit_state, exit_code;
	pid_t pid, tgid;
	struct pid *thread_pid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct list_head thread_node;
	u64 start_time, start_boottime;
	struct sched_info sched_info;
	u64 utime, stime;
	unsigned long nvcsw, nivcsw;
	unsigned long min_flt, maj_flt;
	char comm[16];
	const struct cred *real_cred, *cred;
	struct css_set *cgroups;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	sigset_t blocked;
	struct task_io_accounting ioac;
	u64 self_exec_id;
	struct bio_list *bio_list;
	struct thread_struct thread;
};

struct bpf_map {
	u32 id;
};

typedef int (*bpf_task_work_callback_t)(struct bpf_map *map, void *key, void *value);

/* The kernel's side of a BPF_MAP_TYPE_PERCPU_ARRAY, up to the per-CPU pointer of its first element.
 */
struct bpf_array {
	void *pptrs[1];
};

struct io_uring_task {
	struct task_struct *task;
};

struct io_cqe {
	u64 user_data;
	int fd; /* until the request has completed */
};

/* Files that are registered with a ring, from 6.13 */
struct io_rsrc_node {
	unsigned long file_ptr;
};

struct io_rsrc_data {
	unsigned int nr;
	struct io_rsrc_node **nodes;
};

struct io_file_table {
	struct io_rsrc_data data;
};

struct io_ring_ctx {
	unsigned int compat : 1;
	struct io_file_table file_table;
};

/* Until 6.12. */
struct io_file_table___until_6_12 {
	void *files;
};

struct io_ring_ctx___until_6_12 {
	struct io_file_table___until_6_12 file_table;
	unsigned int nr_user_files;
};

struct io_kiocb {
	u8 opcode;
	u32 flags; /* the low half, from 6.9 (4bcb982cce74 "io_uring: expand main struct io_kiocb
		    * flags to 64-bits") */
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
	struct task_struct *task; /* until 6.12 */
};

/* From 6.13 (f03baece0802 "io_uring: move cancelations to be io_uring_task based") */
struct io_kiocb___since_6_13 {
	u8 opcode;
	struct io_uring_task *tctx;
};

struct io_uring_cqe {
	u64 user_data;
	s32 res;
	u32 flags;
};

/* What a request for a read or write, or for a splice, begins with. */
struct io_rw {
	u64 addr;
	u32 len;
};

struct io_splice {
	u64 len;
	int splice_fd_in;
	unsigned int flags;
};

struct io_open {
	u32 file_slot;
};

struct io_close {
	int fd;
	u32 file_slot;
};

/* fs/aio.c */
struct kioctx {
	unsigned long user_id;
};

struct kioctx_table {
	unsigned int nr;
	struct kioctx *table[];
};

struct kiocb {
	struct file *ki_filp;
	s64 ki_pos;
	int ki_flags;
};

struct aio_kiocb {
	struct kioctx *ki_ctx;
};

/* fs/iomap/direct-io.c */
struct iomap_dio {
	struct kiocb *iocb;
	s64 size; /* of what was submitted */
};

enum pageflags {
	PG_swapcache = 1, /* each kernel has a number of its own */
	PG_swapbacked = 2,
	PG_head = 3,
	PG_uptodate = 4,
	PG_writeback = 5,
};

enum req_flag_bits {
	__REQ_META = 1,
};

/* What a folio has of its own is at the same place in its first page. */
struct page {
	unsigned long compound_head; /* of the others, with bit 0 set: the address of the first */
};

struct folio {
	struct address_space *mapping; /* with bits set: of anonymous memory */
	unsigned long index;
	unsigned int _nr_pages; /* of a large one */
};

/* Until 6.14 */
struct folio___old {
	unsigned int _folio_nr_pages;
};

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len, bv_offset;
};

struct bvec_iter {
	unsigned int bi_size, bi_idx;
};

struct bio {
	struct bio *bi_next; /* of the same request */
	struct block_device *bi_bdev;
	u32 bi_opf;
	struct bvec_iter bi_iter;
	void *bi_private;
	struct bio_vec *bi_io_vec;
};

/* Of a block device. io_uring's has the plain name here (uring.bpf.c). */
struct request___block {
	struct bio *bio; /* the first that has not ended */
};

struct request_queue;

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_vma {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	struct vm_area_struct *vma;
};

#pragma clang attribute pop

/* Part of a map's value, so not relocated: uapi/linux/bpf.h, from 6.18. */
struct bpf_task_work {
	__u64 opaque;
};

struct bpf_timer {
	u64 opaque[2];
};

/* The registers at a probe, not relocated: uprobes get the real struct pt_regs. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	unsigned long ip, cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31], sp, pc, pstate;
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
		struct {
			u64 regs[31], sp, pc, pstate;
		};
	};
	u64 orig_x0;
	s32 syscallno;
};
#else
#error "say how this architecture passes registers to a uprobe"
#endif

/* linux/sched.h and linux/sched/signal.h */
#define PF_EXITING	     0x00000004
#define PF_FORKNOEXEC	     0x00000040
#define PF_KTHREAD	     0x00200000
#define SIGNAL_GROUP_EXIT    0x00000004
#define TASK_RUNNING	     0x00000000
#define TASK_UNINTERRUPTIBLE 0x00000002
#define TASK_WAKING	     0x00000200

/* uapi/linux/time.h, uapi/linux/bpf.h */
#define CLOCK_MONOTONIC	    1
#define BPF_F_TIMER_CPU_PIN 2 /* from d6247ecb6c1e on, Linux 6.7 */

/* linux/mm.h, uapi/linux/stat.h, linux/mount.h, linux/fs.h */
#define VM_READ		0x00000001
#define VM_WRITE	0x00000002
#define VM_EXEC		0x00000004
#define VM_SHARED	0x00000008
#define S_IFMT		00170000
#define S_IFREG		0100000
#define FMODE_WRITE	0x2
#define MNT_READONLY	0x40
#define I_CTIME_QUERIED (1u << 31)

#endif
