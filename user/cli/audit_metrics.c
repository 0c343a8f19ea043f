/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/audit_options.h"
#include "cli/parse.h"

enum {
	OPT_LISTEN = 0x200,
	OPT_METRICS_FILE,
	OPT_METRICS_INTERVAL,
	OPT_METRICS_LABELS,
	OPT_MAX_SERIES,
};

enum {
	INTERVAL_SECS = 15,
	MIN_INTERVAL_NS = 100000000,
	MIN_SERIES = 40, /* of a few label sets, for half of it is one user's */
	MAX_SERIES = 1000000,
};

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "Metrics, for Prometheus:", 3},
	{"listen", OPT_LISTEN, "[ADDRESS:]PORT", 0,
	 "Serve metrics for Prometheus at /metrics (address: 127.0.0.1 unless given)", 0},
	{"metrics-file", OPT_METRICS_FILE, "FILE.prom", 0,
	 "Write metrics to FILE.prom, for the textfile collector of node_exporter", 0},
	{"metrics-interval", OPT_METRICS_INTERVAL, "TIME", 0,
	 "How often the file is written (default 15s)", 0},
	{"metrics-labels", OPT_METRICS_LABELS, "LABELS", 0,
	 "Labels of processes: of command, container, job and pid (default command,container,job)",
	 0},
	{"max-series", OPT_MAX_SERIES, "N", 0,
	 "Have at most N series of processes, jobs and phases (default 10000); the rest is summed",
	 0},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct metrics_choice *chosen = state->input;
	struct metrics_options *metrics = &chosen->metrics;
	unsigned int n;

	switch (key) {
	case OPT_LISTEN:
		if (exporter_parse_address(arg, &chosen->listen))
			argp_error(state,
				   "--listen %s: say a port, or a numeric address with one, such "
				   "as 9435, 0.0.0.0:9435 or [::1]:9435",
				   arg);
		metrics->listen = &chosen->listen;
		break;
	case OPT_METRICS_FILE:
		metrics->file = arg;
		break;
	case OPT_METRICS_INTERVAL:
		if (parse_duration(arg, &metrics->interval_ns) ||
		    metrics->interval_ns < MIN_INTERVAL_NS)
			argp_error(state,
				   "--metrics-interval %s: not a time of at least 100ms, such as "
				   "15s or 1m",
				   arg);
		break;
	case OPT_METRICS_LABELS:
		if (metrics_parse_labels(arg, &metrics->labels))
			argp_error(state,
				   "--metrics-labels %s: not some of command,container,job,pid",
				   arg);
		break;
	case OPT_MAX_SERIES:
		if (parse_count(arg, MIN_SERIES, MAX_SERIES, &n))
			argp_error(state, "--max-series %s: not a number from %d to %d", arg,
				   MIN_SERIES, MAX_SERIES);
		metrics->max_series = n;
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

const struct argp audit_metrics_argp = {.options = options, .parser = parse_option};

const struct metrics_choice audit_metrics_default = {
	.metrics = {.interval_ns = INTERVAL_SECS * 1000000000ull, .labels = METRIC_USUAL_LABELS},
};

int audit_metrics_listener(struct metrics_choice *chosen, struct listener **listener,
			   struct error *err)
{
	*listener = NULL;
	if (!chosen->metrics.file && !chosen->metrics.listen)
		return 0;
	*listener = metrics_listener_new(&chosen->metrics);
	return *listener ? 0 : error_set(err, "out of memory");
}
