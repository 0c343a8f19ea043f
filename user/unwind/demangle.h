/* SPDX-License-Identifier: GPL-2.0-only */
/* demangle.h - the names of functions of C++ and Rust, as people write them. In the child of
 * unwind.c alone: the names are of files of others. */
#ifndef QPROF_DEMANGLE_H
#define QPROF_DEMANGLE_H

/*
 * Returns a copy of the name without its parameters, to be freed: model::layer<int>::grow for
 * _ZN5model5layerIiE4growEm. It has at most UNWIND_MAX_NAME bytes. NULL: it is a name of neither,
 * there is no memory, or a hostile name takes too long (50 ms of CPU time), as do all after 16 of
 * these. Uses SIGVTALRM and its timer, so one thread at a time.
 */
char *demangle(const char *name);

#endif
