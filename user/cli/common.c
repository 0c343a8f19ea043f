/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/common.h"

#include <errno.h>
#include <string.h>

#include "cli/parse.h"

static bool is_pattern(const char *text)
{
	return strchr(text, ':');
}

static int parse_warn_at(const struct command_option *option, const char *text, void *member)
{
	struct common_options *common = member;
	double percent;
	uint64_t left;

	(void)option;
	common->warns_promptly = strcmp(text, "none") != 0;
	if (!common->warns_promptly)
		common->warn_at = (struct headroom_warning){0};
	else if (!parse_percent(text, &percent) && percent > 0 && percent <= 100)
		common->warn_at = (struct headroom_warning){.used_percent = percent};
	else if (!parse_bytes(text, &left) && left)
		common->warn_at = (struct headroom_warning){.left = left};
	else
		return -EINVAL;
	return 0;
}

const struct choice stacks_choices[] = {{"memory", STACKS_OF_MEMORY}, {"cpu", STACKS_OF_CPU}, {0}};

const struct command_option common_options[] = {
	{'d', "duration", "TIME", "Stop after TIME: 10s, 5m, 500ms (a bare number is seconds)",
	 OPT_DURATION, INTO(struct common_options, capture.duration_ns)},
	{0, "usdt", "PROVIDER:NAME",
	 "Take these probes as checkpoints, too; * and ? match (repeatable)", OPT_TEXTS,
	 INTO(struct common_options, patterns), .accepts = is_pattern,
	 .wrong = "say PROVIDER:NAME, such as python:gc__start"},
	{0, "waits", NULL,
	 "Tell apart what threads sleep for: storage, locks, anything else; this looks at each "
	 "context switch of the machine",
	 OPT_FLAG, INTO(struct common_options, capture.engine.waits)},
	{0, "count-splice", NULL,
	 "Count splice and its like and native AIO also where only probes in libc and libaio can: "
	 "each fork of the machine takes longer meanwhile",
	 OPT_FLAG, INTO(struct common_options, capture.engine.count_splice)},
	{0, "warn-at", "LIMIT",
	 "Warn when so much of a memory limit is in use (90%, the default) or so little of it left "
	 "(2G), of a cgroup, RLIMIT_AS, RLIMIT_DATA, the machine or, in a run, a GPU; given, at "
	 "once; or none",
	 OPT_OWN, .at = 0, .size = sizeof(struct common_options), .parse = parse_warn_at,
	 .wrong = "say a share in use such as 90%, an amount left such as 2G, or none"},
	{'v', "verbose", NULL, "Say what is done, and what libbpf says", OPT_SET,
	 INTO(struct common_options, log_level), .set = LOG_VERBOSE},
	{'V', "version", NULL, "Print the version", .type = OPT_VERSION},
	{0},
};

struct capture_options common_capture(const struct common_options *common)
{
	struct capture_options capture = common->capture;

	capture.patterns = common->patterns.items;
	capture.n_patterns = common->patterns.n;
	return capture;
}
