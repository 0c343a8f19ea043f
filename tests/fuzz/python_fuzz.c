// SPDX-License-Identifier: GPL-2.0-only
/* python_fuzz.c - any bytes as a code object of Python, and as each kind of table of lines. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/python_codes.h"

/* What fuzz_driver.c starts from; libFuzzer starts from nothing, or from a corpus. */
extern const char *const fuzz_seed_texts[];

const char *const fuzz_seed_texts[] = {
	"\x80\x01\xe0\x08\x09\xd8\x08\x09\x88\x41\x89\x05\xf0\x05\x03\x09\x06\x80\x41\xf0\x08",
	"\x02\x02\x06\x01\x04\xfe\x08\x04\x04\x01\x08\x01\x02\x80\x02\x01\x04\x01\x0c\x02",
	NULL,
};

static void look_at_lines(const uint8_t *data, size_t size)
{
	for (uint32_t kind = 0; kind <= WIRE_PYTHON_LOCATIONS + 1; kind++)
		for (uint32_t at = 0; at < 256; at += 2)
			if (python_line(kind, data, size, 1, at) > INT32_MAX)
				abort();
}

static void look_at_code(const uint8_t *data, size_t size)
{
	struct python_codes *codes = python_codes_new();
	union {
		struct wire_python_code is;
		uint8_t bytes[sizeof(struct wire_python_code) + WIRE_PYTHON_LINES];
	} code;
	struct wire_python_frame frame;
	struct python_place place;

	if (!codes)
		abort();
	memset(&code, 0, sizeof(code));
	memcpy(&code, data, size < sizeof(code) ? size : sizeof(code));
	python_codes_add(codes, &code.is, WIRE_PYTHON_LINES);
	frame = (struct wire_python_frame){
		.code = code.is.code, .name = code.is.name, .line = code.is.line};
	place = python_codes_find(codes, code.is.program, &frame);
	if (!*place.name || !place.line || strlen(place.path) > 4 * WIRE_PYTHON_TEXT)
		abort();
	python_codes_free(codes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	look_at_lines(data, size);
	look_at_code(data, size);
	return 0;
}
