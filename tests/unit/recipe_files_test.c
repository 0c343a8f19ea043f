/* SPDX-License-Identifier: GPL-2.0-only */
/* Recipes: items that are names of files. */
#include "recipes/from_file.h"
#include "recipes_read.h"

static void what_is_wrong_with_files_is_said(void **state)
{
	static const struct wrong examples[] = {
		{HEAD "until_marked: perhaps\n", "test:3: 'until_marked' is to be yes or no"},
		{HEAD "checkpoints:\n- file: x\n  log: x\n  mark: x\n",
		 "test:5: an item listens to one thing, and 'file' is here"},
		{HEAD "checkpoints:\n- file: x\n  file: y\n  mark: x\n",
		 "test:5: 'file' is here twice"},
		{HEAD "checkpoints:\n- file: []\n  mark: x\n",
		 "test:4: 'file' is to be a name of files or a list of them"},
		{HEAD "checkpoints:\n- file: {a: b}\n  mark: x\n",
		 "test:4: 'file' is to be a name of files or a list of them"},
		{HEAD "checkpoints:\n- file: [a, [b]]\n  mark: x\n",
		 "test:4: a name of files is to be a text here"},
		{HEAD "checkpoints:\n- file: '*'\n  mark: x\n",
		 "test:4: '*' would be every file: add what all names have"},
		{HEAD "checkpoints:\n- file: '[a-c]*'\n  mark: x\n",
		 "test:4: '[a-c]*' would be every file"},
		{HEAD "checkpoints:\n- file: models/*.bin\n  mark: x\n",
		 "test:4: 'models/*.bin' has a '/': a file is known by its name alone"},
		{HEAD "checkpoints:\n- file: x\n  begin: x\n",
		 "test:4: a file is a 'phase' or a 'mark', and no more"},
		{HEAD "checkpoints:\n- file: x\n  phase: x\n  metric: {n: 1}\n",
		 "test:4: a file is a 'phase' or a 'mark', and no more"},
		{HEAD "checkpoints:\n- file: x\n  phase: '{read} x'\n",
		 "test:4: '{read} x': a word that no file has: use {read|write} and {basename}"},
		{HEAD "checkpoints:\n- file: x\n  phase: '{basename'\n",
		 "test:4: '{basename': a '{' without its '}'"},
	};

	(void)state;
	assert_refused(examples, sizeof(examples) / sizeof(*examples));
}

static void names_of_files_are_told(void **state)
{
	struct recipes *r = parse(HEAD "checkpoints:\n- file: ['*.gguf', m.pt]\n"
				       "  phase: '{read|write} {basename}'\n"
				       "- {file: '*.bin', mark: x}\n");
	const struct recipe *recipe = recipes_at(r, 0);

	(void)state;
	assert_int_equal(recipe->n_items, 2);
	assert_string_equal(recipe->items[0].text, "*.gguf, m.pt");
	assert_int_equal(recipe->items[0].n_names, 2);
	assert_string_equal(recipe->items[0].names[1], "m.pt");
	assert_string_equal(recipe->items[1].text, "*.bin");
	assert_true(recipe_has(recipe, RECIPE_FILE));
	assert_false(recipe_has(recipe, RECIPE_LOG));
	recipes_free(r);
}

/* What the kernel side looks for, as it compares: in the last 8 bytes of a name, or anywhere. */
static void a_pattern_has_a_part_that_each_name_has(void **state)
{
	static const struct {
		const char *pattern, *bytes, *mask; /* '1': this byte counts */
		bool anywhere;
	} examples[] = {
		{"*.gguf", "....gguf", "00011111", false},
		{"*.safetensors", "etensors", "11111111", false},
		{"m.pt", "....m.pt", "00001111", false},
		{"*.onnx*", ".onnx", "11111000", true},
		{"model-*-of-*", "model-", "11111100", true},
		{"?bin", ".....bin", "00000111", false},
		{"a[bc].bin", "a", "10000000", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		const unsigned char *bytes, *mask;
		struct wire_name_part part;

		assert_true(from_file_part(examples[i].pattern, &part));
		assert_int_equal(part.anywhere, examples[i].anywhere);
		bytes = (const unsigned char *)&part.bytes;
		mask = (const unsigned char *)&part.mask;
		for (size_t k = 0; k < 8; k++) {
			assert_int_equal(mask[k], examples[i].mask[k] == '1' ? 0xff : 0);
			if (mask[k])
				assert_int_equal(bytes[k], examples[i].bytes[k]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_with_files_is_said),
		cmocka_unit_test(names_of_files_are_told),
		cmocka_unit_test(a_pattern_has_a_part_that_each_name_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
