/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the import hook is to know, in a file: a line that tells which recipes of which qprof-bpf it
 * is of, and the variable.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/digest.h"
#include "recipes/python_items.h"

static int digest_file(void *context, const char *path, struct error *err)
{
	FILE *in = fopen(path, "re");
	char bytes[4096];
	size_t n;
	bool failed;

	if (!in)
		return error_set(err, "cannot read the recipe '%s': %s", path, strerror(errno));
	digest_bytes(context, strrchr(path, '/') + 1, strlen(strrchr(path, '/')));
	while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
		digest_bytes(context, bytes, n);
	failed = ferror(in);
	fclose(in);
	return failed ? error_set(err, "cannot read the recipe '%s'", path) : 0;
}

static int digest_recipes(const char *directory, uint64_t *digest, struct error *err)
{
	*digest = digest_of_nothing;
	digest_bytes(digest, QPROF_VERSION, sizeof(QPROF_VERSION));
	return recipes_each_file(directory, digest_file, digest, err);
}

int python_items_keep(const char *directory, FILE *out, struct error *err)
{
	struct recipes *recipes = recipes_new();
	struct python_items items = {0};
	uint64_t digest;
	int code;

	if (!recipes)
		return error_set(err, "out of memory");
	code = recipes_read_all(recipes, directory, err);
	if (!code)
		code = digest_recipes(directory, &digest, err);
	if (!code && python_items_write(&items, recipes))
		code = error_set(err, "out of memory");
	if (!code)
		fprintf(out, "%016" PRIx64 "\n%s", digest, items.text ? items.text : "");
	python_items_free(&items);
	recipes_free(recipes);
	return code;
}

/* Returns the file, allocated; or NULL. */
static char *read_kept(const char *directory)
{
	char *path, *text = NULL;
	size_t room = 0;
	FILE *in;

	if (asprintf(&path, "%s/python.items", directory) < 0)
		return NULL;
	in = fopen(path, "re");
	free(path);
	if (in && getdelim(&text, &room, '\0', in) < 0) {
		free(text);
		text = NULL;
	}
	if (in)
		fclose(in);
	return text;
}

/* What follows the line, or NULL. */
static char *after_line(char *text)
{
	char *end = text ? strchr(text, '\n') : NULL;

	return end ? end + 1 : NULL;
}

bool python_items_take_kept(struct python_items *items, const char *directory)
{
	char *kept = read_kept(directory), *text = after_line(kept), *lines = after_line(text);
	struct error err;
	uint64_t digest;

	if (lines && !digest_recipes(directory, &digest, &err) &&
	    digest == strtoull(kept, NULL, 16) && sscanf(text, "1\t%" SCNu32, &items->set) == 1 &&
	    items->set == python_items_number(lines))
		items->text = strdup(text);
	free(kept);
	return items->text;
}
