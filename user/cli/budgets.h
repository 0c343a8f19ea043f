/* SPDX-License-Identifier: GPL-2.0-only */
/* budgets.h - --budget, of diff and of report: one grammar. */
#ifndef QPROF_BUDGETS_H
#define QPROF_BUDGETS_H

#include "cli/options.h"
#include "report/diff.h"

struct budgets {
	struct diff_budget *items; /* their phases, or names of metrics, are malloc'ed */
	size_t n;
};

/* For options. The help of the option, after what is judged. */
#define BUDGETS_HELP                                                                               \
	"[PHASE.]METRIC=AMOUNT, such as Calibration.peak=20G or time=10m; METRIC is peak, end, "   \
	"need, io, time, cpu, gpu or a count such as major_faults, PHASE a name or pattern, also " \
	"as "                                                                                      \
	"'Calibration*=8G' of its peak; or METRIC=NUMBER of a metric that the program reports, "   \
	"such as model_size_mb=400 (repeatable)"
#define BUDGETS_WRONG "not a budget such as Calibration.peak=20G, time=10m, model_size_mb=400"

int budgets_parse(const struct command_option *option, const char *text, void *member);
void budgets_free(struct budgets *budgets);

/* An amount of the metric: bytes, a time, or a count. Returns 0 or -EINVAL. */
int budgets_amount(enum compare_metric metric, const char *text, uint64_t *amount);

#endif
