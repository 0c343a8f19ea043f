/* SPDX-License-Identifier: GPL-2.0-only */
/* What people see at the end: figures that are right, lines that fit, and nothing that moves a
 * cursor. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "profile_fed.h"
#include "base/text.h"
#include "base/units.h"
#include "run/summary.h"

static void hit(struct profile *p, enum wire_what what, const char *name, uint64_t ms,
		uint64_t pages, uint64_t step_peak)
{
	union record r;

	record_checkpoint(&r, what, (uint32_t)ms, START_NS + ms * MS, MAIN, name);
	record_memory(&r, pages, step_peak, step_peak);
	r.cp.tree.usage.rchar = ms << 20;
	feed(p, &r);
}

/* The summary of p, which is finished by this. To be freed. */
static char *summary_page(struct profile *p, const struct summary_page *page)
{
	const struct run_quality quality = {
		.kernel.lost_checkpoints = 3,
		.cost = {.counted = true,
			 .bpf_run_ns = 2 * MS,
			 .bpf_runs = 9,
			 .own_cpu_ns = 40 * MS},
	};
	int fd = memfd_create("summary_test", MFD_CLOEXEC);
	struct summary_page whole = *page;
	char *text;
	off_t len;

	assert_true(fd >= 0);
	assert_int_equal(profile_finish(p, START_NS + 45800 * MS), 0);
	whole.info = &(struct run_info){0};
	assert_int_equal(summary_write(p, &quality, fd, &whole), 0);
	len = lseek(fd, 0, SEEK_END);
	text = calloc(1, (size_t)len + 1);
	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)len, 0), len);
	close(fd);
	return text;
}

static char *summary(struct profile *p, unsigned int width, bool colour)
{
	const struct summary_page page = {.width = width, .colour = colour};

	return summary_page(p, &page);
}

static void contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
}

static void test_figures(void **state)
{
	struct profile *p = new_profile();
	union record r;
	char *text;

	(void)state;
	hit(p, WIRE_START, "", 0, 100, 100);
	record_process(&r, WIRE_EXEC, START_NS, MAIN, 1, "python\0quant.py", 16);
	r.process.memory.peak = 524288;
	feed(p, &r);
	hit(p, WIRE_BEGIN, "Calibration", 1000, 25600, 25600);
	hit(p, WIRE_END, "Calibration", 12300, 524288, 524288);
	text = summary(p, 100, false);
	contains(text, "qprof-bpf took 40 ms, its BPF programs 2 ms in 9 runs\n");
	contains(text, "qprof-bpf: 45.8 s, peak 2.00 GiB at 12.3 s (in Calibration), 1 process, "
		       "3 checkpoints\n");
	contains(text, "PHASE");
	contains(text, "+1.90 GiB");
	contains(text, "11.0 GiB"); /* read meanwhile */
	contains(text, "100 python quant.py");
	contains(text, "running");
	contains(text, "! 3 checkpoints lost");
	assert_null(strchr(text, '\x1b'));
	assert_null(strstr(text, "hugetlb"));
	free(text);
	profile_free(p);
}

/* One mark beside pairs: its stretches come last, and take no peak from a pair for 16 KiB. */
static void test_marks(void **state)
{
	struct profile *p = new_profile();
	const char *pair, *title, *stretch;
	char *text;

	(void)state;
	hit(p, WIRE_START, "", 0, 100, 100);
	hit(p, WIRE_BEGIN, "Quantize", 1000, 25600, 25600);
	hit(p, WIRE_END, "Quantize", 12000, 524288, 524288);
	hit(p, WIRE_MARK, "Quantized", 12100, 524288, 524288);
	hit(p, WIRE_FINISH, "", 12300, 100, 524292);
	text = summary(p, 100, false);
	contains(text, "peak 2.00 GiB at 12.1 s (almost as high in Quantize)");
	pair = strstr(text, "\n  Quantize  ");
	title = strstr(text, "\n  between marks\n");
	stretch = strstr(text, "\n  Start -> Quantized  ");
	if (!pair || !title || !stretch || pair > title || title > stretch)
		fail_msg("expected Quantize, then the stretches between marks:\n%s", text);
	contains(text, "\n  Quantized -> End  ");
	free(text);
	profile_free(p);
}

/* What was in no phase stands where it was. */
static void test_outside(void **state)
{
	static const char *const order[] = {"(before the first)", "Load", "Quantize", "(between)",
					    "(after the last)"};
	struct profile *p = new_profile();
	const char *at;
	char *text;

	(void)state;
	hit(p, WIRE_START, "", 0, 100, 100);
	hit(p, WIRE_BEGIN, "Load", 1000, 25600, 25600);
	hit(p, WIRE_END, "Load", 2000, 25600, 25600);
	hit(p, WIRE_BEGIN, "Quantize", 2500, 25600, 30720);
	hit(p, WIRE_END, "Quantize", 12000, 524288, 524288);
	hit(p, WIRE_FINISH, "", 15000, 100, 524288);
	text = summary(p, 100, false);
	at = text;
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++) {
		at = at ? strstr(at, order[i]) : NULL;
		if (i == 0)
			at = strstr(text, "PHASE") ? strstr(strstr(text, "PHASE"), order[i]) : NULL;
		if (!at)
			fail_msg("no row \"%s\" in its place:\n%s", order[i], text);
	}
	contains(text, "120 MiB"); /* the peak between: its pages, by 500 ms */
	free(text);
	profile_free(p);
}

/* Of several phases of one name, the headline says which: the phases that it is within, too. */
static void test_path_of_the_peak(void **state)
{
	struct profile *p = new_profile();
	char *text;

	(void)state;
	hit(p, WIRE_START, "", 0, 100, 100);
	hit(p, WIRE_BEGIN, "layers.0", 1000, 200, 200);
	hit(p, WIRE_BEGIN, "gptq", 1100, 200, 200);
	hit(p, WIRE_END, "gptq", 1200, 200, 300);
	hit(p, WIRE_END, "layers.0", 1300, 200, 200);
	hit(p, WIRE_BEGIN, "layers.1", 2000, 200, 200);
	hit(p, WIRE_BEGIN, "gptq", 2100, 200, 200);
	hit(p, WIRE_END, "gptq", 2200, 512, 512);
	hit(p, WIRE_END, "layers.1", 2300, 200, 512);
	hit(p, WIRE_FINISH, "", 3000, 100, 200);
	text = summary(p, 120, false);
	contains(text, "peak 2.00 MiB at 2.2 s (in layers.1 > gptq)");
	free(text);
	profile_free(p);
}

/* A peak that processes may share is between two bounds; both fit a terminal. */
static void test_least(void **state)
{
	struct profile *p = new_profile();
	union record r;
	char *text;

	(void)state;
	hit(p, WIRE_START, "", 0, 0, 0);
	record_point(&r, START_NS + MS, MAIN, 51200, 51200);
	feed(p, &r);
	record_process(&r, WIRE_FORK, START_NS + 2 * MS, CHILD, MAIN.tgid, "", 0);
	feed(p, &r);
	record_point(&r, START_NS + 3 * MS, CHILD, 66560, 117760);
	r.point.tree_anon = 117760;
	r.point.inherited = 51200;
	feed(p, &r);
	text = summary(p, 80, false);
	contains(text, "peak 460 MiB at 3 ms");
	contains(text, "\n  at least 260 MiB if each page counts once: processes may share up to "
		       "200 MiB\n");
	free(text);
	profile_free(p);
}

/* A run that did not end well says so before all figures, and in which phase. */
static void test_ending(void **state)
{
	static const struct {
		uint32_t status; /* as wait(2) has it */
		const char *line;
	} cases[] = {
		{9, "! Ended by SIGKILL (out of memory, or kill -9) at 2.0 s, in "
		    "Calibration\nqprof-bpf: "},
		{11 | 0x80, "! Ended by SIGSEGV at 2.0 s, in Calibration\nqprof-bpf: "},
		{2, "! Interrupted at 2.0 s, in Calibration\nqprof-bpf: "},
		{3 << 8, "! Failed with exit status 3 at 2.0 s, in Calibration\nqprof-bpf: "},
		{0, "qprof-bpf: "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct profile *p = new_profile();
		union record r;
		char *text;

		hit(p, WIRE_START, "", 0, 100, 100);
		record_process(&r, WIRE_EXEC, START_NS, MAIN, 1, "python\0quant.py", 16);
		r.process.flags = WIRE_PROCESS_TARGET;
		feed(p, &r);
		hit(p, WIRE_BEGIN, "Calibration", 1000, 25600, 25600);
		record_process(&r, WIRE_EXIT, START_NS + 2000 * MS, MAIN, 1, "", 0);
		r.process.flags = WIRE_PROCESS_TARGET;
		r.process.exit_code = cases[i].status;
		feed(p, &r);
		text = summary(p, 80, false);
		if (strncmp(text, cases[i].line, strlen(cases[i].line)) != 0)
			fail_msg("no \"%s\" first in:\n%s", cases[i].line, text);
		free(text);
		profile_free(p);
	}
}

static void ends(struct profile *p, uint64_t ms, struct record_who who, uint32_t status)
{
	union record r;

	record_process(&r, WIRE_EXIT, START_NS + ms * MS, who, 1, "", 0);
	r.process.flags = who.tgid == MAIN.tgid ? WIRE_PROCESS_TARGET : 0;
	r.process.exit_code = status;
	feed(p, &r);
}

/* A shell passes on its child's signal as 128 + n. The summary names the child, as the report does.
 */
static void test_ending_behind_a_shell(void **state)
{
	const struct record_who child = {.tgid = 200, .started_ns = 2};
	const char line[] =
		"! Ended by SIGSEGV: process 200 quant --all at 1.5 s, in Calibration\n";
	struct profile *p = new_profile();
	union record r;
	char *text;

	(void)state;
	hit(p, WIRE_START, "", 0, 100, 100);
	record_process(&r, WIRE_EXEC, START_NS, MAIN, 1, "sh\0run.sh", 9);
	r.process.flags = WIRE_PROCESS_TARGET;
	feed(p, &r);
	record_process(&r, WIRE_EXEC, START_NS, child, MAIN.tgid, "/opt/quant\0--all", 16);
	feed(p, &r);
	hit(p, WIRE_BEGIN, "Calibration", 1000, 25600, 25600);
	ends(p, 1500, child, 11);
	ends(p, 2000, MAIN, (128 + 11) << 8);
	text = summary(p, 80, false);
	if (strncmp(text, line, strlen(line)) != 0)
		fail_msg("no \"%s\" first in:\n%s", line, text);
	free(text);
	profile_free(p);
}

/* Many phases, one of them with the peak. */
static struct profile *many_phases(void)
{
	static const char python[] = "/usr/bin/python3\0/home/ann/quantize.py\0--model=opt-125m";
	struct profile *p = new_profile();
	union record r;

	hit(p, WIRE_START, "", 0, 100, 100);
	record_process(&r, WIRE_EXEC, START_NS, MAIN, 1, python, sizeof(python) - 1);
	r.process.flags = WIRE_PROCESS_TARGET;
	feed(p, &r);
	for (uint64_t i = 0; i < 200; i++) {
		const uint64_t high = i == 150 ? 800000 : 2000 + i % 7;
		char name[64];

		snprintf(name, sizeof(name), "model.layers.%u.self_attn.q_proj.weight",
			 (unsigned int)i);
		hit(p, WIRE_BEGIN, name, 200 * i + 100, 1000, 1000);
		hit(p, WIRE_END, name, 200 * i + 200, 2000, high);
	}
	ends(p, 45000, MAIN, 11);
	return p;
}

/* The phase that the headline names and the largest have a row, in order of time. */
static void test_the_largest_of_many_phases(void **state)
{
	struct profile *p = many_phases();
	char *text = summary(p, 160, false);
	const char *row = strstr(text, "\n  PHASE");
	unsigned int shown = 0, before = 0;

	(void)state;
	contains(text, "peak 3.05 GiB at 30.2 s (in model.layers.150.self_attn.q_proj.weight)");
	contains(text, "  model.layers.150.self_attn.q_proj.weight  30.1 s  100 ms  3.05 GiB  ");
	contains(text, "\n  ... and 180 smaller phases in the profile\n");
	assert_non_null(row);
	while ((row = strstr(row, "\n  model.layers."))) {
		const unsigned int layer = (unsigned int)atoi(row + strlen("\n  model.layers."));

		if (layer % 7 != 6 && layer != 150)
			fail_msg("layer %u is no larger than those left out:\n%s", layer, text);
		if (layer < before)
			fail_msg("layer %u comes after %u:\n%s", layer, before, text);
		before = layer;
		shown++;
		row++;
	}
	assert_int_equal(shown, 20);
	free(text);
	profile_free(p);
}

/* What matters is shown at 80 columns, too; names are cut in their middle. */
static void test_narrow(void **state)
{
	struct profile *p = many_phases();
	char *text = summary(p, 80, false);

	(void)state;
	contains(text, "  START    TIME   PEAK   DELTA   READ  WRITE  CPU\n");
	contains(text, "\n  model.layers.150…proj.weight  30.1 s  100 ms  3.05G  +3.91M   "
		       "100M      0  0 s\n");
	contains(text, "  PEAK  READ  WRITE  CPU        END\n");
	contains(text, "  signal 11\n");
	free(text);
	profile_free(p);

	p = many_phases();
	text = summary(p, 60, false);
	contains(text, "  TIME   PEAK   DELTA   READ\n");
	contains(text, "  PEAK  READ  WRITE        END\n");
	contains(text, "  signal 11\n");
	free(text);
	profile_free(p);
}

/* What the peak has nothing of is said beside it. */
static void test_hugetlb(void **state)
{
	struct profile *p = new_profile();
	union record r;
	char *text;

	(void)state;
	record_checkpoint(&r, WIRE_MARK, 0, START_NS, MAIN, "m");
	r.cp.tree.memory.hugetlb = 25600;
	feed(p, &r);
	text = summary(p, 80, false);
	contains(text, "\n  hugetlb 100 MiB or more, beside the peak\n");
	free(text);
	profile_free(p);
}

/* The last line names the file, and what a shell takes for it. */
static void test_file(void **state)
{
	static const struct {
		const char *profile, *old, *line;
	} cases[] = {
		{"q8.yaml", NULL, "\n  profile: q8.yaml   next: qprof-bpf report q8.yaml\n"},
		{"q.yaml", "q.yaml.old",
		 "\n  profile: q.yaml (the one before: q.yaml.old)   next: qprof-bpf report "
		 "q.yaml\n"},
		{"my model's.yaml", NULL,
		 "\n  profile: my model's.yaml   next: qprof-bpf report 'my model'\\''s.yaml'\n"},
		{"-q.yaml", NULL, "\n  profile: -q.yaml   next: qprof-bpf report ./-q.yaml\n"},
		{"a\nb\x1b.yaml", NULL, "\n  profile: a\\nb�.yaml\n"},
		{"/data/experiments/llama-3-8b/int8/per-channel/profile.yaml", NULL,
		 "\n  profile: /data/experiments/llama-3-8b/int8/per-channel/profile.yaml\n"
		 "  next: qprof-bpf report "
		 "/data/experiments/llama-3-8b/int8/per-channel/profile.yaml\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct summary_page page = {
			.width = 90, .profile = cases[i].profile, .old = cases[i].old};
		struct profile *p = new_profile();
		char *text, *end;

		hit(p, WIRE_MARK, "m", 0, 1, 1);
		text = summary_page(p, &page);
		end = text + strlen(text) - strlen(cases[i].line);
		if (end < text || strcmp(end, cases[i].line) != 0)
			fail_msg("expected at the end: %s, got:\n%s", cases[i].line, text);
		free(text);
		profile_free(p);
	}
}

/* What the program wrote last may not have ended its line. */
static void test_after_others(void **state)
{
	const struct summary_page page = {.width = 80, .after_others = true};
	struct profile *p = new_profile();
	char *text;

	(void)state;
	hit(p, WIRE_MARK, "m", 0, 1, 1);
	text = summary_page(p, &page);
	assert_int_equal(strncmp(text, "\nqprof-bpf: ", strlen("\nqprof-bpf: ")), 0);
	free(text);
	profile_free(p);
}

static void test_colour(void **state)
{
	struct profile *p = new_profile();
	char *text;

	(void)state;
	hit(p, WIRE_MARK, "m", 0, 1, 1);
	text = summary(p, 80, true);
	contains(text, "\x1b[1m");
	free(text);
	profile_free(p);
}

/* Characters between a line's ends; all here are one column wide. */
static size_t columns(const char *line, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)line[i] & 0xc0) != 0x80;
	return n;
}

/* No line is too wide, no name gets a control byte out, lists are cut and say so. */
static void test_hostile_and_many(void **state)
{
	static const char *const names[] = {
		"\x1b[2J\x1b[1;1H",
		"a\nb\rc\td",
		"\xc2\x9b"
		"31m",
		"\xe2\x80\xae"
		"rtl",
		"\xff\xff",
		"a name that is longer than any column could ever have room for, "
		"and goes on and on and on"};
	const size_t n = sizeof(names) / sizeof(*names);

	(void)state;
	for (unsigned int width = 0; width <= 300; width += 20) {
		struct profile *p = new_profile();
		const unsigned int allowed = width < 60 ? 60 : width;
		char *text, *line, *end;
		union record r;

		for (uint64_t i = 0; i < 60; i++) {
			struct record_who who = {.tgid = 1000 + (uint32_t)i, .started_ns = i};

			hit(p, i % 2 ? WIRE_MARK : WIRE_BEGIN, names[i % n], i * 50000, i * 3333,
			    200000);
			record_process(&r, WIRE_EXEC, START_NS, who, 1, names[i % n],
				       strlen(names[i % n]));
			feed(p, &r);
		}
		text = summary(p, width, false);
		contains(text, "smaller phases");
		contains(text, "more processes");
		for (line = text; *line; line = end + 1) {
			end = strchr(line, '\n');
			assert_non_null(end);
			if (columns(line, (size_t)(end - line)) > allowed)
				fail_msg("%u columns: %.*s", allowed, (int)(end - line), line);
			for (const char *c = line; c < end; c++)
				assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
		}
		assert_null(strstr(text, "\xe2\x80\xae"));
		assert_null(strstr(text, "\xc2\x9b"));
		free(text);
		profile_free(p);
	}
}

/* Cut where the columns end, counting wide characters twice. */
static void test_text_for_terminal(void **state)
{
	static const struct {
		const char *text;
		unsigned int columns;
		const char *shown;
		unsigned int used;
	} cases[] = {
		{"abc", 3, "abc", 3},
		{"abcd", 3, "...", 3},
		{"abcdefgh", 6, "abc...", 6},
		{"abc", 2, "..", 2},
		{"abc", 0, "", 0},
		{"", 5, "", 0},
		{"\xe4\xbd\xa0\xe5\xa5\xbd", 4, "\xe4\xbd\xa0\xe5\xa5\xbd", 4},
		{"\xe4\xbd\xa0\xe5\xa5\xbd\xe5\x90\x97", 5, "\xe4\xbd\xa0...", 5},
		{"\xe4\xbd\xa0\xe5\xa5\xbd\xe5\x90\x97", 4, "...", 3},
		{"a\n\tb\r", 8, "a\\n\\tb\\r", 8},
		{"a\nb", 3, "...", 3},
		{"ab\n\n", 5, "ab...", 5},
		{"\x1b[m\v", 4, "\xef\xbf\xbd[m\xef\xbf\xbd", 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char out[64];

		assert_int_equal(
			text_for_terminal(out, sizeof(out), cases[i].text, cases[i].columns),
			cases[i].used);
		assert_string_equal(out, cases[i].shown);
	}
}

/* A reader gets back each byte, and no number is longer than it has to be. */
static void test_mib_name_the_byte(void **state)
{
	static const uint64_t above[] = {0, 1ull << 20, 5ull << 30, (1ull << 46) - (1 << 20)};
	char out[UNITS_TEXT_MAX], shorter[UNITS_TEXT_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(above) / sizeof(*above); i++) {
		/* All below a MiB once, then some. */
		for (uint64_t rest = 0; rest < 1 << 20; rest += i ? 1021 : 1) {
			const uint64_t bytes = above[i] + rest;
			size_t len;

			units_mb(out, bytes);
			if ((uint64_t)llround(strtod(out, NULL) * 1048576) != bytes)
				fail_msg("%s is not %lu bytes", out, bytes);
			len = strlen(out);
			assert_in_range(out + len - strchr(out, '.') - 1, 2, 7);
			if (strchr(out, '.')[3] == '\0')
				continue;
			snprintf(shorter, sizeof(shorter), "%.*f",
				 (int)(out + len - strchr(out, '.') - 2), (double)bytes / 1048576);
			if (fabs(strtod(shorter, NULL) * 1048576 - (double)bytes) < 0.48)
				fail_msg("%s for %lu bytes: %s would do", out, bytes, shorter);
		}
	}
}

static void test_units(void **state)
{
	char out[UNITS_TEXT_MAX];

	(void)state;
	assert_string_equal(units_counted(out, sizeof(out), 1, "process(es)"), "1 process");
	assert_string_equal(units_counted(out, sizeof(out), 0, "process(es)"), "0 processes");
	assert_string_equal(units_counted(out, sizeof(out), 1, "end(s) without a begin"),
			    "1 end without a begin");
	assert_string_equal(units_counted(out, sizeof(out), 2, "end(s) without a begin"),
			    "2 ends without a begin");
	assert_string_equal(units_counted(out, 6, 12, "step(s)"), "12 st");
	assert_string_equal(units_counted(out, 3, UINT64_MAX, "step(s)"), "18");
	assert_string_equal(units_mb(out, 0), "0.00");
	assert_string_equal(units_mb(out, 1048576 + 524288), "1.50");
	assert_string_equal(units_mb_rounded(out, 1048575), "1.00");
	assert_string_equal(units_mb_rounded(out, 4096), "0.00");
	assert_false(units_mb_is_whole(4096));
	assert_false(units_mb_is_whole(1048575));
	assert_true(units_mb_is_whole(0));
	assert_true(units_mb_is_whole((5 << 20) + 10486)); /* 5.01 */
	assert_string_equal(units_mb_rounded(out, UINT64_MAX), "17592186044416.00");
	assert_string_equal(units_mb(out, 1048575), "0.999999");
	assert_string_equal(units_mb(out, 1), "0.000001");
	assert_string_equal(units_mb(out, 11), "0.0000105");
	assert_string_equal(units_mb(out, 4096), "0.003906");
	assert_string_equal(units_mb(out, 1048576 + 131072), "1.125");
	assert_string_equal(units_mb(out, UINT64_MAX), "17592186044415.999999");
	assert_string_equal(units_mb_delta(out, 3 << 20, 1 << 20), "-2.00");
	assert_string_equal(units_mb_delta(out, 1 << 20, 3 << 20), "2.00");
	assert_string_equal(units_secs(out, 1000000999, 6), "1.000001");
	assert_string_equal(units_secs(out, 999999999, 4), "1.0000");
	assert_string_equal(units_secs(out, UINT64_MAX, 9), "18446744073.709551615");
	assert_string_equal(units_bytes_for_people(out, 1023), "1023 B");
	assert_string_equal(units_bytes_for_people(out, 1024), "1.00 KiB");
	assert_string_equal(units_bytes_for_people(out, 1048575), "1.00 MiB");
	assert_string_equal(units_bytes_for_people(out, 10 << 20), "10.0 MiB");
	assert_string_equal(units_bytes_for_people(out, UINT64_MAX), "16.0 EiB");
	assert_string_equal(units_delta_for_people(out, 2048, 1024), "-1.00 KiB");
	assert_string_equal(units_bytes_short(out, 0), "0");
	assert_string_equal(units_bytes_short(out, 1023), "1023B");
	assert_string_equal(units_bytes_short(out, 1048575), "1.00M");
	assert_string_equal(units_bytes_short(out, UINT64_MAX), "16.0E");
	assert_string_equal(units_delta_short(out, 0), "0");
	assert_string_equal(units_delta_short(out, 3 << 20), "+3.00M");
	assert_string_equal(units_delta_short(out, -(3 << 20)), "-3.00M");
	assert_string_equal(units_delta_short(out, INT64_MIN), "-8.00E");
	assert_string_equal(units_time_for_people(out, 999), "1 us");
	assert_string_equal(units_time_for_people(out, 999999999), "1.0 s");
	assert_string_equal(units_time_for_people(out, 125 * 1000000000ull), "2m 05s");
	assert_string_equal(units_time_for_people(out, 7500 * 1000000000ull), "2h 05m");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_least),
		cmocka_unit_test(test_path_of_the_peak),
		cmocka_unit_test(test_ending),
		cmocka_unit_test(test_ending_behind_a_shell),
		cmocka_unit_test(test_the_largest_of_many_phases),
		cmocka_unit_test(test_narrow),
		cmocka_unit_test(test_hugetlb),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_after_others),
		cmocka_unit_test(test_colour),
		cmocka_unit_test(test_hostile_and_many),
		cmocka_unit_test(test_text_for_terminal),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_mib_name_the_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
