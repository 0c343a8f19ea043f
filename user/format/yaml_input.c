/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/yaml_input.h"

#include <errno.h>
#include <string.h>

#define MAX_INPUT (1ull << 30)

static const char *fill(struct yaml_input *in)
{
	size_t n;

	if (in->begin) {
		memmove(in->buffer, in->buffer + in->begin, in->end - in->begin);
		in->end -= in->begin;
		in->begin = 0;
	}
	in->whole = 0;
	if (in->end == YAML_INPUT_BUFFER)
		return "a line longer than 1 MiB";
	n = fread(in->buffer + in->end, 1, YAML_INPUT_BUFFER - in->end, in->in);
	if (!n) {
		in->ended = true;
		return ferror(in->in) ? strerror(errno) : NULL;
	}
	in->total += n;
	if (in->total > MAX_INPUT)
		return "more than 1 GiB";
	for (size_t i = in->end + n; i > in->end; i--) {
		if (in->buffer[i - 1] == '\n') {
			in->whole = i;
			break;
		}
	}
	in->end += n;
	return NULL;
}

bool yaml_input_was_cut(const struct yaml_input *in)
{
	return in->end > in->whole && in->buffer[in->whole] != '#';
}

int yaml_input_give(void *context, unsigned char *out, size_t size, size_t *given)
{
	struct yaml_input *in = context;
	size_t n;

	*given = 0;
	while (in->begin == in->whole && !in->ended && !in->refused)
		in->refused = fill(in);
	n = in->whole - in->begin;
	n = n < size ? n : size;
	if (!in->refused && in->pending + n > YAML_INPUT_BUFFER + size)
		in->refused = "more than 1 MiB in one piece";
	if (in->refused)
		return 0;
	memcpy(out, in->buffer + in->begin, n);
	for (size_t i = 0; i < n; i++)
		in->lines += out[i] == '\n';
	in->begin += n;
	in->pending += n;
	*given = n;
	return 1;
}
