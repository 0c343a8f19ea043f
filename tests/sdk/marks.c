/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * marks.c - every macro of qprof.h, as C99 and as C++11: the tests compile it in many ways.
 *
 * MARKS_LIBRARY leaves main() out, MARKS_MAIN all but main(): then it is a library and its program.
 */
#include "qprof.h"

#include <stdbool.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C"
#endif
	int
	marks_emit(int layers, int *evaluated);

#ifndef MARKS_MAIN

/* Each probe once in the file, however the compiler inlines and unrolls. */
#define ONCE __attribute__((noinline, noclone))
#ifdef __clang__
#undef ONCE
#define ONCE __attribute__((noinline))
#endif

static ONCE void values(signed char byte, unsigned short word, long long wide, float single,
			double real, bool flag)
{
	enum { BITS = 8 } bits = BITS;

	QPROF_METRIC("byte", byte);
	QPROF_METRIC("word", word);
	QPROF_METRIC("wide", wide);
	QPROF_METRIC("single", single);
	QPROF_METRIC("real", real);
	QPROF_METRIC("flag", flag);
	QPROF_METRIC("bits", bits);
	QPROF_METRIC("literal", 0.3);
	QPROF_METRIC("constant", -5);
}

static ONCE int layer(int number)
{
	QPROF_SCOPE("Layer");
	if (number == 0)
		return 1; /* the scope ends here, too */
	QPROF_MARK("Inside");
	return 0;
}

static ONCE const char *prepared(int *evaluated)
{
	++*evaluated;
	return "Prepared";
}

int marks_emit(int layers, int *evaluated)
{
	int early = 0;

	QPROF_BEGIN("Quantize");
	values(-3, 65535, -1234567890123LL, 0.1F, 0.25, true);
	QPROF_MARK("Measured");
	for (int i = 0; i < layers; i++)
		early += layer(i);
	QPROF_MARK(prepared(evaluated));
	QPROF_END("Quantize");
	return early + QPROF_ENABLED();
}

#endif

#ifndef MARKS_LIBRARY

int main(void)
{
	int evaluated = 0;
	int found = marks_emit(2, &evaluated);

	printf("{\"evaluated\": %d, \"early_and_enabled\": %d}\n", evaluated, found);
	return 0;
}

#endif
