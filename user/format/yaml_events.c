/* SPDX-License-Identifier: GPL-2.0-only */
#include "format/yaml_events.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum {
	MAX_DEPTH = 64, /* of what is skipped; what is known has 6 */
	SHOWN = 40,	/* columns of a text in a message */
};

size_t reader_line(const struct reader *r)
{
	return r->event.start_mark.line + 1;
}

int reader_fail(struct reader *r, size_t line, const char *what, const char *why)
{
	error_set(r->err, "%s, line %zu: %s%s%s; it is no profile that can be read", r->name, line,
		  what, *why ? ": " : "", why);
	return -1; /* the same, for whoever cannot look into it */
}

int reader_fail_here(struct reader *r, const char *what, const char *why)
{
	return reader_fail(r, reader_line(r), what, why);
}

int reader_out_of_memory(struct reader *r)
{
	error_set(r->err, "%s: not enough memory to read it", r->name);
	return -1;
}

/* Whatever the file has there, as a message may show it. */
int reader_fail_value(struct reader *r, const char *key, const char *wanted)
{
	char shown[SHOWN * TEXT_TERMINAL_GROWTH + 1] = "";
	char why[sizeof(shown) + 128];

	if (r->event.type == YAML_SCALAR_EVENT) {
		text_for_terminal(shown, sizeof(shown), (char *)r->event.data.scalar.value, SHOWN);
		snprintf(why, sizeof(why), "'%s' is no %s", shown, wanted);
	} else {
		snprintf(why, sizeof(why), "%s is to be here", wanted);
	}
	return reader_fail_here(r, key, why);
}

/* What is wrong with it as YAML. At the end of the input it is only cut off. */
static int syntax_error(struct reader *r)
{
	const size_t line = r->yaml.problem_mark.line;

	if (r->yaml.error == YAML_MEMORY_ERROR)
		return reader_out_of_memory(r);
	if (r->input.refused)
		return reader_fail(r, r->yaml.mark.line + 1, r->input.refused, "");
	if (r->yaml.error == YAML_READER_ERROR)
		return reader_fail(r, r->yaml.mark.line + 1, r->yaml.problem, "");
	if (r->input.ended && line >= r->input.lines) {
		r->cut = true;
		r->event = (yaml_event_t){.type = YAML_STREAM_END_EVENT,
					  .start_mark = r->yaml.problem_mark,
					  .end_mark = r->yaml.problem_mark};
		return 0;
	}
	return reader_fail(r, line + 1, r->yaml.problem ? r->yaml.problem : "no YAML", "");
}

/* Nothing here needs a name or a type other than its own. */
static int refuse_references(struct reader *r)
{
	const yaml_event_t *e = &r->event;

	if (e->type == YAML_ALIAS_EVENT)
		return reader_fail_here(r, "an alias", "profiles have none");
	if ((e->type == YAML_SCALAR_EVENT && e->data.scalar.anchor) ||
	    (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.anchor) ||
	    (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.anchor))
		return reader_fail_here(r, "an anchor", "profiles have none");
	if ((e->type == YAML_SCALAR_EVENT && e->data.scalar.tag) ||
	    (e->type == YAML_SEQUENCE_START_EVENT && e->data.sequence_start.tag) ||
	    (e->type == YAML_MAPPING_START_EVENT && e->data.mapping_start.tag))
		return reader_fail_here(r, "a tag", "profiles have none");
	return 0;
}

int reader_next(struct reader *r)
{
	if (r->event.type == YAML_STREAM_END_EVENT)
		return 0;
	yaml_event_delete(&r->event);
	r->input.pending = 0;
	if (!yaml_parser_parse(&r->yaml, &r->event))
		return syntax_error(r);
	return refuse_references(r);
}

bool reader_at(const struct reader *r, yaml_event_type_t type)
{
	return r->event.type == type;
}

bool reader_at_end(const struct reader *r)
{
	return r->input.ended && r->event.end_mark.line >= r->input.lines;
}

int reader_skip(struct reader *r)
{
	unsigned int depth = 0;

	do {
		switch (r->event.type) {
		case YAML_SEQUENCE_START_EVENT:
		case YAML_MAPPING_START_EVENT:
			if (++depth > MAX_DEPTH)
				return reader_fail_here(r, "nested too deeply", "");
			break;
		case YAML_SEQUENCE_END_EVENT:
		case YAML_MAPPING_END_EVENT:
			depth--;
			break;
		case YAML_STREAM_END_EVENT:
			return 0;
		default:
			break;
		}
		if (reader_next(r))
			return -1;
	} while (depth);
	return 0;
}

const char *reader_scalar(const struct reader *r)
{
	return (const char *)r->event.data.scalar.value;
}

bool reader_is_plain(const struct reader *r)
{
	return reader_at(r, YAML_SCALAR_EVENT) &&
	       r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       strlen(reader_scalar(r)) == r->event.data.scalar.length;
}

bool reader_is_null(const struct reader *r)
{
	return reader_is_plain(r) && (!*reader_scalar(r) || !strcmp(reader_scalar(r), "null") ||
				      !strcmp(reader_scalar(r), "~"));
}
