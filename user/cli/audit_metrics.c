/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/audit_options.h"

#include <errno.h>

enum {
	INTERVAL_SECS = 15,
	MIN_INTERVAL_NS = 100000000,
	MIN_SERIES = 40, /* a few label sets: one user has half of them at most */
	MAX_SERIES = 1000000,
};

static const struct choice label_choices[] = {{"command", METRIC_COMMAND},
					      {"container", METRIC_CONTAINER},
					      {"job", METRIC_JOB_NAME},
					      {"pid", METRIC_PID},
					      {0}};

static int parse_listen(const struct command_option *option, const char *text, void *member)
{
	struct exporter_addresses *at = member;

	(void)option;
	if (at->n == EXPORTER_ADDRESSES || address_parse(text, &at->items[at->n]))
		return -EINVAL;
	at->n++;
	return 0;
}

const struct command_option audit_metrics_options[] = {
	HEADING("Metrics, for Prometheus:"),
	{0, "listen", "[ADDRESS:]PORT",
	 "Serve metrics for Prometheus at /metrics (address: 127.0.0.1 unless given), or at a Unix "
	 "socket, unix:PATH; up to 4 times",
	 OPT_OWN, INTO(struct metrics_choice, listen), .parse = parse_listen,
	 .wrong = "say a port, or a numeric address with one, such as 9435, 0.0.0.0:9435 or "
		  "[::1]:9435, or a socket, such as unix:/run/qprof.sock; at most 4"},
	{0, "metrics-file", "FILE.prom",
	 "Write metrics to FILE.prom, for the textfile collector of node_exporter", OPT_PATH,
	 INTO(struct metrics_choice, metrics.file)},
	{0, "metrics-interval", "TIME", "How often the file is written (default 15s)", OPT_DURATION,
	 INTO(struct metrics_choice, metrics.interval_ns), .least = MIN_INTERVAL_NS,
	 .wrong = "not a time of at least 100ms, such as 15s or 1m"},
	{0, "metrics-labels", "LABELS",
	 "Labels of processes: of command, container, job and pid (default command,container,job)",
	 OPT_CHOICES, INTO(struct metrics_choice, metrics.labels), .choices = label_choices},
	{0, "max-series", "N",
	 "Have at most N series of processes, jobs and phases (default 10000); the rest is summed",
	 OPT_COUNT, INTO(struct metrics_choice, metrics.max_series), .least = MIN_SERIES,
	 .most = MAX_SERIES},
	{0},
};

const struct metrics_choice audit_metrics_default = {
	.metrics = {.interval_ns = INTERVAL_SECS * 1000000000ull, .labels = METRIC_USUAL_LABELS},
};

int audit_metrics_listener(struct metrics_choice *chosen, struct listener **listener,
			   struct error *err)
{
	*listener = NULL;
	if (chosen->listen.n)
		chosen->metrics.listen = &chosen->listen;
	if (!chosen->metrics.file && !chosen->metrics.listen)
		return 0;
	*listener = metrics_listener_new(&chosen->metrics);
	return *listener ? 0 : error_set(err, "out of memory");
}
