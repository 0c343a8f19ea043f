/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/path_parts.h"

#include <string.h>

void path_of_parts(char *out, const char *parts, size_t len)
{
	char *at = out + len + 1;

	*at = '\0';
	for (size_t i = 0; i < len;) {
		const size_t part = strnlen(parts + i, len - i);

		at -= part;
		memcpy(at, parts + i, part);
		*--at = '/';
		i += part + 1;
	}
	memmove(out, at, strlen(at) + 1);
}

size_t parts_of_path(char *parts, size_t room, const char *path)
{
	const char *end = path + strlen(path);
	size_t len = 0;

	while (end > path) {
		const char *slash = memrchr(path, '/', (size_t)(end - path));
		const char *part = slash ? slash + 1 : path;
		const size_t n = (size_t)(end - part);

		if (len + n + 1 > room)
			return 0;
		memcpy(parts + len, part, n);
		parts[len + n] = '\0';
		len += n + 1;
		end = slash ? slash : path;
	}
	return len;
}
