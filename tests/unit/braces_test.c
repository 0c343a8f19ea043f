/* SPDX-License-Identifier: GPL-2.0-only */
/* {words} in the texts of recipes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "recipes/braces.h"

static const char *only_name(void *context, const char *word, size_t len)
{
	++*(int *)context;
	return len == 4 && !memcmp(word, "name", 4) ? NULL : "no such word";
}

static size_t fill_name(const void *context, const char *word, size_t len, char *out, size_t room)
{
	const size_t n = strlen(context);

	(void)word;
	(void)len;
	memcpy(out, context, n < room ? n : room);
	return n < room ? n : room;
}

static void what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text, *says;
		int words;
	} examples[] = {
		{"", NULL, 0},
		{"plain", NULL, 0},
		{"a {name} and {name}", NULL, 2},
		{"{{name}}", NULL, 0},
		{"{{{name}}}", NULL, 1},
		{"{nmae}", "no such word", 1},
		{"{name", "a '{' without its '}'", 0},
		{"{na{me}", "a '{' without its '}'", 0},
		{"name}", "a '}' without its '{'", 0},
		{"{}", "nothing between", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		int words = 0;
		const char *why = braces_check(examples[i].text, only_name, &words);

		if (!why != !examples[i].says || (why && !strstr(why, examples[i].says)))
			fail_msg("'%s': expected %s, got %s", examples[i].text,
				 examples[i].says ? examples[i].says : "no error",
				 why ? why : "no error");
		assert_int_equal(words, examples[i].words);
	}
}

static void words_are_filled_in(void **state)
{
	static const struct {
		const char *text, *name, *filled;
	} examples[] = {
		{"Layer {name}", "7", "Layer 7"},   {"{{{name}}}", "x", "{x}"},
		{"{name}{name}", "ab", "abab"},	    {"a{name}b", "", "ab"},
		{"{name}", "\xff", "\xef\xbf\xbd"},
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		braces_fill(examples[i].text, fill_name, examples[i].name, out, sizeof(out));
		assert_string_equal(out, examples[i].filled);
	}
}

static void a_long_text_is_cut_to_whole_characters(void **state)
{
	char out[6], name[5000];

	(void)state;
	braces_fill("ab{name}", fill_name, "\xe2\x82\xac\xe2\x82\xac", out, sizeof(out));
	assert_string_equal(out, "ab\xe2\x82\xac");
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	braces_fill("{name}{name}{{", fill_name, name, out, sizeof(out));
	assert_string_equal(out, "xxxxx");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(words_are_filled_in),
		cmocka_unit_test(a_long_text_is_cut_to_whole_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
