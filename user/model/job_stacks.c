/* SPDX-License-Identifier: GPL-2.0-only */
#include "model/job_stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"

struct function {
	UT_hash_handle hh;
	uint64_t amount[JOB_STACKS_WHATS];
	size_t name_len, key_len;
	char key[]; /* name, NUL, path */
};

struct job_samples {
	struct function *functions;
	uint64_t beyond[JOB_STACKS_WHATS]; /* of functions for which there was no room */
};

/* ---- Samples ----------------------------------------------------------------------------------
 */

struct job_samples *job_samples_new(void)
{
	return calloc(1, sizeof(struct job_samples));
}

void job_samples_free(struct job_samples *s)
{
	struct function *f, *next;

	if (!s)
		return;
	f = s->functions;
	HASH_CLEAR(hh, s->functions);
	for (; f; f = next) {
		next = f->hh.next;
		free(f);
	}
	free(s);
}

/* Returns NULL if there is no room. */
static struct function *add_function(struct job_samples *s, const char *key, size_t len,
				     size_t name_len)
{
	struct function *f = HASH_COUNT(s->functions) < JOB_STACKS_FUNCTIONS
				     ? calloc(1, sizeof(*f) + len)
				     : NULL;

	if (!f)
		return NULL;
	f->name_len = name_len;
	f->key_len = len;
	memcpy(f->key, key, len);
	HASH_ADD(hh, s->functions, key, len, f);
	if (f->hh.tbl)
		return f;
	free(f);
	return NULL;
}

bool job_samples_add(struct job_samples *s, const char *name, const char *path,
		     enum job_stacks_what what, uint64_t amount)
{
	const size_t name_len = strnlen(name, JOB_STACKS_TEXT);
	const size_t path_len = strnlen(path, JOB_STACKS_TEXT), len = name_len + 1 + path_len;
	char key[2 * JOB_STACKS_TEXT + 1];
	struct function *f;

	memcpy(key, name, name_len);
	key[name_len] = '\0';
	memcpy(key + name_len + 1, path, path_len);
	HASH_FIND(hh, s->functions, key, len, f);
	if (!f)
		f = add_function(s, key, len, name_len);
	if (f)
		f->amount[what] += amount;
	else
		s->beyond[what] += amount;
	return f;
}

/* ---- The largest ------------------------------------------------------------------------------
 */

static char *repaired(const char *text, size_t len)
{
	char valid[(JOB_STACKS_TEXT + 2) * TEXT_GROWTH + 1];

	text_repair(valid, sizeof(valid), text, len, NULL);
	return strdup(valid);
}

static void drop(struct job_functions *of)
{
	for (size_t i = 0; i < of->n; i++) {
		free(of->list[i].name);
		free(of->list[i].path);
	}
	*of = (struct job_functions){.n = 0};
}

/* Of one without a name, its file. */
static char *name_of(const struct function *f)
{
	const char *path = f->key + f->name_len + 1, *slash;
	const size_t path_len = f->key_len - f->name_len - 1;
	char file[JOB_STACKS_TEXT + 3];
	int len;

	if (f->name_len)
		return repaired(f->key, f->name_len);
	slash = memrchr(path, '/', path_len);
	if (!path_len)
		return strdup("[unknown code]");
	len = snprintf(file, sizeof(file), "[%.*s]",
		       (int)(path_len - (slash ? (size_t)(slash + 1 - path) : 0)),
		       slash ? slash + 1 : path);
	return repaired(file, (size_t)len);
}

/* Of the same amount, the same come first each time. */
static bool is_larger(const struct function *f, const struct function *than,
		      enum job_stacks_what what)
{
	const size_t len = f->key_len < than->key_len ? f->key_len : than->key_len;
	int order;

	if (f->amount[what] != than->amount[what])
		return f->amount[what] > than->amount[what];
	order = memcmp(f->key, than->key, len);
	return order ? order < 0 : f->key_len < than->key_len;
}

static int name_all(struct job_functions *into, const struct function *const *largest, size_t n,
		    enum job_stacks_what what)
{
	for (size_t i = 0; i < n; i++) {
		const struct function *f = largest[i];
		struct job_function *named = &into->list[into->n++];

		named->amount = f->amount[what];
		named->name = name_of(f);
		named->path = repaired(f->key + f->name_len + 1, f->key_len - f->name_len - 1);
		if (!named->name || !named->path)
			return -ENOMEM;
	}
	return 0;
}

int job_samples_sum(const struct job_samples *s, enum job_stacks_what what, uint64_t all,
		    uint64_t samples, struct job_functions *into)
{
	const struct function *largest[JOB_STACKS_MOST];
	uint64_t sampled = s->beyond[what];
	size_t n = 0;

	*into = (struct job_functions){.is_sampled = true, .samples = samples, .all = all};
	into->other_amount = s->beyond[what];
	for (const struct function *f = s->functions; f; f = f->hh.next) {
		size_t at = n;

		if (!f->amount[what])
			continue;
		sampled += f->amount[what];
		while (at && is_larger(f, largest[at - 1], what))
			at--;
		if (n == JOB_STACKS_MOST) {
			const struct function *out = at == n ? f : largest[--n];

			into->others++;
			into->other_amount += out->amount[what];
			if (out == f)
				continue;
		}
		memmove(&largest[at + 1], &largest[at], (n++ - at) * sizeof(*largest));
		largest[at] = f;
	}
	into->unsampled = sampled < all ? all - sampled : 0;
	if (!name_all(into, largest, n, what))
		return 0;
	drop(into);
	return -ENOMEM;
}

void job_stacks_free(struct job_stacks *stacks)
{
	if (!stacks)
		return;
	for (size_t i = 0; i < JOB_STACKS_WHATS; i++)
		drop(&stacks->of[i]);
	free(stacks);
}
