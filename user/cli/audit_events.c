/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "cli/audit_options.h"
#include "cli/parse.h"

enum {
	OPT_EVENTS = 0x300,
	OPT_EVENTS_FILE,
	OPT_EVENTS_MAX_SIZE,
	OPT_EVENTS_KEEP,
	OPT_EVENTS_ONLY,
	OPT_EVENTS_RATE,
	OPT_EVENTS_NO_CMDLINE,
};

enum { MIN_SIZE = 65536, MAX_KEEP = 1000 };

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "Events, for log pipelines:", 4},
	{"events", OPT_EVENTS, "ndjson", 0,
	 "Write what happens as it happens, a JSON object a line, to stdout; there is a report "
	 "only with -o then",
	 0},
	{"events-file", OPT_EVENTS_FILE, "FILE", 0,
	 "Append them to FILE, which SIGHUP opens anew (implies --events ndjson)", 0},
	{"events-max-size", OPT_EVENTS_MAX_SIZE, "SIZE", 0,
	 "Rename FILE to FILE.1 when it has SIZE (default 64M; 0: never)", 0},
	{"events-keep", OPT_EVENTS_KEEP, "N", 0, "Keep FILE.1 to FILE.N (default 4)", 0},
	{"events-only", OPT_EVENTS_ONLY, "LIST", 0,
	 "Leave out all but these of processes,jobs,checkpoints", 0},
	{"events-rate", OPT_EVENTS_RATE, "N", 0,
	 "Write at most N lines a second of the checkpoints of a job, and 4 N of the processes of "
	 "a user (default 1000; 0: no limit); more are counted",
	 0},
	{"events-no-cmdline", OPT_EVENTS_NO_CMDLINE, NULL, 0,
	 "Leave out command lines: they may hold secrets", 0},
	{0},
};

/* A list of words: 0, or -1 for one that is none of them. */
static int parse_groups(const char *text, unsigned int *groups)
{
	static const struct {
		const char *word;
		enum event_group group;
	} words[] = {{"processes", EVENTS_PROCESSES},
		     {"jobs", EVENTS_JOBS},
		     {"checkpoints", EVENTS_CHECKPOINTS}};
	size_t len;

	*groups = 0;
	for (;; text += len + 1) {
		unsigned int before = *groups;

		len = strcspn(text, ",");
		for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
			if (len == strlen(words[i].word) && !strncmp(text, words[i].word, len))
				*groups |= words[i].group;
		if (*groups == before)
			return -1;
		if (!text[len])
			return 0;
	}
}

static int parse_size(const char *text, uint64_t *size)
{
	return parse_bytes(text, size) || (*size && *size < MIN_SIZE) ? -1 : 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct event_options *events = state->input;

	switch (key) {
	case OPT_EVENTS:
		if (strcmp(arg, "ndjson"))
			argp_error(state, "--events %s: there is only ndjson", arg);
		events->wanted = true;
		break;
	case OPT_EVENTS_FILE:
		events->path = arg;
		events->wanted = true;
		break;
	case OPT_EVENTS_MAX_SIZE:
		if (parse_size(arg, &events->max_size))
			argp_error(state,
				   "--events-max-size %s: not a size such as 64M, of 64K at least",
				   arg);
		break;
	case OPT_EVENTS_KEEP:
		if (parse_count(arg, 0, MAX_KEEP, &events->keep))
			argp_error(state, "--events-keep %s: not a number from 0 to %d", arg,
				   MAX_KEEP);
		break;
	case OPT_EVENTS_ONLY:
		if (parse_groups(arg, &events->groups))
			argp_error(state,
				   "--events-only %s: not a list such as jobs,processes (or "
				   "checkpoints), each once",
				   arg);
		break;
	case OPT_EVENTS_RATE:
		if (parse_count(arg, 0, UINT32_MAX, &events->rate))
			argp_error(state, "--events-rate %s: not a number", arg);
		break;
	case OPT_EVENTS_NO_CMDLINE:
		events->no_cmdline = true;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

const struct event_options audit_events_default = {
	.max_size = EVENTS_MAX_SIZE,
	.keep = EVENTS_KEEP,
	.groups = EVENTS_ALL,
	.rate = EVENTS_RATE,
};

const struct argp audit_events_argp = {.options = options, .parser = parse_option};

int audit_events_listener(struct event_options *chosen, struct listener **listener,
			  struct error *err)
{
	*listener = NULL;
	if (!chosen->wanted)
		return 0;
	*listener = events_listener_new(chosen);
	return *listener ? 0 : error_set(err, "out of memory");
}
