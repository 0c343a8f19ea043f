// SPDX-License-Identifier: GPL-2.0-only
#include "bench/bench.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/random.h"

enum { MAX_FILE_LABEL = 80 };

void bench_free(struct bench *b)
{
	parameters_free(&b->parameters);
	bench_command_free(b->command);
	free(b->label);
	*b = (struct bench){0};
}

char *bench_label(const struct bench *b, size_t combination)
{
	char *label = b->label ? parameters_fill(&b->parameters, combination, b->label)
			       : parameters_label(&b->parameters, combination);

	if (!label || *label)
		return label;
	free(label);
	return strdup(b->command[0]);
}

/* Values may be paths: what a file's name is better without becomes "_". */
static void make_file_name(char *label)
{
	size_t len = 0;

	for (char *at = label; *at && len < MAX_FILE_LABEL; at++) {
		if (*at == ' ')
			continue;
		label[len++] = isalnum((unsigned char)*at) || strchr("=,.+-_", *at) ? *at : '_';
	}
	label[len] = '\0';
}

char *bench_run_name(const struct bench *b, struct bench_run run)
{
	char *label = parameters_label(&b->parameters, run.combination), *name;

	if (!label)
		return NULL;
	make_file_name(label);
	if (asprintf(&name, "%03zu%s%s.r%u", run.combination + 1, *label ? "-" : "", label,
		     run.repeat + 1) < 0)
		name = NULL;
	free(label);
	return name;
}

void bench_command_free(char **command)
{
	for (size_t i = 0; command && command[i]; i++)
		free(command[i]);
	free(command);
}

char **bench_command(const struct bench *b, size_t combination)
{
	char **command = calloc(b->n_command + 1, sizeof(*command));

	for (size_t i = 0; command && i < b->n_command; i++) {
		command[i] = parameters_fill(&b->parameters, combination, b->command[i]);
		if (!command[i]) {
			bench_command_free(command);
			return NULL;
		}
	}
	return command;
}

/*
 * One repeat of all combinations after the other: if the bench is stopped, or the machine changes
 * meanwhile, it has met all of them alike. Each repeat has an order of its own.
 */
struct bench_run *bench_schedule(const struct bench *b, size_t *n)
{
	const size_t combinations = parameters_combinations(&b->parameters);
	struct bench_run *runs = calloc(combinations * b->repeats, sizeof(*runs));
	uint64_t state = b->seed;

	*n = combinations * b->repeats;
	for (unsigned int repeat = 0; runs && repeat < b->repeats; repeat++) {
		struct bench_run *of = runs + repeat * combinations;

		for (size_t i = 0; i < combinations; i++)
			of[i] = (struct bench_run){i, repeat};
		for (size_t i = combinations; b->is_shuffled && i > 1; i--) {
			const size_t j = random_below(&state, i);
			const struct bench_run swapped = of[i - 1];

			of[i - 1] = of[j];
			of[j] = swapped;
		}
	}
	return runs;
}
