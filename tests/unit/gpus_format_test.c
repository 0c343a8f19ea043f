/* SPDX-License-Identifier: GPL-2.0-only */
/* What drivers say of GPUs, in a profile and back: rows that learn a figure late, and the list. */
#include "format/recording.h"
#include "yaml_run.h"

enum { MIB = 1 << 20 };

static const struct run_gpu two[] = {
	{.index = 1,
	 .has_number = true,
	 .name = "NVIDIA Stand-in",
	 .uuid = "GPU-1",
	 .pci = "0000:3b:00.0",
	 .total = 24ull << 30,
	 .looks = 7,
	 .first_used = 3 << 20,
	 .peak_used = 9 << 20,
	 .last_used = 5 << 20,
	 .peak_ns = START_NS + 2 * MS + MS / 2,
	 .tree_peak_used = 4 << 20},
	{.index = 2, .name = "", .uuid = "", .pci = ""},
};

static const struct run_gpus gpus = {.list = two, .n = 2, .driver_share = 6 << 20};

/* Steps of which every other has a figure, from the first on. ends: the file is whole. */
static void write_rows(int fd, uint32_t n, bool ends)
{
	struct run_info with = info;
	struct profile *p = new_profile();
	struct yaml *w = new_writer(fd);
	const struct profile_checkpoint *step;
	union record r;

	with.gpus = &gpus;
	assert_int_equal(yaml_begin(w, &with), 0);
	for (uint32_t i = 0; i < n; i++) {
		record_checkpoint(&r, WIRE_MARK, i, START_NS + i * MS, MAIN, "Layer");
		record_memory(&r, 1000 + i, 2000 + i, 2000 + i);
		assert_int_equal(profile_feed(p, &r.h, &step), 0);
		assert_int_equal(yaml_row_begin(w, step), 0);
		assert_int_equal(yaml_row_end(w, i % 2 ? 0 : (uint64_t)(i + 1) * MIB), 0);
	}
	if (ends)
		assert_int_equal(write_end(w, p, START_NS + n * MS), 0);
	else
		assert_int_equal(flush_and_wait(w), 0);
	free_writer(w);
	profile_free(p);
}

static void read_back(int fd, struct recording *r)
{
	struct error err = {0};
	struct text text = contents(fd);
	FILE *in = fmemopen(text.data, text.len, "r");

	assert_non_null(in);
	if (recording_read(r, in, "test", &err))
		fail_msg("%s", err.text);
	fclose(in);
	free(text.data);
	close(fd);
}

static void test_rows(void **state)
{
	struct recording r = {0};
	int given, fd = new_file(&given);

	(void)state;
	write_rows(given, 4, true);
	read_back(fd, &r);
	assert_int_equal(r.n_steps, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(r.steps[i].gpu_device_used, i % 2 ? 0 : (uint64_t)(i + 1) * MIB);
	recording_free(&r);
}

/* A row without the figure is whole, also where the file ends after it. */
static void test_rows_of_a_file_that_was_cut_off(void **state)
{
	struct recording r = {0};
	int given, fd = new_file(&given);

	(void)state;
	write_rows(given, 4, false);
	read_back(fd, &r);
	assert_true(r.partial);
	assert_int_equal(r.n_steps, 4);
	assert_int_equal(r.steps[2].gpu_device_used, 3 * MIB);
	recording_free(&r);
}

/* The file parses while a row is yet to be ended, and a row that nobody ended is. */
static void test_open_row(void **state)
{
	struct profile *p = new_profile();
	int given, fd = new_file(&given);
	struct yaml *w = new_writer(given);
	const struct profile_checkpoint *step;
	struct recording r = {0};
	union record record;

	(void)state;
	assert_int_equal(yaml_begin(w, &info), 0);
	record_checkpoint(&record, WIRE_MARK, 0, START_NS, MAIN, "Layer");
	record_memory(&record, 1000, 2000, 2000);
	assert_int_equal(profile_feed(p, &record.h, &step), 0);
	assert_int_equal(yaml_row_begin(w, step), 0);
	assert_int_equal(flush_and_wait(w), 0);
	read_back(dup(fd), &r);
	assert_true(r.partial);
	assert_int_equal(r.n_steps, 1);
	assert_int_equal(r.steps[0].rss, 1000 * RECORDS_PAGE);
	recording_free(&r);
	assert_int_equal(write_end(w, p, START_NS + MS), 0);
	memset(&r, 0, sizeof(r));
	read_back(fd, &r);
	assert_false(r.partial);
	assert_int_equal(r.n_steps, 1);
	assert_int_equal(r.n_gpus, 0);
	recording_free(&r);
	free_writer(w);
	profile_free(p);
}

static void test_list(void **state)
{
	struct recording r = {0};
	const struct recording_gpu *gpu;
	int given, fd = new_file(&given);

	(void)state;
	write_rows(given, 4, true);
	read_back(fd, &r);
	assert_int_equal(r.n_gpus, 2);
	gpu = &r.gpus[0];
	assert_int_equal(gpu->index, 1);
	assert_int_equal(gpu->number, 0);
	assert_string_equal(gpu->name, "NVIDIA Stand-in");
	assert_string_equal(gpu->uuid, "GPU-1");
	assert_string_equal(gpu->pci, "0000:3b:00.0");
	assert_int_equal(gpu->total, 24ull << 30);
	assert_int_equal(gpu->first_used, 3 << 20);
	assert_int_equal(gpu->peak_used, 9 << 20);
	assert_int_equal(gpu->last_used, 5 << 20);
	assert_int_equal(gpu->tree_peak_used, 4 << 20);
	assert_int_equal(gpu->looks, 7);
	assert_int_equal(gpu->peak_used_ns, 2 * MS + MS / 2);
	assert_string_equal(gpu->peak_used_phase, "Layer");
	assert_int_equal(r.totals.driver_share, 6 << 20);
	gpu = &r.gpus[1];
	assert_int_equal(gpu->index, 2);
	assert_null(gpu->name);
	assert_int_equal(gpu->looks, 0);
	recording_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_rows_of_a_file_that_was_cut_off),
		cmocka_unit_test(test_open_row),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
