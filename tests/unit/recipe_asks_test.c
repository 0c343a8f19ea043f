/* SPDX-License-Identifier: GPL-2.0-only */
/* Recipes of a run that is served: what it asks the service for, and by which numbers both know
 * their items. */
#include <stdio.h>

#include "recipes/from.h"
#include "recipes/recipe_marker.h"
#include "recipes_read.h"

static void add(struct recipes *r, const char *text)
{
	struct error err = {0};

	if (recipes_parse(r, "test", text, strlen(text), &err))
		fail_msg("expected a recipe, got: %s", err.text);
}

static struct source_heard asks(struct recipes *r)
{
	struct marker *marker = recipe_marker_new(r);
	struct source_heard heard;

	assert_non_null(marker);
	recipe_marker_asks(marker, &heard);
	marker->close(marker);
	return heard;
}

static void only_what_the_user_named_is_asked_for(void **state)
{
	struct recipes *r = parse(HEAD "checkpoints: [{log: x, literal: abc, mark: x}]\n");
	struct source_heard heard = asks(r);

	(void)state;
	assert_false(source_hears(&heard));
	recipes_mark_asked(r);
	add(r, "name: shipped\nmatch: {executable: b}\ncheckpoints:\n- {log: y, mark: y}\n"
	       "- {file: '*.gguf', mark: y}\n- {exec: {executable: c}, mark: y}\n");
	heard = asks(r);
	assert_int_equal(heard.texts, SOURCE_TEXTS_WITH_LITERALS);
	assert_int_equal(heard.literals[0].mask, 0xffffff);
	assert_memory_equal(&heard.literals[0].bytes, "abc", 3);
	assert_int_equal(heard.literals[1].mask, 0);
	assert_int_equal(heard.files | heard.told, 0);
	recipes_free(r);
}

static void literals_and_names_of_all_are_together(void **state)
{
	struct recipes *r = parse(HEAD "checkpoints:\n- {log: x, literal: abc, mark: x}\n"
				       "- {file: ['*.gguf', 'a*'], mark: y}\n");
	struct source_heard heard;

	(void)state;
	add(r, "name: b\nmatch: {executable: b}\ncheckpoints:\n- {log: y, literal: abc, mark: y}\n"
	       "- {log: z, literal: d, mark: y}\n- {exec: {executable: c}, mark: y}\n");
	recipes_mark_asked(r);
	heard = asks(r);
	assert_int_equal(heard.texts, SOURCE_TEXTS_WITH_LITERALS);
	assert_int_equal(heard.literals[1].mask, 0xff);
	assert_int_equal(heard.literals[2].mask, 0);
	assert_int_equal(heard.files, 1);
	assert_int_equal(heard.parts[0].mask, UINT64_C(0xffffffffff000000));
	assert_int_equal(heard.parts[1].anywhere, 1);
	assert_int_equal(heard.parts[2].mask, 0);
	assert_int_equal(heard.told, WIRE_TOLD_END | WIRE_TOLD_CHILDREN);
	recipes_free(r);
}

/* One without a literal has all texts told, and so have too many; what comes later changes nothing.
 */
static void too_many_are_all(void **state)
{
	static const char *const first[] = {
		HEAD "checkpoints: [{log: x, mark: x}]\n",
		HEAD "checkpoints: [{log: x, literal: '1', mark: x}, "
		     "{log: x, literal: '2', mark: x}, {log: x, literal: '3', mark: x}, "
		     "{log: x, literal: '4', mark: x}, {log: x, literal: '5', mark: x}, "
		     "{log: x, literal: '6', mark: x}, {log: x, literal: '7', mark: x}, "
		     "{log: x, literal: '8', mark: x}, {log: x, literal: '9', mark: x}]\n",
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct recipes *r = parse(first[i]);
		struct source_heard heard;

		add(r, "name: b\nmatch: {executable: b}\n"
		       "checkpoints: [{log: y, literal: abc, mark: y}]\n");
		recipes_mark_asked(r);
		heard = asks(r);
		assert_int_equal(heard.texts, SOURCE_ALL_TEXTS);
		assert_int_equal(heard.literals[0].mask, 0);
		recipes_free(r);
	}
}

static void too_many_names_are_every_file(void **state)
{
	struct recipes *r = parse("name: a\nmatch: {executable: a}\ncheckpoints:\n- mark: x\n"
				  "  file: [a1, a2, a3, a4, a5, a6, a7, a8, a9, b1, b2, b3, b4, "
				  "b5, b6, b7, b8]\n");
	struct source_heard heard;

	(void)state;
	recipes_mark_asked(r);
	heard = asks(r);
	assert_int_equal(heard.files, 1);
	assert_int_equal(heard.parts[0].mask, 0);
	assert_int_equal(heard.parts[0].anywhere, 1);
	for (size_t i = 1; i < WIRE_MAX_NAME_PARTS; i++)
		assert_int_equal(heard.parts[i].mask, 0);
	recipes_free(r);
}

/* A run and the service have read other recipes besides, in another order. */
static void numbers_are_the_recipes_own(void **state)
{
	static const char one[] = "name: one\nmatch: {executable: a}\n"
				  "checkpoints: [{symbol: f, phase: x}, {symbol: g, mark: x}]\n";
	static const char two[] = "name: two\nmatch: {executable: a}\n"
				  "checkpoints: [{symbol: f, phase: x}, {symbol: g, mark: x}]\n";
	static const char other[] = "name: one\nmatch: {executable: a}\n"
				    "checkpoints: [{symbol: f, phase: x}, {symbol: h, mark: x}]\n";
	struct recipes *r = parse(one), *s = parse(two), *t = parse(other);
	uint32_t number = recipe_item_number(recipes_at(r, 0), 1);
	size_t item;

	(void)state;
	assert_null(recipes_of_item(s, number, &item));
	assert_null(recipes_of_item(t, number, &item));
	add(s, one);
	assert_ptr_equal(recipes_of_item(s, number, &item), recipes_at(s, 1));
	assert_int_equal(item, 1);
	assert_null(recipes_of_item(s, number + 1, &item)); /* it has two */
	assert_true(number < WISH_ITEMS_OF_JOBS);
	recipes_free(r);
	recipes_free(s);
	recipes_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_the_user_named_is_asked_for),
		cmocka_unit_test(literals_and_names_of_all_are_together),
		cmocka_unit_test(too_many_are_all),
		cmocka_unit_test(too_many_names_are_every_file),
		cmocka_unit_test(numbers_are_the_recipes_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
