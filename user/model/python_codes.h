/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * python_codes.h - code objects of Python: their names, and which line an instruction is of. They
 * come from programs that may be hostile: what is no text or table gives a name or a line that is
 * wrong, and nothing worse. Bounded.
 */
#ifndef QPROF_PYTHON_CODES_H
#define QPROF_PYTHON_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/wire.h"

enum {
	PYTHON_CODES_MAX = 262144,
	PYTHON_CODES_MAX_BYTES = 64 << 20, /* of names and tables of lines, which programs share */
};

struct python_codes;

struct python_place {
	bool known;
	const char *name; /* "Model.load"; UTF-8; valid as long as the codes, as the next */
	const char *path; /* of the source; "": not known */
	uint32_t line;	  /* at least 1 */
};

/* Returns NULL when out of memory. */
struct python_codes *python_codes_new(void);
void python_codes_free(struct python_codes *codes);

/* Takes note of one, of whose lines so many bytes are there at most. Without a place for it, it has
 * no name. */
void python_codes_add(struct python_codes *codes, const struct wire_python_code *from, size_t room);
/* Says where a frame is; of a code object that is not known, "(unknown)" and its first line. */
struct python_place python_codes_find(const struct python_codes *codes, uint64_t program,
				      const struct wire_python_frame *frame);

/*
 * Returns the line of the instruction `at` bytes from the begin of the code, by a table of lines
 * of that kind (enum wire_python_lines) of which n bytes are there; or 0 if it does not say.
 */
uint32_t python_line(uint32_t kind, const uint8_t *table, size_t n, uint32_t first, uint32_t at);

#endif
