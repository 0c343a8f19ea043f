/* SPDX-License-Identifier: GPL-2.0-only */
/* completion.c - qprof-bpf completion: what the build installs for shells. Not in --help. */
#include "cli/completion.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cli/commands.h"

struct completion {
	const char *shell;
};

static const struct {
	const char *shell;
	void (*print)(void);
} scripts[] = {{"bash", completion_bash}, {"zsh", completion_zsh}};

static int completion_main(int argc, char **argv)
{
	struct completion completion = {0};

	options_parse(&command_completion, argc, argv, &completion);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
		if (strcmp(scripts[i].shell, completion.shell))
			continue;
		errno = 0;
		scripts[i].print();
		if (!fflush(stdout) && !ferror(stdout))
			return 0;
		log_error("cannot write to stdout: %s", strerror(errno));
		return 125;
	}
	log_error("cannot complete in '%s': say bash or zsh", completion.shell);
	return 125;
}

const struct command command_completion = {
	.name = "completion",
	.title = "qprof-bpf completion",
	.what = "Print a script that completes command lines",
	.usage = "bash\nzsh",
	.doc = "A script for this shell that completes command lines of qprof-bpf.",
	.tables = (const struct option_table[]){{0}},
	.arguments = {ARGUMENTS_SHELL, .least = 1, .most = 1,
		      .at = offsetof(struct completion, shell),
		      .too_few = "say for which shell: bash or zsh",
		      .too_many = "one shell at a time"},
	.run = completion_main,
};
