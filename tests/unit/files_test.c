/* SPDX-License-Identifier: GPL-2.0-only */
/* Files that storage is used for: their paths, and what of them belongs to which phase. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "profile_run.h"

static const struct wire_file model = {.device = 8 << 20 | 1, .inode = 7, .generation = 3};
static const struct wire_file other = {.device = 8 << 20 | 1, .inode = 8};

static int set_up_files(void **state)
{
	return set_up_with(state, true);
}

static struct wire_stored record_of(const struct run *run, const struct wire_file *file,
				    uint32_t flags)
{
	struct wire_stored r;

	memset(&r, 0, sizeof(r));
	r.h = (struct wire_header){
		.kind = WIRE_STORED, .size = sizeof(r), .time_ns = run->now_ns - 10};
	r.file = *file;
	r.flags = flags;
	return r;
}

/* What was read of a file until now. */
static void told(struct run *run, const struct wire_file *file, uint64_t read, uint32_t flags)
{
	struct wire_stored r = record_of(run, file, flags);

	r.read = read;
	r.distinct = read / 2;
	assert_true(wire_record_ok(&r, sizeof(r)));
	assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
}

static void wrote_to(struct run *run, const struct wire_file *file, uint64_t written,
		     uint32_t flags)
{
	struct wire_stored r = record_of(run, file, flags);

	r.written = written;
	assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
}

static struct wire_stored_name name_of(const struct wire_file *file, const char *parts, size_t len)
{
	struct wire_stored_name r = {.h = {.kind = WIRE_STORED_NAME}, .file = *file};

	r.len = (uint32_t)len;
	r.h.size = (uint32_t)(offsetof(struct wire_stored_name, parts) + len);
	memcpy(r.parts, parts, len);
	return r;
}

static void named(struct run *run, const struct wire_file *file, const char *parts, size_t len)
{
	const struct wire_stored_name r = name_of(file, parts, len);

	assert_true(wire_record_ok(&r, r.h.size));
	assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
}

static const struct profile_file *file_at(const struct run *run, size_t i)
{
	size_t n;
	const struct profile_file *files = profile_files(run->p, &n);

	assert_true(i < n);
	return &files[i];
}

/* Steps without a use have no record: what the next one says was so before. Phases of one name that
 * are within each other count once. */
static void test_phases(void **state)
{
	struct run *run = *state;
	const struct profile_file *file;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "idle", 10, 10);
	hit(run, MAIN, WIRE_END, "idle", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "layer", 10, 10);
	told(run, &model, 0, 0);
	hit(run, MAIN, WIRE_BEGIN, "layer", 10, 10);
	told(run, &model, 100, 0);
	hit(run, MAIN, WIRE_END, "layer", 10, 10);
	hit(run, MAIN, WIRE_END, "layer", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "save", 10, 10);
	told(run, &model, 400, 0);
	hit(run, MAIN, WIRE_END, "save", 10, 10);
	hit(run, MAIN, WIRE_FINISH, "", 10, 10);
	told(run, &model, 1000, WIRE_STORED_LAST);
	finish(run);
	file = file_at(run, 0);
	assert_int_equal(file->read, 1000);
	assert_int_equal(file->distinct, 500);
	assert_int_equal(file->n_uses, 2);
	assert_string_equal(file->uses[0].name, "save");
	assert_int_equal(file->uses[0].read, 600);
	assert_string_equal(file->uses[1].name, "layer");
	assert_int_equal(file->uses[1].read, 400);
}

/* The second record's sums were read before those of the first, and its time after. */
static void test_swapped(void **state)
{
	struct run *run = *state;
	const struct profile_file *file;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "layer", 10, 10);
	told(run, &model, 100, 0);
	hit(run, MAIN, WIRE_END, "layer", 10, 10);
	told(run, &model, 50, 0);
	hit(run, MAIN, WIRE_BEGIN, "save", 10, 10);
	told(run, &model, 200, 0);
	hit(run, MAIN, WIRE_END, "save", 10, 10);
	told(run, &model, 500, WIRE_STORED_LAST);
	finish(run);
	file = file_at(run, 0);
	assert_int_equal(file->read, 500);
	assert_int_equal(file->n_uses, 1);
	assert_string_equal(file->uses[0].name, "save");
	assert_int_equal(file->uses[0].read, 300);
}

/* A file server has no requests: what it reads and writes is elsewhere. */
static void test_elsewhere(void **state)
{
	struct run *run = *state;
	union record r;
	size_t n;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	record_checkpoint(&r, WIRE_FINISH, run->seq++, run->now_ns, MAIN, "");
	record_memory(&r, 10, 10, 10);
	r.cp.tree.usage = (struct wire_usage){.read_bytes = 700, .write_bytes = 50};
	feed(run, &r);
	finish(run);
	profile_files(run->p, &n);
	assert_int_equal(n, 1);
	assert_string_equal(file_at(run, 0)->path, "(elsewhere)");
	assert_true(file_at(run, 0)->is_rest);
	assert_int_equal(file_at(run, 0)->read, 700);
	assert_int_equal(file_at(run, 0)->written, 50);
}

/* Nothing was used: an empty list, and none if nobody asked. */
static void test_nothing(void **state)
{
	struct run *run = *state;
	void *unasked;
	size_t n;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	finish(run);
	assert_non_null(profile_files(run->p, &n));
	assert_int_equal(n, 0);
	assert_int_equal(set_up(&unasked), 0);
	finish(unasked);
	assert_null(profile_files(((struct run *)unasked)->p, &n));
	tear_down(&unasked);
}

/* The largest first; the last name counts; one without a name has its number. */
static void test_names(void **state)
{
	static const char before[] = "model.tmp\0data\0", after[] = "model\xff\n.bin\0data\0";
	struct run *run = *state;

	told(run, &other, 5, WIRE_STORED_LAST);
	named(run, &model, before, sizeof(before) - 1);
	named(run, &model, after, sizeof(after) - 1);
	told(run, &model, 9, WIRE_STORED_LAST | WIRE_STORED_DELETED);
	finish(run);
	assert_string_equal(file_at(run, 0)->path, "8:1:/data/model\xef\xbf\xbd\n.bin");
	assert_true(file_at(run, 0)->is_deleted);
	assert_string_equal(file_at(run, 1)->path, "(inode 8 of 8:1)");
	assert_false(file_at(run, 1)->is_deleted);
}

/* Of a long path, the end from a directory on. A record that says more than it has is none. */
static void test_long_names(void **state)
{
	char parts[WIRE_STORED_NAME_MAX] = "end";
	struct run *run = *state;
	struct wire_stored_name bad;

	for (size_t at = 4; at + 100 < sizeof(parts); at += 100)
		memset(parts + at, 'd', 99);
	named(run, &model, parts, sizeof(parts));
	told(run, &model, 9, WIRE_STORED_LAST);
	bad = name_of(&model, parts, 8);
	bad.len = 9;
	assert_false(wire_record_ok(&bad, bad.h.size));
	bad.len = sizeof(bad.parts) + 1;
	assert_false(wire_record_ok(&bad, sizeof(bad)));
	finish(run);
	assert_int_equal(strlen(file_at(run, 0)->path), 3 + 10 * 100 + 4);
	assert_memory_equal(file_at(run, 0)->path, ".../ddd", 7);
	assert_string_equal(file_at(run, 0)->path + 3 + 10 * 100, "/end");
}

/* The smallest of too many files are one line; what no file has of the account, another. */
static void test_many(void **state)
{
	enum { MORE = 5 };
	const struct wire_file metadata = {.inode = WIRE_STORED_METADATA};
	struct run *run = *state;
	size_t n;

	for (uint64_t i = 1; i <= PROFILE_MAX_FILES + MORE; i++) {
		const struct wire_file file = {.device = 1, .inode = i};

		told(run, &file, 1000 + i, WIRE_STORED_LAST);
	}
	told(run, &metadata, 3, WIRE_STORED_LAST);
	finish(run);
	profile_files(run->p, &n);
	assert_int_equal(n, PROFILE_MAX_FILES + 2);
	assert_int_equal(file_at(run, 0)->read, 1000 + PROFILE_MAX_FILES + MORE);
	assert_string_equal(file_at(run, n - 2)->path, "(metadata)");
	assert_string_equal(file_at(run, n - 1)->path, "(other)");
	assert_int_equal(file_at(run, n - 1)->read, MORE * 1000 + 15);
	assert_true(file_at(run, n - 1)->is_rest);
	assert_false(file_at(run, n - 1)->has_distinct);
}

static void wrote(struct run *run, uint32_t device, uint64_t written)
{
	const struct wire_space r = {
		.h = {.kind = WIRE_SPACE, .size = sizeof(r)}, .device = device, .written = written};

	assert_true(wire_record_ok(&r, sizeof(r)));
	assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
}

static void looked(struct run *run, uint32_t device, uint64_t time_ns, uint64_t left)
{
	const struct profile_look look = {.device = device,
					  .mount = "/srv/caf\xe9",
					  .id = 77,
					  .time_ns = time_ns,
					  .size = 1000,
					  .left = left};

	assert_int_equal(profile_looked(run->p, &look), 0);
}

static void unanswered(struct run *run, uint32_t device)
{
	assert_int_equal(profile_looked(run->p, &(struct profile_look){.device = device}), 0);
}

static void looked_at_other(struct run *run, uint32_t device)
{
	const struct profile_look look = {
		.device = device, .mount = "/other", .id = 78, .time_ns = 1, .left = 1};

	assert_int_equal(profile_looked(run->p, &look), 0);
}

/* The lowest of all looks; of removed files all bytes, and the largest; what nobody saw counts. */
static void test_spaces(void **state)
{
	enum { SEEN = 8 << 20 | 1, SMALL = 8 << 20 | 2, UNSEEN = 8 << 20 | 3 };
	static const char name[] = "shard\0tmp\0";
	struct run *run = *state;
	const struct profile_space *spaces;
	size_t n;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	wrote(run, SMALL, 3);
	looked(run, SMALL, run->now_ns, 5);
	wrote(run, SEEN, 100);
	looked(run, SEEN, run->now_ns, 700);
	looked(run, SEEN, run->now_ns + 7, 200);
	looked(run, SEEN, run->now_ns + 8, 200);
	wrote(run, SEEN, 300);
	wrote(run, SEEN, 200);
	wrote(run, UNSEEN, 1);
	unanswered(run, SEEN);
	looked_at_other(run, SEEN);
	looked(run, SEEN, run->now_ns + 9, 600);
	unanswered(run, SMALL);
	unanswered(run, UNSEEN);
	named(run, &model, name, sizeof(name) - 1);
	wrote_to(run, &model, 60, WIRE_STORED_LAST | WIRE_STORED_DELETED);
	wrote_to(run, &other, 50, WIRE_STORED_LAST | WIRE_STORED_DELETED);
	run->now_ns += 5; /* the run ends before the lowest was seen */
	finish(run);
	spaces = profile_spaces(run->p, &n);
	assert_int_equal(n, 2);
	assert_string_equal(spaces[0].mount, "/srv/caf\xef\xbf\xbd");
	assert_int_equal(spaces[0].first, 700);
	assert_int_equal(spaces[0].least, 200);
	assert_int_equal(spaces[0].least_ns, run->now_ns);
	assert_true(spaces[0].has_last);
	assert_int_equal(spaces[0].last, 600);
	assert_false(spaces[1].has_last);
	assert_int_equal(spaces[0].looks, 4);
	assert_int_equal(spaces[0].written, 300);
	assert_int_equal(spaces[0].removed, 110);
	assert_string_equal(spaces[0].removed_file, "8:1:/tmp/shard");
	assert_int_equal(spaces[0].removed_most, 60);
	assert_int_equal(spaces[1].least, 5);
	assert_null(spaces[1].removed_file);
	assert_int_equal(profile_losses(run->p)->unseen_spaces, 1);
	assert_int_equal(profile_losses(run->p)->unanswered_looks, 3);
}

static void there(void *context, const struct wire_file *files, enum profile_there *answers,
		  size_t n)
{
	size_t *asked = context;

	*asked += n;
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(answers[i], PROFILE_NOBODY_KNOWS);
		if (files[i].inode == model.inode)
			answers[i] = PROFILE_THERE;
		else if (files[i].inode == other.inode)
			answers[i] = PROFILE_REMOVED;
	}
}

/* What was written and whose inode is gone is asked for, whatever was said of it before. Where
 * nobody knows, that holds. */
static void test_gone(void **state)
{
	const struct wire_file third = {.device = model.device, .inode = 99};
	const struct wire_file fourth = {.device = model.device, .inode = 100};
	const struct wire_file fifth = {.device = model.device, .inode = 101};
	size_t asked = 0;
	const struct profile_config config = {
		.page_size = RECORDS_PAGE, .there = there, .files = true, .context = &asked};
	struct run *run = *state;
	const struct profile_file *files;
	size_t n;

	profile_free(run->p);
	run->p = profile_new(&config);
	assert_non_null(run->p);
	hit(run, MAIN, WIRE_START, "", 10, 10);
	wrote_to(run, &model, 3, WIRE_STORED_LAST | WIRE_STORED_DELETED | WIRE_STORED_GONE);
	wrote_to(run, &other, 2, WIRE_STORED_LAST | WIRE_STORED_GONE);
	wrote_to(run, &third, 1, WIRE_STORED_LAST | WIRE_STORED_GONE);
	wrote_to(run, &fourth, 4, WIRE_STORED_LAST | WIRE_STORED_DELETED | WIRE_STORED_GONE);
	told(run, &fifth, 1000, WIRE_STORED_LAST | WIRE_STORED_GONE);
	finish(run);
	files = profile_files(run->p, &n);
	assert_true(n >= 5);
	assert_false(files[0].is_deleted); /* it was read alone */
	assert_true(files[1].is_deleted);
	assert_false(files[2].is_deleted);
	assert_true(files[3].is_deleted);
	assert_false(files[4].is_deleted);
	assert_int_equal(asked, 4);
	assert_int_equal(profile_losses(run->p)->unsure_removals, 1);
}

/* ---- Over time --------------------------------------------------------------------------------
 */

/* The point with that many bytes of three kinds, ns after the start. */
static void check_point(const struct profile_file *file, size_t i, uint64_t ns, uint64_t read,
			uint64_t written, uint64_t called)
{
	assert_true(i < file->n_points);
	assert_int_equal(file->points[i].time_ns - START_NS, ns);
	assert_int_equal(file->points[i].read, read);
	assert_int_equal(file->points[i].written, written);
	assert_int_equal(file->points[i].called, called);
}

/* Sums are known at the first use in a step, where phases begin and end, and at the end of the run.
 */
static void test_points(void **state)
{
	struct run *run = *state;
	const struct profile_file *file;
	struct wire_stored r;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "load", 10, 10);
	told(run, &model, 0, 0);
	hit(run, MAIN, WIRE_END, "load", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "idle", 10, 10);
	hit(run, MAIN, WIRE_END, "idle", 10, 10);
	r = record_of(run, &model, 0);
	r.read = 400;
	r.called = 700;
	assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
	hit(run, MAIN, WIRE_BEGIN, "save", 10, 10);
	hit(run, MAIN, WIRE_END, "save", 10, 10);
	hit(run, MAIN, WIRE_FINISH, "", 10, 10);
	r = record_of(run, &model, WIRE_STORED_LAST);
	r.read = 400;
	r.called = 700;
	r.written = 50;
	assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
	finish(run);
	file = file_at(run, 0);
	assert_int_equal(file->n_points, 5);
	check_point(file, 0, 2 * MS - 10, 0, 0, 0);
	check_point(file, 1, 2 * MS, 400, 0, 700);
	check_point(file, 2, 5 * MS - 10, 400, 0, 700);
	check_point(file, 3, 5 * MS, 400, 50, 700);
	check_point(file, 4, 7 * MS, 400, 50, 700);
	assert_int_equal(profile_losses(run->p)->thinned_points, 0);
}

/* Of too many points about every second stays, the first and the last among them. */
static void test_many_points(void **state)
{
	enum { STEPS = 300, POINTS = 2 * STEPS + 1 };
	struct run *run = *state;
	const struct profile_file *file;
	uint64_t before = 0;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	for (uint64_t i = 0; i < STEPS; i++) {
		hit(run, MAIN, WIRE_BEGIN, "layer", 10, 10);
		told(run, &model, i, 0);
		hit(run, MAIN, WIRE_END, "layer", 10, 10);
	}
	hit(run, MAIN, WIRE_FINISH, "", 10, 10);
	told(run, &model, STEPS, WIRE_STORED_LAST);
	finish(run);
	file = file_at(run, 0);
	assert_int_equal(file->n_points, PROFILE_MAX_FILE_POINTS);
	check_point(file, 0, 2 * MS - 10, 0, 0, 0);
	check_point(file, file->n_points - 1, (2 * STEPS + 1) * MS, STEPS, 0, 0);
	for (size_t i = 0; i + 1 < file->n_points; i++) {
		/* Layer 0 is told of at 2 ms less 10 ns, and ends at 2 ms. */
		const uint64_t ns = file->points[i].time_ns - START_NS;
		const uint64_t index = 2 * ((ns + 10) / (2 * MS) - 1) + (ns % MS == 0);

		assert_int_equal(file->points[i].read, (index + 1) / 2);
		if (i)
			assert_in_range(index - before, 2, 3);
		before = index;
	}
	assert_int_equal(profile_losses(run->p)->thinned_points, POINTS - PROFILE_MAX_FILE_POINTS);
}

/* Few files have them: what has more bytes does, and what is none does not. */
static void test_files_with_points(void **state)
{
	enum { FILES = PROFILE_MAX_CURVED_FILES + 4 };
	const struct wire_file metadata = {.inode = WIRE_STORED_METADATA};
	struct run *run = *state;
	size_t n;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	for (int last = 0; last < 2; last++) {
		for (uint64_t i = 1; i <= FILES; i++) {
			const struct wire_file file = {.device = 1, .inode = i};

			told(run, &file, last ? i : 0, last ? WIRE_STORED_LAST : 0);
		}
		told(run, &metadata, last ? 1000 : 0, last ? WIRE_STORED_LAST : 0);
	}
	finish(run);
	profile_files(run->p, &n);
	assert_int_equal(n, FILES + 1);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(file_at(run, i)->n_points, i < PROFILE_MAX_CURVED_FILES ? 2 : 0);
	assert_int_equal(file_at(run, 0)->points[1].read, FILES);
}

/* ---- Looks ------------------------------------------------------------------------------------
 */

enum { AGE = 2 * MS, MANY = 8 << 20, FEW = 1 << 10 };

/* A look that begins now, and takes 5 ns; at what was mapped and copied of the model. */
static void seen_both(struct run *run, uint64_t mapped, bool mapped_unknown, uint64_t copied,
		      uint64_t of_other)
{
	struct profile_copied list[] = {
		{.file = model,
		 .size = 9,
		 .mapped = mapped,
		 .copied = copied,
		 .path = "/models/a.bin"},
		{.file = other, .copied = of_other, .path = ""},
	};
	const struct profile_copies copies = {.began_ns = run->now_ns,
					      .ended_ns = run->now_ns + 5,
					      .age_ns = AGE,
					      .mapped_unknown = mapped_unknown,
					      .list = list,
					      .n = 2};

	assert_int_equal(profile_copies_seen(run->p, &copies), 0);
}

static void seen(struct run *run, uint64_t of_model, uint64_t of_other)
{
	seen_both(run, 0, false, of_model, of_other);
}

static void goes_through(struct run *run, const char *name)
{
	hit(run, MAIN, WIRE_BEGIN, name, 10, 10);
	hit(run, MAIN, WIRE_END, name, 10, 10);
}

static const struct profile_file_use *use_of(const struct profile_file *file, const char *name)
{
	for (size_t i = 0; i < file->n_uses; i++)
		if (!strcmp(file->uses[i].name, name))
			return &file->uses[i];
	return NULL;
}

/* An end has the figure of the look after it, if that came in time. */
static void test_copies(void **state)
{
	struct run *run = *state;
	const struct profile_file *file;
	size_t n;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	goes_through(run, "none");
	seen(run, 0, FEW);
	run->now_ns += AGE + 1;
	goes_through(run, "some");
	seen(run, MANY, FEW);
	run->now_ns += AGE + 1;
	goes_through(run, "late");
	run->now_ns += AGE + 1;
	seen(run, 2 * MANY, FEW);
	run->now_ns += AGE + 1;
	hit(run, MAIN, WIRE_FINISH, "", 10, 10);
	finish(run);
	profile_files(run->p, &n);
	assert_int_equal(n, 1);
	file = file_at(run, 0);
	assert_string_equal(file->path, "/models/a.bin");
	assert_int_equal(file->size, 9);
	assert_int_equal(file->copied, MANY); /* the look after "late" tells of no end */
	assert_int_equal(file->n_uses, 2);
	assert_int_equal(use_of(file, "some")->copied, MANY);
	assert_true(use_of(file, "none")->has_copied);
	assert_int_equal(use_of(file, "none")->copied, 0);
	assert_null(use_of(file, "late"));
	assert_int_equal(profile_losses(run->p)->unread_copies, 1);
}

/* Of phases of a name that touch or overlap, each end counts. */
static void test_copies_of_phases_of_one_name(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	hit(run, MAIN, WIRE_MARK, "step", 10, 10);
	hit(run, MAIN, WIRE_MARK, "step", 10, 10);
	seen(run, 2 * MANY, FEW);
	run->now_ns += AGE + 1;
	hit(run, MAIN, WIRE_MARK, "step", 10, 10); /* nobody looks after the second one */
	run->now_ns += AGE + 1;
	hit(run, MAIN, WIRE_MARK, "other", 10, 10);
	seen(run, MANY, FEW);
	run->now_ns += AGE + 1;
	hit(run, MAIN, WIRE_FINISH, "", 10, 10);
	finish(run);
	assert_int_equal(use_of(file_at(run, 0), "step")->copied, 2 * MANY);
	assert_int_equal(file_at(run, 0)->copied, 2 * MANY);
}

/* Of pages that are mapped it is the same; but a look may tell of copies alone. */
static void test_mapped(void **state)
{
	struct run *run = *state;
	const struct profile_file *file;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	goes_through(run, "some");
	seen_both(run, MANY, false, 0, 0);
	run->now_ns += AGE + 1;
	goes_through(run, "unknown");
	seen_both(run, 9 * MANY, true, MANY, 0);
	run->now_ns += AGE + 1;
	goes_through(run, "more");
	seen_both(run, 3 * MANY, false, MANY, 0);
	run->now_ns += AGE + 1;
	goes_through(run, "none");
	seen_both(run, 0, false, MANY, 0);
	run->now_ns += AGE + 1;
	hit(run, MAIN, WIRE_FINISH, "", 10, 10);
	finish(run);
	file = file_at(run, 0);
	assert_int_equal(file->mapped, 3 * MANY);
	assert_int_equal(file->copied, MANY);
	assert_int_equal(use_of(file, "some")->mapped, MANY);
	assert_int_equal(use_of(file, "some")->copied, 0);
	assert_int_equal(use_of(file, "some")->mapped_late, MS + 5);
	assert_false(use_of(file, "unknown")->has_mapped);
	assert_int_equal(use_of(file, "unknown")->copied, MANY);
	assert_int_equal(use_of(file, "more")->mapped, 3 * MANY);
	assert_true(use_of(file, "none")->has_mapped);
	assert_int_equal(use_of(file, "none")->mapped, 0);
	assert_string_equal(file->uses[0].name, "more"); /* the largest first */
	assert_int_equal(profile_losses(run->p)->unread_copies, 0);
}

/* What is less than 1 MiB, as most libraries have it, is told of no file. */
static void test_little_is_mapped(void **state)
{
	struct run *run = *state;
	size_t n;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	goes_through(run, "some");
	seen_both(run, PROFILE_LEAST_SEEN - 1, false, 0, 0);
	run->now_ns += AGE + 1;
	hit(run, MAIN, WIRE_FINISH, "", 10, 10);
	finish(run);
	profile_files(run->p, &n);
	assert_int_equal(n, 0);
}

/* Who has ended before the look was over had copies that nobody knows of. */
static void test_copies_of_who_is_gone(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	goes_through(run, "before");
	seen(run, MANY, 0);
	run->now_ns += 5;
	goes_through(run, "after");
	process_event(run, WIRE_FORK, CHILD, MAIN.tgid, 0, 1);
	seen(run, MANY, 0);
	hit(run, MAIN, WIRE_FINISH, "", 10, 10);
	finish(run);
	assert_non_null(use_of(file_at(run, 0), "before"));
	assert_null(use_of(file_at(run, 0), "after"));
	assert_int_equal(profile_losses(run->p)->unread_copies, 1);
}

int main(void)
{
#define FILES(name) cmocka_unit_test_setup_teardown(test_##name, set_up_files, tear_down)
	const struct CMUnitTest tests[] = {
		FILES(phases),
		FILES(swapped),
		FILES(elsewhere),
		FILES(nothing),
		FILES(names),
		FILES(long_names),
		FILES(many),
		FILES(spaces),
		FILES(gone),
		FILES(points),
		FILES(many_points),
		FILES(files_with_points),
		FILES(copies),
		FILES(copies_of_phases_of_one_name),
		FILES(copies_of_who_is_gone),
		FILES(mapped),
		FILES(little_is_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
