/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * gpu_ledger.bpf.h - what is allocated on GPUs, one by one: for gpu_call.bpf.c, which is loaded
 * with the first library of a GPU. The maps are made with it.
 */
#ifndef QPROF_GPU_LEDGER_BPF_H
#define QPROF_GPU_LEDGER_BPF_H

#include "args.bpf.h"
#include "gpu.bpf.h"

enum {
	MAX_GPU_ALLOCATIONS = 1 << 20, /* at a time */
	MAX_GPU_CONTEXTS = 4096,
	MAX_GPU_THREADS = 16384,
	MAX_CONTEXT_DEPTH = 8,
	MAX_LEVELS = 20, /* of a mipmapped array */
};

#define MAX_GPU_BYTES (1ULL << 43) /* of one: MAX_GPU_ALLOCATIONS of them are 2^63 */

/* By process and by the program that it runs. */
struct gpu_key {
	u64 started_ns;
	u32 tgid;
	u32 space; /* enum wire_gpu_space, and above it the generation */
	u64 at;	   /* address, handle or number */
};

/* Something that was allocated; or what is known of a pool, an agent or a device. */
struct gpu_live {
	u64 bytes;
	u64 context; /* that it goes with; 0: none */
	u64 serial;  /* of that context: an address is used again */
	u64 memory;  /* of a handle and of a mapping: number in WIRE_GPU_MEMORY */
	u32 place;
	/* Of a handle: how often it was given. Of memory: handles and mappings. Of the host's
	 * memory that HSA locks: how often it was locked again. */
	u32 refs;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_GPU_ALLOCATIONS);
	__type(key, struct gpu_key);
	__type(value, struct gpu_live);
} gpu_ledger __weak SEC(".maps");

/* What was allocated in it is freed with it, however much that is: entries of the ledger that name
 * a context of another serial, or none that is there, are void. */
struct gpu_context {
	u64 serial;
	s64 held, pinned; /* bytes */
	u32 place;
	u32 retained; /* of a primary context */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_GPU_CONTEXTS);
	__type(key, struct gpu_key);
	__type(value, struct gpu_context);
} gpu_contexts __weak SEC(".maps");

/* What a call has freed, which comes back if it fails. */
enum gpu_taken {
	TAKEN_NOTHING = 0,
	TAKEN_OUT = 1,	  /* of the ledger: see `live` */
	TAKEN_A_LOCK = 2, /* of several */
};

/* A call that has begun: the outermost of its thread. */
struct gpu_call {
	u64 stack; /* where it ended */
	u64 arg[WIRE_GPU_ARGS];
	u32 call;  /* index of the function */
	u32 taken; /* enum gpu_taken */
	struct gpu_live live;
	struct gpu_context context; /* the same of a context */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_GPU_THREADS);
	__type(key, u64);
	__type(value, struct gpu_call);
} gpu_calls __weak SEC(".maps");

/* What a thread uses. */
struct gpu_thread {
	u64 generation; /* of the process */
	u64 agent;	/* that HSA tells of; 0: none */
	u32 depth;	/* of context; the last one is used */
	u32 reserved;
	u64 context[MAX_CONTEXT_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_GPU_THREADS);
	__type(key, u64);
	__type(value, struct gpu_thread);
} gpu_threads __weak SEC(".maps");

/* The loader fills these. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_GPU_CALLS);
	__type(key, u32);
	__type(value, struct wire_gpu_call);
} gpu_functions __weak SEC(".maps");

struct gpu_name {
	char text[WIRE_GPU_NAME_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WIRE_GPU_CALLS);
	__type(key, struct gpu_name);
	__type(value, u32);
} gpu_names __weak SEC(".maps");

struct gpu_hit {
	struct proc *proc;
	struct wire_gpu_sums *own, *tree;
	const struct wire_gpu_call *site;
	struct gpu_call *call;
	u64 id; /* of the thread */
};

static const struct wire_gpu_sums no_sums;
static const struct gpu_thread no_thread;

/* ---- Who calls what ---------------------------------------------------------------------------
 */

/* Returns false if nobody counts for the process. */
static __always_inline bool find_caller(struct gpu_hit *h, u32 call)
{
	struct gpu_process_key key = {};
	u32 job;

	h->site = bpf_map_lookup_elem(&gpu_functions, &call);
	h->proc = find_proc(h->id >> 32);
	if (!h->site || !h->proc || h->proc->waiting)
		return false;
	job = h->proc->job;
	h->own = gpu_of_process(h->proc);
	h->tree = gpu_of_tree(job);
	if (h->own && h->tree)
		return true;
	gpu_used = 1;
	key.started_ns = h->proc->started_ns;
	key.tgid = h->proc->tgid;
	bpf_map_update_elem(&gpu_processes, &key, &no_sums, BPF_NOEXIST);
	bpf_map_update_elem(&gpu_trees, &job, &no_sums, BPF_NOEXIST);
	h->own = gpu_of_process(h->proc);
	h->tree = gpu_of_tree(job);
	if (h->own && h->tree)
		return true;
	count(gpu.unkept);
	return false;
}

static __always_inline struct gpu_key key_of(const struct gpu_hit *h, u32 space, u64 at)
{
	return (struct gpu_key){
		.started_ns = h->proc->started_ns,
		.tgid = h->proc->tgid,
		.space = space | (u32)h->own->generation << 8,
		.at = at,
	};
}

static __always_inline u64 argument(const struct gpu_hit *h, u32 i)
{
	return i < WIRE_GPU_ARGS ? h->call->arg[i] : 0;
}

static __always_inline u64 key_argument(const struct gpu_hit *h)
{
	return argument(h, h->site->key);
}

/* Reads what the call has just written, or its caller before it. May sleep. */
static __always_inline bool read_user(void *to, u32 size, u64 at)
{
	return at && (!bpf_probe_read_user(to, size, (void *)at) || read_by_fault(to, size, at));
}

/* Returns what the call wrote to *key, or 0. */
static __always_inline u64 answer(const struct gpu_hit *h)
{
	u64 value = 0;

	if (!read_user(&value, sizeof(value), key_argument(h)))
		count(gpu.unkept);
	return value;
}

static __always_inline struct gpu_thread *thread_of(const struct gpu_hit *h)
{
	struct gpu_thread *thread = bpf_map_lookup_elem(&gpu_threads, &h->id);

	if (!thread) {
		bpf_map_update_elem(&gpu_threads, &h->id, &no_thread, BPF_ANY);
		thread = bpf_map_lookup_elem(&gpu_threads, &h->id);
	}
	if (thread && thread->generation != h->own->generation) {
		*thread = no_thread;
		thread->generation = h->own->generation;
	}
	return thread;
}

/* The mask is for the verifier of 6.1: callers have checked the number. */
static __always_inline u64 *context_slot(struct gpu_thread *thread, u32 i)
{
	barrier_var(i);
	return &thread->context[i & (MAX_CONTEXT_DEPTH - 1)];
}

/* ---- The ledger -------------------------------------------------------------------------------
 */

static __always_inline struct gpu_context *context_at(const struct gpu_hit *h, u64 at)
{
	const struct gpu_key key = key_of(h, 0, at);

	return at ? bpf_map_lookup_elem(&gpu_contexts, &key) : NULL;
}

/* Counts bytes, which may be below 0, of an entry. */
static __noinline int add_bytes(const struct gpu_hit *h, const struct gpu_live *live, s64 bytes)
{
	struct gpu_context *context = context_at(h, live->context);
	const u32 place = live->place;

	if (place >= WIRE_GPU_PLACES)
		return 0;
	if (context && context->serial == live->serial)
		atomic_add(place == WIRE_GPU_PINNED ? &context->pinned : &context->held, bytes);
	atomic_add(&h->tree->changes, 1);
	add_to_sum(&h->own->at[place], bytes);
	add_to_sum(&h->tree->at[place], bytes);
	if (place == WIRE_GPU_PINNED)
		return 0;
	count_process(h->own, h->tree);
	add_to_sum(&h->own->at[WIRE_GPU_ALL], bytes);
	add_to_tree(h->tree, bytes);
	return 0;
}

/* Returns true if it was freed with its context. */
static __always_inline bool is_void(const struct gpu_hit *h, const struct gpu_live *live)
{
	const struct gpu_context *context = context_at(h, live->context);

	return live->context && (!context || context->serial != live->serial);
}

/* Takes an entry out of the ledger. Returns false if there is none. */
static __noinline bool take(const struct gpu_hit *h, u32 space, u64 at, struct gpu_live *taken)
{
	const struct gpu_key key = key_of(h, space, at);
	const struct gpu_live *live = bpf_map_lookup_elem(&gpu_ledger, &key);

	if (!live)
		return false;
	*taken = *live;
	if (bpf_map_delete_elem(&gpu_ledger, &key))
		return false; /* another thread was faster */
	if (is_void(h, taken))
		return false;
	add_bytes(h, taken, -(s64)taken->bytes);
	return true;
}

/* Sums are of 64 bits, and a made-up library may say what it likes. */
static __noinline int put(const struct gpu_hit *h, u32 space, u64 at, const struct gpu_live *live)
{
	const struct gpu_key key = key_of(h, space, at);

	if (live->bytes > MAX_GPU_BYTES || bpf_map_update_elem(&gpu_ledger, &key, live, BPF_ANY)) {
		count(gpu.unkept);
		return 1;
	}
	add_bytes(h, live, live->bytes);
	return 0;
}

/* ---- How much, and where ----------------------------------------------------------------------
 */

/* CUarray_format. Others are of compressed or of several planes. */
static __always_inline u64 format_bytes(u32 format)
{
	switch (format) {
	case 0x01:
	case 0x08:
		return 1;
	case 0x02:
	case 0x09:
	case 0x10:
		return 2;
	case 0x03:
	case 0x0a:
	case 0x20:
		return 4;
	default:
		return 0;
	}
}

/* Returns ~0 for more than MAX_GPU_BYTES, which stays so: programs may say anything. */
static __always_inline u64 product(u64 a, u64 b)
{
	return a && b > MAX_GPU_BYTES / a ? ~0ull : a * b;
}

struct array_shape {
	u64 width, height, depth;
	u32 format, channels;
};

static __always_inline u64 at_least_1(u64 n)
{
	return n ? n : 1;
}

static __noinline u64 array_bytes(const struct gpu_hit *h)
{
	const u64 at = argument(h, h->site->size);
	struct array_shape shape = {};
	u64 levels = 1, elements = 0, more;
	bool known;

	if (h->site->how == WIRE_GPU_SIZE_ARRAY) {
		known = read_user(&shape, 16, at) && read_user(&shape.format, 8, at + 16);
	} else {
		known = read_user(&shape, sizeof(shape), at);
		if (h->site->how == WIRE_GPU_SIZE_MIPMAPPED)
			levels = argument(h, 2);
	}
	_Pragma("clang loop unroll(disable)") for (u32 i = 0; i < MAX_LEVELS; i++)
	{
		if (i >= levels)
			break;
		more = product(at_least_1(shape.width >> i), at_least_1(shape.height >> i));
		more = product(more, at_least_1(shape.depth >> i));
		elements =
			elements > MAX_GPU_BYTES || more > MAX_GPU_BYTES ? ~0ull : elements + more;
	}
	count(gpu.estimated);
	return known ? product(product(elements, format_bytes(shape.format)), shape.channels) : 0;
}

static __noinline u64 bytes_of(const struct gpu_hit *h, bool failed)
{
	const u64 size = argument(h, h->site->size);
	u64 pitch = 0;

	switch (h->site->how) {
	case WIRE_GPU_SIZE_ARG:
		return size;
	case WIRE_GPU_SIZE_PITCH:
		if (failed || !read_user(&pitch, sizeof(pitch), argument(h, 1)))
			pitch = argument(h, 2);
		return product(size, pitch);
	case WIRE_GPU_SIZE_NONE:
		return 0;
	default:
		return array_bytes(h);
	}
}

static __always_inline u32 place_of_device(u64 device)
{
	return device < WIRE_GPUS ? WIRE_GPU_DEVICE + (u32)device : WIRE_GPU_UNKNOWN;
}

/* CUmemAllocationProp and CUmemPoolProps have a CUmemLocation behind two words of 4 bytes. */
static __always_inline u32 place_of_location(u64 at)
{
	enum { ON_DEVICE = 1, ON_HOST = 2, ON_NODE_OF_THREAD = 4 };
	struct {
		u32 type, id;
	} location = {};

	if (!read_user(&location, sizeof(location), at + 8))
		return WIRE_GPU_UNKNOWN;
	if (location.type >= ON_HOST && location.type <= ON_NODE_OF_THREAD)
		return WIRE_GPU_PINNED;
	return location.type == ON_DEVICE ? place_of_device(location.id) : WIRE_GPU_UNKNOWN;
}

static __always_inline u32 known_place(const struct gpu_hit *h, u32 space, u64 at)
{
	const struct gpu_key key = key_of(h, space, at);
	const struct gpu_live *live = bpf_map_lookup_elem(&gpu_ledger, &key);

	return live ? live->place : WIRE_GPU_UNKNOWN;
}

static __always_inline u64 current_context(const struct gpu_hit *h)
{
	struct gpu_thread *thread = thread_of(h);
	const u32 depth = thread ? thread->depth : 0;

	return depth && depth <= MAX_CONTEXT_DEPTH ? *context_slot(thread, depth - 1) : 0;
}

/* Says where the call allocates, and with which context that goes. */
static __noinline int find_place(const struct gpu_hit *h, struct gpu_live *live)
{
	const u64 from = argument(h, h->site->from), at = current_context(h);
	const struct gpu_context *context;

	live->place = WIRE_GPU_UNKNOWN;
	switch (h->site->where) {
	case WIRE_GPU_AT_LOCATION:
		live->place = place_of_location(from);
		return 0;
	case WIRE_GPU_AT_POOL:
		live->place = known_place(h, WIRE_GPU_POOLS_OF, from);
		return 0;
	case WIRE_GPU_AT_DEVICE:
		live->place = place_of_device((u32)from);
		return 0;
	default:
		break;
	}
	context = context_at(h, at);
	if (context) {
		live->context = at;
		live->serial = context->serial;
		live->place = context->place;
	}
	if (h->site->where == WIRE_GPU_AT_HOST)
		live->place = WIRE_GPU_PINNED;
	return 0;
}

#endif
