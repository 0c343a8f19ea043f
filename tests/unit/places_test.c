/* SPDX-License-Identifier: GPL-2.0-only */
/* Recipes of functions and probes: what the reader takes, what arguments show as, calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "recipes/braces.h"
#include "recipes/calls.h"
#include "recipes/recipe.h"

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))
#define HEAD	      "name: a\nmatch: {executable: a}\ncheckpoints:\n"

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *item, *says;
	} examples[] = {
		{"- {symbol: f, phase: '{arg7:int}'}", ":4: '{arg7:int}': no such argument"},
		{"- {symbol: f, phase: '{arg0:int}'}", "no such argument"},
		{"- {symbol: f, phase: '{arg10:int}'}", "no such argument"},
		{"- {symbol: f, phase: '{arg1:double}'}", "an unknown type"},
		{"- {symbol: f, phase: '{arg1}'}", "an argument without its type"},
		{"- {symbol: f, phase: '{0}'}", "an unknown word"},
		{"- {symbol: f, phase: '{probe}'}", "an unknown word"},
		{"- {symbol: f, phase: '{arg1:int'}", "a '{' without its '}'"},
		{"- {symbol: f, metric: {n: '{arg9:int}'}}", "no such argument"},
		{"- {symbol: f, mark: '{arg1:string}{arg2:string}{arg3:string}'}",
		 "more than two arguments are texts"},
		{"- {symbol: f, literal: x}", "'literal' is for items of a log"},
		{"- {symbol: f, name: {arg: 7, type: int}}", "no such argument"},
		{"- {symbol: f, name: {arg: 1, type: real}}", "an unknown type"},
		{"- {symbol: f, name: {arg: 1}}", "'name' needs arg and type"},
		{"- {symbol: f, name: {argument: 1, type: int}}", "'argument' is no key of 'name'"},
		{"- {symbol: f, name: x, phase: y}", "a line does one of"},
		{"- {symbol: f, mark: x, name: y}", "'name' names a phase"},
		{"- {symbol: f, log: g, mark: x}", "an item listens to one thing"},
		{"- {symbol: ''}", "'symbol' is empty"},
		{"- {usdt: gc, mark: x}", "'usdt' is PROVIDER:NAME"},
		{"- {usdt: 'a:b', mark: '{function}'}", "an unknown word"},
	};

	(void)state;
	for (size_t i = 0; i < LENGTH(examples); i++) {
		struct recipes *r = recipes_new();
		struct error err = {0};
		char text[256];

		snprintf(text, sizeof(text), HEAD "%s\n", examples[i].item);
		if (!recipes_parse(r, "test", text, strlen(text), &err))
			fail_msg("%s: expected '%s', got no error", text, examples[i].says);
		if (!strstr(err.text, examples[i].says) || !strstr(err.text, "test:4: "))
			fail_msg("%s: expected '%s' in line 4, got '%s'", text, examples[i].says,
				 err.text);
		recipes_free(r);
	}
}

static struct recipes *parse(const char *items)
{
	struct recipes *r = recipes_new();
	struct error err = {0};
	char text[512];

	snprintf(text, sizeof(text), HEAD "%s\n", items);
	if (recipes_parse(r, "test", text, strlen(text), &err))
		fail_msg("expected a recipe, got: %s", err.text);
	return r;
}

static void an_item_has_its_arguments(void **state)
{
	struct recipes *r = parse("- {symbol: f}\n"
				  "- {symbol: 'g*', name: {arg: 1, type: string}}\n"
				  "- {symbol: h, mark: '{arg3:int} {arg2:string}', metric: {n: "
				  "'{arg6:long}'}}\n"
				  "- {usdt: 'python:gc__*'}\n"
				  "- {usdt: 'a:b', begin: '{arg1}'}\n");
	const struct recipe_item *items = recipes_at(r, 0)->items;

	(void)state;
	assert_int_equal(items[0].does, RECIPE_PHASE);
	assert_string_equal(items[0].name, "{function}");
	assert_int_equal(items[1].does, RECIPE_PHASE);
	assert_string_equal(items[1].name, "{arg1:string}");
	assert_int_equal(items[1].args.used, 1);
	assert_int_equal(items[2].args.used, 1 << 2 | 1 << 1 | 1 << 5);
	assert_int_equal(items[2].args.n_texts, 1);
	assert_int_equal(items[2].args.texts[0], 1);
	assert_int_equal(items[3].does, RECIPE_MARK);
	assert_string_equal(items[3].name, "{probe}");
	assert_int_equal(items[4].does, RECIPE_BEGIN);
	recipes_free(r);
}

static void arguments_show_by_their_type(void **state)
{
	static const struct recipe_args args = {.used = 63, .texts = {0, 4}, .n_texts = 2};
	static const struct wire_hit hit = {
		.known = 31,
		.value = {1, 0xfffffffffffffffe, 0x1234567800000100, 3, 4},
		.len = {5, -14},
		.text = {"name", ""},
	};
	static const struct args_met met = {&args, &hit, "quantize"};
	static const struct {
		const char *text, *shown;
	} examples[] = {
		{"{function}: {arg1:string}", "quantize: name"},
		{"{arg2:int} {arg2:long} {arg2:uint}", "-2 -2 4294967294"},
		{"{arg2:ulong}", "18446744073709551614"},
		{"{arg3:int} {arg3:bool} {arg4:bool}", "256 false true"},
		{"{arg3:pointer}", "0x1234567800000100"},
		{"{arg5:string}", "?"}, /* could not be read */
		{"{arg6:int}", "?"},
	};
	char out[MARK_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < LENGTH(examples); i++) {
		braces_fill(examples[i].text, args_fill, &met, out, sizeof(out));
		assert_string_equal(out, examples[i].shown);
	}
}

/* ---- Calls ------------------------------------------------------------------------------------
 */

static void call(struct calls *c, uint32_t tid, uint32_t item, uint64_t stack, const char *name)
{
	char *to = calls_begin(c, &(struct call_place){tid, item, stack, 0});

	assert_non_null(to);
	snprintf(to, MARK_NAME_MAX, "%s", name);
}

static void expect_left(struct calls *c, uint32_t tid, uint32_t item, uint64_t stack,
			const char *names)
{
	const struct call_place at = {tid, item, stack, 0};
	char name[MARK_NAME_MAX], all[4 * MARK_NAME_MAX] = "";

	while (calls_take_left(c, &at, name))
		strcat(strcat(all, name), " ");
	assert_string_equal(all, names);
}

static void expect_return(struct calls *c, uint32_t item, uint64_t stack, const char *names)
{
	const struct call_place at = {1, item, stack, 0};
	char name[MARK_NAME_MAX], all[4 * MARK_NAME_MAX] = "";
	bool last = false;

	while (!last && calls_take(c, &at, name, &last))
		strcat(strcat(all, name), " ");
	assert_string_equal(all, names);
}

static void recursion_nests(void **state)
{
	struct calls c = {0};

	(void)state;
	call(&c, 1, 7, 900, "outer");
	expect_left(&c, 1, 7, 800, "");
	call(&c, 1, 7, 800, "inner");
	expect_return(&c, 7, 800, "inner ");
	expect_return(&c, 7, 800, "");
	expect_return(&c, 7, 900, "outer ");
	calls_free(&c);
}

static void calls_that_were_left_are_over(void **state)
{
	struct calls c = {0};

	(void)state;
	call(&c, 1, 7, 900, "outer");
	call(&c, 1, 8, 500, "middle");
	call(&c, 1, 7, 300, "inner");
	call(&c, 2, 7, 200, "of another thread");
	expect_left(&c, 1, 9, 600, "inner middle ");
	expect_left(&c, 1, 7, 900, "outer "); /* called again at the same place */
	expect_left(&c, 2, 9, 200, "");	      /* the function at its end, another item */
	expect_return(&c, 7, 200, "of another thread ");
	calls_free(&c);
}

static void what_returns_together_ends_together(void **state)
{
	struct calls c = {0};

	(void)state;
	call(&c, 1, 7, 900, "outer");
	call(&c, 1, 8, 900, "called last");
	call(&c, 1, 9, 500, "left");
	call(&c, 2, 9, 400, "of another thread");
	expect_return(&c, 7, 900, "left called last outer ");
	expect_return(&c, 8, 900, "");
	assert_int_equal(c.n, 1);
	calls_free(&c);
}

static void another_stack_ends_no_call(void **state)
{
	struct calls c = {0};

	(void)state;
	call(&c, 1, 7, 900, "on the heap");
	expect_left(&c, 1, 7, 900 + CALLS_STACK, "");
	expect_return(&c, 7, 900, "on the heap ");
	calls_free(&c);
}

static void calls_of_a_place_are_taken(void **state)
{
	const struct call_place hot = {.tid = 1, .item = 7, .stack = 500, .site = 3};
	struct calls c = {0};
	char name[MARK_NAME_MAX];

	(void)state;
	call(&c, 1, 7, 900, "of another place");
	snprintf(calls_begin(&c, &hot), MARK_NAME_MAX, "outer");
	call(&c, 1, 8, 400, "of another item");
	snprintf(calls_begin(&c, &hot), MARK_NAME_MAX, "inner");
	assert_true(calls_take_at(&c, 3, name));
	assert_string_equal(name, "inner");
	assert_true(calls_take_at(&c, 3, name));
	assert_string_equal(name, "outer");
	assert_false(calls_take_at(&c, 3, name));
	assert_int_equal(c.n, 2);
	calls_free(&c);
}

static void there_is_an_end_to_depth(void **state)
{
	const struct call_place at = {1, 7, 5, 0};
	struct calls c = {0};

	(void)state;
	for (uint64_t i = 0; i < CALLS_MAX; i++)
		call(&c, 1, 7, 1000000 - i, "deep");
	assert_null(calls_begin(&c, &at));
	expect_return(&c, 7, 1000000 - CALLS_MAX + 1, "deep ");
	assert_non_null(calls_begin(&c, &at));
	calls_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(an_item_has_its_arguments),
		cmocka_unit_test(arguments_show_by_their_type),
		cmocka_unit_test(recursion_nests),
		cmocka_unit_test(calls_that_were_left_are_over),
		cmocka_unit_test(what_returns_together_ends_together),
		cmocka_unit_test(another_stack_ends_no_call),
		cmocka_unit_test(calls_of_a_place_are_taken),
		cmocka_unit_test(there_is_an_end_to_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
