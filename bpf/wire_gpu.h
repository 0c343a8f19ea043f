/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * wire_gpu.h - the part of wire.h that is about memory of GPUs, as the programs allocate it through
 * libraries of the driver. In bytes. A tree that has not done so has none of these records.
 */
#ifndef QPROF_WIRE_GPU_H
#define QPROF_WIRE_GPU_H

enum {
	WIRE_GPUS = 16, /* devices that are told apart, as the programs number them */
};

/* Where such memory is. */
enum wire_gpu_place {
	WIRE_GPU_ALL = 0,     /* on any device: the sum of what follows, but for the next */
	WIRE_GPU_PINNED = 1,  /* on the host, where a GPU can reach it */
	WIRE_GPU_UNKNOWN = 2, /* on a device, and nobody knows on which */
	WIRE_GPU_DEVICE = 3,  /* on device 0; then those that follow it */
	WIRE_GPU_PLACES = WIRE_GPU_DEVICE + WIRE_GPUS,
};

struct wire_gpu_amount {
	__u64 held;	 /* now */
	__u64 peak;	 /* the highest since tracking began */
	__u64 step_peak; /* as in struct wire_memory */
	__u64 peak_ns;	 /* when the peak was reached; 0: there was none */
};

/* The sums of a process, or of a tree, which has no generation, agents and refused. */
struct wire_gpu_sums {
	struct wire_gpu_amount at[WIRE_GPU_PLACES];
	/* Of the curve: what its last point said, and how many there were. */
	__u64 told, told_pinned;
	__u64 highest; /* of a tree: that all devices had since that point */
	__u64 points;
	__u64 changes;	  /* allocations and frees so far */
	__u64 generation; /* programs that it has run so far: of their memory, the last one's is
			     left */
	__u64 agents;	  /* GPUs that HSA has told of */
	__u64 processes;  /* that have allocated on a GPU; of a process: 1 once it has */
	__u64 refused; /* where its last allocation lacked memory, + 1; 0: one there succeeded since
			*/
};

enum wire_gpu_why {
	WIRE_GPU_CHECKPOINT = 1, /* the next checkpoint of this thread belongs to it */
	WIRE_GPU_EXIT = 2,	 /* the process ends: comes before its WIRE_EXIT */
};

/* What a tree and a process hold on GPUs. */
struct wire_gpu {
	struct wire_header h;
	__u32 why; /* enum wire_gpu_why */
	/* At an exit: 1: its last allocation in some place failed, and none there succeeded since.
	 */
	__u32 refused;
	__u64 processes; /* of the tree, that have allocated on a GPU so far */
	struct wire_gpu_amount tree[WIRE_GPU_PLACES];
	struct wire_gpu_amount own[WIRE_GPU_PLACES];
};

/* A point of the curve of GPU memory: there is a checkpoint, or an amount has moved by a step. */
struct wire_gpu_point {
	struct wire_header h;
	__u64 held, pinned; /* of the tree, on all devices, and on the host */
	__u64 highest;	    /* that `held` was since the tree's last point */
	__u64 own_held, own_pinned;
};

enum wire_gpu_vendor {
	WIRE_GPU_NVIDIA = 1, /* libcuda.so.1 */
	WIRE_GPU_AMD = 2,    /* libhsa-runtime64.so.1 */
};

enum {
	WIRE_CUDA_OUT_OF_MEMORY = 2,	    /* CUDA_ERROR_OUT_OF_MEMORY */
	WIRE_HSA_OUT_OF_RESOURCES = 0x1008, /* HSA_STATUS_ERROR_OUT_OF_RESOURCES */
};

/* Whether a call failed for want of memory. What fails otherwise, such as all calls after a kernel
 * that faulted, is no reason of an end. */
static inline int wire_gpu_lacks_memory(__u32 vendor, __s32 result)
{
	return result ==
	       (vendor == WIRE_GPU_NVIDIA ? WIRE_CUDA_OUT_OF_MEMORY : WIRE_HSA_OUT_OF_RESOURCES);
}

/* An allocation that failed. */
struct wire_gpu_refused {
	struct wire_header h;
	__u64 bytes;  /* that were asked for; 0: the call does not say */
	__u64 held;   /* by the tree at that place */
	__u32 place;  /* enum wire_gpu_place */
	__s32 result; /* of the call: a CUresult, a hsa_status_t */
	__u32 vendor; /* enum wire_gpu_vendor */
	__u32 reserved;
};

/* Part of struct wire_quality. */
struct wire_gpu_quality {
	__u64 lost;	     /* no room in the control ring to tell of it */
	__u64 unkept;	     /* allocations that are not counted: too many, or unreadable */
	__u64 unknown_frees; /* of what nobody was seen to allocate */
	__u64 estimated;     /* arrays, whose sizes are estimates */
};

/*
 * A program has the address of a function that is watched, as cuGetProcAddress() has just given it.
 * It waits as in struct wire_mapped.
 */
struct wire_gpu_code {
	struct wire_header h;
	__u64 address;
	__u64 change; /* as in struct wire_mapped */
	__u32 slot;   /* where it waits for the answer: see `searched` in mapped.bpf.c */
	__u32 call;   /* the function: index of a struct wire_gpu_call */
};

/* ---- Functions that are watched ---------------------------------------------------------------
 */

enum {
	WIRE_GPU_CALLS = 128,	/* at most */
	WIRE_GPU_NAME_MAX = 40, /* bytes that hold the name of one, and a NUL */
	WIRE_GPU_ARGS = 5,
};

/* What a function does if it succeeds: if it returns 0. */
enum wire_gpu_does {
	WIRE_GPU_ALLOCATES = 1, /* writes to *key the address of new memory */
	WIRE_GPU_REGISTERS = 2, /* makes it of memory of the host that is there, at key */
	WIRE_GPU_FREES = 3,	/* what is at key */
	WIRE_GPU_CREATES = 4,	/* memory without address: writes its handle to *key */
	WIRE_GPU_IMPORTS = 5,	/* as above, of memory that is another's */
	WIRE_GPU_RETAINS = 6,	/* writes to *key a handle of what is mapped at argument 1 */
	WIRE_GPU_RELEASES = 7,	/* the handle key */
	WIRE_GPU_MAPS = 8,	/* at key, size bytes, of the handle in argument 3 */
	WIRE_GPU_UNMAPS = 9,	/* what is mapped from key on, size bytes */
	/* A context of a device: writes it to *key, and the thread uses it. */
	WIRE_GPU_CONTEXT_BEGINS = 10,
	WIRE_GPU_CONTEXT_ENDS = 11, /* key, with all that was allocated in it */
	WIRE_GPU_CONTEXT_SET = 12,  /* the thread uses key from now on */
	WIRE_GPU_CONTEXT_PUSHED = 13,
	WIRE_GPU_CONTEXT_POPPED = 14,
	/* The context that a device has for all who want it. */
	WIRE_GPU_PRIMARY_RETAINED = 15, /* writes it to *key */
	WIRE_GPU_PRIMARY_RELEASED = 16, /* of device key */
	WIRE_GPU_PRIMARY_RESET = 17,	/* of device key: all in it is freed */
	WIRE_GPU_POOL = 18,		/* writes to *key a pool of memory */
	WIRE_GPU_NAMES = 19, /* writes to *argument 1 the address of the function named key */
	/* HSA: tells about agent key; begins to tell of its pools; tells about pool key. */
	WIRE_GPU_AGENT = 20,
	WIRE_GPU_POOLS = 21,
	WIRE_GPU_POOL_SEEN = 22,
	WIRE_GPU_WAITS = 23, /* returns once the GPU is done with something, whatever it returns */
};

/* How many bytes it is about. */
enum wire_gpu_size {
	WIRE_GPU_SIZE_ARG = 0,	     /* argument `size` */
	WIRE_GPU_SIZE_PITCH = 1,     /* *argument 1 times argument `size` */
	WIRE_GPU_SIZE_ARRAY = 2,     /* by the description at argument `size`: an estimate */
	WIRE_GPU_SIZE_ARRAY_3D = 3,  /* the same of three dimensions */
	WIRE_GPU_SIZE_MIPMAPPED = 4, /* the same, with as many levels as argument 2 says */
	WIRE_GPU_SIZE_NONE = 5,	     /* memory that is another's: 0 */
};

/* On which device. */
enum wire_gpu_where {
	WIRE_GPU_AT_CONTEXT = 0,  /* the thread's */
	WIRE_GPU_AT_HOST = 1,	  /* none, but of the thread's context */
	WIRE_GPU_AT_LOCATION = 2, /* as the properties at argument `from` say */
	WIRE_GPU_AT_POOL = 3,	  /* argument `from` is a pool */
	WIRE_GPU_AT_DEVICE = 4,	  /* argument `from` is its number */
};

/* Where what is at key is looked up: pointers, handles and arrays may have the same numbers. */
enum wire_gpu_space {
	WIRE_GPU_POINTERS = 1,
	WIRE_GPU_HOST_POINTERS = 2,
	WIRE_GPU_ARRAYS = 3,
	/* From here on for the BPF side alone. */
	WIRE_GPU_HANDLES = 4,
	WIRE_GPU_MEMORY = 5, /* without address, by a number of its own */
	WIRE_GPU_MAPPED = 6,
	WIRE_GPU_PRIMARY = 7, /* device -> context */
	WIRE_GPU_POOLS_OF = 8,
	WIRE_GPU_AGENTS = 9,
};

/* A function. key, size and from are numbers of arguments. The probes' cookie is its index. */
struct wire_gpu_call {
	__u8 does;   /* enum wire_gpu_does */
	__u8 space;  /* enum wire_gpu_space */
	__u8 vendor; /* enum wire_gpu_vendor */
	__u8 key;
	__u8 how; /* enum wire_gpu_size */
	__u8 size;
	__u8 where; /* enum wire_gpu_where */
	__u8 from;
	__u8 waits; /* 1: it may wait for the GPU, besides what it does */
};

_Static_assert(sizeof(struct wire_gpu_amount) == 32, "wire_gpu_amount");
_Static_assert(sizeof(struct wire_gpu_sums) == 32 * WIRE_GPU_PLACES + 72, "wire_gpu_sums");
_Static_assert(sizeof(struct wire_gpu) == 32 + 16 + 2 * 32 * WIRE_GPU_PLACES, "wire_gpu");
_Static_assert(sizeof(struct wire_gpu_point) == 32 + 40, "wire_gpu_point");
_Static_assert(sizeof(struct wire_gpu_refused) == 32 + 32, "wire_gpu_refused");
_Static_assert(sizeof(struct wire_gpu_code) == 32 + 24, "wire_gpu_code");

#endif
