/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a record costs on the user side: the model alone, and with the profile written.
 * usage: model_bench [FILE]   (default /dev/null)
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../unit/records.h"
#include "format/yaml.h"

enum { POINTS = 1000000, CHECKPOINTS = 200000 };

static double now_secs(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void say(const char *what, double since, size_t n)
{
	printf("%-44s %8.0f ns\n", what, (now_secs() - since) * 1e9 / (double)n);
}

static void check(int err)
{
	if (!err)
		return;
	fprintf(stderr, "model_bench: %s\n", strerror(-err));
	exit(1);
}

static struct profile *new_profile(void)
{
	const struct profile_config config = {.page_size = RECORDS_PAGE};
	struct profile *p = profile_new(&config);

	if (!p)
		check(-ENOMEM);
	return p;
}

static const struct profile_checkpoint *feed(struct profile *p, const union record *r)
{
	const struct profile_checkpoint *step;

	check(profile_feed(p, &r->h, &step));
	return step;
}

/* A jagged rise, 10 us apart; every 50th swapped with the next as CPUs do. */
static void feed_points(struct profile *p)
{
	union record r;
	double since = now_secs();

	for (uint64_t i = 0; i < POINTS; i++) {
		uint64_t at = i % 50 == 0 ? i + 1 : i % 50 == 1 ? i - 1 : i;

		record_point(&r, START_NS + at * 10000, MAIN, i + i * 7919 % 1000, i + 1000);
		feed(p, &r);
	}
	say("point", since, POINTS);
}

/* begin, end, mark, metric in turn; w is NULL for the model alone. */
static void feed_checkpoints(struct profile *p, struct yaml *w)
{
	static const enum wire_what turns[] = {WIRE_BEGIN, WIRE_MARK, WIRE_METRIC, WIRE_END};
	static const char *const names[] = {"Layer", "Quantized", "loss", "Layer"};
	const struct profile_checkpoint *step;
	size_t rows = 0;
	union record r;
	double since = now_secs();

	for (uint32_t i = 0; i < CHECKPOINTS; i++) {
		record_checkpoint(&r, turns[i % 4], i, START_NS + i * 5000ull, MAIN, names[i % 4]);
		record_memory(&r, 100000 + i % 777, 101000, 101000);
		r.cp.value_state = WIRE_VALUE_INT;
		step = feed(p, &r);
		rows += step != NULL;
		if (w && step)
			check(yaml_row(w, step));
	}
	if (w)
		check(emit_flush(w->e));
	say(w ? "row, model and writer" : "checkpoint, model", since, w ? rows : CHECKPOINTS);
}

static void finish(struct profile *p)
{
	double since = now_secs();

	check(profile_finish(p, START_NS + 20000 * MS));
	say("profile_finish", since, 1);
}

static void begin_file(struct yaml *w, const char *path)
{
	const struct run_info info = {.version = "bench", .hostname = "bench", .kernel = "bench"};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		check(-errno);
	w->e = emit_new(fd);
	if (!w->e)
		check(-ENOMEM);
	check(yaml_begin(w, &info));
}

int main(int argc, char **argv)
{
	const struct run_quality quality = {0};
	struct profile *p = new_profile();
	struct yaml w = {0};
	double since;
	size_t n;

	feed_points(p);
	feed_checkpoints(p, NULL);
	finish(p);
	profile_free(p);

	p = new_profile();
	begin_file(&w, argc > 1 ? argv[1] : "/dev/null");
	feed_checkpoints(p, &w);
	finish(p);
	profile_phases(p, &n);
	since = now_secs();
	check(yaml_finish(&w, p, &quality));
	say("writer's finish, per phase", since, n);
	emit_free(w.e);
	profile_free(p);
	return 0;
}
