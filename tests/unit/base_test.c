/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/file.h"
#include "base/names.h"
#include "base/text.h"

/* AddressSanitizer ends the program otherwise, instead of returning NULL. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* ---- Arrays ---- */

static void test_an_array_keeps_its_elements_as_it_grows(void **state)
{
	size_t cap = 0;
	int *list = NULL;

	(void)state;
	for (size_t i = 0; i < 1000; i++) {
		list = array_reserve(list, i, &cap, sizeof(*list));
		assert_non_null(list);
		assert_true(cap > i);
		list[i] = (int)i;
	}
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(list[i], i);
	assert_true(cap <= 2048);
	free(list);
}

static void test_an_array_may_grow_by_more_than_twice(void **state)
{
	size_t cap = 0;
	char *bytes = array_reserve(NULL, 70000, &cap, 1);

	(void)state;
	assert_non_null(bytes);
	assert_int_equal(cap, 70001);
	memset(bytes, 'x', cap);
	assert_ptr_equal(array_reserve(bytes, 70000, &cap, 1), bytes);
	free(bytes);
}

struct card {
	int value;
	unsigned int came;
	char more[3]; /* a size that is no power of two */
};

static int by_card_value(const void *a, const void *b)
{
	const struct card *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

/* Of n cards with few values or many, and of a long run with one card out of its place. */
static void test_sorting_keeps_the_order_of_what_is_equal(void **state)
{
	enum { MOST = 300 };
	struct card cards[MOST];
	unsigned int random = 2026;

	(void)state;
	for (size_t n = 0; n <= MOST; n++) {
		const unsigned int values = n % 3 == 0 ? 4 : n % 3 == 1 ? 1000 : 1;

		for (size_t i = 0; i < n; i++) {
			random = random * 1103515245 + 12345;
			cards[i] = (struct card){.value = (int)(random >> 16) % (int)values,
						 .came = (unsigned int)i};
			if (n % 5 == 0)
				cards[i].value = i == n / 2 ? -1 : (int)i;
		}
		array_sort(cards, n, sizeof(*cards), by_card_value);
		for (size_t i = 1; i < n; i++) {
			assert_true(cards[i - 1].value <= cards[i].value);
			if (cards[i - 1].value == cards[i].value)
				assert_true(cards[i - 1].came < cards[i].came);
		}
	}
}

static unsigned int looks;

static int count_looks(const void *a, const void *b)
{
	looks++;
	return by_card_value(a, b);
}

static void test_sorting_what_is_in_order_looks_once_at_each(void **state)
{
	struct card cards[1000];

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		cards[i] = (struct card){.value = (int)i / 2, .came = (unsigned int)i};
	looks = 0;
	array_sort(cards, 1000, sizeof(*cards), count_looks);
	assert_int_equal(looks, 999);
}

static void test_an_array_without_memory_is_unchanged(void **state)
{
	size_t cap = 0;
	int *list = array_reserve(NULL, 0, &cap, sizeof(*list));

	(void)state;
	assert_non_null(list);
	assert_null(array_reserve(list, SIZE_MAX / 8, &cap, sizeof(*list)));
	assert_int_equal(cap, 8);
	free(list);
}

static bool is_larger(const void *a, const void *b)
{
	return *(const int *)a / 10 > *(const int *)b / 10;
}

static void test_the_largest_are_ranked(void **state)
{
	static const int numbers[] = {31, 52, 11, 53, 91, 32, 12};
	static const int expected[] = {91, 52, 53, 31};
	const void *largest[4];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < 7; i++)
		n = array_rank(largest, n, 4, &numbers[i], is_larger);
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(*(const int *)largest[i], expected[i]);
	assert_int_equal(array_rank(largest, 0, 4, &numbers[2], is_larger), 1);
	assert_ptr_equal(largest[0], &numbers[2]);
}

/* ---- Texts ---- */

static void test_a_name_is_cut_in_the_middle(void **state)
{
	static const struct {
		const char *text;
		unsigned int columns;
		const char *shown;
		unsigned int used;
	} cases[] = {
		{"model.layers.0.self_attn.q_proj", 31, "model.layers.0.self_attn.q_proj", 31},
		{"model.layers.0.self_attn.q_proj", 30, "model.layers.0…elf_attn.q_proj", 30},
		{"model.layers.0.self_attn.q_proj", 21, "model.layers.0…q_proj", 21},
		/* Layer 1 would be another one. */
		{"model.layers.16.self_attn.q_proj", 21, "model.layers.16…_proj", 21},
		{"model.layers.2026112208.q_proj", 21, "model.layers.…q_proj", 20},
		{"model.layers.16.self_attn.q_proj", 22, "model.layers.16…q_proj", 22},
		{"model.layers.16.self_attn.q_proj", 26, "model.layers.16.sel…q_proj", 26},
		{"/home/ann/models/llama/quantize.py", 20, "/home/ann…uantize.py", 20},
		{"calibration of the whole model (open)", 24, "calibration…model (open)", 24},
		{"batch 1027 of 2048 batches", 20, "batch 1027 o…batches", 20},
		{"batch_1027", 6, "ba…027", 6},
		{"12345678901234567890", 9, "1234…7890", 9},
		{"abcdef", 5, "ab…ef", 5},
		{"abcdef", 2, "…f", 2},
		{"abcdef", 1, "…", 1},
		{"abcdef", 0, "", 0},
		{"", 0, "", 0},
		{"", 5, "", 0},
		/* Wide characters are never halved. */
		{"你好吗你好吗", 12, "你好吗你好吗", 12},
		{"你好吗你好吗", 11, "你好吗…好吗", 11},
		{"你好吗你好吗", 2, "…", 1},
		/* Nothing that moves the cursor, before and after the cut. */
		{"\x1b[2J and so on and on\n\xff", 10, "�[2J…on\\n�", 10},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char out[64 * TEXT_TERMINAL_GROWTH + 1];
		const unsigned int used = text_cut_middle(out, cases[i].text, cases[i].columns);

		if (used != cases[i].used || strcmp(out, cases[i].shown) != 0)
			fail_msg("%s in %u columns: expected '%s' of %u columns, got '%s' of %u",
				 cases[i].text, cases[i].columns, cases[i].shown, cases[i].used,
				 out, used);
	}
}

/* ---- Names ---- */

static void test_a_command_loses_the_folder_of_its_program_only(void **state)
{
	(void)state;
	assert_string_equal(short_command("/usr/bin/python3 /srv/train.py", "python3"),
			    "python3 /srv/train.py");
	assert_string_equal(short_command("make -C /src/linux", "make"), "make -C /src/linux");
	assert_string_equal(short_command("", "kworker/0:1"), "kworker/0:1");
	assert_string_equal(short_command(NULL, "sh"), "sh");
}

static void test_an_id_of_a_container_is_cut_and_a_name_is_not(void **state)
{
	static const char id[] = "0123456789abcdef0123456789abcdef"
				 "0123456789abcdef0123456789abcdef";
	char out[80];

	(void)state;
	assert_string_equal(short_container(out, sizeof(out), id), "0123456789ab");
	assert_string_equal(short_container(out, sizeof(out), id + 1), id + 1);
	assert_string_equal(short_container(out, sizeof(out), "a-machine-of-some-name"),
			    "a-machine-of-some-name");
	assert_string_equal(short_container(out, sizeof(out), ""), "");
}

/* ---- Users ---- */

static const uint32_t hangs = 4000000000u;

static unsigned int *look_ups; /* shared with the child that looks up */
static const char *name_of_7;

/* Takes the place of the one in the C library, which may ask a server. */
int getpwuid_r(uid_t uid, struct passwd *entry, char *room, size_t size, struct passwd **found)
{
	++*look_ups;
	*found = NULL;
	while (uid == hangs)
		pause();
	if (uid == 7 && name_of_7) {
		snprintf(room, size, "%s", name_of_7);
		*entry = (struct passwd){.pw_name = room, .pw_dir = (char *)"/"};
		*found = entry;
	}
	return 0;
}

static int make_users(void **state)
{
	look_ups = mmap(NULL, sizeof(*look_ups), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	if (look_ups == MAP_FAILED)
		return -1;
	name_of_7 = "ada";
	*state = user_names_new();
	return *state ? 0 : -1;
}

static int free_users(void **state)
{
	user_names_free(*state);
	return munmap(look_ups, sizeof(*look_ups));
}

static void test_a_user_without_a_name_is_a_number(void **state)
{
	assert_string_equal(user_names_get(*state, 7), "ada");
	assert_string_equal(user_names_get(*state, 0), "0");
	assert_string_equal(user_names_get(*state, 4123456789u), "4123456789");
}

static void test_each_user_is_looked_up_once_with_or_without_a_name(void **state)
{
	for (int i = 0; i < 3; i++) {
		assert_string_equal(user_names_get(*state, 7), "ada");
		assert_string_equal(user_names_get(*state, 8), "8");
	}
	assert_int_equal(*look_ups, 2);
}

static void test_a_user_that_is_forgotten_is_looked_up_again(void **state)
{
	assert_string_equal(user_names_get(*state, 7), "ada");
	name_of_7 = "grace";
	assert_string_equal(user_names_get(*state, 7), "ada");
	user_names_forget(*state);
	assert_string_equal(user_names_get(*state, 7), "grace");
	name_of_7 = NULL;
	user_names_forget(*state);
	assert_string_equal(user_names_get(*state, 7), "7");
}

/* Not even the next is asked about then: each would take as long. */
static void test_a_directory_that_hangs_leaves_numbers(void **state)
{
	assert_string_equal(user_names_get(*state, 7), "ada");
	assert_string_equal(user_names_get(*state, hangs), "4000000000");
	assert_string_equal(user_names_get(*state, 7), "ada");
	assert_string_equal(user_names_get(*state, 8), "8");
	assert_string_equal(user_names_get(*state, hangs), "4000000000");
	assert_int_equal(*look_ups, 2);
}

static void test_any_number_of_users_have_their_names_and_few_are_remembered(void **state)
{
	enum { USERS = 10000, REMEMBERED = 4096 };
	char number[16];

	name_of_7 = NULL;
	for (uint32_t uid = 0; uid < USERS; uid++) {
		snprintf(number, sizeof(number), "%u", uid);
		assert_string_equal(user_names_get(*state, uid), number);
	}
	assert_int_equal(*look_ups, USERS);
	/* The latest are remembered, the first are not. */
	user_names_get(*state, USERS - 1);
	user_names_get(*state, USERS - USERS % REMEMBERED);
	assert_int_equal(*look_ups, USERS);
	user_names_get(*state, 0);
	assert_int_equal(*look_ups, USERS + 1);
}

/* ---- Files ---- */

static int make_folder(void **state)
{
	static char path[32];

	strcpy(path, "/tmp/qprof-base-XXXXXX");
	*state = path;
	return mkdtemp(path) && !chdir(path) ? 0 : -1;
}

static int remove_folder(void **state)
{
	unlink("file");
	unlink("link");
	unlink("fifo");
	return chdir("/") || rmdir(*state);
}

static void test_a_link_is_refused(void **state)
{
	struct error err = {0};

	(void)state;
	assert_int_equal(symlink("file", "link"), 0);
	assert_int_equal(file_open(AT_FDCWD, "link", O_WRONLY | O_CREAT, 0644), -ELOOP);
	assert_int_equal(output_open("link", &err), -1);
	assert_non_null(strstr(err.text, "symbolic link"));
	assert_int_not_equal(access("file", F_OK), 0);
}

static void test_a_fifo_without_a_reader_is_not_waited_for(void **state)
{
	(void)state;
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(file_open(AT_FDCWD, "fifo", O_WRONLY, 0), -ENXIO);
}

static void test_an_output_is_emptied_and_written(void **state)
{
	struct error err = {0};
	char text[16] = "";
	int fd;

	(void)state;
	for (int i = 0; i < 2; i++) {
		fd = output_open("file", &err);
		assert_true(fd >= 0);
		assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
		assert_int_equal(file_write(fd, i ? "new" : "older", i ? 3 : 5), 0);
		close(fd);
	}
	fd = file_open(AT_FDCWD, "file", O_RDONLY, 0);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "new");
	assert_int_equal(file_write(fd, "x", 1), -EBADF);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_array_keeps_its_elements_as_it_grows),
		cmocka_unit_test(test_an_array_may_grow_by_more_than_twice),
		cmocka_unit_test(test_sorting_keeps_the_order_of_what_is_equal),
		cmocka_unit_test(test_sorting_what_is_in_order_looks_once_at_each),
		cmocka_unit_test(test_an_array_without_memory_is_unchanged),
		cmocka_unit_test(test_the_largest_are_ranked),
		cmocka_unit_test(test_a_name_is_cut_in_the_middle),
		cmocka_unit_test(test_a_command_loses_the_folder_of_its_program_only),
		cmocka_unit_test(test_an_id_of_a_container_is_cut_and_a_name_is_not),
		cmocka_unit_test_setup_teardown(test_a_user_without_a_name_is_a_number, make_users,
						free_users),
		cmocka_unit_test_setup_teardown(
			test_each_user_is_looked_up_once_with_or_without_a_name, make_users,
			free_users),
		cmocka_unit_test_setup_teardown(test_a_user_that_is_forgotten_is_looked_up_again,
						make_users, free_users),
		cmocka_unit_test_setup_teardown(test_a_directory_that_hangs_leaves_numbers,
						make_users, free_users),
		cmocka_unit_test_setup_teardown(
			test_any_number_of_users_have_their_names_and_few_are_remembered,
			make_users, free_users),
		cmocka_unit_test_setup_teardown(test_a_link_is_refused, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_a_fifo_without_a_reader_is_not_waited_for,
						make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(test_an_output_is_emptied_and_written, make_folder,
						remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
