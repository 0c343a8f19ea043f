/* SPDX-License-Identifier: GPL-2.0-only */
/* Recipes: what the reader takes and what it says of the rest; what a log becomes by them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recipes/log_reader.h"
#include "recipes/log_stream.h"
#include "recipes/recipe.h"
#include "recipes_read.h"

#define SHIPPED "../../user/recipes/tools"

/* ---- Reading ----------------------------------------------------------------------------------
 */

static void what_is_wrong_is_said(void **state)
{
	static const struct wrong examples[] = {
		{"", "recipe test:1: there is no recipe: begin with 'name:'"},
		{"[]\n", "test:1: a recipe is to be a mapping"},
		{"name: a\n", "test:1: the recipe 'a' matches nothing: add 'match"},
		{"match: {executable: a}\n", "test:1: a recipe without a name"},
		{HEAD, "test:1: the recipe 'a' has no checkpoints"},
		{HEAD "checkpoints: []\n", "test:3: 'checkpoints' is to be a list"},
		{HEAD "name: b\n", "test:3: 'name' is here twice"},
		{HEAD "match: {}\n", "test:3: 'match' is here twice"},
		{HEAD "colour: b\n", "test:3: 'colour' is no key of a recipe"},
		{HEAD "beside: perhaps\n", "test:3: 'beside' is to be yes or no"},
		{HEAD "line_end: ', '\n", "test:3: 'line_end' is to be one ASCII character"},
		{HEAD "line_end: [a]\n", "test:3: 'line_end' is to be one ASCII character"},
		{"name: a\nmatch: {executable: a, libary: b}\ncheckpoints: [{log: x, mark: x}]\n",
		 "test:2: 'libary' is no condition"},
		{"name: a\nmatch: {}\ncheckpoints: [{log: x, mark: x}]\n",
		 "test:2: 'match' has no condition"},
		{HEAD "checkpoints:\n- 5\n", "test:4: a checkpoint is to be a mapping"},
		{HEAD "checkpoints:\n- mark: x\n", "test:4: a checkpoint that listens to nothing"},
		{HEAD "checkpoints:\n- log: x\n", "test:4: nothing to do when it is met"},
		{HEAD "checkpoints:\n- log: x\n  mark: ''\n", "test:5: 'mark' is empty"},
		{HEAD "checkpoints:\n- log: x\n  optional: y\n",
		 "test:5: 'optional' is to be yes or no"},
		{HEAD "checkpoints:\n- log: x\n  makr: y\n",
		 "test:5: 'makr' is no key of a checkpoint"},
		{HEAD "checkpoints:\n- log: x\n  mark: y\n  phase: z\n",
		 "test:6: a line does one of phase"},
		{HEAD "checkpoints:\n- log: '(x'\n  mark: y\n",
		 "test:4: the pattern cannot be used: missing closing parenthesis, at byte 3"},
		{HEAD "checkpoints:\n- log: '(x)'\n  mark: $2\n",
		 "test:4: $2 is not there: the pattern has 1 group(s)"},
		{HEAD "checkpoints:\n- log: 'x'\n  mark: a$\n", "test:4: '$' without a number"},
		{HEAD "checkpoints:\n- log: 'x'\n  metric: {n: $1}\n", "test:4: $1 is not there"},
		{HEAD "checkpoints:\n- log: 'x'\n  literal: 123456789\n  mark: y\n",
		 "test:5: 'literal' is longer than 8 bytes"},
		{HEAD "checkpoints:\n- log: 'x'\n  progress: {name: y}\n",
		 "test:5: 'progress' needs name, step and of"},
		{HEAD "checkpoints:\n- log: 'x'\n  progress: {steps: y}\n",
		 "test:5: 'steps' is no key of 'progress'"},
		{HEAD "checkpoints:\n- {log: x, mark: y, children: perhaps}\n",
		 "test:4: 'children' is to be yes or no"},
		{HEAD "checkpoints:\n- {log: x, mark: y}\n---\nname: b\n",
		 "test:6: a second document"},
	};

	(void)state;
	assert_refused(examples, sizeof(examples) / sizeof(*examples));
}

static void a_file_that_is_none_is_said(void **state)
{
	struct recipes *r = recipes_new();
	struct error err = {0};

	(void)state;
	assert_int_equal(recipes_read(r, "/nowhere/x.yaml", &err), -1);
	assert_string_equal(err.text, "cannot read the recipe '/nowhere/x.yaml': No such file or "
				      "directory");
	recipes_free(r);
}

/* Each that matches has its rule, in the set that it is for. */
static void the_shipped_recipes_are_read(void **state)
{
	struct recipes *r = recipes_new();
	struct error err = {0};
	size_t rules = 0, matching = 0;

	(void)state;
	if (recipes_read_all(r, SHIPPED, &err))
		fail_msg("%s", err.text);
	for (size_t slot = 0; slot < recipes_slots(r); slot++)
		rules += rules_count(recipes_rules(r, slot));
	assert_true(recipes_count(r) >= 2);
	assert_non_null(recipes_named(r, "llama.cpp quantize"));
	assert_true(recipes_named(r, "progress bars")->beside);
	assert_null(recipes_named(r, "nothing"));
	for (size_t i = 0; i < recipes_count(r); i++)
		assert_non_null(recipes_at(r, i)->read_from);
	for (size_t i = 0; i < recipes_count(r); i++)
		matching += recipes_at(r, i)->matches;
	assert_int_equal(rules, matching);
	recipes_free(r);
}

static const struct recipe *recognised(const struct recipes *r, bool beside, const char *name)
{
	struct rules_match *m = rules_match_new(recipes_rules(r, beside));
	const struct rule *rule;

	rules_match_offer(m, RULE_EXECUTABLE, "runs", name);
	rule = rules_match_verdict(m);
	rules_match_free(m);
	return rule ? recipes_of_rule(r, beside, rule) : NULL;
}

static void a_rule_leads_to_its_recipe(void **state)
{
	struct recipes *r = parse("name: one\nmatch: {executable: a}\n"
				  "checkpoints: [{log: x, mark: x}]\n");
	static const char *const more[] = {
		"name: two\nbeside: yes\nmatch: {executable: a}\ncheckpoints: [{log: x, mark: "
		"x}]\n",
		"name: three\nmatch: {any: [{executable: b}, {executable: c}]}\n"
		"checkpoints: [{log: x, mark: x}]\n",
	};
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(recipes_parse(r, "test", more[i], strlen(more[i]), &err), 0);
	assert_string_equal(recognised(r, false, "/bin/a")->name, "one");
	assert_string_equal(recognised(r, true, "a")->name, "two");
	assert_string_equal(recognised(r, false, "c")->name, "three");
	assert_null(recognised(r, true, "c"));
	assert_null(recognised(r, false, "d"));
	recipes_free(r);
}

/* One of the user's takes the place of the one that comes with the program. */
static void the_first_of_a_name_counts(void **state)
{
	struct recipes *r = parse("name: one\nmatch: {executable: a}\n"
				  "checkpoints: [{log: x, mark: x}]\n");
	static const char *const more[] = {
		"name: one\nmatch: {executable: b}\ncheckpoints: [{log: y, mark: x}]\n",
		"name: one\nbeside: yes\nmatch: {executable: a}\ncheckpoints: [{log: y, mark: x}]",
		"name: two\nmatch: {executable: b}\ncheckpoints: [{log: z, mark: x}]\n",
	};
	struct error err = {0};

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(recipes_parse(r, "test", more[i], strlen(more[i]), &err), 0);
	assert_int_equal(recipes_count(r), 2);
	assert_int_equal(recipes_slots(r), 1);
	assert_string_equal(recognised(r, false, "a")->items[0].text, "x");
	assert_string_equal(recognised(r, false, "b")->items[0].text, "z");
	recipes_free(r);
}

/* ---- Lines ------------------------------------------------------------------------------------
 */

struct told {
	char text[1024];
};

static void note_line(void *context, const struct log_line *line)
{
	struct told *told = context;
	const size_t len = strlen(told->text);

	snprintf(told->text + len, sizeof(told->text) - len, "%s%.*s%s|", line->headless ? "~" : "",
		 (int)line->len, line->text, line->unfinished ? "..." : "");
}

static void lines_are_as_a_terminal_shows_them(void **state)
{
	static const struct {
		const char *writes[6], *lines;
	} examples[] = {
		{{"one\ntwo\n"}, "one|two|"},
		{{"on", "e\n"}, "on...|one|"},
		{{"12%\r\x1b[1m100%\x1b[0m\ndone"}, "12%|100%|done...|"},
		{{"a\r\nb\r\n"}, "a|b|"},
		{{"\n\n"}, ""},
		{{"abc\b\bX\n"}, "aX|"},
		{{"a\x01\x07z\tb\n"}, "az\tb|"},
		{{"\x1b]0;title\x07name\n"}, "name|"},
		{{"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n"}, "link|"},
		{{"\x1b[", "38;5;1", "mred\n"}, "red|"},
		{{"\x1b(Btext\n"}, "text|"},
		{{"outer\n\rinner\x1b[A", "\router 2"}, "outer|inner|outer 2...|"},
		{{"cut off \x1b[12\nnext\n"}, "cut off |next|"},
		{{"\xe2\x94", "\x81\xff\n"}, "\xe2\x94...|\xe2\x94\x81\xff|"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		struct log_stream *s = calloc(1, sizeof(*s));
		struct told told = {""};

		for (size_t k = 0; examples[i].writes[k]; k++)
			log_stream_add(s, examples[i].writes[k], strlen(examples[i].writes[k]),
				       false, note_line, &told);
		if (strcmp(told.text, examples[i].lines) != 0)
			fail_msg("example %zu: expected '%s', got '%s'", i, examples[i].lines,
				 told.text);
		free(s);
	}
}

static void what_was_skipped_leaves_a_mark(void **state)
{
	struct log_stream *s = calloc(1, sizeof(*s));
	struct told told = {""};

	(void)state;
	log_stream_add(s, "half", 4, false, note_line, &told);
	log_stream_skip(s, false);
	log_stream_add(s, "tail\nnext", 9, false, note_line, &told);
	log_stream_skip(s, true);
	log_stream_add(s, "whole\n", 6, false, note_line, &told);
	assert_string_equal(told.text, "half...|~tail|next...|whole|");
	free(s);
}

struct lengths {
	size_t last, told;
};

static void note_length(void *context, const struct log_line *line)
{
	struct lengths *lengths = context;

	lengths->last = line->len;
	lengths->told++;
}

/* Nor time: when it is full, it is told of once more, and then no more. */
static void a_line_without_end_takes_no_more_memory(void **state)
{
	struct log_stream *s = calloc(1, sizeof(*s));
	struct lengths lengths = {0};
	char text[1000];

	(void)state;
	memset(text, 'x', sizeof(text));
	for (int i = 0; i < 1000; i++)
		log_stream_add(s, text, sizeof(text), false, note_length, &lengths);
	log_stream_add(s, "\n", 1, false, note_length, &lengths);
	assert_int_equal(lengths.last, LOG_LINE_MAX);
	assert_int_equal(lengths.told, LOG_LINE_MAX / sizeof(text) + 1);
	assert_int_equal(s->cut_lines, 1);
	log_stream_add(s, "next\n", 5, false, note_length, &lengths);
	assert_int_equal(lengths.last, 4);
	free(s);
}

/* ---- Marks ------------------------------------------------------------------------------------
 */

static int note_mark(void *context, const struct recipe_mark *mark)
{
	struct told *told = context;
	const size_t len = strlen(told->text), room = sizeof(told->text) - len;

	switch (mark->does) {
	case RECIPE_BEGIN:
		snprintf(told->text + len, room, "<%s ", mark->name);
		break;
	case RECIPE_END:
		snprintf(told->text + len, room, "%s%s%s%s> ", mark->died ? "!" : "", mark->name,
			 mark->renamed ? "=" : "", mark->renamed ? mark->renamed : "");
		break;
	case RECIPE_MARK:
		snprintf(told->text + len, room, "*%s ", mark->name);
		break;
	default:
		snprintf(told->text + len, room, mark->has_value ? "%s%s=%g " : "%s%s=? ",
			 mark->summary ? "total " : "", mark->name, mark->value);
	}
	return 0;
}

/* Returns what the recipe of an item makes of texts, each written at once, and then of the end. */
static struct told marks(const char *items, const char *const *writes, struct recipe_use *use)
{
	char text[1024];
	struct recipes *r;
	struct teller *teller;
	struct log_reader *reader;
	struct told told = {""};
	const struct recipe_tell tell = {note_mark, &told};

	snprintf(text, sizeof(text), HEAD "checkpoints:\n%s", items);
	r = parse(text);
	memset(use, 0, sizeof(*use));
	teller = teller_new(recipes_at(r, 0), use);
	assert_non_null(teller);
	reader = log_reader_new(teller);
	assert_non_null(reader);
	for (size_t i = 0; writes[i]; i++)
		assert_int_equal(
			log_reader_text(reader, i % 2, writes[i], strlen(writes[i]), false, &tell),
			0);
	teller_end(teller, &tell);
	log_reader_free(reader);
	teller_free(teller);
	recipes_free(r);
	return told;
}

/* As marks(), of texts that all go to stdout. */
static struct told marks_of(const char *items, const char *const *texts, struct recipe_use *use)
{
	const char *writes[64] = {0};
	size_t n = 0;

	for (size_t i = 0; texts[i]; i++) {
		writes[n++] = texts[i];
		writes[n++] = "";
	}
	return marks(items, writes, use);
}

#define TENSORS "- {log: '^\\[ *\\d+/ *\\d+\\] +(\\S+) - ', phase: $1}\n"

static void a_line_begins_its_phase_before_it_ends(void **state)
{
	static const char *const texts[] = {"[ 1/ 2] a.weight - [4], ",
					    "size = 7\n",
					    "[ 2/ 2] b.we",
					    "ight - [4], ",
					    "size = 7\n",
					    NULL};
	struct recipe_use use;

	(void)state;
	assert_string_equal(marks_of(TENSORS, texts, &use).text,
			    "<a.weight a.weight> <b.weight b.weight> ");
	assert_int_equal(use.matched[0], 2);
	assert_int_equal(use.buffered, 0);
}

/* A group that could still grow is not taken before the line has ended. */
static void a_group_is_whole(void **state)
{
	static const char *const texts[] = {"size 12", "34", " MB\n", "size 5", "6", NULL};
	struct recipe_use use;

	(void)state;
	assert_string_equal(
		marks_of("- {log: 'size (\\d+)', metric: {size: $1}}\n", texts, &use).text,
		"size=1234 ");
	assert_int_equal(use.matched[0], 1);
}

/* llama-imatrix writes one growing line: each part when its chunk is done. */
static void a_line_may_end_with_another_character(void **state)
{
	static const char *const texts[] = {"[1]2.5,", "[2]3",	       ".5,[3]4,",
					    "\n",      "done, [9]1\n", NULL};
	struct recipe_use use;

	(void)state;
	assert_string_equal(
		marks_of("- {log: '^\\[(\\d+)\\]([\\d.]+)$', mark: $1, metric: {p: $2}}\n"
			 "line_end: ','\n",
			 texts, &use)
			.text,
		"p=2.5 *1 p=3.5 *2 p=4 *3 ");
	assert_int_equal(use.matched[0], 3);
	assert_int_equal(use.buffered, 2);
}

/* A line that shares its write is late: nobody knows when the program said it. */
static void lines_of_one_write_are_buffered(void **state)
{
	static const struct {
		const char *texts[3];
		size_t matched, buffered;
	} examples[] = {
		{{"[1/3] a - \n[2/3] b - \n[3/3] c - \n"}, 3, 3},
		{{"[1/3] a - \n", "[2/3] b - \n"}, 2, 0},
		{{"other\n[2/3] b - \n"}, 1, 1},
		{{"[1/3] a - \nother"}, 1, 1},
		{{"\n[1/3] a - \r\n"}, 1, 0},
		{{"\x1b[2K\r[1/3] a - \x1b[0m\n\x1b[A"}, 1, 0},
		{{"[1/3] a - ", "tail\n[2/3] b - "}, 2, 1},
		{{"[1/3] a - [2/3] \n   \n"}, 1, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		struct recipe_use use;

		marks_of(TENSORS, examples[i].texts, &use);
		if (use.matched[0] != examples[i].matched || use.buffered != examples[i].buffered)
			fail_msg("example %zu: expected %zu matched and %zu buffered, got %llu and "
				 "%llu",
				 i, examples[i].matched, examples[i].buffered,
				 (unsigned long long)use.matched[0],
				 (unsigned long long)use.buffered);
	}
}

static int note_buffered(void *context, const struct recipe_mark *mark)
{
	*(size_t *)context += mark->buffered;
	return 0;
}

/* A write of 1,500 bytes comes in two pieces, which the reader puts together. */
static void pieces_of_one_write_are_one(void **state)
{
	struct recipes *r = parse(HEAD "checkpoints:\n" TENSORS);
	struct recipe_use use = {0};
	struct teller *teller = teller_new(recipes_at(r, 0), &use);
	struct log_reader *reader = log_reader_new(teller);
	size_t buffered = 0;
	const struct recipe_tell tell = {note_buffered, &buffered};

	(void)state;
	log_reader_text(reader, 0, "noise\n[1/2] a", 13, false, &tell);
	log_reader_text(reader, 0, " - ", 3, true, &tell);
	assert_int_equal(use.matched[0], 1);
	assert_int_equal(use.buffered, 1);
	assert_int_equal(buffered, 1); /* the begin */
	log_reader_free(reader);
	teller_free(teller);
	recipes_free(r);
}

static void streams_do_not_mix(void **state)
{
	static const char *const writes[] = {"[1/2] a", "other text\n[2/2] b - ", " - ", NULL};
	struct recipe_use use;

	(void)state;
	assert_string_equal(marks(TENSORS, writes, &use).text, "<b b> <a a> ");
}

static void items_do_what_they_say(void **state)
{
	static const char *const texts[] = {"load model\n",  "loaded 3 parts, 1.5 GB\n",
					    "layer 7\n",     "layer 8\n",
					    "stop layers\n", "saved as \n",
					    "$5 each\n",     NULL};
	struct recipe_use use;

	(void)state;
	assert_string_equal(
		marks_of("- {log: '^load (\\w+)$', begin: 'Load $1'}\n"
			 "- {log: '^loaded (\\d+) (\\w+), ([\\d.]+) (GB)', end: Load model,\n"
			 "   metric: {parts: $1, '$2': $4}, summary: {size_gb: $3}}\n"
			 "- {log: '^layer (\\d+)', phase: 'Layer $1'}\n"
			 "- {log: '^stop', end: 'Layer *'}\n"
			 "- {log: '^saved as (\\w*)', mark: $1}\n"
			 "- {log: '^\\$(\\d)', mark: '$$ $1'}\n",
			 texts, &use)
			.text,
		"<Load model parts=3 parts=? total size_gb=1.5 Load model> "
		"<Layer 7 Layer 7> <Layer 8 Layer 8> *a *$ 5 ");
}

#define BARS                                                                                       \
	"- {log: '^(?:(.*?): )? *\\d+%\\|[^|]*\\| *(\\d+)/(\\d+) \\[', \n"                         \
	"   progress: {name: $1, step: $2, of: $3}}\n"

static void a_bar_is_a_phase_a_step(void **state)
{
	static const char *const texts[] = {
		"\rL:   0%|   | 0/3 [00:00", "\rL:   0%|   | 0/3 [00:01",
		"\rL:  33%|#  | 1/3 [00:02", "\rL: 100%|###| 3/3 [00:03",
		"\n\r  0%|    | 0/2 [00:00", "\r 50%|##  | 1/2 [00:00]\r 50%|##  | 1/2 [00:01]",
		"\r100%|####| 2/2 [00:00\n", NULL};
	struct recipe_use use;

	(void)state;
	assert_string_equal(marks_of(BARS, texts, &use).text,
			    "<L 0/3 L 0/3> <L 1/3 L 1/3=L 1..2/3> <0/2 0/2> <1/2 1/2> ");
	assert_int_equal(use.undrawn, 1);
}

/* As tqdm draws two bars: the inner one below, and back up. */
static void bars_nest(void **state)
{
	static const char *const texts[] = {
		"\rA:   0%|  | 0/2 [",	       "\n\rB:   0%|  | 0/2 [\x1b[A",
		"\n\rB:  50%|# | 1/2 [\x1b[A", "\rA:  50%|# | 1/2 [",
		"\n\rB:   0%|  | 0/2 [\x1b[A", "\n\rB: 100%|##| 2/2 [\x1b[A",
		"\rA: 100%|##| 2/2 [",	       NULL};
	struct recipe_use use;

	(void)state;
	assert_string_equal(
		marks_of(BARS, texts, &use).text,
		"<A 0/2 <B 0/2 B 0/2> <B 1/2 B 1/2> A 0/2> <A 1/2 <B 0/2 B 0/2=B 0..1/2> A 1/2> ");
}

/* As rich draws a bar whose last column is the count: no newline follows until the next is drawn.
 */
static void a_bar_is_drawn_at_once(void **state)
{
	static const char *const texts[] = {"\r--- 0/12", "\r--- 1/12", "\r--- 11/12", NULL};
	struct recipe_use use;

	(void)state;
	assert_string_equal(marks_of("- {log: '^-+ (\\d+)/(\\d+)\\b',\n"
				     "   progress: {name: bar, step: $1, of: $2}}\n"
				     "- {log: '^-+ (\\d+/\\d+)', mark: $1}\n",
				     texts, &use)
				    .text,
			    "<bar 0/12 *0/12 bar 0/12> <bar 1/12 *1/12 bar 1/12=bar 1..10/12> "
			    "<bar 11/12 bar 11/12> ");
}

/* As AutoRound names the block that it is at, by set_description(). */
static void a_bar_may_change_its_name(void **state)
{
	static const char *const texts[] = {
		"\r   0%|  | 0/2 [",	       "\rL.0:   0%|  | 0/2 [",
		"\n\rB:   0%|  | 0/2 [\x1b[A", "\n\rB:  50%|# | 1/2 [\x1b[A",
		"\rL.0:  50%|# | 1/2 [",       "\rL.1:  50%|# | 1/2 [",
		"\rdone: 100%|##| 2/2 [",      NULL};
	struct recipe_use use;

	(void)state;
	assert_string_equal(marks_of(BARS, texts, &use).text,
			    "<0/2 0/2> <L.0 0/2 <B 0/2 B 0/2> <B 1/2 B 1/2> L.0 0/2> "
			    "<L.0 1/2 L.0 1/2> <L.1 1/2 L.1 1/2> ");
	assert_int_equal(use.undrawn, 0);
}

/* tqdm draws ten times a second at most. What is said of the last phase is what was drawn. */
static void steps_that_were_not_drawn_are_said(void **state)
{
	static const char *const texts[] = {"\rL:   0%|   | 0/32 [",
					    "\rL:  37%|#  | 12/32 [",
					    "\rL:  50%|## | 16/32 [",
					    "\rL:  53%|## | 17/32 [",
					    "\rL: 100%|## | 32/32 [",
					    "\n   0%|   | 3/9 [",
					    NULL};
	struct recipe_use use;

	(void)state;
	assert_string_equal(marks_of(BARS, texts, &use).text,
			    "<L 0/32 L 0/32=L 0..11/32> <L 12/32 L 12/32=L 12..15/32> "
			    "<L 16/32 L 16/32> <L 17/32 L 17/32=L 17..31/32> <3/9 3/9> ");
	assert_int_equal(use.undrawn, 11 + 3 + 14);
}

/* Ten bars, each within the one before: eight have phases. Each step of the others counts once,
 * however often it is drawn. */
static void bars_that_nest_too_deep_are_counted(void **state)
{
	static const char *const texts[] = {"\rA:   0%|  | 0/9 [", "\rB:   0%|  | 0/9 [",
					    "\rC:   0%|  | 0/9 [", "\rD:   0%|  | 0/9 [",
					    "\rE:   0%|  | 0/9 [", "\rF:   0%|  | 0/9 [",
					    "\rG:   0%|  | 0/9 [", "\rH:   0%|  | 0/9 [",
					    "\rI:   0%|  | 0/9 [", "\rJ:   0%|  | 0/9 [",
					    "\rJ:   0%|  | 0/9 [", "\rJ:  10%|  | 4/9 [",
					    "\rI:  10%|  | 1/9 [", "\rH:  10%|  | 1/9 [",
					    "\rA:  90%|  | 9/9 [", NULL};
	struct recipe_use use;

	(void)state;
	assert_string_equal(marks_of(BARS, texts, &use).text,
			    "<A 0/9 <B 0/9 <C 0/9 <D 0/9 <E 0/9 <F 0/9 <G 0/9 <H 0/9 H 0/9> "
			    "<H 1/9 H 1/9> G 0/9> F 0/9> E 0/9> D 0/9> C 0/9> B 0/9> "
			    "A 0/9=A 0..8/9> ");
	assert_int_equal(use.too_deep, 4); /* I 0, J 0, J 4, I 1 */
	assert_int_equal(use.undrawn, 8);  /* of A: those of J were in no phase */
}

/* Only items that say so are for what the process starts. */
static void children_have_items_of_their_own(void **state)
{
	struct recipes *r = parse(HEAD "checkpoints:\n"
				       "- {log: '^load', mark: load}\n"
				       "- {log: '^layer (\\d)', phase: $1, children: yes}\n");
	struct recipe_use use = {0};
	struct teller *parent = teller_new(recipes_at(r, 0), &use);
	struct teller *child = teller_new_child(recipes_at(r, 0), &use);
	struct teller *const tellers[] = {parent, child};
	static const char *const expected[] = {"*load <1 1> ", "<1 !1> "};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct log_reader *reader = log_reader_new(tellers[i]);
		struct told told = {""};
		const struct recipe_tell tell = {note_mark, &told};

		log_reader_text(reader, 0, "load\nlayer 1\n", 13, false, &tell);
		if (i)
			teller_die(tellers[i], &tell);
		else
			teller_end(tellers[i], &tell);
		assert_string_equal(told.text, expected[i]);
		log_reader_free(reader);
		teller_free(tellers[i]);
	}
	recipes_free(r);
}

static void a_pattern_that_takes_for_ever_is_given_up(void **state)
{
	char line[64];
	const char *texts[] = {line, "ok\n", NULL};
	struct recipe_use use;

	(void)state;
	memset(line, 'a', sizeof(line) - 3);
	line[sizeof(line) - 3] = '!';
	line[sizeof(line) - 2] = '\n';
	line[sizeof(line) - 1] = '\0';
	assert_string_equal(
		marks_of("- {log: '^(a+)+$', mark: x}\n- {log: ok, mark: y}\n", texts, &use).text,
		"*y ");
	assert_int_equal(use.too_costly, 1);
}

static void names_are_bounded_text(void **state)
{
	char line[700] = "name ";
	const char *texts[] = {line, NULL};
	struct recipe_use use;
	struct told told;

	(void)state;
	for (size_t i = 5; i < 603; i += 2)
		memcpy(line + i, "\xc3\xa9", 3);
	memcpy(line + 603, "\xff\n", 3);
	told = marks_of("- {log: 'name (.*)', mark: $1}\n", texts, &use);
	/* 127 characters of two bytes, a star before and a blank behind them. */
	assert_int_equal(strlen(told.text), 1 + 254 + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(a_file_that_is_none_is_said),
		cmocka_unit_test(the_shipped_recipes_are_read),
		cmocka_unit_test(a_rule_leads_to_its_recipe),
		cmocka_unit_test(the_first_of_a_name_counts),
		cmocka_unit_test(lines_are_as_a_terminal_shows_them),
		cmocka_unit_test(what_was_skipped_leaves_a_mark),
		cmocka_unit_test(a_line_without_end_takes_no_more_memory),
		cmocka_unit_test(a_line_begins_its_phase_before_it_ends),
		cmocka_unit_test(a_group_is_whole),
		cmocka_unit_test(a_line_may_end_with_another_character),
		cmocka_unit_test(lines_of_one_write_are_buffered),
		cmocka_unit_test(pieces_of_one_write_are_one),
		cmocka_unit_test(streams_do_not_mix),
		cmocka_unit_test(items_do_what_they_say),
		cmocka_unit_test(a_bar_is_a_phase_a_step),
		cmocka_unit_test(bars_nest),
		cmocka_unit_test(a_bar_is_drawn_at_once),
		cmocka_unit_test(a_bar_may_change_its_name),
		cmocka_unit_test(steps_that_were_not_drawn_are_said),
		cmocka_unit_test(bars_that_nest_too_deep_are_counted),
		cmocka_unit_test(children_have_items_of_their_own),
		cmocka_unit_test(a_pattern_that_takes_for_ever_is_given_up),
		cmocka_unit_test(names_are_bounded_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
