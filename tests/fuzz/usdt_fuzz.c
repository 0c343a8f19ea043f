// SPDX-License-Identifier: GPL-2.0-only
/*
 * usdt_fuzz.c - any bytes as an ELF file, and as the arguments of a probe. Besides not crashing,
 * what is accepted must be what usdt.h and wire.h say.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/usdt.h"

/* What fuzz_driver.c starts from; libFuzzer starts from nothing, or from a corpus. */
extern const char *const fuzz_seed_files[], *const fuzz_seed_texts[];

const char *const fuzz_seed_files[] = {USDT_FIXTURE, NULL};
const char *const fuzz_seed_texts[] = {
	"8@%rax -4@-20(%rbp) 4f@$5",
	"8@counter+8(%rip) 2@%r8w 8f@.LC3(%rip) 1@%ah",
	"-4@16(%rcx,%rdx,4) 8@(,%rdi,8) 8@$0x1f-table",
	"8@x0 -4@[sp, 16] 4f@[x0, x1, lsl 3] 8@#-5",
	NULL,
};

/* Registers are 8 bytes each in a struct pt_regs of at most 34. */
static int is_register(uint16_t reg)
{
	return reg == WIRE_NO_REG || (reg % 8 == 0 && reg < 34 * 8);
}

static void check_arg(const struct wire_arg *arg, int refused)
{
	if (!is_register(arg->reg) || !is_register(arg->index) || arg->scale_shift > 4)
		abort();
	if (refused != (arg->kind == WIRE_ARG_REFUSED))
		abort();
	if (arg->kind == WIRE_ARG_NONE || refused)
		return;
	if (arg->size != 1 && arg->size != 2 && arg->size != 4 && arg->size != 8)
		abort();
	if (arg->is_float && (arg->is_signed || arg->size < 4))
		abort();
}

static int any_symbol(void *context, const char *name, size_t len, bool absolute, uint64_t *address)
{
	(void)context;
	if (len == 0 || memchr(name, '\0', len))
		abort();
	*address = (uint64_t)name[0] << len % 64;
	return len % 2 ? -ENOENT : absolute ? -EOPNOTSUPP : 0;
}

static void parse_as_arguments(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	const char *at = text, *before, *why;
	struct wire_arg arg;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	while (*at) {
		before = at;
		why = usdt_parse_narrow_arg(&at, 0x1000, any_symbol, NULL, &arg);
		check_arg(&arg, why != NULL);
		at = before;
		why = usdt_parse_arg(&at, 0x1000, any_symbol, NULL, &arg);
		check_arg(&arg, why != NULL);
		if (at <= before)
			abort();
	}
	free(text);
}

static void check_probe(const struct usdt_probe *probe, size_t size)
{
	int refused = 0;
	size_t i;

	if (!probe->provider[0] || !probe->name[0] || probe->offset >= size)
		abort();
	if (probe->semaphore > size - 2 || probe->semaphore % 2)
		abort();
	for (i = 0; i < WIRE_SITE_ARGS; i++) {
		check_arg(&probe->arg[i], probe->arg[i].kind == WIRE_ARG_REFUSED);
		refused |= probe->arg[i].kind == WIRE_ARG_REFUSED;
		if ((probe->arg[i].kind == WIRE_ARG_NONE) != (i >= probe->nargs))
			abort();
	}
	if (refused != (probe->refused != NULL))
		abort();
}

static void read_as_file(const uint8_t *data, size_t size)
{
	struct usdt_file file;
	const char *why;
	int fd = memfd_create("usdt_fuzz", MFD_CLOEXEC), err;
	size_t i;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	err = usdt_file_read(fd, &file, &why);
	if (err && (err != -EINVAL || !why) && err != -ENOEXEC && err != -ENOMEM)
		abort();
	for (i = 0; i < file.count; i++)
		check_probe(&file.probes[i], size);
	usdt_file_free(&file);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	parse_as_arguments(data, size);
	read_as_file(data, size);
	return 0;
}
