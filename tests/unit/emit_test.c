/* SPDX-License-Identifier: GPL-2.0-only */
/* Text in the file: what libyaml reads back of it, and where long text is cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <yaml.h>

#include "format/emit.h"

/* What a reader gets of this text; to be freed. */
static char *read_back(const char *text)
{
	const int fd = memfd_create("emit_test", MFD_CLOEXEC);
	FILE *file = fdopen(fd, "r");
	struct emit *e = emit_new(dup(fd));
	yaml_parser_t parser;
	yaml_document_t doc;
	const yaml_node_t *node;
	char *got;

	assert_true(file && e);
	emit_list(e, EMIT_BLOCK);
	emit_text(e, text);
	emit_list_end(e);
	emit_end(e);
	assert_int_equal(emit_flush(e), 0);
	emit_free(e);
	rewind(file);
	assert_int_equal(yaml_parser_initialize(&parser), 1);
	yaml_parser_set_input_file(&parser, file);
	assert_int_equal(yaml_parser_load(&parser, &doc), 1);
	node = yaml_document_get_node(&doc, 2);
	assert_non_null(node);
	got = strdup((const char *)node->data.scalar.value);
	assert_int_equal(strlen(got), node->data.scalar.length);
	yaml_document_delete(&doc);
	yaml_parser_delete(&parser);
	fclose(file);
	return got;
}

/* n times the character. */
static char *repeat(const char *character, size_t n)
{
	const size_t len = strlen(character);
	char *text = calloc(n, len + 1);

	assert_non_null(text);
	for (size_t i = 0; i < n; i++)
		memcpy(text + i * len, character, len);
	return text;
}

/* Characters, and how many bytes each takes in quotes. */
static const struct {
	const char *character;
	size_t quoted;
} characters[] = {
	{"a", 1},
	{"~", 1},
	{"\"", 2},
	{"\\", 2},
	{"\x01", 4},
	{"\x1f", 4},
	{"\x7f", 4},
	{"\xc3\xa9", 2},	  /* é */
	{"\xc2\x80", 6},	  /* a control character of two bytes */
	{"\xc2\x9f", 6},	  /* the last of them */
	{"\xe2\x9c\x93", 3},	  /* a check mark */
	{"\xe2\x80\xa7", 3},	  /* before the line separator */
	{"\xe2\x80\xa8", 6},	  /* line separator */
	{"\xe2\x80\xa9", 6},	  /* paragraph separator */
	{"\xef\xbb\xbf", 6},	  /* byte order mark */
	{"\xf0\x9f\x98\x80", 10}, /* a face */
};

static void text_of_the_longest_size_is_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(characters) / sizeof(*characters); i++) {
		char *text = repeat(characters[i].character, EMIT_TEXT_MAX / characters[i].quoted);
		char *got = read_back(text);

		assert_string_equal(got, text);
		free(got);
		free(text);
	}
}

static void longer_text_is_cut_between_characters(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(characters) / sizeof(*characters); i++) {
		const size_t most = EMIT_TEXT_MAX / characters[i].quoted;
		const size_t len = strlen(characters[i].character);
		char *text = repeat(characters[i].character, most + 1);
		char *got = read_back(text);
		const size_t kept = strlen(got) - 3;

		assert_string_equal(got + kept, "...");
		assert_memory_equal(got, text, kept);
		assert_int_equal(kept % len, 0);
		assert_true(kept / len <= most &&
			    (kept / len + 1) * characters[i].quoted + 3 + characters[i].quoted >
				    EMIT_TEXT_MAX);
		free(got);
		free(text);
	}
}

static void what_is_no_utf8_is_replaced(void **state)
{
	char *got = read_back("a\xff\xe2\x82z\xc0\x80");

	(void)state;
	assert_string_equal(got, "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd");
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_of_the_longest_size_is_whole),
		cmocka_unit_test(longer_text_is_cut_between_characters),
		cmocka_unit_test(what_is_no_utf8_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
