/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/log_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "recipes/log_stream.h"

struct stream {
	struct log_stream lines;
	uint64_t number;  /* of the line that `matched` is about */
	uint32_t matched; /* bits of the items that this line has matched, or never will */
	bool buffered;	  /* this line was counted as such */
};

struct log_reader {
	struct teller *teller;
	const struct recipe *recipe;
	struct recipe_use *use;
	uint32_t items; /* bits of those that listen to the log */
	struct stream streams[LOG_STREAMS];
};

/* A text that is being read. */
struct reading {
	struct log_reader *r;
	struct stream *stream;
	const struct recipe_tell *tell;
	int code;
};

struct log_reader *log_reader_new(struct teller *teller)
{
	struct log_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->teller = teller;
	r->recipe = teller_recipe(teller);
	r->use = teller_use(teller);
	for (size_t i = 0; i < r->recipe->n_items; i++)
		if (r->recipe->items[i].source == RECIPE_LOG &&
		    (r->recipe->items[i].children || !teller_is_child(teller)))
			r->items |= 1u << i;
	for (size_t i = 0; i < LOG_STREAMS; i++)
		r->streams[i].lines.end = r->recipe->line_end;
	return r;
}

void log_reader_free(struct log_reader *r)
{
	for (size_t i = 0; r && i < LOG_STREAMS; i++)
		r->use->cut_lines += r->streams[i].lines.cut_lines;
	free(r);
}

/* A line that an item matches. */
struct met {
	const struct log_line *line;
	const struct line_match *match;
};

/* $N is a group of the match. */
static void fill_in(const void *context, const char *text, char out[MARK_NAME_MAX])
{
	const struct met *met = context;
	char bytes[MARK_NAME_MAX * 2];
	size_t len = 0;

	for (const char *at = text; *at && len < sizeof(bytes);) {
		const char *from = at;
		size_t n = 1;

		if (at[0] == '$' && at[1] == '$') {
			at += 2;
		} else if (at[0] == '$') {
			char *end;
			const unsigned long group = strtoul(at + 1, &end, 10);
			const struct line_span *span = &met->match->groups[group];

			from = met->line->text + span->from;
			n = span->to - span->from;
			at = end;
		} else {
			at++;
		}
		n = n < sizeof(bytes) - len ? n : sizeof(bytes) - len;
		memcpy(bytes + len, from, n);
		len += n;
	}
	text_repair(out, MARK_NAME_MAX, bytes, len, NULL);
}

/* A bar is drawn with one write(), so its numbers are whole, though its line has not ended. */
static enum line_result match_line(const struct recipe_item *item, const struct log_line *line,
				   struct line_match *match)
{
	return line_pattern_match(item->pattern, line->text, line->len,
				  line->unfinished && item->does != RECIPE_PROGRESS, line->headless,
				  match);
}

static void read_line(void *context, const struct log_line *line)
{
	struct reading *t = context;

	if (t->stream->number != line->number) {
		t->stream->number = line->number;
		t->stream->matched = 0;
		t->stream->buffered = false;
	}
	for (size_t i = 0; i < t->r->recipe->n_items && !t->code; i++) {
		struct line_match match;
		const struct met met = {line, &match};
		const struct recipe_words words = {fill_in, &met, line->shared};
		enum line_result result;

		if (t->stream->matched & (1u << i) || !(t->r->items & (1u << i)))
			continue;
		result = match_line(&t->r->recipe->items[i], line, &match);
		t->r->use->too_costly += result == LINE_TOO_COSTLY;
		if (result == LINE_TOO_COSTLY)
			t->stream->matched |= 1u << i; /* not again for each part of this line */
		if (result != LINE_MATCHES)
			continue;
		t->stream->matched |= 1u << i;
		t->r->use->buffered += line->shared && !t->stream->buffered;
		t->stream->buffered |= line->shared;
		t->code = teller_act(t->r->teller, i, &words, t->tell);
	}
}

int log_reader_text(struct log_reader *r, unsigned int stream, const char *text, size_t len,
		    bool is_more, const struct recipe_tell *tell)
{
	struct reading t = {.r = r, .stream = &r->streams[stream], .tell = tell};

	log_stream_add(&t.stream->lines, text, len, is_more, read_line, &t);
	return t.code;
}

void log_reader_skip(struct log_reader *r, unsigned int stream, bool at_start)
{
	log_stream_skip(&r->streams[stream].lines, at_start);
}
