/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/log_reader.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "recipes/log_stream.h"

struct stream {
	struct log_stream lines;
	uint64_t number;  /* of the line that `matched` is about */
	uint32_t matched; /* bits of the items that this line has matched */
};

/* A progress bar that is being drawn; its phase is open. */
struct bar {
	char name[LOG_NAME_MAX];  /* without the step */
	char phase[LOG_NAME_MAX]; /* with it */
	uint64_t step, of;
};

enum { MAX_BARS = 8 };

struct log_reader {
	const struct recipe *recipe;
	struct recipe_use *use;
	struct stream streams[LOG_STREAMS];
	/* The phase that each item has open; "": none. */
	char open[RECIPE_MAX_ITEMS][LOG_NAME_MAX];
	struct bar bars[MAX_BARS]; /* each within the one before */
	size_t n_bars;
};

/* A text that is being read. */
struct telling {
	struct log_reader *r;
	struct stream *stream;
	log_mark_fn tell;
	void *context;
	int code;
	uint64_t first; /* the first line of this text that matched; 0: none did */
	bool any;
};

struct log_reader *log_reader_new(const struct recipe *recipe, struct recipe_use *use)
{
	struct log_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->recipe = recipe;
	r->use = use;
	use->processes++;
	return r;
}

void log_reader_free(struct log_reader *r)
{
	for (size_t i = 0; r && i < LOG_STREAMS; i++)
		r->use->cut_lines += r->streams[i].lines.cut_lines;
	free(r);
}

/* ---- Texts ------------------------------------------------------------------------------------
 */

/* Puts the groups of a line into a text with $N, cut to LOG_NAME_MAX bytes of whole characters. */
static void fill_in(char out[LOG_NAME_MAX], const char *text, const struct log_line *line,
		    const struct line_match *match)
{
	char bytes[LOG_NAME_MAX * 2];
	size_t len = 0;

	for (const char *at = text; *at && len < sizeof(bytes);) {
		const char *from = at;
		size_t n = 1;

		if (at[0] == '$' && at[1] == '$') {
			at += 2;
		} else if (at[0] == '$') {
			char *end;
			const unsigned long group = strtoul(at + 1, &end, 10);
			const struct line_span *span = &match->groups[group];

			from = line->text + span->from;
			n = span->to - span->from;
			at = end;
		} else {
			at++;
		}
		n = n < sizeof(bytes) - len ? n : sizeof(bytes) - len;
		memcpy(bytes + len, from, n);
		len += n;
	}
	text_repair(out, LOG_NAME_MAX, bytes, len, NULL);
}

/* ---- What a line does -------------------------------------------------------------------------
 */

static int tell(struct telling *t, enum recipe_does does, const char *name)
{
	const struct log_mark mark = {.does = does, .name = name};

	return t->tell(t->context, &mark);
}

static int end_open(struct telling *t, size_t item)
{
	char *open = t->r->open[item];
	int code;

	if (!open[0])
		return 0;
	code = tell(t, RECIPE_END, open);
	open[0] = '\0';
	return code;
}

/* Ends the open phases whose names match a pattern; without one, the phase of that name, which
 * some other line began. */
static int end_matching(struct telling *t, const char *pattern)
{
	bool any = false;

	for (size_t i = 0; i < t->r->recipe->n_logs; i++) {
		if (!t->r->open[i][0] || fnmatch(pattern, t->r->open[i], 0))
			continue;
		any = true;
		if (end_open(t, i))
			return -1;
	}
	return any || strpbrk(pattern, "*?[") ? 0 : tell(t, RECIPE_END, pattern);
}

/* ---- Progress bars ----------------------------------------------------------------------------
 */

/* Ends the phases of the bars from the i-th on: what is drawn within a bar is over when the bar
 * goes on. */
static int end_bars(struct telling *t, size_t i)
{
	while (t->r->n_bars > i)
		if (tell(t, RECIPE_END, t->r->bars[--t->r->n_bars].phase))
			return -1;
	return 0;
}

static size_t find_bar(const struct log_reader *r, const char *name, uint64_t of)
{
	size_t i = 0;

	while (i < r->n_bars && (r->bars[i].of != of || strcmp(r->bars[i].name, name) != 0))
		i++;
	return i;
}

/* Returns false if the text of a group is no number. */
static bool read_number(const char *text, const struct log_line *line,
			const struct line_match *match, uint64_t *number)
{
	char digits[LOG_NAME_MAX], *end;

	fill_in(digits, text, line, match);
	*number = strtoull(digits, &end, 10);
	return end != digits && *end == '\0';
}

/*
 * A bar is drawn many times for each step, and may pass over steps. Example: 0/3, 0/3, 1/3, 3/3 is
 * the phase "NAME 0/3", then "NAME 1/3" up to the end, with one step that was not drawn.
 */
static int draw_bar(struct telling *t, const struct recipe_log *log, const struct log_line *line,
		    const struct line_match *match)
{
	struct log_reader *r = t->r;
	char name[LOG_NAME_MAX];
	struct bar *bar;
	uint64_t step, of;
	size_t i;

	if (!read_number(log->step, line, match, &step) || !read_number(log->of, line, match, &of))
		return 0;
	fill_in(name, log->name, line, match);
	i = find_bar(r, name, of);
	if (i < r->n_bars) {
		if (r->bars[i].step == step)
			return 0;
		if (step > r->bars[i].step + 1)
			r->use->undrawn += step - r->bars[i].step - 1;
		if (end_bars(t, i))
			return -1;
	}
	if (step >= of || r->n_bars == MAX_BARS)
		return 0;
	bar = &r->bars[r->n_bars++];
	*bar = (struct bar){.step = step, .of = of};
	memcpy(bar->name, name, sizeof(name));
	snprintf(bar->phase, sizeof(bar->phase), "%.*s%s%llu/%llu", LOG_NAME_MAX - 44, name,
		 name[0] ? " " : "", (unsigned long long)step, (unsigned long long)of);
	return tell(t, RECIPE_BEGIN, bar->phase);
}

/* ---- All of a line ----------------------------------------------------------------------------
 */

static int tell_value(struct telling *t, const struct recipe_value *value,
		      const struct log_line *line, const struct line_match *match)
{
	char name[LOG_NAME_MAX], text[LOG_NAME_MAX], *end;
	struct log_mark mark = {.summary = value->summary, .name = name};

	fill_in(name, value->name, line, match);
	fill_in(text, value->value, line, match);
	mark.value = strtod(text, &end);
	mark.has_value = end != text && *end == '\0';
	return t->tell(t->context, &mark);
}

static int act(struct telling *t, size_t item, const struct log_line *line,
	       const struct line_match *match)
{
	const struct recipe_log *log = &t->r->recipe->logs[item];
	char name[LOG_NAME_MAX];

	/* Metrics come first: they join the checkpoint of their line. */
	for (size_t i = 0; i < log->n_values; i++)
		if (tell_value(t, &log->values[i], line, match))
			return -1;
	if (log->does == RECIPE_NOTHING)
		return 0;
	if (log->does == RECIPE_PROGRESS)
		return draw_bar(t, log, line, match);
	fill_in(name, log->name, line, match);
	if (!name[0]) /* a group that matched nothing: a phase has a name */
		snprintf(name, sizeof(name), "%s", t->r->recipe->name);
	switch (log->does) {
	case RECIPE_PHASE:
		if (end_open(t, item))
			return -1;
		memcpy(t->r->open[item], name, sizeof(name));
		return tell(t, RECIPE_BEGIN, name);
	case RECIPE_END:
		return end_matching(t, name);
	default:
		return tell(t, log->does, name);
	}
}

static void count_match(struct telling *t, size_t item, const struct log_line *line)
{
	t->r->use->matched[item]++;
	if (!t->any) {
		t->any = true;
		t->first = line->number;
	} else if (line->number != t->first) {
		t->r->use->buffered++;
	}
}

static void read_line(void *context, const struct log_line *line)
{
	struct telling *t = context;

	if (t->stream->number != line->number) {
		t->stream->number = line->number;
		t->stream->matched = 0;
	}
	for (size_t i = 0; i < t->r->recipe->n_logs && !t->code; i++) {
		struct line_match match;
		enum line_result result;

		if (t->stream->matched & (1u << i))
			continue;
		result = line_pattern_match(t->r->recipe->logs[i].pattern, line->text, line->len,
					    line->unfinished, line->headless, &match);
		t->r->use->too_costly += result == LINE_TOO_COSTLY;
		if (result == LINE_TOO_COSTLY)
			t->stream->matched |= 1u << i; /* not again for each part of this line */
		if (result != LINE_MATCHES)
			continue;
		t->stream->matched |= 1u << i;
		count_match(t, i, line);
		t->code = act(t, i, line, &match);
	}
}

int log_reader_text(struct log_reader *r, unsigned int stream, const char *text, size_t len,
		    log_mark_fn tell_mark, void *context)
{
	struct telling t = {
		.r = r, .stream = &r->streams[stream], .tell = tell_mark, .context = context};

	log_stream_add(&t.stream->lines, text, len, read_line, &t);
	return t.code;
}

void log_reader_skip(struct log_reader *r, unsigned int stream, bool at_start)
{
	log_stream_skip(&r->streams[stream].lines, at_start);
}

int log_reader_end(struct log_reader *r, log_mark_fn tell_mark, void *context)
{
	struct telling t = {.r = r, .tell = tell_mark, .context = context};

	if (end_bars(&t, 0))
		return -1;
	for (size_t i = 0; i < r->recipe->n_logs; i++)
		if (end_open(&t, i))
			return -1;
	return 0;
}
