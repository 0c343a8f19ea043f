/* SPDX-License-Identifier: GPL-2.0-only */
/* What the import hook of Python is told of recipes, and what its words mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "recipes/python_items.h"

static void add(struct recipes *r, const char *text)
{
	struct error err = {0};

	if (recipes_parse(r, "test", text, strlen(text), &err))
		fail_msg("expected a recipe, got: %s", err.text);
}

#define HEAD "name: a\nmatch: {executable: a}\n"

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text, *says;
	} examples[] = {
		{HEAD "checkpoints:\n- {python: 'a.b', mark: x}\n",
		 "test:4: 'python' is to be 'MODULE:FUNCTION'"},
		{HEAD "checkpoints:\n- {python: 'a:b:c', mark: x}\n", "'python' is to be"},
		{HEAD "checkpoints:\n- {python: 'a: b', mark: x}\n", "'python' is to be"},
		{HEAD "checkpoints:\n- {python: 'a:*?*?*?*?*?*?*?*?*', mark: x}\n",
		 "more than 8 '*'"},
		{HEAD "checkpoints:\n- {python: 'a:b', mark: \"x\\ty\"}\n",
		 "test:4: a text with a control character"},
		{HEAD "checkpoints:\n- {python: 'a:b', mark: 'x {y'}\n", "a '{' without its '}'"},
		{HEAD "checkpoints:\n- {python: 'a:b', mark: 'x {y.}'}\n",
		 "test:4: {layer} is an argument, {0} the first"},
		{HEAD "checkpoints:\n- {python: 'a:b', mark: 'x {f()}'}\n", "is an argument"},
		{HEAD "checkpoints:\n- {python: 'a:b', mark: 'x {y[0}'}\n", "is an argument"},
		{HEAD "checkpoints:\n- {python: 'a:b', metric: {n: '{y z}'}}\n", "is an argument"},
		{HEAD "checkpoints:\n- {python: 'a:b', phase: x, at: return}\n",
		 "test:4: the phase of a call ends as it returns"},
		{HEAD "checkpoints:\n- {python: 'a:b', begin: x, at: call}\n",
		 "test:4: 'at' is to be return"},
		{HEAD "checkpoints:\n- {python: 'a:b', mark: x, literal: y}\n",
		 "test:4: 'literal' is for a log"},
		{HEAD "checkpoints:\n- {python: 'a:b', mark: x, children: yes}\n",
		 "test:4: 'children' is for items of a log"},
		{HEAD "checkpoints:\n- {python: 'a:b', log: y, mark: x}\n",
		 "test:4: an item listens to one thing, and 'python' is here"},
		{HEAD "checkpoints:\n- {log: y, mark: x, at: return}\n",
		 "test:4: 'at' is for calls, and this is a log"},
		{"name: a\ncheckpoints: [{python: 'a:b', mark: x}, {log: y, mark: x}]\n",
		 "test:1: the recipe 'a' matches nothing"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		struct recipes *r = recipes_new();
		struct error err = {0};
		const char *text = examples[i].text;
		const int code = recipes_parse(r, "test", text, strlen(text), &err);

		if (code != -1 || !strstr(err.text, examples[i].says) || strchr(err.text, '\n'))
			fail_msg("'%s': expected '%s', got %d, '%s'", text, examples[i].says, code,
				 err.text);
		recipes_free(r);
	}
}

static const char tool[] =
	"name: tool\n"
	"match: {any: [{executable: x, modules: [tool, 'tool.*']}, {modules: other}]}\n"
	"checkpoints:\n"
	"- {log: x, mark: x}\n"
	"- {python: 'tool.*:*.process', phase: 'Layer {layer[0].name}'}\n"
	"- {python: 'tool:f', begin: Run, at: return, metric: {a: '{b}', c: 1}, summary: {d: "
	"'{0}'}}\n"
	"- {python: 'tool:g', metric: {e: '{f}'}}\n";

static const char library[] = "name: library\nbeside: yes\nmatch: {modules: torch}\n"
			      "checkpoints: [{python: 'torch:g', end: Run}]\n";

static void the_hook_knows_modules_and_items(void **state)
{
	static const char *const lines =
		"m\ttool\n"
		"m\ttool.*\n"
		"m\tother\n"
		"m\ttorch\n"
		"i\t0\t1\tphase\ttool.*:*.process\tLayer {layer[0].name}\n"
		"i\t0\t2\tbegin@\ttool:f\tRun\tm\ta\t{b}\tm\tc\t1\ts\td\t{0}\n"
		"i\t0\t3\tnone\ttool:g\t\tm\te\t{f}\n"
		"i\t1\t0\tend\ttorch:g\tRun\n";
	struct recipes *r = recipes_new();
	struct python_items items;
	char first[64];

	(void)state;
	add(r, tool);
	add(r, library);
	assert_int_equal(python_items_write(&items, r), 0);
	snprintf(first, sizeof(first), "1\t%u\n", items.set);
	assert_int_equal(strncmp(items.text, first, strlen(first)), 0);
	assert_string_equal(items.text + strlen(first), lines);
	assert_false(items.left_out[0] || items.left_out[1] || items.modules_left_out);
	python_items_free(&items);
	recipes_free(r);
}

static void without_python_there_is_nothing_to_know(void **state)
{
	struct recipes *r = recipes_new();
	struct python_items items;

	(void)state;
	add(r, "name: a\nmatch: {executable: a}\ncheckpoints: [{log: x, mark: x}]\n");
	assert_int_equal(python_items_write(&items, r), 0);
	assert_null(items.text);
	python_items_free(&items);
	recipes_free(r);
}

static void recipes_without_a_match_have_no_rule(void **state)
{
	struct recipes *r = recipes_new();

	(void)state;
	add(r, "name: a\ncheckpoints: [{python: 'a:b', mark: x}]\n");
	add(r, library);
	assert_int_equal(rules_count(recipes_rules(r, 0)), 0);
	assert_false(recipes_at(r, 0)->matches);
	assert_true(recipes_at(r, 1)->matches);
	recipes_free(r);
}

/* Whole recipes are left out; shorter ones behind them may still fit. */
static void what_is_too_long_is_left_out(void **state)
{
	struct recipes *r = recipes_new();
	struct python_items items;
	char *text = malloc(65536), name[401];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int recipe = 0; recipe < 6; recipe++) {
		int at = sprintf(text, "name: r%d\nmatch: {modules: x}\ncheckpoints:\n", recipe);

		for (int i = 0; i < 32; i++)
			at += sprintf(text + at, "- {python: 'm:f%d', mark: %s}\n", i, name);
		add(r, text);
	}
	add(r, "name: short\ncheckpoints: [{python: 'a:b', mark: x}]\n");
	assert_int_equal(python_items_write(&items, r), 0);
	for (size_t i = 0; i < recipes_count(r); i++)
		if (items.left_out[i] != (i == 4 || i == 5))
			fail_msg("recipe %zu: expected %d to be left out, got %d", i,
				 i == 4 || i == 5, items.left_out[i]);
	assert_true(strlen(items.text) < PYTHON_ITEMS_MAX);
	assert_non_null(strstr(items.text, "\ni\t6\t0\tmark\ta:b\tx\n"));
	python_items_free(&items);
	recipes_free(r);
	free(text);
}

/* ---- What was written down --------------------------------------------------------------------
 */

static void put_file(const char *directory, const char *name, const char *text)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void keep(const char *directory)
{
	struct error err = {0};
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/python.items", directory);
	out = fopen(path, "w");
	assert_non_null(out);
	if (python_items_keep(directory, out, &err))
		fail_msg("expected items to be written, got: %s", err.text);
	assert_int_equal(fclose(out), 0);
}

static bool takes(const char *directory)
{
	struct python_items items = {0};
	const bool takes = python_items_take_kept(&items, directory);

	assert_int_equal(takes, items.text != NULL);
	python_items_free(&items);
	return takes;
}

static void kept_items_are_of_the_same_recipes(void **state)
{
	char directory[] = "/tmp/qprof-items-XXXXXX", path[256];
	struct recipes *r = recipes_new();
	struct python_items read, kept = {0};
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(directory));
	put_file(directory, "a.yaml", tool);
	put_file(directory, "b.yaml", library);
	assert_false(takes(directory));
	keep(directory);
	assert_true(python_items_take_kept(&kept, directory));
	add(r, tool);
	add(r, library);
	assert_int_equal(python_items_write(&read, r), 0);
	assert_string_equal(kept.text, read.text);
	assert_int_equal(kept.set, read.set);
	python_items_free(&kept);
	python_items_free(&read);
	recipes_free(r);

	put_file(directory, "c.yaml", "name: c\ncheckpoints: [{python: 'c:c', mark: x}]\n");
	assert_false(takes(directory)); /* one more */
	keep(directory);
	assert_true(takes(directory));
	put_file(directory, "c.yaml", "name: c\ncheckpoints: [{python: 'c:d', mark: x}]\n");
	assert_false(takes(directory)); /* another text */
	keep(directory);
	snprintf(path, sizeof(path), "%s/c.yaml", directory);
	assert_int_equal(unlink(path), 0);
	assert_false(takes(directory)); /* one less */
	keep(directory);
	assert_true(takes(directory));
	snprintf(path, sizeof(path), "%s/python.items", directory);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(truncate(path, st.st_size - 1), 0);
	assert_false(takes(directory)); /* not all of it */
	put_file(directory, "python.items", "0123456789abcdef");
	assert_false(takes(directory));
	put_file(directory, "python.items", "");
	assert_false(takes(directory));
	for (const char *const *name =
		     (const char *const[]){"a.yaml", "b.yaml", "python.items", NULL};
	     *name; name++) {
		snprintf(path, sizeof(path), "%s/%s", directory, *name);
		unlink(path);
	}
	rmdir(directory);
}

static void what_is_said_is_checked(void **state)
{
	struct python_what what;

	(void)state;
	assert_true(
		python_what_read(UINT64_C(0x12345678) << 32 | 3 << 16 | 2 << 8 | 0x80 | 4, &what));
	assert_int_equal(what.said, PYTHON_BEGIN);
	assert_true(what.counts);
	assert_int_equal(what.item, 2);
	assert_int_equal(what.recipe, 3);
	assert_int_equal(what.set, 0x12345678);
	assert_false(python_what_read(8, &what));
	assert_false(python_what_read(UINT64_MAX, &what));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(the_hook_knows_modules_and_items),
		cmocka_unit_test(without_python_there_is_nothing_to_know),
		cmocka_unit_test(recipes_without_a_match_have_no_rule),
		cmocka_unit_test(what_is_too_long_is_left_out),
		cmocka_unit_test(kept_items_are_of_the_same_recipes),
		cmocka_unit_test(what_is_said_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
