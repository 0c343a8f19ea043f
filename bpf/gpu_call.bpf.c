// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpu_call.bpf.c - calls of the libraries by which programs allocate memory on GPUs, at their begin
 * and at their return: what a call has done is known when it returns. wire_gpu.h says what each
 * function does (struct wire_gpu_call). Loaded with the first such library.
 *
 * A function of the library may call another that is watched, and a program may have got the inner
 * one from cuGetProcAddress(). So the outermost call of a thread counts: calls within it end below
 * it on the stack. Example: cuMemAlloc_v2() is called with the stack ending at 7ffc10 and calls an
 * inner function with 7ffb80: that is within. A call at 7ffc10 or above is a new one, even if the
 * last was left by longjmp(); unless the last one has ended in a jump to it.
 *
 * What is freed leaves the ledger when the call begins, and comes back if it fails: before it
 * returns, another thread may be given the same address.
 */
#include "gpu_ledger.bpf.h"
#include "gpu_locks.bpf.h"
#include "gpu_pools.bpf.h"
#include "gpu_stack.bpf.h"
#include "gpu_wait.bpf.h"
#include "hold.bpf.h"
#include "pids.bpf.h"
#include "own_stack.bpf.h"
#include "sched_clock.bpf.h"

enum {
	MAX_NESTED = 1 << 20,	/* bytes of stack between a call and one within it */
	MAX_UNMAPPED = 1 << 20, /* mappings that a call unmaps */
};

u64 gpu_serials; /* given to contexts and to memory without address */

/* ---- Memory -----------------------------------------------------------------------------------
 */

/* The ring's second half is for all that cannot come in such numbers. */
static __noinline int refuse(const struct gpu_hit *h, s32 result)
{
	struct gpu_live live = {.bytes = bytes_of(h, true)};
	struct wire_gpu_refused *r = NULL;

	find_place(h, &live);
	if (wire_gpu_lacks_memory(h->site->vendor, result))
		h->own->refused = live.place + 1;
	if (!control_is_half_full())
		r = bpf_ringbuf_reserve(&control, sizeof(*r), 0);
	if (!r) {
		count(gpu.lost);
		return 0;
	}
	fill_header(&r->h, WIRE_GPU_REFUSED, sizeof(*r), h->proc->job, h->id >> 32, h->id,
		    h->proc->started_ns);
	r->bytes = live.bytes;
	r->place = live.place < WIRE_GPU_PLACES ? live.place : WIRE_GPU_UNKNOWN;
	r->held = h->tree->at[r->place < WIRE_GPU_PLACES ? r->place : 0].held;
	r->result = result;
	r->vendor = h->site->vendor;
	r->reserved = 0;
	submit(r);
	return 0;
}

/* What was refused before did not end the process. */
static __always_inline void note_given(const struct gpu_hit *h, const struct gpu_live *live)
{
	if (live->bytes && h->own->refused == live->place + 1)
		h->own->refused = 0;
}

static __noinline int allocated(const struct gpu_hit *h)
{
	const u64 at = h->site->does == WIRE_GPU_REGISTERS ? key_argument(h) : answer(h);
	struct gpu_live live = {}, before;

	if (!at)
		return 0;
	live.bytes = bytes_of(h, false);
	find_place(h, &live);
	note_given(h, &live);
	if (is_locked_again(h, at, &live))
		return 0;
	take(h, h->site->space, at, &before); /* if it was freed unseen, it is now */
	if (put(h, h->site->space, at, &live))
		return 0;
	tell_gpu_growth(&live);
	return 0;
}

static __noinline int freed(const struct gpu_hit *h, bool failed)
{
	struct gpu_call *call = h->call;

	if (failed && call->taken == TAKEN_A_LOCK)
		lock_again(h);
	else if (failed && call->taken)
		put(h, h->site->space, key_argument(h), &call->live);
	else if (!failed && !call->taken && key_argument(h))
		count(gpu.unknown_frees);
	return 0;
}

/* A handle or a mapping goes; without any, the memory does. */
static __noinline int drop_memory(const struct gpu_hit *h, u64 memory)
{
	const struct gpu_key key = key_of(h, WIRE_GPU_MEMORY, memory);
	struct gpu_live *live = bpf_map_lookup_elem(&gpu_ledger, &key), gone;

	if (live && atomic_add(&live->refs, -1) == 1)
		take(h, WIRE_GPU_MEMORY, memory, &gone);
	return 0;
}

static __always_inline bool keep_memory(const struct gpu_hit *h, u64 memory)
{
	const struct gpu_key key = key_of(h, WIRE_GPU_MEMORY, memory);
	struct gpu_live *live = bpf_map_lookup_elem(&gpu_ledger, &key);

	if (live)
		atomic_add(&live->refs, 1);
	return live;
}

/* A handle, or a mapping, of memory. Neither counts by itself. */
static __noinline int name_memory(const struct gpu_hit *h, u32 space, u64 at, u64 memory, u64 size)
{
	const struct gpu_key key = key_of(h, space, at);
	const struct gpu_live name = {
		.bytes = size, .memory = memory, .place = WIRE_GPU_PLACES, .refs = 1};

	if (bpf_map_update_elem(&gpu_ledger, &key, &name, BPF_ANY))
		count(gpu.unkept);
	return 0;
}

static __noinline int created(const struct gpu_hit *h)
{
	struct gpu_live live = {.refs = 1};
	const u64 handle = answer(h), memory = atomic_add(&gpu_serials, 1) + 1;

	if (!handle)
		return 0;
	live.bytes = bytes_of(h, false);
	find_place(h, &live);
	live.context = 0; /* it goes with none */
	note_given(h, &live);
	if (put(h, WIRE_GPU_MEMORY, memory, &live))
		return 0;
	tell_gpu_growth(&live);
	return name_memory(h, WIRE_GPU_HANDLES, handle, memory, 0);
}

static __noinline int retained(const struct gpu_hit *h)
{
	const struct gpu_key mapped = key_of(h, WIRE_GPU_MAPPED, argument(h, 1));
	const struct gpu_live *mapping = bpf_map_lookup_elem(&gpu_ledger, &mapped);
	const u64 handle = answer(h), memory = mapping ? mapping->memory : 0;
	const struct gpu_key key = key_of(h, WIRE_GPU_HANDLES, handle);
	struct gpu_live *live = bpf_map_lookup_elem(&gpu_ledger, &key);

	if (live) {
		if (keep_memory(h, live->memory))
			atomic_add(&live->refs, 1);
	} else if (memory && keep_memory(h, memory)) {
		name_memory(h, WIRE_GPU_HANDLES, handle, memory, 0);
	}
	return 0;
}

/* At the begin of the call. */
static __noinline int release(const struct gpu_hit *h)
{
	const struct gpu_key key = key_of(h, WIRE_GPU_HANDLES, key_argument(h));
	const struct gpu_key *at = &key;
	struct gpu_live *live = bpf_map_lookup_elem(&gpu_ledger, at);
	struct gpu_key memory;
	const struct gpu_live *of;

	if (!live)
		return 0;
	h->call->live = *live;
	memory = key_of(h, WIRE_GPU_MEMORY, live->memory);
	of = bpf_map_lookup_elem(&gpu_ledger, &memory);
	if (of) {
		h->call->live.bytes = of->bytes;
		h->call->live.place = of->place;
	}
	h->call->taken = TAKEN_OUT;
	if (atomic_add(&live->refs, -1) == 1)
		bpf_map_delete_elem(&gpu_ledger, at);
	return drop_memory(h, h->call->live.memory);
}

/* A release failed: the handle and its memory are as they were. */
static __noinline int undo_release(const struct gpu_hit *h)
{
	const struct gpu_live *taken = &h->call->live;
	const struct gpu_key key = key_of(h, WIRE_GPU_HANDLES, key_argument(h));
	struct gpu_live *live = bpf_map_lookup_elem(&gpu_ledger, &key);

	if (!keep_memory(h, taken->memory)) {
		const struct gpu_live memory = {
			.bytes = taken->bytes, .place = taken->place, .refs = 1};

		put(h, WIRE_GPU_MEMORY, taken->memory, &memory);
	}
	if (live)
		atomic_add(&live->refs, 1);
	else
		name_memory(h, WIRE_GPU_HANDLES, key_argument(h), taken->memory, 0);
	return 0;
}

static __noinline int mapped(const struct gpu_hit *h)
{
	const struct gpu_key key = key_of(h, WIRE_GPU_HANDLES, argument(h, 3));
	const struct gpu_live *handle = bpf_map_lookup_elem(&gpu_ledger, &key);

	if (!handle || !keep_memory(h, handle->memory))
		return 0;
	return name_memory(h, WIRE_GPU_MAPPED, key_argument(h), handle->memory,
			   argument(h, h->site->size));
}

struct unmapping {
	const struct gpu_hit *hit;
	u64 at, end;
};

static long unmap_next(u32 i, struct unmapping *u)
{
	const struct gpu_key key = key_of(u->hit, WIRE_GPU_MAPPED, u->at);
	const struct gpu_live *mapping = bpf_map_lookup_elem(&gpu_ledger, &key);
	u64 memory;

	if (u->at >= u->end || !mapping || !mapping->bytes)
		return 1;
	memory = mapping->memory;
	u->at += mapping->bytes;
	bpf_map_delete_elem(&gpu_ledger, &key);
	drop_memory(u->hit, memory);
	return 0;
}

/* One call may unmap several mappings that follow each other. */
static __noinline int unmapped(const struct gpu_hit *h)
{
	struct unmapping u = {.hit = h, .at = key_argument(h)};

	u.end = u.at + argument(h, h->site->size);
	bpf_loop(MAX_UNMAPPED, unmap_next, &u, 0);
	return 0;
}

/* ---- Contexts ---------------------------------------------------------------------------------
 */

static __always_inline void set_context(const struct gpu_hit *h, u64 at)
{
	struct gpu_thread *thread = thread_of(h);

	if (!thread)
		return;
	if (!thread->depth)
		thread->depth = 1;
	if (thread->depth <= MAX_CONTEXT_DEPTH)
		*context_slot(thread, thread->depth - 1) = at;
}

static __always_inline void push_context(const struct gpu_hit *h, u64 at)
{
	struct gpu_thread *thread = thread_of(h);

	if (!thread)
		return;
	if (thread->depth < MAX_CONTEXT_DEPTH)
		*context_slot(thread, thread->depth) = at;
	thread->depth++;
}

static __always_inline void pop_context(const struct gpu_hit *h)
{
	struct gpu_thread *thread = thread_of(h);

	if (thread && thread->depth)
		thread->depth--;
}

static __noinline int begin_context(const struct gpu_hit *h, u64 at, u64 device, u32 retained_now)
{
	const struct gpu_key key = key_of(h, 0, at);
	const struct gpu_context context = {
		.serial = atomic_add(&gpu_serials, 1) + 1,
		.place = place_of_device((u32)device),
		.retained = retained_now,
	};

	if (at && bpf_map_update_elem(&gpu_contexts, &key, &context, BPF_ANY))
		count(gpu.unkept);
	return 0;
}

static __noinline int primary_retained(const struct gpu_hit *h)
{
	const u64 at = answer(h), device = argument(h, h->site->from);
	struct gpu_context *context = context_at(h, at);

	if (context)
		atomic_add(&context->retained, 1);
	else
		begin_context(h, at, device, 1);
	return name_memory(h, WIRE_GPU_PRIMARY, (u32)device, at, 0);
}

/* Frees what was allocated in a context, or counts it again. */
static __noinline int add_context(const struct gpu_hit *h, s64 sign)
{
	struct gpu_live live = {.place = h->call->context.place};

	if (h->call->context.held)
		add_bytes(h, &live, sign * h->call->context.held);
	live.place = WIRE_GPU_PINNED;
	if (h->call->context.pinned)
		add_bytes(h, &live, sign * h->call->context.pinned);
	return 0;
}

/* At the begin of the call. */
static __noinline int end_context(const struct gpu_hit *h)
{
	const struct gpu_key primary = key_of(h, WIRE_GPU_PRIMARY, (u32)key_argument(h));
	const struct gpu_live *of_device = NULL;
	u64 at = key_argument(h);
	struct gpu_context *context;
	struct gpu_key key;

	if (h->site->does != WIRE_GPU_CONTEXT_ENDS) {
		of_device = bpf_map_lookup_elem(&gpu_ledger, &primary);
		at = of_device ? of_device->memory : 0;
	}
	context = context_at(h, at);
	if (!context)
		return 0;
	h->call->live.context = at;
	h->call->taken = TAKEN_OUT;
	if (h->site->does == WIRE_GPU_PRIMARY_RELEASED && atomic_add(&context->retained, -1) != 1) {
		h->call->context = (struct gpu_context){};
		return 0;
	}
	h->call->context = *context;
	add_context(h, -1);
	key = key_of(h, 0, at);
	if (h->site->does == WIRE_GPU_PRIMARY_RESET)
		begin_context(h, at, context->place - WIRE_GPU_DEVICE, context->retained);
	else
		bpf_map_delete_elem(&gpu_contexts, &key);
	return 0;
}

static __noinline int undo_end(const struct gpu_hit *h)
{
	const struct gpu_key key = key_of(h, 0, h->call->live.context);
	struct gpu_context *context = bpf_map_lookup_elem(&gpu_contexts, &key);

	if (h->call->context.serial) {
		if (h->site->does == WIRE_GPU_PRIMARY_RELEASED)
			h->call->context.retained = 1;
		bpf_map_update_elem(&gpu_contexts, &key, &h->call->context, BPF_ANY);
		add_context(h, 1);
	} else if (context) {
		atomic_add(&context->retained, 1);
	}
	return 0;
}

static __noinline int context_ended(const struct gpu_hit *h)
{
	if (h->site->does == WIRE_GPU_CONTEXT_ENDS && current_context(h) == key_argument(h))
		pop_context(h);
	return 0;
}

/* ---- Functions by name ------------------------------------------------------------------------
 */

/* A program was given the address of a function. It waits until that is watched. */
static __noinline int named(const struct gpu_hit *h, u64 ip)
{
	struct gpu_name name = {};
	struct wire_gpu_code *r;
	const u32 slot = h->proc->slot + config.max_processes;
	u64 address = 0, change;
	u32 *call;

	if (bpf_probe_read_user_str(name.text, sizeof(name.text), (void *)key_argument(h)) <= 0)
		return 0;
	call = bpf_map_lookup_elem(&gpu_names, &name);
	if (!call || !read_user(&address, sizeof(address), argument(h, 1)) || !address)
		return 0;
	r = bpf_ringbuf_reserve(&control, sizeof(*r), 0);
	if (!r) {
		count(lost_mapped);
		return 0;
	}
	change = atomic_add(&machine.changes, 1) + 1;
	fill_header(&r->h, WIRE_GPU_CODE, sizeof(*r), h->proc->job, h->id >> 32, h->id,
		    h->proc->started_ns);
	r->address = address;
	r->change = change;
	r->slot = slot;
	r->call = *call;
	bpf_ringbuf_submit(r, BPF_RB_FORCE_WAKEUP);
	if (is_of_run(h->proc))
		hold_until_searched(slot, change, ip);
	return 0;
}

/* ---- Probes -----------------------------------------------------------------------------------
 */

static __always_inline void read_call(struct pt_regs *ctx, struct gpu_call *call, u32 index)
{
	call->stack = PT_REGS_SP(ctx);
	call->call = index;
	call->arg[0] = PT_REGS_PARM1(ctx);
	call->arg[1] = PT_REGS_PARM2(ctx);
	call->arg[2] = PT_REGS_PARM3(ctx);
	call->arg[3] = PT_REGS_PARM4(ctx);
	call->arg[4] = PT_REGS_PARM5(ctx);
}

/* Inlined: on 6.1 the frames of all nested calls share 512 bytes. */
static __always_inline int begin_call(struct gpu_hit *h)
{
	struct gpu_call *call = h->call;

	switch (h->site->does) {
	case WIRE_GPU_FREES:
		if (drop_lock(h))
			call->taken = TAKEN_A_LOCK;
		else
			call->taken = take(h, h->site->space, key_argument(h), &call->live);
		return 0;
	case WIRE_GPU_RELEASES:
		return release(h);
	case WIRE_GPU_CONTEXT_ENDS:
	case WIRE_GPU_PRIMARY_RELEASED:
	case WIRE_GPU_PRIMARY_RESET:
		return end_context(h);
	default:
		return 0;
	}
}

/* Returns true if this call is within another that is watched, which began at `outer`; 0: none. */
static __always_inline bool is_within(u64 outer, u64 stack)
{
	return stack < outer && outer - stack < MAX_NESTED;
}

/*
 * Returns true if the outer call has ended in a jump to this one: then the kernel has put another
 * return address in the place of the caller's already, to see the outer return.
 */
static __always_inline bool is_handed_over(struct pt_regs *ctx, u64 outer, u64 stack)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 back = 0;

	if (outer != stack)
		return false;
#if defined(__TARGET_ARCH_x86)
	bpf_probe_read_user(&back, sizeof(back), (void *)stack);
#else
	back = PT_REGS_RET(ctx);
#endif
	return back && back == BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

static __always_inline bool does(u32 index, enum wire_gpu_does what)
{
	const struct wire_gpu_call *site = bpf_map_lookup_elem(&gpu_functions, &index);

	return site && site->does == what;
}

/* What it waits for, and what others do within it, is no matter of the ledger. */
static __always_inline int wait_begins(struct pt_regs *ctx, u64 stack)
{
	const u64 task = bpf_get_current_task();
	const struct gpu_wait *wait = bpf_map_lookup_elem(&gpu_waits, &task);
	const u64 outer = wait ? wait->stack : 0;

	if (is_within(outer, stack) || is_handed_over(ctx, outer, stack))
		return 0;
	refresh_sched_clock();
	return begin_gpu_wait(stack);
}

static const struct gpu_call no_call;

/* The call is kept in the map from the first, since the stack has no room for it. */
SEC("?uprobe")
int gpu_call_begins(struct pt_regs *ctx)
{
	const u32 index = bpf_get_attach_cookie(ctx);
	const u64 stack = PT_REGS_SP(ctx);
	struct gpu_hit h = {.id = current_id()};
	u64 outer;

	have_own_stack(ctx);
	if (does(index, WIRE_GPU_WAITS))
		return wait_begins(ctx, stack);
	if (!find_caller(&h, index))
		return 0;
	if (h.site->does == WIRE_GPU_POOLS || h.site->does == WIRE_GPU_POOL_SEEN)
		return ask_of_pool(&h, PT_REGS_PARM1(ctx));
	h.call = bpf_map_lookup_elem(&gpu_calls, &h.id);
	outer = h.call ? h.call->stack : 0;
	if (is_within(outer, stack) || is_handed_over(ctx, outer, stack))
		return 0;
	bpf_map_update_elem(&gpu_calls, &h.id, &no_call, BPF_ANY);
	h.call = bpf_map_lookup_elem(&gpu_calls, &h.id);
	if (!h.call)
		return 0;
	read_call(ctx, h.call, index);
	if (h.site->waits && (config.waits || is_of_run(h.proc)))
		wait_begins(ctx, stack);
	begin_call(&h);
	tell_if_moved(h.proc, h.tree, h.own, h.id);
	return 0;
}

static __noinline int call_failed(const struct gpu_hit *h, s32 result)
{
	switch (h->site->does) {
	case WIRE_GPU_ALLOCATES:
	case WIRE_GPU_REGISTERS:
	case WIRE_GPU_CREATES:
		return refuse(h, result);
	case WIRE_GPU_FREES:
		return freed(h, true);
	case WIRE_GPU_RELEASES:
		return h->call->taken ? undo_release(h) : 0;
	case WIRE_GPU_CONTEXT_ENDS:
	case WIRE_GPU_PRIMARY_RELEASED:
	case WIRE_GPU_PRIMARY_RESET:
		return h->call->taken ? undo_end(h) : 0;
	default:
		return 0;
	}
}

static __noinline int context_changed(const struct gpu_hit *h)
{
	u64 at;

	switch (h->site->does) {
	case WIRE_GPU_CONTEXT_BEGINS:
		at = answer(h);
		begin_context(h, at, argument(h, h->site->from), 0);
		push_context(h, at);
		return 0;
	case WIRE_GPU_CONTEXT_ENDS:
		return context_ended(h);
	case WIRE_GPU_CONTEXT_SET:
		set_context(h, key_argument(h));
		return 0;
	case WIRE_GPU_CONTEXT_PUSHED:
		push_context(h, key_argument(h));
		return 0;
	case WIRE_GPU_CONTEXT_POPPED:
		pop_context(h);
		return 0;
	case WIRE_GPU_PRIMARY_RETAINED:
		return primary_retained(h);
	default:
		return 0;
	}
}

static __noinline int call_succeeded(const struct gpu_hit *h)
{
	switch (h->site->does) {
	case WIRE_GPU_ALLOCATES:
	case WIRE_GPU_REGISTERS:
		return allocated(h);
	case WIRE_GPU_FREES:
		return freed(h, false);
	case WIRE_GPU_CREATES:
	case WIRE_GPU_IMPORTS:
		return created(h);
	case WIRE_GPU_RETAINS:
		return retained(h);
	case WIRE_GPU_MAPS:
		return mapped(h);
	case WIRE_GPU_UNMAPS:
		return unmapped(h);
	case WIRE_GPU_POOL:
		return pool_made(h);
	case WIRE_GPU_AGENT:
		return agent_told(h);
	default:
		return context_changed(h);
	}
}

/* On x86-64 a return takes its address off the stack. */
static __always_inline u64 stack_of_call(struct pt_regs *ctx)
{
#if defined(__TARGET_ARCH_x86)
	return PT_REGS_SP(ctx) - 8;
#else
	return PT_REGS_SP(ctx);
#endif
}

static __always_inline int wait_returns(u64 id, u64 stack)
{
	const u64 task = bpf_get_current_task();
	const struct gpu_wait *wait = bpf_map_lookup_elem(&gpu_waits, &task);

	return wait && wait->stack == stack ? end_gpu_wait(find_proc(id >> 32), task) : 0;
}

SEC("?uretprobe.s")
int gpu_call_returns(struct pt_regs *ctx)
{
	const u32 index = bpf_get_attach_cookie(ctx);
	struct gpu_hit h = {.id = current_id()};
	const s32 result = PT_REGS_RC(ctx);

	have_own_stack(ctx);
	wait_returns(h.id, stack_of_call(ctx));
	if (does(index, WIRE_GPU_WAITS))
		return 0;
	if (does(index, WIRE_GPU_POOLS))
		return pools_told(h.id);
	h.call = bpf_map_lookup_elem(&gpu_calls, &h.id);
	if (!h.call || h.call->stack != stack_of_call(ctx) || !find_caller(&h, h.call->call))
		return 0;
	if (result)
		call_failed(&h, result);
	else if (h.site->does == WIRE_GPU_NAMES)
		named(&h, PT_REGS_IP(ctx));
	else
		call_succeeded(&h);
	tell_if_moved(h.proc, h.tree, h.own, h.id);
	bpf_map_delete_elem(&gpu_calls, &h.id);
	return config.stacks ? sample_gpu_growth() : 0;
}

struct forget_args {
	u64 started_ns;
	u64 tgid;
};

static long forget_entry(struct bpf_map *map, const struct gpu_key *key, void *value,
			 struct forget_args *gone)
{
	if (key->tgid == gone->tgid && key->started_ns == gone->started_ns)
		bpf_map_delete_elem(map, key);
	return 0;
}

/* A process has ended: makes room in the maps. */
SEC("?syscall")
int gpu_forget(struct forget_args *gone)
{
	struct forget_args args = *gone;

	bpf_for_each_map_elem(&gpu_ledger, forget_entry, &args, 0);
	bpf_for_each_map_elem(&gpu_contexts, forget_entry, &args, 0);
	return 0;
}
