/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * instructions.c - how many instructions the verifier went through for each program of the product,
 * loaded by its own engine, so that what this kernel does not take is left out. One line of JSON.
 */
#include <stdio.h>

#include "kernel/engine.h"

enum { MAX_PROGRAMS = 64 };

int main(void)
{
	const struct engine_config config = {.follow = true, .curves = true};
	struct engine_program programs[MAX_PROGRAMS];
	struct engine *e;
	struct error err = {0};
	size_t n;

	if (engine_new(&config, &e, &err) || engine_load_all(e, &err)) {
		fprintf(stderr, "instructions: %s\n", err.text);
		return 1;
	}
	n = engine_programs(e, programs, MAX_PROGRAMS);
	for (size_t i = 0; i < n; i++)
		printf("%s\"%s\": %u", i ? ", " : "{", programs[i].name,
		       programs[i].verified_insns);
	puts("}");
	engine_free(e);
	return 0;
}
