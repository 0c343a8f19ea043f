/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * python_marks.h - whether marks of the Python package qprof can be heard. The package needs
 * libqprof.so.0 for that; if it found none, it leaves a trace: it maps its file _no_library.py.
 */
#ifndef QPROF_PYTHON_MARKS_H
#define QPROF_PYTHON_MARKS_H

#include <stdbool.h>
#include <sys/types.h>

enum python_marks {
	PYTHON_NONE,	   /* no Python is mapped */
	PYTHON_HEARD,	   /* the library is there */
	PYTHON_NO_LIBRARY, /* the package looked for it in vain */
	PYTHON_NO_PACKAGE, /* the package was not imported, or is one of before that trace */
};

/* Looks at what the process maps. Returns 0, or -errno. */
int python_marks_look(pid_t pid, enum python_marks *found);
/* Returns true if this is the path of the package's trace. */
bool python_marks_is_trace(const char *path);

/* What is wrong, and what to do. */
#define PYTHON_NO_LIBRARY_WHY                                                                      \
	"the package found no libqprof.so.0: install libqprof0, or set QPROF_LIBRARY, and start "  \
	"the program again"

#endif
