/* SPDX-License-Identifier: GPL-2.0-only */
/* What JIT compilers say of their code: as it grows, as code is replaced, and what is no map. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "unwind/jit_map.h"
#include "unwind/unwind.h"

static const uint64_t LATE = UINT64_MAX; /* all was told by then */

struct fixture {
	FILE *file;
	struct jit_map map;
};

static int set_up(void **state)
{
	static struct fixture f;

	f = (struct fixture){.file = tmpfile()};
	if (!f.file)
		return -1;
	jit_map_begin(&f.map, dup(fileno(f.file)));
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	jit_map_end(&f->map);
	fclose(f->file);
	return 0;
}

static void say(struct fixture *f, const char *text)
{
	fputs(text, f->file);
	assert_int_equal(fflush(f->file), 0);
}

static void grows(void **state)
{
	struct fixture *f = *state;

	assert_null(jit_map_find(&f->map, 0x1000, LATE));
	say(f, "1000 20 one\n1020 10 two words, and more\n0x2000 0x8 ");
	assert_string_equal(jit_map_find(&f->map, 0x1000, 0), "one");
	assert_string_equal(jit_map_find(&f->map, 0x101f, 0), "one");
	assert_string_equal(jit_map_find(&f->map, 0x1020, 0), "two words, and more");
	assert_null(jit_map_find(&f->map, 0x1030, LATE));
	assert_null(jit_map_find(&f->map, 0xfff, LATE));
	assert_null(jit_map_find(&f->map, 0x2000, LATE));
	say(f, "three\n");
	assert_string_equal(jit_map_find(&f->map, 0x2007, 0), "three");
}

/* What was told since the time may have been told before or after the code was run. */
static void replaced(void **state)
{
	struct fixture *f = *state;

	say(f, "1000 100 old\n");
	assert_string_equal(jit_map_find(&f->map, 0x1010, 0), "old");
	say(f, "1000 40 new\n");
	assert_null(jit_map_find(&f->map, 0x1010, 0));
	assert_string_equal(jit_map_find(&f->map, 0x1010, LATE), "new");
	assert_string_equal(jit_map_find(&f->map, 0x1050, 0), "old");
	say(f, "1000 40 new\n0ff0 18 within\n");
	assert_string_equal(jit_map_find(&f->map, 0x1007, LATE), "within");
	assert_string_equal(jit_map_find(&f->map, 0x1008, LATE), "new");
}

/* More than are looked through one by one, in falling order; then others at the same places. */
static void many(void **state)
{
	enum { N = 5000 };
	struct fixture *f = *state;
	char name[32];

	for (int round = 0; round < 2; round++) {
		for (unsigned int i = N; i-- > 0;)
			fprintf(f->file, "%x 10 f%u-%d\n", 0x10000 + 16 * i, i, round);
		say(f, "");
		for (unsigned int i = 0; i < N; i++) {
			snprintf(name, sizeof(name), "f%u-%d", i, round);
			assert_string_equal(jit_map_find(&f->map, 0x10000 + 16 * i + i % 16, LATE),
					    name);
		}
	}
}

static void is_no_map(void **state)
{
	static const char *const lines[] = {"",
					    " ",
					    "\n\n",
					    "1000\n",
					    "1000 20\n",
					    "1000 20",
					    "x 20 name\n",
					    "1000 x name\n",
					    "1000 0 none\n",
					    "ffffffffffffffff 20 wraps\n",
					    "-1 -1 minus\n",
					    "99999999999999999999999 1 too large\n"};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		say(f, lines[i]);
		assert_null(jit_map_find(&f->map, 0x1000, LATE));
	}
	say(f, "\n1000 20 name\n");
	assert_string_equal(jit_map_find(&f->map, 0x1000, LATE), "name");
}

static void long_lines(void **state)
{
	enum { LONG = 200000 };
	struct fixture *f = *state;
	char *text = malloc(LONG + 1);
	const char *name;

	memset(text, 'n', LONG);
	text[LONG] = '\0';
	say(f, "1000 20 ");
	say(f, text);
	say(f, "\n2000 20 ");
	text[1000] = '\0';
	say(f, text);
	say(f, "\n3000 20 last\n");
	assert_null(jit_map_find(&f->map, 0x1000, LATE));
	name = jit_map_find(&f->map, 0x2000, LATE);
	assert_non_null(name);
	assert_int_equal(strlen(name), UNWIND_MAX_NAME - 1);
	assert_string_equal(jit_map_find(&f->map, 0x3000, LATE), "last");
	free(text);
}

static void is_another_file(void **state)
{
	struct fixture *f = *state;

	say(f, "1000 20 first\n2000 20 second\n");
	assert_string_equal(jit_map_find(&f->map, 0x2000, LATE), "second");
	rewind(f->file);
	assert_int_equal(ftruncate(fileno(f->file), 0), 0);
	say(f, "1000 20 other\n");
	assert_string_equal(jit_map_find(&f->map, 0x1000, 0), "other");
	assert_null(jit_map_find(&f->map, 0x2000, LATE));
}

/* Lines that fill what is read at a time, to the last byte. */
static void fills_a_piece(void **state)
{
	enum { PIECE = 64 << 10, LINE = 64 };
	struct fixture *f = *state;

	for (unsigned int i = 0; i < PIECE / LINE; i++)
		fprintf(f->file, "%049x 10 %010u\n", 0x10000 + 16 * i, i);
	say(f, "");
	assert_int_equal(ftell(f->file), PIECE);
	assert_string_equal(jit_map_find(&f->map, 0x10000, LATE), "0000000000");
	assert_string_equal(jit_map_find(&f->map, 0x10000 + 16 * 1023, LATE), "0000001023");
}

/* One that is over many others; and one that so many are over that nobody looks through them. */
static void covers(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < 2000; i++)
		fprintf(f->file, "%x 10 f%u\n", 0x10000 + 16 * i, i);
	say(f, "10000 8000 all\n");
	assert_string_equal(jit_map_find(&f->map, 0x10000 + 16 * 1500, LATE), "all");
	for (unsigned int i = 0; i < 6000; i++)
		fprintf(f->file, "%x 1 f%u\n", 0x11000 + i, i);
	say(f, "");
	assert_null(jit_map_find(&f->map, 0x11000 + 5999, LATE));
}

/* One that is much larger than the others, and covers none of them. */
static void begins_with_a_large_one(void **state)
{
	enum { N = 20000 };
	struct fixture *f = *state;
	char name[32];

	say(f, "10000000 200000 large\n");
	for (unsigned int i = 0; i < N; i++)
		fprintf(f->file, "%x 40 f%u\n", 0x10200000 + 64 * i, i);
	say(f, "");
	for (unsigned int i = 0; i < N; i += 100) {
		const char *found = jit_map_find(&f->map, 0x10200000 + 64 * i + 63, LATE);

		snprintf(name, sizeof(name), "f%u", i);
		assert_non_null(found);
		assert_string_equal(found, name);
	}
	assert_string_equal(jit_map_find(&f->map, 0x101fffff, LATE), "large");
}

/* The end of a line that is too long is no line. */
static void ends_as_a_line(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 0; i < 64 << 10; i++)
		fputc(' ', f->file);
	say(f, "1000 20 tail");
	assert_null(jit_map_find(&f->map, 0x1000, LATE));
	say(f, "\n1000 20 name\n");
	assert_string_equal(jit_map_find(&f->map, 0x1000, LATE), "name");
}

static void is_written_anew(void **state)
{
	struct fixture *f = *state;

	say(f, "1000 20 first\n");
	assert_string_equal(jit_map_find(&f->map, 0x1000, LATE), "first");
	rewind(f->file);
	assert_int_equal(ftruncate(fileno(f->file), 0), 0);
	say(f, "3000 20 other\n4000 20 longer than it was\n");
	assert_null(jit_map_find(&f->map, 0x1000, LATE));
	assert_string_equal(jit_map_find(&f->map, 0x3000, LATE), "other");
}

/* A hole as large as a file may be, which says nothing. */
static void is_endless(void **state)
{
	struct fixture *f = *state;

	say(f, "1000 20 first\n");
	assert_int_equal(ftruncate(fileno(f->file), (off_t)1 << 40), 0);
	assert_null(jit_map_find(&f->map, 0x1000, LATE));
	assert_true(f->map.is_full);
}

/* Names of code that is left out would be those of code that was there before. */
static void too_many(void **state)
{
	struct fixture *f = *state;

	say(f, "1000 20 first\n");
	assert_string_equal(jit_map_find(&f->map, 0x1000, LATE), "first");
	for (unsigned int i = 0; i < 1 << 18; i++)
		fprintf(f->file, "%x 10 f\n", 0x10000 + 16 * i);
	say(f, "");
	assert_null(jit_map_find(&f->map, 0x1000, LATE));
}

int main(void)
{
#define MAP(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		MAP(grows),	     MAP(replaced),   MAP(many),
		MAP(is_no_map),	     MAP(long_lines), MAP(is_another_file),
		MAP(fills_a_piece),  MAP(covers),     MAP(is_written_anew),
		MAP(is_endless),     MAP(too_many),   MAP(begins_with_a_large_one),
		MAP(ends_as_a_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
