// SPDX-License-Identifier: GPL-2.0-only
/*
 * request_fuzz.c - any bytes as the name of a socket that comes to the service. What is taken for a
 * request is one that request.h makes.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "service/request.h"

/* What fuzz_driver.c starts from; libFuzzer starts from nothing, or from a corpus. */
extern const char *const fuzz_seed_files[], *const fuzz_seed_texts[];

const char *const fuzz_seed_files[] = {NULL};
/* Without the NUL before. */
const char *const fuzz_seed_texts[] = {
	"qprof-bpf/00c0ffee12345678/4711,42",
	"qprof-bpf/ffffffffffffffff/1,2,3,4,5,6,7,8,9,10",
	NULL,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX}, again;
	struct request request;
	socklen_t len;

	if (size > sizeof(name.sun_path) - 1)
		size = sizeof(name.sun_path) - 1;
	memcpy(name.sun_path + 1, data, size);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + size);
	if (request_read(&request, &name, len))
		return 0;
	if (!request.n || request.n > WIRE_TARGETS)
		abort();
	/* But for the random number, it is what we would have written. */
	if (request_name(&again, request.pids, request.n, 0) != len ||
	    memcmp(again.sun_path + 27, name.sun_path + 27, size - 26) != 0)
		abort();
	return 0;
}
