// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_driver.c - runs a libFuzzer target without libFuzzer: a fixed series of random mutations of
 * some seeds, the same in every run, so that any compiler and sanitizer can have it as a unit test.
 *
 *     NAME_fuzz [-r RUNS] [SEEDFILE...]
 *
 * Without files it takes the seeds that the target has: fuzz_seed_files, fuzz_seed_texts. Under a
 * sanitizer the input of a crash is left in the file fuzz-crash.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	DEFAULT_RUNS = 20000, /* of each seed */
	MAX_MUTATIONS = 8,    /* of one input */
	GROWTH = 4096,	      /* bytes an input may get longer than its seed */
	MAX_SEED = 64 << 20,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Both end in NULL, and a target may have either, both or none. */
extern const char *const fuzz_seed_files[] __attribute__((weak));
extern const char *const fuzz_seed_texts[] __attribute__((weak));

/* What sanitizers call before they end the process. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

struct input {
	uint8_t *bytes;
	size_t len, room;
};

static struct input current;

static void save_current(void)
{
	int fd = open("fuzz-crash", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, current.bytes, current.len) != (ssize_t)current.len)
		fputs("fuzz-crash cannot be written\n", stderr);
	else
		fputs("the input is in fuzz-crash\n", stderr);
}

/* xorshift64*: good enough, and the same everywhere */
static uint64_t random_state;

static uint64_t random_number(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * UINT64_C(2685821657736338717);
}

static size_t random_below(size_t limit)
{
	return limit ? random_number() % limit : 0;
}

/* A place in the input: in half of the cases near an end, where formats keep their headers. */
static size_t random_place(const struct input *in)
{
	size_t near = in->len < 2048 ? in->len : 2048;

	switch (random_below(4)) {
	case 0:
		return random_below(near < 128 ? near : 128);
	case 1:
		return in->len - 1 - random_below(near);
	default:
		return random_below(in->len);
	}
}

static size_t random_length(size_t limit)
{
	return random_below((limit < 64 ? limit : 64) + 1);
}

static void flip_bit(struct input *in)
{
	in->bytes[random_place(in)] ^= (uint8_t)(1 << random_below(8));
}

static void set_byte(struct input *in)
{
	in->bytes[random_place(in)] = (uint8_t)random_number();
}

/* A number at the edges of what parsers compute with. */
static void set_number(struct input *in)
{
	static const uint64_t edges[] = {0,	    1,		UINT8_MAX, INT16_MAX,  UINT16_MAX,
					 INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX, 1 << 20};
	uint64_t number = edges[random_below(sizeof(edges) / sizeof(*edges))] + random_below(3) - 1;
	size_t at = random_place(in), width = (size_t)1 << random_below(4);

	if (width <= in->len - at)
		memcpy(in->bytes + at, &number, width);
}

static void copy_part(struct input *in)
{
	size_t from = random_place(in), to = random_place(in);
	size_t left = in->len - (from > to ? from : to);

	memmove(in->bytes + to, in->bytes + from, random_length(left));
}

static void delete_part(struct input *in)
{
	size_t at = random_place(in), len = random_length(in->len - at);

	memmove(in->bytes + at, in->bytes + at + len, in->len - at - len);
	in->len -= len;
}

static void insert_part(struct input *in)
{
	size_t at = random_place(in), len = random_length(in->room - in->len), i;

	memmove(in->bytes + at + len, in->bytes + at, in->len - at);
	in->len += len;
	for (i = 0; i < len; i++)
		in->bytes[at + i] = (uint8_t)random_number();
}

static void cut_off(struct input *in)
{
	in->len = random_place(in);
}

static void mutate(struct input *in)
{
	static void (*const mutations[])(struct input *) = {
		flip_bit,  set_byte,  set_number,  flip_bit,	set_byte, set_number,
		copy_part, copy_part, delete_part, insert_part, cut_off,
	};
	size_t count = 1 + random_below(MAX_MUTATIONS);

	while (count-- && in->len)
		mutations[random_below(sizeof(mutations) / sizeof(*mutations))](in);
}

/* An exact copy in memory of its own, so that a sanitizer sees a read behind its end. */
static void run_one(const struct input *in)
{
	uint8_t *copy = malloc(in->len ? in->len : 1);

	if (!copy)
		abort();
	memcpy(copy, in->bytes, in->len);
	LLVMFuzzerTestOneInput(copy, in->len);
	free(copy);
}

static int run_seed(const uint8_t *seed, size_t len, unsigned long runs)
{
	unsigned long i;

	current.room = len + GROWTH;
	current.bytes = malloc(current.room);
	if (!current.bytes) {
		fputs("out of memory\n", stderr);
		return -1;
	}
	random_state = UINT64_C(0x9e3779b97f4a7c15);
	for (i = 0; i <= runs; i++) {
		memcpy(current.bytes, seed, len);
		current.len = len;
		if (i) /* the seed itself first */
			mutate(&current);
		run_one(&current);
	}
	free(current.bytes);
	current = (struct input){0};
	return 0;
}

static int run_file(const char *path, unsigned long runs)
{
	FILE *file = fopen(path, "re");
	uint8_t *bytes = NULL;
	struct stat st;
	int err = -1;

	if (!file || fstat(fileno(file), &st) || st.st_size > MAX_SEED)
		goto out;
	bytes = malloc(st.st_size + 1);
	if (!bytes || fread(bytes, 1, st.st_size, file) != (size_t)st.st_size)
		goto out;
	err = run_seed(bytes, st.st_size, runs);
out:
	if (err)
		fprintf(stderr, "%s: cannot be used as a seed\n", path);
	free(bytes);
	if (file)
		fclose(file);
	return err;
}

static int run_own_seeds(unsigned long runs)
{
	const char *const *seed;

	if (run_seed((const uint8_t *)"", 0, 0))
		return -1;
	for (seed = fuzz_seed_files; seed && *seed; seed++) {
		if (run_file(*seed, runs))
			return -1;
	}
	for (seed = fuzz_seed_texts; seed && *seed; seed++) {
		if (run_seed((const uint8_t *)*seed, strlen(*seed), runs))
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long runs = DEFAULT_RUNS;
	char *end = NULL;
	int option;

	while ((option = getopt(argc, argv, "r:")) != -1) {
		if (option == 'r')
			runs = strtoul(optarg, &end, 10);
		if (option != 'r' || end == optarg || *end) {
			fprintf(stderr, "usage: %s [-r RUNS] [SEEDFILE...]\n", argv[0]);
			return 2;
		}
	}
	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(save_current);
	if (optind == argc)
		return run_own_seeds(runs) ? 1 : 0;
	for (; optind < argc; optind++) {
		if (run_file(argv[optind], runs))
			return 1;
	}
	return 0;
}
