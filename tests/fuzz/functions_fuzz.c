// SPDX-License-Identifier: GPL-2.0-only
/*
 * functions_fuzz.c - any bytes as machine code, and as an ELF file with functions. Besides not
 * crashing, what is told must lie within.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/code.h"
#include "kernel/functions.h"

extern const char *const fuzz_seed_files[], *const fuzz_seed_texts[];

const char *const fuzz_seed_files[] = {USDT_FIXTURE, NULL};
const char *const fuzz_seed_texts[] = {
	"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x74\x05\xe9\x01\x01\x01\x01\x5d\xc3",
	"\xc5\xf9\x6f\x07\x62\xf1\x7c\x48\x10\x47\x01\x48\x01\xd0\xff\xe0",
	NULL,
};

static size_t code_len;

static void check_exit(void *context, enum code_kind kind, int64_t offset)
{
	const int inside = offset >= 0 && (uint64_t)offset < code_len;

	(void)context;
	if (inside != (kind != CODE_JUMP))
		abort();
}

static void read_as_code(code_read_fn read, const uint8_t *data, size_t size)
{
	code_len = size;
	code_exits(read, data, size, check_exit, NULL);
	if (size && code_entry(read, data, size) >= size)
		abort();
}

static void check_function(void *context, const struct function *function)
{
	const size_t size = *(const size_t *)context;

	if (!function->name[0] || function->begin >= size ||
	    function->n_returns > FUNCTION_MAX_RETURNS)
		abort();
	for (size_t i = 0; i < function->n_returns; i++)
		if (function->returns[i] >= size)
			abort();
}

static void read_as_file(const uint8_t *data, size_t size)
{
	struct functions *functions;
	const char *why;
	int fd = memfd_create("functions_fuzz", MFD_CLOEXEC), err;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	err = functions_open(fd, &functions, &why);
	if (err && (err != -EINVAL || !why) && err != -ENOEXEC && err != -ENOMEM)
		abort();
	if (!err) {
		functions_find(functions, "*", true, check_function, &size);
		functions_free(functions);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	read_as_code(code_read_x86, data, size);
	read_as_code(code_read_arm64, data, size);
	read_as_file(data, size);
	return 0;
}
