/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/exec_words.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "model/profile.h"

enum { MAX_ARG = 99 };

static bool is(const char *word, size_t len, const char *what)
{
	return len == strlen(what) && !memcmp(word, what, len);
}

/* Returns N of "argN"; 0: it is none. */
static size_t arg_of(const char *word, size_t len)
{
	size_t arg = 0;

	if (len < 4 || len > 5 || memcmp(word, "arg", 3) != 0 || word[3] == '0')
		return 0;
	for (size_t i = 3; i < len; i++) {
		if (word[i] < '0' || word[i] > '9')
			return 0;
		arg = 10 * arg + (size_t)(word[i] - '0');
	}
	return arg <= MAX_ARG ? arg : 0;
}

const char *exec_words_check(void *context, const char *word, size_t len)
{
	(void)context;
	return is(word, len, "pid") || is(word, len, "comm") || is(word, len, "executable") ||
			       is(word, len, "arguments") || arg_of(word, len)
		       ? NULL
		       : "a word that no program has: use {pid}, {comm}, {executable}, {arguments} "
			 "and {arg1} to {arg99}, and {{ for a brace";
}

struct part {
	const char *at;
	size_t len;
};

/* Returns the argument, 0 the name that it was called by; at is NULL if there is none. The NUL of
 * the last may be cut. */
static struct part argument(const struct wire_process *exec, size_t arg)
{
	const char *at = exec->cmdline, *end = at + exec->cmdline_len;

	while (at < end) {
		const size_t len = strnlen(at, (size_t)(end - at));

		if (!arg--)
			return (struct part){at, len};
		at += len + 1;
	}
	return (struct part){0};
}

static struct part basename_of(struct part path)
{
	for (size_t i = path.len; i; i--)
		if (path.at[i - 1] == '/')
			return (struct part){path.at + i, path.len - i};
	return path;
}

static size_t put(struct part part, char *out, size_t room)
{
	const struct part shown = part.at ? part : (struct part){"?", 1};
	const size_t len = shown.len < room ? shown.len : room;

	memcpy(out, shown.at, len);
	return len;
}

static size_t put_arguments(const struct wire_process *exec, char *out, size_t room)
{
	size_t len = 0;

	for (size_t arg = 1; argument(exec, arg).at && len < room; arg++) {
		if (arg > 1)
			out[len++] = ' ';
		len += put(argument(exec, arg), out + len, room - len);
	}
	return len;
}

size_t exec_words_fill(const void *context, const char *word, size_t len, char *out, size_t room)
{
	const struct wire_process *exec = context;
	char pid[16];

	if (is(word, len, "pid")) {
		snprintf(pid, sizeof(pid), "%u", exec->h.tgid);
		return put((struct part){pid, strlen(pid)}, out, room);
	}
	if (is(word, len, "comm"))
		return put((struct part){exec->comm, strnlen(exec->comm, sizeof(exec->comm))}, out,
			   room);
	if (is(word, len, "executable"))
		return put(basename_of(argument(exec, 0)), out, room);
	if (is(word, len, "arguments"))
		return put_arguments(exec, out, room);
	return put(argument(exec, arg_of(word, len)), out, room);
}
