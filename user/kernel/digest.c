/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/digest.h"

#include <unistd.h>

enum { CODE_BYTES = 16 /* an instruction, at the most */ };

void digest_bytes(uint64_t *digest, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		*digest = (*digest ^ bytes[i]) * 0x100000001b3;
}

void digest_place(uint64_t *digest, int fd, uint64_t offset)
{
	unsigned char code[CODE_BYTES] = {0};
	const ssize_t n = pread(fd, code, sizeof(code), (off_t)offset);

	digest_bytes(digest, &offset, sizeof(offset));
	digest_bytes(digest, code, n < 0 ? 0 : (size_t)n);
}
