/* SPDX-License-Identifier: MIT */
/*
 * libqprof_nvtx.c - ranges and marks of NVTX, NVIDIA's tools extension, as marks of ours.
 *
 * A program that uses NVTX version 3 loads the library that NVTX_INJECTION64_PATH names at its
 * first call and has it fill in tables of functions. No header of NVTX is needed for that: its ABI,
 * as far as it is used, is below, and is fixed (nvtxTypes.h and nvToolsExt.h of NVTX 3).
 *
 * Names are copied where the end has to say them again: a thread's nested ranges into its stack,
 * ranges with a handle into a table. What is deeper or more than they hold is left out, begin and
 * end.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "qprof.h"

enum {
	MAX_NAME = 256, /* bytes, with the NUL */
	MAX_DEPTH = 64, /* nested ranges of a thread */
	MAX_RANGES = 4096,
};

/* ---- NVTX's ABI ----------------------------------------------------------------------------- */

typedef void (*nvtx_function)(void);
typedef nvtx_function **nvtx_table; /* an array of where the pointers to functions are */

enum { NVTX_TABLE_CALLBACKS = 1 };
enum { NVTX_MODULE_CORE = 1, NVTX_MODULE_CORE2 = 5 };

enum nvtx_core {
	NVTX_MARK_EX = 1,
	NVTX_MARK_A,
	NVTX_MARK_W,
	NVTX_RANGE_START_EX,
	NVTX_RANGE_START_A,
	NVTX_RANGE_START_W,
	NVTX_RANGE_END,
	NVTX_RANGE_PUSH_EX,
	NVTX_RANGE_PUSH_A,
	NVTX_RANGE_PUSH_W,
	NVTX_RANGE_POP,
};

enum nvtx_core2 {
	NVTX_DOMAIN_MARK_EX = 1,
	NVTX_DOMAIN_RANGE_START_EX = 2,
	NVTX_DOMAIN_RANGE_END = 3,
	NVTX_DOMAIN_RANGE_PUSH_EX = 4,
	NVTX_DOMAIN_RANGE_POP = 5,
	NVTX_DOMAIN_REGISTER_STRING_A = 10,
	NVTX_DOMAIN_REGISTER_STRING_W = 11,
	NVTX_DOMAIN_CREATE_A = 12,
	NVTX_DOMAIN_CREATE_W = 13,
};

struct nvtx_callbacks {
	size_t struct_size;
	int (*get_module_function_table)(int module, nvtx_table *table, unsigned int *size);
};

enum nvtx_message { NVTX_MESSAGE_ASCII = 1, NVTX_MESSAGE_UNICODE = 2, NVTX_MESSAGE_REGISTERED = 3 };

/* nvtxEventAttributes_v2 */
struct nvtx_attributes {
	uint16_t version;
	uint16_t size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved0;
	uint64_t payload;
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *unicode;
		const char *registered; /* what register_string gave: the string */
	} message;
};

_Static_assert(sizeof(struct nvtx_attributes) == 48, "nvtxEventAttributes_v2");

/* ---- Names ---------------------------------------------------------------------------------- */

static const char unnamed[] = "(unnamed range)";

static void copy_name(char out[MAX_NAME], const char *name)
{
	size_t len = strnlen(name ? name : unnamed, MAX_NAME - 1);

	memcpy(out, name ? name : unnamed, len);
	out[len] = '\0';
}

/* wchar_t is UTF-32 here. What is no character becomes '?'. */
static size_t put_utf8(char *out, uint32_t code)
{
	if (code >= 0x110000 || (code >= 0xd800 && code < 0xe000))
		code = '?';
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 63));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 63));
		out[2] = (char)(0x80 | (code & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 63));
	out[2] = (char)(0x80 | (code >> 6 & 63));
	out[3] = (char)(0x80 | (code & 63));
	return 4;
}

static void copy_wide_name(char out[MAX_NAME], const wchar_t *name)
{
	size_t used = 0;

	if (!name) {
		copy_name(out, NULL);
		return;
	}
	while (*name && used + 4 < MAX_NAME)
		used += put_utf8(out + used, (uint32_t)*name++);
	out[used] = '\0';
}

static void copy_message(char out[MAX_NAME], const struct nvtx_attributes *attributes)
{
	if (attributes && attributes->size >= sizeof(*attributes)) {
		switch (attributes->message_type) {
		case NVTX_MESSAGE_ASCII:
		case NVTX_MESSAGE_REGISTERED:
			copy_name(out, attributes->message.ascii);
			return;
		case NVTX_MESSAGE_UNICODE:
			copy_wide_name(out, attributes->message.unicode);
			return;
		default:
			break;
		}
	}
	copy_name(out, NULL);
}

/* ---- Nested ranges: each domain nests for itself, in each thread ----------------------------- */

struct nested {
	const void *domain;
	char name[MAX_NAME];
};

static __thread struct nested stack[MAX_DEPTH];
static __thread int depth, dropped;

/* Where the name of the next one goes; NULL if it is to be left out. */
static struct nested *push(const void *domain)
{
	if (depth == MAX_DEPTH) {
		dropped++;
		return NULL;
	}
	stack[depth].domain = domain;
	return &stack[depth];
}

/* How deep it is: what NVTX's callers get from it. */
static int pushed(const struct nested *range)
{
	if (range) {
		QPROF_BEGIN(range->name);
		depth++;
	}
	return depth + dropped - 1;
}

static int pop(const void *domain)
{
	int i = depth - 1;

	if (dropped) {
		dropped--;
		return depth + dropped;
	}
	while (i >= 0 && stack[i].domain != domain)
		i--;
	if (i < 0)
		return -1;
	QPROF_END(stack[i].name);
	depth--;
	memmove(&stack[i], &stack[i + 1], (size_t)(depth - i) * sizeof(stack[0]));
	return depth;
}

static int push_a(const char *message)
{
	struct nested *range = push(NULL);

	if (range)
		copy_name(range->name, message);
	return pushed(range);
}

static int push_w(const wchar_t *message)
{
	struct nested *range = push(NULL);

	if (range)
		copy_wide_name(range->name, message);
	return pushed(range);
}

static int domain_push_ex(const void *domain, const struct nvtx_attributes *attributes)
{
	struct nested *range = push(domain);

	if (range)
		copy_message(range->name, attributes);
	return pushed(range);
}

static int push_ex(const struct nvtx_attributes *attributes)
{
	return domain_push_ex(NULL, attributes);
}

static int pop_any(void)
{
	return pop(NULL);
}

/* ---- Ranges with a handle, which may end in another thread ----------------------------------- */

static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	uint64_t id; /* 0: free */
	char name[MAX_NAME];
} ranges[MAX_RANGES];
static uint64_t last_id;

/* Its handle; 0 if there is no room for it. */
static uint64_t start(const char name[MAX_NAME])
{
	uint64_t id = 0;

	pthread_mutex_lock(&ranges_lock);
	for (unsigned int i = 0; i < MAX_RANGES && !id; i++) {
		unsigned int at = (unsigned int)((last_id + 1 + i) % MAX_RANGES);

		if (!ranges[at].id) {
			last_id += 1 + i; /* so that the slot follows from the handle */
			id = ranges[at].id = last_id;
			memcpy(ranges[at].name, name, MAX_NAME);
		}
	}
	pthread_mutex_unlock(&ranges_lock);
	if (id)
		QPROF_BEGIN(name);
	return id;
}

static void range_end(uint64_t id)
{
	char name[MAX_NAME];
	int found;

	pthread_mutex_lock(&ranges_lock);
	found = id && ranges[id % MAX_RANGES].id == id;
	if (found) {
		memcpy(name, ranges[id % MAX_RANGES].name, MAX_NAME);
		ranges[id % MAX_RANGES].id = 0;
	}
	pthread_mutex_unlock(&ranges_lock);
	if (found)
		QPROF_END(name);
}

static uint64_t start_a(const char *message)
{
	char name[MAX_NAME];

	copy_name(name, message);
	return start(name);
}

static uint64_t start_w(const wchar_t *message)
{
	char name[MAX_NAME];

	copy_wide_name(name, message);
	return start(name);
}

static uint64_t start_ex(const struct nvtx_attributes *attributes)
{
	char name[MAX_NAME];

	copy_message(name, attributes);
	return start(name);
}

static uint64_t domain_start_ex(const void *domain, const struct nvtx_attributes *attributes)
{
	(void)domain;
	return start_ex(attributes);
}

static void domain_range_end(const void *domain, uint64_t id)
{
	(void)domain;
	range_end(id);
}

/* ---- Marks, strings and domains -------------------------------------------------------------- */

static void mark_a(const char *message)
{
	QPROF_MARK(message ? message : unnamed);
}

static void mark_w(const wchar_t *message)
{
	char name[MAX_NAME];

	copy_wide_name(name, message);
	QPROF_MARK(name);
}

static void mark_ex(const struct nvtx_attributes *attributes)
{
	char name[MAX_NAME];

	copy_message(name, attributes);
	QPROF_MARK(name);
}

static void domain_mark_ex(const void *domain, const struct nvtx_attributes *attributes)
{
	(void)domain;
	mark_ex(attributes);
}

/* NVTX has no way to give one back: they live as long as the program. */
static const char *register_string_a(const void *domain, const char *string)
{
	(void)domain;
	return strdup(string ? string : unnamed);
}

static const char *register_string_w(const void *domain, const wchar_t *string)
{
	char name[MAX_NAME];

	(void)domain;
	copy_wide_name(name, string);
	return strdup(name);
}

static void *domain_create_a(const char *name)
{
	return strdup(name ? name : "");
}

static void *domain_create_w(const wchar_t *name)
{
	char text[MAX_NAME];

	copy_wide_name(text, name);
	return strdup(text);
}

/* ---- The entry ------------------------------------------------------------------------------ */

struct entry {
	int module;
	unsigned int id;
	nvtx_function function;
};

static const struct entry entries[] = {
	{NVTX_MODULE_CORE, NVTX_MARK_EX, (nvtx_function)mark_ex},
	{NVTX_MODULE_CORE, NVTX_MARK_A, (nvtx_function)mark_a},
	{NVTX_MODULE_CORE, NVTX_MARK_W, (nvtx_function)mark_w},
	{NVTX_MODULE_CORE, NVTX_RANGE_START_EX, (nvtx_function)start_ex},
	{NVTX_MODULE_CORE, NVTX_RANGE_START_A, (nvtx_function)start_a},
	{NVTX_MODULE_CORE, NVTX_RANGE_START_W, (nvtx_function)start_w},
	{NVTX_MODULE_CORE, NVTX_RANGE_END, (nvtx_function)range_end},
	{NVTX_MODULE_CORE, NVTX_RANGE_PUSH_EX, (nvtx_function)push_ex},
	{NVTX_MODULE_CORE, NVTX_RANGE_PUSH_A, (nvtx_function)push_a},
	{NVTX_MODULE_CORE, NVTX_RANGE_PUSH_W, (nvtx_function)push_w},
	{NVTX_MODULE_CORE, NVTX_RANGE_POP, (nvtx_function)pop_any},
	{NVTX_MODULE_CORE2, NVTX_DOMAIN_MARK_EX, (nvtx_function)domain_mark_ex},
	{NVTX_MODULE_CORE2, NVTX_DOMAIN_RANGE_START_EX, (nvtx_function)domain_start_ex},
	{NVTX_MODULE_CORE2, NVTX_DOMAIN_RANGE_END, (nvtx_function)domain_range_end},
	{NVTX_MODULE_CORE2, NVTX_DOMAIN_RANGE_PUSH_EX, (nvtx_function)domain_push_ex},
	{NVTX_MODULE_CORE2, NVTX_DOMAIN_RANGE_POP, (nvtx_function)pop},
	{NVTX_MODULE_CORE2, NVTX_DOMAIN_REGISTER_STRING_A, (nvtx_function)register_string_a},
	{NVTX_MODULE_CORE2, NVTX_DOMAIN_REGISTER_STRING_W, (nvtx_function)register_string_w},
	{NVTX_MODULE_CORE2, NVTX_DOMAIN_CREATE_A, (nvtx_function)domain_create_a},
	{NVTX_MODULE_CORE2, NVTX_DOMAIN_CREATE_W, (nvtx_function)domain_create_w},
};

/* NVTX calls it once for each program or library that uses NVTX. 1: we are in. */
__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id));

int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id))
{
	const struct nvtx_callbacks *callbacks = get_export_table(NVTX_TABLE_CALLBACKS);
	nvtx_table table = NULL;
	unsigned int size = 0;
	int module = 0;

	if (!callbacks || callbacks->struct_size < sizeof(*callbacks))
		return 0;
	for (size_t i = 0; i < sizeof(entries) / sizeof(*entries); i++) {
		if (entries[i].module != module) {
			module = entries[i].module;
			if (!callbacks->get_module_function_table(module, &table, &size))
				table = NULL;
		}
		if (table && entries[i].id < size && table[entries[i].id])
			*table[entries[i].id] = entries[i].function;
	}
	return 1;
}
