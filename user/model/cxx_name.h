/* SPDX-License-Identifier: GPL-2.0-only */
/* cxx_name.h - the name of a C++ class, as a typeinfo has it, for people. */
#ifndef QPROF_CXX_NAME_H
#define QPROF_CXX_NAME_H

#include <stddef.h>

/*
 * Makes "std::bad_alloc" of "St9bad_alloc", and "c10::Error" of "N3c105ErrorE". What is more than
 * classes within each other, such as a template, stays as it is. Cuts what is longer than size.
 */
void cxx_name(char *out, size_t size, const char *type);

#endif
