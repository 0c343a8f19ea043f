/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nvtx_caller.c - a program that uses NVTX, as far as an injection library can tell: it offers the
 * tables of NVTX 3, with its numbers, and calls what was put into them.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

typedef void (*function)(void);

enum { CORE = 1, CORE2 = 5, SIZE_CORE = 16, SIZE_CORE2 = 16 };

static function core[SIZE_CORE], core2[SIZE_CORE2];
static function *core_slots[SIZE_CORE], *core2_slots[SIZE_CORE2];

static int get_table(int module, function ***table, unsigned int *size)
{
	if (module != CORE && module != CORE2)
		return 0;
	*table = module == CORE ? core_slots : core2_slots;
	*size = module == CORE ? SIZE_CORE : SIZE_CORE2;
	return 1;
}

static const struct {
	size_t size;
	int (*get)(int module, function ***table, unsigned int *size);
} callbacks = {sizeof(callbacks), get_table};

static const void *export_table(uint32_t id)
{
	return id == 1 ? &callbacks : NULL;
}

struct attributes {
	uint16_t version, size;
	uint32_t category, color_type, color, payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	const void *message;
};

int main(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
	int (*initialize)(const void *(*)(uint32_t)) = NULL;
	struct attributes named = {.version = 3, .size = sizeof(named), .message_type = 1};
	const void *domain;
	uint64_t first, second;
	int depths[3];

	for (int i = 0; i < SIZE_CORE; i++)
		core_slots[i] = &core[i];
	for (int i = 0; i < SIZE_CORE2; i++)
		core2_slots[i] = &core2[i];
	core_slots[0] = core2_slots[0] = NULL;
	if (library)
		*(void **)&initialize = dlsym(library, "InitializeInjectionNvtx2");
	if (!initialize || !initialize(export_table)) {
		puts("{\"injected\": false}");
		return 0;
	}
	domain = ((const void *(*)(const char *))core2[12])("domain");
	depths[0] = ((int (*)(const char *))core[9])("outer");
	depths[1] = ((int (*)(const wchar_t *))core[10])(L"inn\u00e9r \U0001F600");
	named.message = "in domain";
	((int (*)(const void *, const struct attributes *))core2[4])(domain, &named);
	((int (*)(void))core[11])();
	((int (*)(const void *))core2[5])(domain);
	depths[2] = ((int (*)(void))core[11])();
	first = ((uint64_t(*)(const char *))core[5])("first");
	named.message_type = 3;
	named.message =
		((const void *(*)(const void *, const char *))core2[10])(domain, "registered");
	second = ((uint64_t(*)(const void *, const struct attributes *))core2[2])(domain, &named);
	((void (*)(uint64_t))core[7])(first);
	((void (*)(const void *, uint64_t))core2[3])(domain, second);
	((void (*)(uint64_t))core[7])(first); /* a second time: of nothing */
	((void (*)(const char *))core[2])("mark");
	named.message_type = 0;
	((void (*)(const struct attributes *))core[1])(&named);
	for (int i = 0; i < 70; i++) /* deeper than what is kept */
		((int (*)(const char *))core[9])("deep");
	for (int i = 0; i < 71; i++)
		((int (*)(void))core[11])();
	printf("{\"injected\": true, \"depths\": [%d, %d, %d]}\n", depths[0], depths[1], depths[2]);
	return 0;
}
