/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/common.h"

#include <string.h>

static bool is_pattern(const char *text)
{
	return strchr(text, ':');
}

const struct command_option common_options[] = {
	{'d', "duration", "TIME", "Stop after TIME: 10s, 5m, 500ms (a bare number is seconds)",
	 OPT_DURATION, INTO(struct common_options, capture.duration_ns)},
	{0, "usdt", "PROVIDER:NAME",
	 "Take these probes as checkpoints, too; * and ? match (repeatable)", OPT_TEXTS,
	 INTO(struct common_options, patterns), .accepts = is_pattern,
	 .wrong = "say PROVIDER:NAME, such as python:gc__start"},
	{0, "count-splice", NULL,
	 "Count splice and its like and native AIO also where only probes in libc and libaio can: "
	 "each fork of the machine takes longer meanwhile",
	 OPT_FLAG, INTO(struct common_options, capture.engine.count_splice)},
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
