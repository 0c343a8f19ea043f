/* SPDX-License-Identifier: GPL-2.0-only */
/* demangle_test.c - names of C++ and Rust, and what only looks like one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unwind/demangle.h"
#include "unwind/unwind.h"

static void test_names(void **state)
{
	static const char *const cases[][2] = {
		{"_ZN5model5layerIiE4growEm", "model::layer<int>::grow"},
		{"_ZN12_GLOBAL__N_14loadERKSs", "(anonymous namespace)::load"},
		{"_ZN2at6native10add_kernelERNS_18TensorIteratorBaseE", "at::native::add_kernel"},
		{"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"},
		{"_ZN5model4growEv.cold", "model::grow"},
		{"_Znwm", "operator new"},
		{"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
		{"_RNvC6_123foo3bar", "123foo::bar"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *name = demangle(cases[i][0]);

		assert_non_null(name);
		assert_string_equal(name, cases[i][1]);
		free(name);
	}
}

static void test_no_names(void **state)
{
	static const char *const cases[] = {"",	   "main",	"_start", "_Z",	    "_R",
					    "_ZN", "_ZN9toolE", "_Zzzz",  "Z4main", "_ZN5model"};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_null(demangle(cases[i]));
}

/* Of templates within templates the first bytes are enough. */
static void test_long_names(void **state)
{
	const size_t n = 200;
	char mangled[4 * 200 + 32], *name;
	size_t at = (size_t)snprintf(mangled, sizeof(mangled), "_Z4grow");

	(void)state;
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(mangled + at, sizeof(mangled) - at, "I1a");
	for (size_t i = 0; i < n; i++)
		mangled[at++] = 'E';
	snprintf(mangled + at, sizeof(mangled) - at, "vv");
	name = demangle(mangled);
	assert_non_null(name);
	assert_int_equal(strlen(name), UNWIND_MAX_NAME - 1);
	assert_memory_equal(name, "grow<a<a<a<", 11);
	free(name);
}

/* None of them may end the child, or keep it for long. */
static void test_hostile_names(void **state)
{
	enum { LONG = 200000 };
	static const char *const begins[] = {"_Z", "_ZN", "_ZP", "_RNv", "_ZN1aI", "_RINvC1a1bT"};
	static const char *const more[] = {"P", "1a", "PP", "NvC", "I1a", "TB_"};
	char *text = malloc(LONG + 1);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		for (size_t len = 4000; len <= LONG; len += LONG - 4000) {
			size_t at = (size_t)snprintf(text, LONG, "%s", begins[i]);

			while (at + strlen(more[i]) < len)
				at += (size_t)snprintf(text + at, LONG - at, "%s", more[i]);
			free(demangle(text));
		}
	free(text);
}

static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* Each argument is written as two of the one before: 2^33 bytes, if somebody wrote them all. */
static void test_a_bomb(void **state)
{
	char text[1024], *name;
	size_t at = (size_t)snprintf(text, sizeof(text), "_Z1fIPFviiE");

	(void)state;
	for (size_t i = 1; i < 34; i += 2)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "PFvS%c_S%c_S%c_S%c_E",
				       digits[i], digits[i], digits[i], digits[i]);
	snprintf(text + at, sizeof(text) - at, "Evv");
	name = demangle(text);
	assert_non_null(name);
	assert_int_equal(strlen(name), UNWIND_MAX_NAME - 1);
	assert_memory_equal(name, "f<void (*)(int, int), void (*)(void (*)(int, int),", 50);
	free(name);
}

/* Of functions within functions: each has the one within it twice, and all are looked through for
 * what is to be expanded. */
static void write_endless(char *text, size_t size)
{
	const size_t deep = 32;
	size_t at = (size_t)snprintf(text, size, "_Z1fIDp");

	for (size_t i = 0; i <= deep; i++)
		at += (size_t)snprintf(text + at, size - at, "PFv");
	at += (size_t)snprintf(text + at, size - at, "vE");
	for (size_t number = 1; number < 2 * deep; number += 2) {
		const char first = digits[number % 36];

		at += (size_t)(number < 36 ? snprintf(text + at, size - at, "S%c_E", first)
					   : snprintf(text + at, size - at, "S1%c_E", first));
	}
	snprintf(text + at, size - at, "Evv");
}

static void test_endless_names(void **state)
{
	char text[1024], *name;

	(void)state;
	write_endless(text, sizeof(text));
	assert_null(demangle(text));
	name = demangle("_ZN5model4growEv");
	assert_non_null(name);
	assert_string_equal(name, "model::grow");
	free(name);
	for (int i = 0; i < 16; i++)
		assert_null(demangle(text));
	assert_null(demangle("_ZN5model4growEv")); /* they take the time of others */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	   cmocka_unit_test(test_no_names),
		cmocka_unit_test(test_long_names), cmocka_unit_test(test_hostile_names),
		cmocka_unit_test(test_a_bomb),	   cmocka_unit_test(test_endless_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
