/* SPDX-License-Identifier: GPL-2.0-only */
/* Stacks of C and of Python, as one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "stacks/stack_calls.h"

#define LOOP   "_PyEval_EvalFrameDefault"
#define PYTHON "/usr/bin/python3.11"

static struct wire_stack sample;
static bool in_kernel; /* the next one was */

/* names: "f" is called by the next, "f!" by C. */
static void set_python(struct python_codes *codes, uint16_t end, const char *const *names)
{
	memset(&sample, 0, sizeof(sample));
	sample.python_end = end;
	for (; names[sample.n_python]; sample.n_python++) {
		const char *name = names[sample.n_python];
		const uint64_t address = sample.n_python + 1;
		struct wire_python_code code = {
			.code = address, .line = 10 * (uint32_t)address, .name_text.width = 1};

		code.name_text.len = (uint32_t)strcspn(name, "!");
		memcpy(code.name_text.bytes, name, code.name_text.len);
		python_codes_add(codes, &code, 0);
		sample.python[sample.n_python] = (struct wire_python_frame){
			.code = address, .line = code.line, .entered = strchr(name, '!') != NULL};
	}
}

/* "main;f:10;g", the outermost first. */
static void tell(const struct stacks *s, uint32_t call, char *out, size_t size)
{
	const struct stacks_function *functions;
	const struct stacks_call *calls;
	size_t n, len;

	functions = stacks_functions(s, &n);
	calls = stacks_calls(s, &n);
	if (call == STACKS_ROOT) {
		*out = '\0';
		return;
	}
	tell(s, calls[call].caller, out, size);
	len = strlen(out);
	len += (size_t)snprintf(out + len, size - len, "%s%s", *out ? ";" : "",
				functions[calls[call].function].name);
	if (calls[call].line)
		snprintf(out + len, size - len, ":%u", calls[call].line);
}

static void assert_mixed(uint16_t python_end, const char *const *python, enum unwind_end ended,
			 const struct unwind_frame *frames, size_t n, const char *want,
			 const char *want_end)
{
	struct python_codes *codes = python_codes_new();
	struct stacks *stacks = stacks_new(4096, false);
	char got[512];
	const char *end;

	set_python(codes, python_end, python);
	sample.in_kernel = in_kernel;
	tell(stacks, stack_calls_add(stacks, codes, &sample, frames, n, ended, &end), got,
	     sizeof(got));
	assert_string_equal(got, want);
	assert_string_equal(end, want_end);
	stacks_free(stacks);
	python_codes_free(codes);
}

static const char *const none[] = {NULL};

static void test_no_python(void **state)
{
	static const struct unwind_frame frames[] = {{"work", "/bin/a"}, {"main", "/bin/a"}};

	(void)state;
	assert_mixed(WIRE_PYTHON_NONE, none, UNWIND_WHOLE, frames, 2, "main;work", "whole");
	assert_mixed(WIRE_PYTHON_NONE, none, UNWIND_CUT, frames, 2,
		     "(deeper than 32 KiB);main;work", "deeper than 32 KiB");
	assert_mixed(WIRE_PYTHON_NONE, none, UNWIND_NO_MAPPINGS, NULL, 0, "(process gone)",
		     "process gone");
}

/* The kernel is called by the innermost function, whatever is known of it. */
static void test_kernel(void **state)
{
	static const struct unwind_frame frames[] = {{"work", "/bin/a"}, {"main", "/bin/a"}};
	static const char *const python[] = {"f!", NULL};

	(void)state;
	in_kernel = true;
	assert_mixed(WIRE_PYTHON_NONE, none, UNWIND_WHOLE, frames, 2, "main;work;[kernel]",
		     "whole");
	assert_mixed(WIRE_PYTHON_NONE, none, UNWIND_NO_MAPPINGS, NULL, 0, "(process gone);[kernel]",
		     "process gone");
	assert_mixed(WIRE_PYTHON_WHOLE, python, UNWIND_WHOLE, NULL, 0, "f:10;[kernel]", "whole");
	in_kernel = false;
}

/* C calls Python, which calls C, which calls Python. What the interpreter does in between is left
 * out; what it does for the innermost function is told. */
static void test_between(void **state)
{
	static const char *const python[] = {"inner!", "g", "f!", "<module>!", NULL};
	static const struct unwind_frame frames[] = {{"malloc", "/lib/libc.so.6"},
						     {"new_list", PYTHON},
						     {LOOP, PYTHON},
						     {"PyObject_Call", PYTHON},
						     {"apply", "/lib/np.so"},
						     {"vectorcall", PYTHON},
						     {LOOP ".cold", PYTHON},
						     {LOOP, PYTHON},
						     {"Py_RunMain", PYTHON},
						     {"__libc_start", "/lib/libc.so.6"}};

	(void)state;
	assert_mixed(WIRE_PYTHON_WHOLE, python, UNWIND_WHOLE, frames, 10,
		     "__libc_start;<module>:40;f:30;g:20;apply;inner:10;new_list;malloc", "whole");
}

/* Whoever unwinds C may come less far. */
static void test_rest(void **state)
{
	static const char *const python[] = {"g!", "f!", NULL};
	static const struct unwind_frame frames[] = {{"", ""}, {LOOP, PYTHON}};

	(void)state;
	assert_mixed(WIRE_PYTHON_WHOLE, python, UNWIND_UNKNOWN_CODE, frames, 2, "f:20;g:10;",
		     "whole by its frames of Python");
	assert_mixed(WIRE_PYTHON_WHOLE, python, UNWIND_OVERRUN, NULL, 0, "f:20;g:10",
		     "whole by its frames of Python");
	assert_mixed(WIRE_PYTHON_CUT, python, UNWIND_WHOLE, frames, 2,
		     "(more than 128 calls of Python);f:20;g:10;", "more than 128 calls of Python");
	assert_mixed(WIRE_PYTHON_UNREADABLE, none, UNWIND_WHOLE, frames, 2,
		     "(frames of Python unreadable);" LOOP ";", "frames of Python unreadable");
}

/* A code object that was not told of, and a thread that was not found. */
static void test_unknown(void **state)
{
	static const char *const python[] = {"f!", NULL};
	static const struct unwind_frame frames[] = {{LOOP, PYTHON}};
	struct python_codes *codes = python_codes_new();
	struct stacks *stacks = stacks_new(4096, false);
	const char *end;

	(void)state;
	set_python(codes, WIRE_PYTHON_WHOLE, python);
	sample.python[0].digest++;
	stack_calls_add(stacks, codes, &sample, frames, 1, UNWIND_WHOLE, &end);
	assert_string_equal(end, "names of Python not kept");
	sample.n_python = 0;
	sample.python_end = WIRE_PYTHON_CROWDED;
	stack_calls_add(stacks, codes, &sample, frames, 1, UNWIND_WHOLE, &end);
	assert_string_equal(end, "more than 4,096 threads of Python");
	stacks_free(stacks);
	python_codes_free(codes);
}

static void assert_who(const char *const *python, const struct unwind_frame *frames, size_t n,
		       const char *want, uint32_t line)
{
	struct python_codes *codes = python_codes_new();
	struct stack_charged to;

	set_python(codes, python[0] ? WIRE_PYTHON_WHOLE : WIRE_PYTHON_NONE, python);
	assert_int_equal(stack_calls_who(codes, &sample, frames, n, UNWIND_WHOLE, &to),
			 want != NULL);
	assert_true(to.is_whole);
	if (want) {
		assert_string_equal(to.who.name, want);
		assert_int_equal(to.who.line, line);
	}
	python_codes_free(codes);
}

/* The innermost that has a name and is not the C library's, or the interpreter's. */
static void test_who(void **state)
{
	static const struct unwind_frame c[] = {{"memset", "/lib/libc.so.6"},
						{"", "/lib/libx.so"},
						{"work", "/bin/a"},
						{"main", "/bin/a"}};
	static const struct unwind_frame stripped[] = {{"", "/lib/libc.so.6"},
						       {"", "/lib/libx.so"}};
	static const struct unwind_frame all_of_c[] = {{"memset", "/lib/libc.so.6"},
						       {"start", "/lib/libc.so.6"}};

	(void)state;
	assert_who(none, c, 4, "work", 0);
	assert_who(none, c + 2, 2, "work", 0);
	assert_who(none, stripped, 2, "", 0);
	assert_who(none, all_of_c, 2, "memset", 0);
	assert_who(none, NULL, 0, NULL, 0);
}

static void test_who_of_python(void **state)
{
	static const char *const python[] = {"f!", NULL};
	static const struct unwind_frame in_python[] = {{"new_list", PYTHON}, {LOOP, PYTHON}};

	(void)state;
	assert_who(python, in_python, 2, "f", 10);
}

static void test_most(void **state)
{
	const char *python[WIRE_PYTHON_FRAMES + 1] = {NULL};
	struct unwind_frame frames[UNWIND_MAX_FRAMES];
	struct python_codes *codes = python_codes_new();
	struct stacks *stacks = stacks_new(4096, false);
	const char *end;
	size_t n;

	(void)state;
	for (size_t i = 0; i < WIRE_PYTHON_FRAMES; i++)
		python[i] = "f";
	for (size_t i = 0; i < UNWIND_MAX_FRAMES; i++)
		frames[i] = (struct unwind_frame){i + 1 < UNWIND_MAX_FRAMES ? "c" : LOOP, "/bin/a"};
	set_python(codes, WIRE_PYTHON_WHOLE, python);
	stack_calls_add(stacks, codes, &sample, frames, UNWIND_MAX_FRAMES, UNWIND_TOO_DEEP, &end);
	stacks_calls(stacks, &n);
	assert_int_equal(n, 1 + UNWIND_MAX_FRAMES - 1 + WIRE_PYTHON_FRAMES);
	stacks_free(stacks);
	python_codes_free(codes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_python), cmocka_unit_test(test_between),
		cmocka_unit_test(test_rest),	  cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_who),	  cmocka_unit_test(test_who_of_python),
		cmocka_unit_test(test_most),	  cmocka_unit_test(test_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
