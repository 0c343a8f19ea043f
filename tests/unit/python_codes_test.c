/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of code objects, and lines by the tables that Python's compilers make. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/python_codes.h"

/*
 * What 3.9, 3.10 and 3.11 make of a function at line 1; `lines` is what their dis and co_lines()
 * say: from each address on, the line; 0 for none.
 *
 *	def f(a):
 *	    x = [
 *	        a,
 *	        a + 1,
 *	    ]
 *	    for i in x:
 *	        if i:
 *	            a += i
 *	    try:
 *	        return x
 *	    finally:
 *	        a = None
 */
static const uint8_t lnotab[] = {0x00, 0x02, 0x02, 0x01, 0x06, 0xfe, 0x04, 0x04, 0x08, 0x01, 0x04,
				 0x01, 0x0a, 0x01, 0x02, 0x01, 0x04, 0x02, 0x04, 0xfe, 0x02, 0x02};
static const uint8_t linetable[] = {0x02, 0x02, 0x06, 0x01, 0x04, 0xfe, 0x08, 0x04, 0x04, 0x01,
				    0x08, 0x01, 0x02, 0x80, 0x02, 0x01, 0x04, 0x01, 0x0c, 0x02};
static const uint8_t locations[] = {
	0x80, 0x00, 0xe0, 0x08, 0x09, 0xd8, 0x08, 0x09, 0x88, 0x41, 0x89, 0x05, 0xf0, 0x05,
	0x03, 0x09, 0x06, 0x80, 0x41, 0xf0, 0x08, 0x00, 0x0e, 0x0f, 0xf0, 0x00, 0x02, 0x05,
	0x13, 0xf0, 0x00, 0x02, 0x05, 0x13, 0x88, 0x01, 0xd8, 0x0b, 0x0c, 0xf0, 0x00, 0x01,
	0x09, 0x13, 0xd8, 0x0c, 0x0d, 0x90, 0x11, 0x89, 0x46, 0x88, 0x41, 0xf8, 0xf0, 0x02,
	0x03, 0x05, 0x11, 0xd8, 0x0f, 0x10, 0xe0, 0x0c, 0x10, 0x88, 0x01, 0x88, 0x01, 0xf8,
	0x88, 0x44, 0x88, 0x01, 0x88, 0x08, 0x88, 0x08, 0x88, 0x08, 0x88, 0x08};

struct line {
	uint32_t at, line;
};

static const struct line lnotab_lines[] = {{0, 3},   {2, 4},   {8, 2},	 {12, 6},
					   {20, 7},  {24, 8},  {34, 9},	 {36, 10},
					   {40, 12}, {44, 10}, {46, 12}, {56, 0}};
static const struct line linetable_lines[] = {{0, 3},	{2, 4},	  {8, 2},  {12, 6},
					      {20, 7},	{24, 8},  {32, 0}, {34, 9},
					      {36, 10}, {40, 12}, {52, 0}};
static const struct line location_lines[] = {{0, 1},   {2, 3},	{4, 4},	  {12, 2}, {16, 6},
					     {24, 7},  {28, 8}, {38, 0},  {40, 9}, {42, 10},
					     {44, 12}, {50, 0}, {52, 12}, {64, 0}};

/* The last of `lines` is where the code ends. */
static void assert_lines(uint32_t kind, const uint8_t *table, size_t n, const struct line *lines,
			 size_t n_lines)
{
	for (size_t i = 0; i + 1 < n_lines; i++)
		for (uint32_t at = lines[i].at; at < lines[i + 1].at; at += 2)
			assert_int_equal(python_line(kind, table, n, 1, at), lines[i].line);
}

#define ASSERT_LINES(kind, table, lines)                                                           \
	assert_lines(kind, table, sizeof(table), lines, sizeof(lines) / sizeof(*(lines)))

static void test_lines(void **state)
{
	(void)state;
	ASSERT_LINES(WIRE_PYTHON_LNOTAB, lnotab, lnotab_lines);
	ASSERT_LINES(WIRE_PYTHON_LINETABLE, linetable, linetable_lines);
	ASSERT_LINES(WIRE_PYTHON_LOCATIONS, locations, location_lines);
}

/* What is behind the table, and a table that is cut or makes no sense, has no line. */
static void test_no_line(void **state)
{
	static const uint8_t backwards[] = {0x02, 0x81, 0x02, 0x81}, endless[] = {0xe8, 0x7f, 0x7f};

	(void)state;
	assert_int_equal(python_line(WIRE_PYTHON_LINETABLE, linetable, sizeof(linetable), 1, 52),
			 0);
	assert_int_equal(python_line(WIRE_PYTHON_LOCATIONS, locations, sizeof(locations), 1, 64),
			 0);
	assert_int_equal(python_line(WIRE_PYTHON_LOCATIONS, locations, 7, 1, 20), 0);
	assert_int_equal(python_line(WIRE_PYTHON_LINETABLE, linetable, 5, 1, 20), 0);
	assert_int_equal(python_line(WIRE_PYTHON_LINETABLE, backwards, 4, 1, 2), 0);
	assert_int_equal(python_line(WIRE_PYTHON_LNOTAB, backwards, 4, 1, 9), 0);
	python_line(WIRE_PYTHON_LOCATIONS, endless, sizeof(endless), 1, 0);
	assert_int_equal(python_line(WIRE_PYTHON_LOCATIONS, NULL, 0, 1, 0), 0);
	assert_int_equal(python_line(99, linetable, sizeof(linetable), 1, 0), 0);
}

static void set_text(struct wire_python_text *into, uint32_t width, const void *bytes, size_t len)
{
	into->len = (uint32_t)(len / width);
	into->width = width;
	memcpy(into->bytes, bytes, len);
}

struct code {
	struct wire_python_code is;
	uint8_t lines[WIRE_PYTHON_LINES];
};

static struct code code_at(uint64_t address)
{
	struct code code = {.is = {.program = 7,
				   .code = address,
				   .name = 0x1000,
				   .line = 1,
				   .lines_kind = WIRE_PYTHON_LINETABLE,
				   .lines_len = sizeof(linetable)}};

	memcpy(code.lines, linetable, sizeof(linetable));
	set_text(&code.is.name_text, 1, "Model.load", 10);
	set_text(&code.is.path_text, 1, "/srv/model.py", 13);
	return code;
}

static void test_places(void **state)
{
	struct wire_python_frame frame = {.code = 0x2000, .name = 0x1000, .line = 1, .at = 22};
	struct python_codes *codes = python_codes_new();
	struct code code = code_at(0x2000);
	struct python_place place;

	(void)state;
	python_codes_add(codes, &code.is, sizeof(code.lines));
	place = python_codes_find(codes, 7, &frame);
	assert_string_equal(place.name, "Model.load");
	assert_string_equal(place.path, "/srv/model.py");
	assert_int_equal(place.line, 7);
	/* An instruction without a line, and one before the first: the function's. */
	frame.at = 32;
	assert_int_equal(python_codes_find(codes, 7, &frame).line, 1);
	frame.at = (uint32_t)-2;
	assert_int_equal(python_codes_find(codes, 7, &frame).line, 1);
	/* Of another process, or another function at that address: as one module's body after the
	 * other, which have the same name and line. */
	frame.digest = 1;
	assert_false(python_codes_find(codes, 7, &frame).known);
	frame.digest = 0;
	assert_string_equal(python_codes_find(codes, 8, &frame).name, "(unknown)");
	frame.line = 0x80000001;
	place = python_codes_find(codes, 7, &frame);
	assert_string_equal(place.name, "(unknown)");
	assert_int_equal(place.line, 1);
	python_codes_free(codes);
}

/* As Python keeps them: characters of one byte, of two, of four; cut; unreadable. */
static void test_texts(void **state)
{
	static const uint16_t kanji[] = {0x91cf, 0x5b50};
	static const uint32_t smile[] = {0x1f600, 'x'};
	static const struct {
		uint32_t width;
		const void *bytes;
		size_t len;
		const char *want;
	} texts[] = {
		{1,
		 "gr\xf6\xdf"
		 "e",
		 5, "gr\u00f6\u00dfe"},
		{2, kanji, sizeof(kanji), "\u91cf\u5b50"},
		{4, smile, sizeof(smile), "\U0001f600x"},
		{1, "a\0b", 3, "ab"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		const struct wire_python_frame frame = {.code = i + 1, .name = 0x1000, .line = 1};
		struct python_codes *codes = python_codes_new();
		struct code code = code_at(i + 1);

		set_text(&code.is.name_text, texts[i].width, texts[i].bytes, texts[i].len);
		code.is.path_text.width = 0;
		python_codes_add(codes, &code.is, sizeof(code.lines));
		assert_string_equal(python_codes_find(codes, 7, &frame).name, texts[i].want);
		assert_string_equal(python_codes_find(codes, 7, &frame).path, "");
		python_codes_free(codes);
	}
}

/* Lengths are the program's word. */
static void test_hostile_lengths(void **state)
{
	const struct wire_python_frame frame = {.code = 1, .name = 0x1000, .line = 1, .at = 50000};
	struct python_codes *codes = python_codes_new();
	struct code code = code_at(1);

	(void)state;
	memset(code.lines, 0xff, sizeof(code.lines));
	memset(code.is.name_text.bytes, 'n', WIRE_PYTHON_TEXT);
	code.is.name_text.len = UINT32_MAX;
	code.is.path_text.len = UINT32_MAX;
	code.is.path_text.width = 3;
	code.is.lines_len = UINT32_MAX;
	python_codes_add(codes, &code.is, sizeof(code.lines));
	assert_int_equal(strlen(python_codes_find(codes, 7, &frame).name), WIRE_PYTHON_TEXT);
	python_codes_free(codes);
}

static void test_bounded(void **state)
{
	struct python_codes *codes = python_codes_new();
	struct wire_python_frame frame = {.name = 0x1000, .line = 1};
	struct code code = code_at(0);

	(void)state;
	for (uint64_t i = 1; i <= PYTHON_CODES_MAX + 1; i++) {
		code.is.code = i;
		python_codes_add(codes, &code.is, sizeof(code.lines));
	}
	frame.code = PYTHON_CODES_MAX;
	assert_string_equal(python_codes_find(codes, 7, &frame).name, "Model.load");
	frame.code = PYTHON_CODES_MAX + 1;
	assert_string_equal(python_codes_find(codes, 7, &frame).name, "(unknown)");
	python_codes_free(codes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),		cmocka_unit_test(test_no_line),
		cmocka_unit_test(test_places),		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_hostile_lengths), cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
