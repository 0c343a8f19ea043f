/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * quantize.c - quantizes the weights of a model to 8 bits: quantize [--make MB] WEIGHTS OUT
 *
 * gcc -O2 -Wall -Wextra -Werror quantize.c -o quantize -lm                    (systemtap-sdt-dev)
 *
 * Symmetric, one scale for each output channel: scale = max|w| / 127, q = round(w / scale) to the
 * nearest, ties to even. The weights are mapped, not read, as llama.cpp and safetensors do it.
 * --make writes a WEIGHTS of about that many megabytes first, where there is none.
 *
 * It is also an example of checkpoints: DTRACE_PROBE1(qprof, begin, NAME) and its like are a single
 * nop until qprof-bpf listens.
 *
 * Both files begin with a struct header and a struct shape for each layer. WEIGHTS goes on with the
 * float32 matrices, row by row; OUT with, for each layer, its scales (float32) and its matrix
 * (int8).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sdt.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	LEVELS = 127, /* of int8, on either side of zero: symmetric, so -128 stays unused */
	MAX_LAYERS = 1024,
	MADE_LAYERS = 8,
	MADE_COLUMNS = 2048,
	SAMPLE_EVERY = 16, /* rows, when the result is checked */
};

struct header {
	char magic[8];
	uint32_t layers;
	uint32_t reserved;
};

struct shape {
	uint32_t rows; /* output channels */
	uint32_t columns;
};

static const char weights_magic[8] = "QPW-f32", quantized_magic[8] = "QPW-q8";

struct model {
	const char *path;
	void *map;
	size_t size;
	uint32_t layers;
	const struct shape *shape;	 /* of each layer */
	const float *matrix[MAX_LAYERS]; /* likewise */
	float *scale[MAX_LAYERS];	 /* of each row of each layer */
};

static _Noreturn void fail(const char *what, const char *path)
{
	if (errno)
		fprintf(stderr, "quantize: %s %s: %s\n", what, path, strerror(errno));
	else
		fprintf(stderr, "quantize: %s: %s\n", path, what);
	exit(1);
}

static void *allocate(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p)
		fail("no memory for", "the model");
	return p;
}

static void write_all(int fd, const char *path, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			fail("cannot write", path);
		at += n;
		size -= (size_t)n;
	}
}

/* Pseudo-random, the same on every machine. (xorshift64) */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Bell-shaped about 0, as the weights of a trained layer are: the sum of four uniform numbers. */
static float random_weight(uint64_t *state)
{
	uint64_t bits = next_random(state);
	int32_t sum = 0;

	for (int i = 0; i < 4; i++)
		sum += (int32_t)(bits >> 16 * i & 0xffff) - 0x8000;
	return (float)sum * (0.04f / 0x20000);
}

static void make_weights(const char *path, size_t megabytes)
{
	struct header header = {.layers = MADE_LAYERS};
	struct shape shape[MADE_LAYERS];
	float *row = allocate(MADE_COLUMNS, sizeof(*row));
	size_t rows = megabytes * 1024 * 1024 / sizeof(*row) / MADE_COLUMNS / MADE_LAYERS + 1;
	uint64_t state = 0x9e3779b97f4a7c15;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		fail("cannot create", path);
	memcpy(header.magic, weights_magic, sizeof(header.magic));
	for (int i = 0; i < MADE_LAYERS; i++)
		shape[i] = (struct shape){(uint32_t)rows, MADE_COLUMNS};
	write_all(fd, path, &header, sizeof(header));
	write_all(fd, path, shape, sizeof(shape));
	for (size_t r = 0; r < rows * MADE_LAYERS; r++) {
		for (int c = 0; c < MADE_COLUMNS; c++)
			row[c] = random_weight(&state);
		write_all(fd, path, row, MADE_COLUMNS * sizeof(*row));
	}
	if (fsync(fd))
		fail("cannot write", path);
	close(fd);
	free(row);
}

static size_t weights_of(struct shape shape)
{
	return (size_t)shape.rows * shape.columns;
}

/* Maps the file and finds its layers. Nothing of the matrices is read yet. */
static void load(struct model *model, const char *path)
{
	const struct header *header;
	struct stat file;
	size_t at;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &file))
		fail("cannot open", path);
	model->path = path;
	model->size = (size_t)file.st_size;
	if (model->size < sizeof(*header))
		fail("too short for a weight file", path);
	model->map = mmap(NULL, model->size, PROT_READ, MAP_SHARED, fd, 0);
	if (model->map == MAP_FAILED)
		fail("cannot map", path);
	close(fd);

	header = model->map;
	model->layers = header->layers;
	if (memcmp(header->magic, weights_magic, sizeof(weights_magic)) ||
	    model->layers > MAX_LAYERS)
		fail("not a weight file", path);
	model->shape = (const void *)(header + 1);
	at = sizeof(*header) + model->layers * sizeof(struct shape);
	for (uint32_t i = 0; i < model->layers; i++) {
		if (at > model->size ||
		    weights_of(model->shape[i]) > (model->size - at) / sizeof(float))
			fail("shorter than its layers", path);
		model->matrix[i] = (const void *)((const char *)model->map + at);
		at += weights_of(model->shape[i]) * sizeof(float);
	}
}

/* The scale of each output channel of each layer: one pass over all weights. */
static void calibrate(struct model *model)
{
	for (uint32_t i = 0; i < model->layers; i++) {
		struct shape shape = model->shape[i];
		const float *w = model->matrix[i];

		model->scale[i] = allocate(shape.rows, sizeof(float));
		for (uint32_t r = 0; r < shape.rows; r++, w += shape.columns) {
			float greatest = 0;

			for (uint32_t c = 0; c < shape.columns; c++)
				greatest = fmaxf(greatest, fabsf(w[c]));
			model->scale[i][r] = greatest / LEVELS;
		}
	}
}

static void quantize_row(int8_t *q, const float *w, uint32_t columns, float scale)
{
	for (uint32_t c = 0; c < columns; c++)
		q[c] = scale > 0 ? (int8_t)lrintf(w[c] / scale) : 0;
}

/* Quantizes a layer and appends it to the output. */
static void quantize_layer(const struct model *model, uint32_t layer, int out, const char *path)
{
	struct shape shape = model->shape[layer];
	int8_t *q = allocate(weights_of(shape), 1);

	for (uint32_t r = 0; r < shape.rows; r++) {
		size_t at = (size_t)r * shape.columns;

		quantize_row(q + at, model->matrix[layer] + at, shape.columns,
			     model->scale[layer][r]);
	}
	write_all(out, path, model->scale[layer], shape.rows * sizeof(float));
	write_all(out, path, q, weights_of(shape));
	free(q);
}

struct check {
	double max_error;   /* of any weight of the sample */
	double worst_ratio; /* of an error to its channel's scale: at most a half, but for rounding
			     */
	uint64_t weights;
};

/* Reads the result back, row by row of the sample, and compares it with the weights. */
static struct check verify(const struct model *model, const char *path)
{
	struct check check = {0};
	off_t at = (off_t)(sizeof(struct header) + model->layers * sizeof(struct shape));
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fail("cannot open", path);
	for (uint32_t i = 0; i < model->layers; i++) {
		struct shape shape = model->shape[i];
		off_t matrix = at + (off_t)(shape.rows * sizeof(float));
		int8_t *q = allocate(shape.columns, 1);

		for (uint32_t r = 0; r < shape.rows; r += SAMPLE_EVERY) {
			const float *w = model->matrix[i] + (size_t)r * shape.columns;
			off_t row = matrix + (off_t)r * shape.columns;
			float scale;

			if (pread(fd, &scale, sizeof(scale), at + (off_t)(r * sizeof(float))) !=
				    sizeof(scale) ||
			    pread(fd, q, shape.columns, row) != (ssize_t)shape.columns)
				fail("cannot read back", path);
			for (uint32_t c = 0; c < shape.columns; c++) {
				double error = fabs((double)w[c] - (double)q[c] * (double)scale);

				check.max_error = fmax(check.max_error, error);
				if (scale > 0)
					check.worst_ratio =
						fmax(check.worst_ratio, error / (double)scale);
			}
			check.weights += shape.columns;
		}
		free(q);
		at = matrix + (off_t)weights_of(shape);
	}
	close(fd);
	return check;
}

static void quantize_all(const struct model *model, int out, const char *path)
{
	struct header header = {.layers = model->layers};
	char name[64];

	memcpy(header.magic, quantized_magic, sizeof(header.magic));
	write_all(out, path, &header, sizeof(header));
	write_all(out, path, model->shape, model->layers * sizeof(struct shape));
	for (uint32_t i = 0; i < model->layers; i++) {
		snprintf(name, sizeof(name), "Quantization (layer %u)", i);
		DTRACE_PROBE1(qprof, begin, name);
		quantize_layer(model, i, out, path);
		DTRACE_PROBE1(qprof, end, name);
	}
}

static _Noreturn void usage(int status)
{
	fputs("usage: quantize [--make MB] WEIGHTS OUT\n", status ? stderr : stdout);
	exit(status);
}

static size_t megabytes_or_usage(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end || value < 1 || value > 100000)
		usage(2);
	return value;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"make", required_argument, NULL, 'm'}, {"help", no_argument, NULL, 'h'}, {0}};
	static struct model model;
	const char *weights, *path;
	struct check check;
	size_t make = 0;
	off_t written;
	int out, option;

	while ((option = getopt_long(argc, argv, "m:h", options, NULL)) != -1) {
		if (option == 'h')
			usage(0);
		if (option != 'm')
			usage(2);
		make = megabytes_or_usage(optarg);
	}
	if (argc - optind != 2)
		usage(2);
	weights = argv[optind];
	path = argv[optind + 1];

	if (make && access(weights, F_OK)) {
		DTRACE_PROBE1(qprof, begin, "Weights Making");
		make_weights(weights, make);
		DTRACE_PROBE1(qprof, end, "Weights Making");
	}
	errno = 0;

	DTRACE_PROBE1(qprof, begin, "Model Loading");
	load(&model, weights);
	DTRACE_PROBE1(qprof, end, "Model Loading");

	DTRACE_PROBE1(qprof, begin, "Calibration");
	calibrate(&model);
	DTRACE_PROBE1(qprof, end, "Calibration");

	out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out < 0)
		fail("cannot create", path);
	quantize_all(&model, out, path);

	DTRACE_PROBE1(qprof, begin, "Export");
	written = lseek(out, 0, SEEK_CUR);
	if (fsync(out) || close(out))
		fail("cannot write", path);
	DTRACE_PROBE1(qprof, end, "Export");

	DTRACE_PROBE1(qprof, begin, "Verification");
	check = verify(&model, path);
	DTRACE_PROBE2(qprof, metric, "max_abs_error", check.max_error);
	DTRACE_PROBE1(qprof, end, "Verification");

	printf("{\"layers\": %u, \"weights_bytes\": %zu, \"output_bytes\": %lld, "
	       "\"max_abs_error\": %.17g, \"worst_error_in_scales\": %.6f, \"checked\": %llu}\n",
	       model.layers, model.size, (long long)written, check.max_error, check.worst_ratio,
	       (unsigned long long)check.weights);
	errno = 0;
	/* Half a step, and the rounding of w / scale in single precision. */
	if (check.worst_ratio > 0.5 + 1e-4)
		fail("off by more than half a step", path);
	return 0;
}
