/* SPDX-License-Identifier: GPL-2.0-only */
/* Recipes: items that are programs, and the phases that end with what a process runs. */
#include <stdio.h>

#include "model/profile.h"
#include "recipes/begun.h"
#include "recipes/braces.h"
#include "recipes/exec_words.h"
#include "recipes_read.h"

static void what_is_wrong_with_programs_is_said(void **state)
{
	static const struct wrong examples[] = {
		{HEAD "checkpoints:\n- exec: python3\n  phase: x\n",
		 "test:4: 'exec' is to be a mapping"},
		{HEAD "checkpoints:\n- exec: {}\n  phase: x\n",
		 "test:4: 'exec' has no condition: use executable and arguments"},
		{HEAD "checkpoints:\n- exec: {exe: a}\n  phase: x\n",
		 "test:4: 'exe' is no condition"},
		{HEAD "checkpoints:\n- exec: {executable: a, executable: b}\n  phase: x\n",
		 "test:4: 'executable' is here twice"},
		{HEAD "checkpoints:\n- exec: {executable: a, any: [{arguments: b}]}\n  phase: x\n",
		 "test:4: 'any' beside conditions"},
		{HEAD "checkpoints:\n- exec: {executable: a, libraries: b}\n  phase: x\n",
		 "test:4: a program that begins has nothing mapped, open or imported yet"},
		{HEAD "checkpoints:\n- exec: {any: [{executable: a}, {files: b}]}\n  phase: x\n",
		 "test:4: a program that begins has nothing mapped, open or imported yet"},
		{HEAD "checkpoints:\n- exec: {modules: a}\n  phase: x\n",
		 "test:4: a program that begins has nothing mapped, open or imported yet"},
		{HEAD "checkpoints:\n- exec: {executable: a}\n  exec: {executable: b}\n  mark: x\n",
		 "test:5: 'exec' is here twice"},
		{HEAD "checkpoints:\n- exec: {executable: a}\n  log: b\n  mark: x\n",
		 "test:5: an item listens to one thing, and 'exec' is here"},
		{HEAD "checkpoints:\n- exec: {executable: a}\n",
		 "test:4: nothing to do when it is met"},
		{HEAD "checkpoints:\n- exec: {executable: a}\n  begin: x\n",
		 "test:4: the life of a program is a 'phase'"},
		{HEAD "checkpoints:\n- exec: {executable: a}\n  end: x\n",
		 "test:4: the life of a program is a 'phase'"},
		{HEAD "checkpoints:\n- exec: {executable: a}\n  at: return\n  phase: x\n",
		 "test:4: 'at' is for calls, and this is a program"},
		{HEAD "checkpoints:\n- exec: {executable: a}\n  phase: '{tid}'\n",
		 "test:4: '{tid}': a word that no program has: use {pid}"},
		{HEAD "checkpoints:\n- exec: {executable: a}\n  phase: '{arg0}'\n",
		 "test:4: '{arg0}': a word that no program has"},
		{HEAD "checkpoints:\n- exec: {executable: a}\n  phase: x\n  metric: {n: '{arg}'}\n",
		 "test:4: '{arg}': a word that no program has"},
		{HEAD "checkpoints:\n- exec: {executable: a}\n  children: yes\n  phase: x\n",
		 "test:4: 'children' is for items of a log"},
	};

	(void)state;
	assert_refused(examples, sizeof(examples) / sizeof(*examples));
}

static void programs_are_told_by_their_conditions(void **state)
{
	struct recipes *r = parse(
		HEAD
		"checkpoints:\n- exec: {executable: 'python*', arguments: [a, '*b*']}\n"
		"  phase: x\n"
		"- {exec: {any: [{executable: a, arguments: b}, {executable: c}]}, mark: x}\n");
	const struct recipe *recipe = recipes_at(r, 0);

	(void)state;
	assert_string_equal(recipe->items[0].text, "executable: python*, arguments: [a, *b*]");
	assert_string_equal(recipe->items[1].text, "executable: a, arguments: b; or executable: c");
	assert_true(recipe_has(recipe, RECIPE_EXEC));
	recipes_free(r);
}

static void words_are_of_the_program(void **state)
{
	static const struct {
		const char *text, *is;
	} examples[] = {
		{"{executable} {arg1} {arg3}", "python3 convert.py m.gguf"},
		{"{comm} as {pid}", "convert.py as 42"},
		{"{arguments}", "convert.py --to m.gguf"},
		{"{arg4} {arg99}", "? ?"},
		{"{{{arg2}}}", "{--to}"},
	};
	static const char cmdline[] = "/usr/bin/python3\0convert.py\0--to\0m.gguf";
	struct {
		struct wire_process exec;
		char cmdline[WIRE_CMDLINE_MAX];
	} record = {.exec = {.h.tgid = 42, .cmdline_len = sizeof(cmdline)}};
	char out[MARK_NAME_MAX];

	(void)state;
	snprintf(record.exec.comm, sizeof(record.exec.comm), "convert.py");
	memcpy(record.cmdline, cmdline, sizeof(cmdline));
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		assert_null(braces_check(examples[i].text, exec_words_check, NULL));
		braces_fill(examples[i].text, exec_words_fill, &record, out, sizeof(out));
		assert_string_equal(out, examples[i].is);
	}
}

/* A command line that was cut has no NUL at its end; one that could not be read has nothing. */
static void a_command_line_may_be_cut(void **state)
{
	struct {
		struct wire_process exec;
		char cmdline[8];
	} record = {.exec.cmdline_len = 5, .cmdline = {'a', 'b', 0, 'c', 'd', 'e', 'f', 'g'}};
	char out[MARK_NAME_MAX];

	(void)state;
	braces_fill("{executable} {arg1} {arg2}", exec_words_fill, &record, out, sizeof(out));
	assert_string_equal(out, "ab cd ?");
	record.exec.cmdline_len = 0;
	braces_fill("{executable} {arguments}.", exec_words_fill, &record, out, sizeof(out));
	assert_string_equal(out, "? .");
}

static void phases_end_with_what_a_process_runs(void **state)
{
	struct begun b = {0};
	struct begun_phase phase;

	(void)state;
	begun_add(&b, 1, "a");
	begun_add(&b, 1, "b");
	begun_add(&b, 2, "b");
	begun_add(&b, 2, "c");
	begun_end(&b, 1, "b");	  /* its own, not the younger one of the other thread */
	begun_end(&b, 3, "a");	  /* has none: that of any thread */
	begun_end(&b, 1, "none"); /* of no phase */
	assert_int_equal(b.n, 2);
	assert_true(begun_take(&b, &phase));
	assert_string_equal(phase.name, "c");
	assert_int_equal(phase.tid, 2);
	assert_true(begun_take(&b, &phase));
	assert_string_equal(phase.name, "b");
	assert_int_equal(phase.tid, 2);
	assert_false(begun_take(&b, &phase));
	for (unsigned int i = 0; i < BEGUN_MAX + 10; i++)
		begun_add(&b, i, "x");
	assert_int_equal(b.n, BEGUN_MAX);
	begun_free(&b);
	assert_int_equal(b.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_with_programs_is_said),
		cmocka_unit_test(programs_are_told_by_their_conditions),
		cmocka_unit_test(words_are_of_the_program),
		cmocka_unit_test(a_command_line_may_be_cut),
		cmocka_unit_test(phases_end_with_what_a_process_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
