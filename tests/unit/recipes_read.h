/* SPDX-License-Identifier: GPL-2.0-only */
/* recipes_read.h - recipes that are read from texts, and what is said of those that cannot be. */
#ifndef QPROF_TESTS_RECIPES_READ_H
#define QPROF_TESTS_RECIPES_READ_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "recipes/recipe.h"

/* The begin of a recipe; checkpoints are to follow, from line 3 on. */
#define HEAD "name: a\nmatch: {executable: a}\n"

static inline struct recipes *parse(const char *text)
{
	struct recipes *r = recipes_new();
	struct error err = {0};

	assert_non_null(r);
	if (recipes_parse(r, "test", text, strlen(text), &err))
		fail_msg("expected a recipe, got: %s", err.text);
	return r;
}

struct wrong {
	const char *text, *says;
};

static inline void assert_refused(const struct wrong *examples, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct recipes *r = recipes_new();
		struct error err = {0};
		const int code =
			recipes_parse(r, "test", examples[i].text, strlen(examples[i].text), &err);

		if (code != -1 || !strstr(err.text, examples[i].says) || strchr(err.text, '\n'))
			fail_msg("'%s': expected '%s', got %d, '%s'", examples[i].text,
				 examples[i].says, code, err.text);
		recipes_free(r);
	}
}

#endif
