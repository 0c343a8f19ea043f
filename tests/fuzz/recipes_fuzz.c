// SPDX-License-Identifier: GPL-2.0-only
/*
 * recipes_fuzz.c - any bytes as a recipe, and then as what a program writes: read by that recipe if
 * it is one, else by one that looks at all lines.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "recipes/log_reader.h"

extern const char *const fuzz_seed_texts[];

#define ANY "name: any\nmatch: {executable: a}\n"

static const char any_line[] = ANY
	"checkpoints:\n- {log: '^(.*?) *(\\d+)/(\\d+)', progress: {name: $1, step: $2, of: $3}}\n"
	"- {log: '(\\S+) (\\S*)', phase: '$1$2', metric: {$2: $1}}\n"
	"- {log: 'end (.*)', end: $1}\n";

const char *const fuzz_seed_texts[] = {
	any_line,
	ANY "checkpoints: [{log: '(?:a|(b+))*c', begin: $1, literal: abc, summary: {x: $0}}]\n",
	"one\r 12/32\x1b[1mtwo\x1b[A 13/32 \x1b]0;t\x07\xc3\xa9\xff\nend *\n",
	NULL,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What begins has ended at the end, whatever was said. */
static int count(void *context, const struct recipe_mark *mark)
{
	long *open = context;

	if (strlen(mark->name) >= MARK_NAME_MAX)
		abort();
	*open += (mark->does == RECIPE_BEGIN) - (mark->does == RECIPE_END);
	return 0;
}

static void read_log(const struct recipe *recipe, const char *bytes, size_t size)
{
	struct recipe_use use = {0};
	struct teller *teller = teller_new(recipe, &use);
	struct log_reader *reader = teller ? log_reader_new(teller) : NULL;
	long open = 0;
	const struct recipe_tell tell = {count, &open};

	if (!reader)
		abort();
	/* In pieces, as a program may write them. */
	for (size_t at = 0, n; at < size; at += n) {
		n = 1 + (unsigned char)bytes[at] % 64;
		n = n < size - at ? n : size - at;
		log_reader_text(reader, at % 2, bytes + at, n, n % 5 == 0, &tell);
		if (n % 7 == 0)
			log_reader_skip(reader, at % 2, n % 2);
	}
	teller_end(teller, &tell);
	log_reader_free(reader);
	teller_free(teller);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recipes *r = recipes_new();
	struct error err = {0};

	if (!r)
		abort();
	if (recipes_parse(r, "fuzz", (const char *)data, size, &err)) {
		if (!err.text[0] || strchr(err.text, '\n'))
			abort();
		recipes_free(r);
		r = recipes_new();
		if (!r || recipes_parse(r, "any", any_line, sizeof(any_line) - 1, &err))
			abort();
	}
	read_log(recipes_at(r, 0), (const char *)data, size);
	recipes_free(r);
	return 0;
}
