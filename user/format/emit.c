/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/emit.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/array.h"
#include "format/sink.h"
#include "base/text.h"
#include "base/units.h"

enum {
	/* With it a row is long. */
	LONG_CHUNK = SINK_PAGE / 4,
};

struct emit {
	yaml_emitter_t yaml;
	struct sink *sink;
	int err;
	/* What the emitter gave since the last boundary. */
	char *pending;
	size_t n_pending, cap_pending;
};

static void fail(struct emit *e, int err)
{
	if (!e->err)
		e->err = err;
}

static void append(struct emit *e, const void *text, size_t len)
{
	char *pending = array_reserve(e->pending, e->n_pending + len, &e->cap_pending, 1);

	if (!pending) {
		fail(e, -ENOMEM);
		return;
	}
	e->pending = pending;
	memcpy(e->pending + e->n_pending, text, len);
	e->n_pending += len;
}

static int on_text(void *context, unsigned char *text, size_t len)
{
	struct emit *e = context;

	append(e, text, len);
	return e->err == 0;
}

/* made: whether the event could be initialised. The emitter frees it in any case. */
static void give(struct emit *e, yaml_event_t *event, int made)
{
	if (!made)
		fail(e, -ENOMEM);
	else if (e->err)
		yaml_event_delete(event);
	else if (!yaml_emitter_emit(&e->yaml, event))
		fail(e, e->yaml.error == YAML_MEMORY_ERROR ? -ENOMEM : -EINVAL);
}

static void begin_document(struct emit *e)
{
	yaml_event_t event;

	give(e, &event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
	give(e, &event, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
}

struct emit *emit_new(int fd)
{
	struct emit *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	if (!yaml_emitter_initialize(&e->yaml)) {
		free(e);
		return NULL;
	}
	yaml_emitter_set_output(&e->yaml, on_text, e);
	yaml_emitter_set_unicode(&e->yaml, 1);
	/* No folding: a string stays on its line. */
	yaml_emitter_set_width(&e->yaml, -1);
	begin_document(e);
	e->sink = e->err ? NULL : sink_new(fd);
	if (!e->sink) {
		emit_free(e);
		return NULL;
	}
	return e;
}

void emit_free(struct emit *e)
{
	if (!e)
		return;
	sink_close(e->sink);
	yaml_emitter_delete(&e->yaml);
	free(e->pending);
	free(e);
}

int emit_error(const struct emit *e)
{
	return e->err;
}

void emit_comment(struct emit *e, const char *line)
{
	append(e, "# ", line[0] ? 2 : 1);
	append(e, line, strlen(line));
	append(e, "\n", 1);
}

void emit_map(struct emit *e, enum emit_style style)
{
	yaml_event_t event;

	give(e, &event,
	     yaml_mapping_start_event_initialize(&event, NULL, NULL, 1,
						 style == EMIT_FLOW ? YAML_FLOW_MAPPING_STYLE
								    : YAML_BLOCK_MAPPING_STYLE));
}

void emit_map_end(struct emit *e)
{
	yaml_event_t event;

	give(e, &event, yaml_mapping_end_event_initialize(&event));
}

void emit_list(struct emit *e, enum emit_style style)
{
	yaml_event_t event;

	give(e, &event,
	     yaml_sequence_start_event_initialize(&event, NULL, NULL, 1,
						  style == EMIT_FLOW ? YAML_FLOW_SEQUENCE_STYLE
								     : YAML_BLOCK_SEQUENCE_STYLE));
}

void emit_list_end(struct emit *e)
{
	yaml_event_t event;

	give(e, &event, yaml_sequence_end_event_initialize(&event));
}

static void scalar(struct emit *e, const char *text, size_t len, yaml_scalar_style_t style)
{
	const bool plain = style == YAML_PLAIN_SCALAR_STYLE;
	yaml_event_t event;

	if (e->err)
		return;
	give(e, &event,
	     yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text, (int)len,
					  plain, !plain, style));
}

void emit_plain(struct emit *e, const char *text)
{
	scalar(e, text, strlen(text), YAML_PLAIN_SCALAR_STYLE);
}

void emit_u64(struct emit *e, uint64_t value)
{
	char text[UNITS_TEXT_MAX];

	emit_plain(e, units_count(text, value));
}

void emit_i64(struct emit *e, int64_t value)
{
	char text[UNITS_TEXT_MAX];

	snprintf(text, sizeof(text), "%" PRId64, value);
	emit_plain(e, text);
}

void emit_double(struct emit *e, double value)
{
	char text[UNITS_TEXT_MAX];

	if (isnan(value)) {
		emit_plain(e, ".nan");
		return;
	}
	if (isinf(value)) {
		emit_plain(e, value < 0 ? "-.inf" : ".inf");
		return;
	}
	emit_plain(e, units_double(text, value));
}

/* Bytes that a character takes between quotes: as it is, or as the longest escape it may get. */
static size_t quoted_size(uint32_t code, size_t len)
{
	if (code < 0x20 || code == 0x7f)
		return sizeof("\\x1b") - 1;
	if (len == 1)
		return code == '"' || code == '\\' ? 2 : 1;
	if (len == 4)
		return sizeof("\\U0001F600") - 1;
	/* Controls, line separators, byte order marks and what is no character. */
	if (code < 0xa0 || code == 0x2028 || code == 0x2029 || code == 0xfeff || code >= 0xfffe)
		return sizeof("\\u2028") - 1;
	return len;
}

/* How many bytes of repaired text may be quoted within EMIT_TEXT_MAX. */
static size_t bounded(const char *text, size_t len)
{
	size_t taken = 0, quoted = 0;

	while (taken < len) {
		uint32_t code = 0;
		size_t n = text_char(text + taken, len - taken, &code);

		quoted += quoted_size(code, n);
		if (!n || quoted > EMIT_TEXT_MAX)
			break;
		taken += n;
	}
	return taken;
}

void emit_text(struct emit *e, const char *text)
{
	static const char more[] = "...";
	char repaired[EMIT_TEXT_MAX + sizeof(more) + 8];
	size_t len = strlen(text);
	size_t n = text_repair(repaired, EMIT_TEXT_MAX + 8, text, len, NULL);
	size_t fits = bounded(repaired, n);

	/* Longer than the buffer for the repaired: that is more than may be quoted, too. */
	if (fits < n) {
		memcpy(repaired + fits, more, sizeof(more));
		fits += sizeof(more) - 1;
	}
	scalar(e, repaired, fits, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
}

/* The emitter ends a line only when it begins the next one; a chunk is to be whole lines. */
static void commit(struct emit *e)
{
	const char *text;
	size_t skip, n;
	int err;

	if (e->n_pending && e->pending[e->n_pending - 1] != '\n')
		append(e, "\n", 1);
	if (e->err || !e->n_pending)
		return;
	skip = e->pending[0] == '\n';
	text = e->pending + skip;
	n = e->n_pending - skip;
	err = sink_commit(e->sink, text, n);
	e->n_pending = 0;
	if (err)
		fail(e, err);
}

/* The emitter holds back what it cannot tell the style of yet: then it stands within something. */
static bool is_whole(const struct emit *e)
{
	return e->yaml.events.head == e->yaml.events.tail;
}

void emit_boundary(struct emit *e)
{
	if (e->err || !is_whole(e))
		return;
	if (!yaml_emitter_flush(&e->yaml))
		fail(e, -ENOMEM);
	commit(e);
}

void emit_boundary_if_long(struct emit *e)
{
	if (e->err || !is_whole(e))
		return;
	if (!yaml_emitter_flush(&e->yaml))
		fail(e, -ENOMEM);
	if (e->n_pending > LONG_CHUNK)
		commit(e);
}

int emit_flush(struct emit *e)
{
	int err = e->err ? 0 : sink_flush(e->sink);

	if (err)
		fail(e, err);
	return e->err;
}

size_t emit_waiting(struct emit *e)
{
	return sink_waiting(e->sink);
}

bool emit_is_idle(struct emit *e)
{
	return sink_is_idle(e->sink);
}

int emit_event(const struct emit *e)
{
	return sink_event(e->sink);
}

void emit_end(struct emit *e)
{
	yaml_event_t event;

	give(e, &event, yaml_document_end_event_initialize(&event, 1));
	give(e, &event, yaml_stream_end_event_initialize(&event));
	commit(e);
}
