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
	X(chrome)                                                                                  \
	X(folded)                                                                                  \
	X(folded_cpu)                                                                              \
	X(folded_gpu)                                                                              \
	X(folded_back)                                                                             \
	X(speedscope)                                                                              \
	X(pprof)

#define DECLARE(name) extern const struct renderer renderer_##name;
#define ADDRESS(name) &renderer_##name,
FORMATS(DECLARE)
const struct renderer *const renderers[] = {FORMATS(ADDRESS) NULL};

/* Writes ".txt, .html, .svg": the extensions of all formats. */
static void list_extensions(char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (const struct renderer *const *r = renderers; *r && len < size; r++)
		if ((*r)->extension)
			len += (size_t)snprintf(out + len, size - len, "%s%s", len ? ", " : "",
						(*r)->extension);
}

const struct renderer *renderer_for_file(const char *path, struct error *err)
{
	const char *const slash = strrchr(path, '/'), *const name = slash ? slash + 1 : path;
	const char *const extension = strrchr(name, '.');
	char known[128];

	if (!extension || extension == name)
		return renderers[0];
	for (const struct renderer *const *r = renderers; *r; r++)
		if ((*r)->extension && !strcmp(extension, (*r)->extension))
			return *r;
	list_extensions(known, sizeof(known));
	error_set(err,
		  "no format of reports has files that end in '%s': choose one of %s, or say "
		  "which format with -f",
		  extension, known);
	return NULL;
}
