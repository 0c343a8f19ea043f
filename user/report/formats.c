/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "report/renderer.h"

/* Every format. A new format is one more line. */
#define FORMATS(X)                                                                                 \
	X(text)                                                                                    \
	X(html)                                                                                    \
	X(svg)                                                                                     \
	X(json)                                                                                    \
	X(csv)                                                                                     \
	X(mprof)                                                                                   \
	X(perfetto)                                                                                \
	X(chrome)

#define DECLARE(name) extern const struct renderer renderer_##name;
#define ADDRESS(name) &renderer_##name,
FORMATS(DECLARE)
const struct renderer *const renderers[] = {FORMATS(ADDRESS) NULL};

const struct renderer *renderer_for_file(const char *path)
{
	const size_t len = strlen(path);

	for (const struct renderer *const *r = renderers; *r; r++) {
		const size_t tail = (*r)->extension ? strlen((*r)->extension) : len;

		if (tail < len && !strcmp(path + len - tail, (*r)->extension))
			return *r;
	}
	return NULL;
}
