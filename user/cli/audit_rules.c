/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>
#include <string.h>

#include "cli/audit_options.h"
#include "base/installed.h"
#include "base/log.h"
#include "audit/rules/rules_listener.h"

enum { OPT_RULES = 0x100 };

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "Jobs without checkpoints:", 1},
	{"rules", OPT_RULES, "FILE", 0,
	 "Take for jobs what these rules match, before those that come with qprof-bpf; none: "
	 "leave those out (repeatable)",
	 0},
	{0},
};

static void add_rules(struct rules_options *chosen, const char *path, struct argp_state *state)
{
	struct error err = {0};

	if (!strcmp(path, "none")) {
		chosen->no_shipped = true;
		return;
	}
	if (!chosen->rules)
		chosen->rules = rules_new();
	if (!chosen->rules) {
		argp_failure(state, 125, ENOMEM, "--rules");
		return;
	}
	if (!rules_read(chosen->rules, path, &err))
		return;
	log_error("%s", err.text);
	exit(err.status);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	if (key != OPT_RULES)
		return ARGP_ERR_UNKNOWN;
	add_rules(state->input, arg, state);
	return 0;
}

const struct argp audit_rules_argp = {.options = options, .parser = parse_option};

/* Behind the user's own. 0, or -1 and *err. */
static int add_shipped_rules(struct rules *rules, struct error *err)
{
	char *path = installed_data("qprof-bpf/rules.yaml");
	int code = 0;

	if (path)
		code = rules_read(rules, path, err);
	else
		log_info("share/qprof-bpf/rules.yaml is not installed beside qprof-bpf: jobs "
			 "without checkpoints are recognised by --rules only");
	free(path);
	return code;
}

int audit_rules_listener(struct rules_options *chosen, struct listener **listener,
			 struct error *err)
{
	*listener = NULL;
	if (!chosen->rules)
		chosen->rules = rules_new();
	if (!chosen->rules)
		return error_set(err, "out of memory");
	if (!chosen->no_shipped && add_shipped_rules(chosen->rules, err))
		return -1;
	if (!rules_count(chosen->rules))
		return 0;
	*listener = rules_listener_new(chosen->rules);
	return *listener ? 0 : error_set(err, "out of memory");
}

void audit_rules_free(struct rules_options *chosen)
{
	rules_free(chosen->rules);
}
