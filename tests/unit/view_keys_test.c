/* SPDX-License-Identifier: GPL-2.0-only */
/* What keys change of a live view. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "audit/view/view_keys.h"

static void type(struct view_state *s, const char *text)
{
	for (; *text; text++)
		assert_int_equal(view_key(s, *text), VIEW_CHANGED);
}

static void sort_keys(void **state)
{
	static const struct {
		int key;
		enum view_sort sort;
	} all[] = {{'g', VIEW_BY_GROWTH},  {'p', VIEW_BY_PEAK}, {'i', VIEW_BY_CALLS},
		   {'D', VIEW_BY_STORAGE}, {'c', VIEW_BY_CPU},	{'M', VIEW_BY_RSS}};
	struct view_state s = {.page = 10, .lines = 100};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		s.first = 7;
		assert_int_equal(view_key(&s, all[i].key), VIEW_CHANGED);
		assert_int_equal(s.sort, all[i].sort);
		assert_int_equal(s.first, 0); /* the top is what was asked for */
	}
}

static void key_that_is_pressed_again_sorts_by_what_is_used_per_second(void **state)
{
	static const struct {
		int key;
		enum view_sort sort, again;
	} all[] = {{'i', VIEW_BY_CALLS, VIEW_BY_CALLS_NOW},
		   {'d', VIEW_BY_STORAGE, VIEW_BY_STORAGE_NOW},
		   {'c', VIEW_BY_CPU, VIEW_BY_CPU_NOW},
		   {'p', VIEW_BY_PEAK, VIEW_BY_PEAK}};
	struct view_state s = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		for (int n = 0; n < 4; n++) {
			assert_int_equal(view_key(&s, all[i].key), VIEW_CHANGED);
			assert_int_equal(s.sort, n % 2 ? all[i].again : all[i].sort);
		}
	}
}

static void lists_and_tree(void **state)
{
	struct view_state s = {0};

	(void)state;
	assert_int_equal(view_key(&s, 't'), VIEW_CHANGED);
	assert_true(s.tree);
	view_key(&s, 't');
	assert_false(s.tree);
	for (int i = 1; i <= VIEW_LISTS; i++) {
		assert_int_equal(view_key(&s, 'j'), VIEW_CHANGED);
		assert_int_equal(s.lists, i % VIEW_LISTS);
	}
	assert_int_equal(view_key(&s, 'q'), VIEW_QUIT);
	assert_int_equal(view_key(&s, ' '), VIEW_CHANGED);
	assert_int_equal(view_key(&s, 12), VIEW_AFRESH);
	assert_int_equal(view_key(&s, 'x'), VIEW_SAME);
	assert_int_equal(view_key(&s, TERMINAL_KEY_NONE), VIEW_SAME);
	assert_int_equal(view_key(&s, TERMINAL_KEY_OTHER), VIEW_SAME);
	assert_int_equal(view_key(&s, 0x1f600), VIEW_SAME);
}

static void help_is_closed_by_any_key(void **state)
{
	static const int keys[] = {'q', 'h', ' ', TERMINAL_KEY_UP, TERMINAL_KEY_OTHER};
	struct view_state s = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		assert_int_equal(view_key(&s, i % 2 ? 'h' : '?'), VIEW_CHANGED);
		assert_true(s.help);
		assert_int_equal(view_key(&s, keys[i]), VIEW_CHANGED);
		assert_false(s.help);
	}
}

static void scrolling_stays_within(void **state)
{
	struct view_state s = {.page = 10, .lines = 35};

	(void)state;
	assert_int_equal(view_key(&s, TERMINAL_KEY_UP), VIEW_SAME);
	assert_int_equal(view_key(&s, TERMINAL_KEY_DOWN), VIEW_CHANGED);
	assert_int_equal(s.first, 1);
	view_key(&s, TERMINAL_KEY_PAGE_DOWN);
	assert_int_equal(s.first, 10);
	view_key(&s, TERMINAL_KEY_END);
	assert_int_equal(s.first, 25);
	assert_int_equal(view_key(&s, TERMINAL_KEY_PAGE_DOWN), VIEW_SAME);
	view_key(&s, TERMINAL_KEY_PAGE_UP);
	assert_int_equal(s.first, 16);
	view_key(&s, TERMINAL_KEY_HOME);
	assert_int_equal(s.first, 0);
	s.lines = 5; /* all of it is there */
	assert_int_equal(view_key(&s, TERMINAL_KEY_DOWN), VIEW_SAME);
	assert_int_equal(view_key(&s, TERMINAL_KEY_END), VIEW_SAME);
	s = (struct view_state){0}; /* before the first frame, and with no room */
	assert_int_equal(view_key(&s, TERMINAL_KEY_PAGE_DOWN), VIEW_SAME);
}

static void filter_is_typed(void **state)
{
	struct view_state s = {.first = 3};

	(void)state;
	view_key(&s, '/');
	assert_true(s.typing);
	type(&s, "quit"); /* no letter is a command now */
	assert_string_equal(s.filter, "quit");
	assert_int_equal(s.first, 0);
	view_key(&s, TERMINAL_KEY_BACKSPACE);
	view_key(&s, 127);
	assert_string_equal(s.filter, "qu");
	view_key(&s, '\r');
	assert_false(s.typing);
	assert_string_equal(s.filter, "qu");
	view_key(&s, '/');
	assert_string_equal(s.filter, ""); /* another one */
	type(&s, "else");
	view_key(&s, 27);
	assert_false(s.typing);
	assert_string_equal(s.filter, "qu"); /* as it was */
	view_key(&s, 27);
	assert_string_equal(s.filter, "");
	view_key(&s, '/');
	type(&s, "abc");
	view_key(&s, 21);
	assert_string_equal(s.filter, "");
	assert_int_equal(view_key(&s, 8), VIEW_CHANGED); /* nothing is left to cut */
	assert_string_equal(s.filter, "");
	assert_int_equal(view_key(&s, 1), VIEW_SAME);
	assert_int_equal(view_key(&s, TERMINAL_KEY_OTHER), VIEW_SAME);
	assert_true(s.typing);
}

static void filter_is_whole_characters(void **state)
{
	static const int characters[] = {'a', 0xe9, 0x20ac, 0x1f600};
	struct view_state s = {0};
	size_t len;

	(void)state;
	view_key(&s, '/');
	for (size_t i = 0; i < 4; i++)
		view_key(&s, characters[i]);
	assert_string_equal(s.filter, "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	for (len = 6; len; len = len == 6 ? 3 : len == 3 ? 1 : 0) {
		view_key(&s, TERMINAL_KEY_BACKSPACE);
		assert_int_equal(strlen(s.filter), len);
	}
	view_key(&s, TERMINAL_KEY_BACKSPACE);
	view_key(&s, 0xd800); /* a surrogate is none */
	assert_string_equal(s.filter, "");
	for (int i = 0; i < 1000; i++)
		view_key(&s, 0x20ac);
	len = strlen(s.filter);
	assert_true(len < VIEW_FILTER_MAX && len > VIEW_FILTER_MAX - 4);
	assert_int_equal(text_whole(s.filter, len), len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sort_keys),
		cmocka_unit_test(key_that_is_pressed_again_sorts_by_what_is_used_per_second),
		cmocka_unit_test(lists_and_tree),
		cmocka_unit_test(help_is_closed_by_any_key),
		cmocka_unit_test(scrolling_stays_within),
		cmocka_unit_test(filter_is_typed),
		cmocka_unit_test(filter_is_whole_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
