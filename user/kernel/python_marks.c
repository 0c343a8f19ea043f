/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/python_marks.h"

#include <string.h>

#include "kernel/procfs_aside.h"

struct look {
	bool python, library, trace;
};

static bool begins(const char *path, const char *prefix)
{
	const char *const slash = strrchr(path, '/');

	return slash && !strncmp(slash + 1, prefix, strlen(prefix));
}

bool python_marks_is_trace(const char *path)
{
	static const char end[] = "/qprof/_no_library.py";
	const size_t len = strlen(path), n = sizeof(end) - 1;

	return len >= n && !strcmp(path + len - n, end);
}

static int note(void *context, const struct procfs_mapping *m)
{
	struct look *look = context;

	if (!m)
		return 0;
	look->python |= begins(m->path, "python3") || begins(m->path, "libpython3");
	look->library |= begins(m->path, "libqprof.so");
	look->trace |= python_marks_is_trace(m->path);
	return 0;
}

int python_marks_look(pid_t pid, enum python_marks *found)
{
	struct look look = {0};
	const int err = procfs_aside_each_mapped(pid, note, &look);

	*found = look.library  ? PYTHON_HEARD
		 : look.trace  ? PYTHON_NO_LIBRARY
		 : look.python ? PYTHON_NO_PACKAGE
			       : PYTHON_NONE;
	return err;
}
