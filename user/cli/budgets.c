/* SPDX-License-Identifier: GPL-2.0-only */
#include "cli/budgets.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/parse.h"

int budgets_amount(enum compare_metric metric, const char *text, uint64_t *amount)
{
	unsigned int count = 0;
	int err;

	switch (compare_metrics[metric].unit) {
	case QUANTITY_BYTES:
		return parse_bytes(text, amount);
	case QUANTITY_NS:
		return parse_duration(text, amount);
	case QUANTITY_COUNT:
		break;
	}
	err = parse_count(text, 0, UINT_MAX, &count);
	*amount = count;
	return err;
}

static bool find_metric(const char *name, enum compare_metric *metric)
{
	for (size_t i = 0; i < COMPARE_METRICS; i++) {
		if (!strcmp(compare_metrics[i].name, name)) {
			*metric = (enum compare_metric)i;
			return true;
		}
	}
	return false;
}

/*
 * Splits [PHASE.]METRIC=AMOUNT at the last dot and sign: a name may have some, too. If METRIC is
 * none of ours, the whole before the sign is a name. With a number, it is a metric of the program;
 * with an amount that has a unit, as 8G, a phase, and its peak is meant. (Not a name with a dot: it
 * may be a metric that was mistyped.)
 */
static int split(char *text, struct diff_budget *budget)
{
	char *equals = strrchr(text, '='), *dot;

	if (!equals || equals == text)
		return -EINVAL;
	*equals = '\0';
	dot = strrchr(text, '.');
	if (find_metric(dot ? dot + 1 : text, &budget->metric)) {
		if (dot)
			*dot = '\0';
		budget->phase = dot ? text : NULL;
		return budgets_amount(budget->metric, equals + 1, &budget->amount);
	}
	if (!parse_real(equals + 1, &budget->most)) {
		budget->program = text;
		return 0;
	}
	if (dot)
		return -EINVAL;
	budget->phase = text;
	budget->metric = COMPARE_PEAK;
	return parse_bytes(equals + 1, &budget->amount);
}

int budgets_parse(const struct command_option *option, const char *text, void *member)
{
	struct budgets *budgets = member;
	struct diff_budget budget = {.text = text};
	struct diff_budget *more = reallocarray(budgets->items, budgets->n + 1, sizeof(budget));
	char *copy;
	int failed;

	(void)option;
	if (!more)
		return -ENOMEM;
	budgets->items = more;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	failed = split(copy, &budget);
	if (failed || (!budget.phase && !budget.program))
		free(copy);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): else the list of budgets has it */
	if (!failed)
		more[budgets->n++] = budget;
	return failed;
}

void budgets_free(struct budgets *budgets)
{
	for (size_t i = 0; i < budgets->n; i++) {
		free((char *)budgets->items[i].phase);
		free((char *)budgets->items[i].program);
	}
	free(budgets->items);
}
