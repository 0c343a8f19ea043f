/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What CPU time a frame of the live view takes, by processes: the rows alone and, on a terminal,
 * all of it. usage: view_bench [PROCESSES]   (default 65536)
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../unit/records.h"
#include "model/machine.h"
#include "audit/view/terminal.h"
#include "audit/view/view_screen.h"

enum { ROUNDS = 41, ROWS = 50, MAX_RESULTS = 32 };

static double now_secs(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* others work here, too */
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void check(int err)
{
	if (!err)
		return;
	fprintf(stderr, "view_bench: %s\n", strerror(-err));
	exit(1);
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Said at the end: meanwhile the screen is taken. */
static char results[MAX_RESULTS][128];
static size_t n_results;

static void say(const char *what, double *times, size_t n)
{
	qsort(times, n, sizeof(*times), by_value);
	snprintf(results[n_results++], sizeof(results[0]),
		 "%-44s %8.2f ms (median), %8.2f (highest)", what, times[n / 2] * 1e3,
		 times[n - 1] * 1e3);
}

static void start(struct machine *m, uint32_t tgid, uint32_t ppid)
{
	static const char *const commands[] = {
		"/usr/lib/systemd/systemd --switched-root", "/usr/bin/python3 quantize.py --bits 4",
		"bash", "/opt/llama.cpp/llama-quantize model-f32.gguf model-q4.gguf Q4_K_M"};
	const struct record_who who = {.tgid = tgid, .tid = tgid, .started_ns = tgid};
	const char *cmdline = commands[tgid % 4];
	struct machine_news news;
	union record r;

	record_process(&r, WIRE_FORK, START_NS, who, ppid, cmdline, strlen(cmdline));
	r.process.uid = tgid % 7;
	r.process.cgroup = tgid % 50;
	r.process.memory.anon = tgid * 7919ull % 65521;
	r.process.usage.rchar = tgid * 104729ull % 1000003;
	check(machine_feed(m, &r.h, &news));
}

static const char *name_of(void *context, uint32_t uid)
{
	(void)uid;
	return context;
}

static const char *container_of(void *context, uint64_t cgroup)
{
	(void)context;
	return cgroup % 50 == 49 ? "3f2a8c1d9e4b5a6f" : "";
}

static void measure_rows(const char *what, struct view_rows *rows, const struct machine *m,
			 const struct view_wants *wants, size_t first)
{
	static struct view_process out[ROWS];
	double times[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		const double since = now_secs();

		check(view_rows_scan(rows, m, wants));
		view_rows_processes(rows, first, ROWS, out);
		times[i] = now_secs() - since;
	}
	say(what, times, ROUNDS);
}

static void measure_frames(const char *what, struct terminal *t, struct view_rows *rows,
			   const struct machine *m, struct view_wants *wants)
{
	static struct view_step steps[WIRE_MAX_JOBS];
	const struct procfs_memory memory = {.total = 2, .available = 1};
	struct view_state state = {.tree = wants->tree};
	double times[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		const struct view_picture picture = {
			.machine = m,
			.rows = rows,
			.wants = wants,
			.start_ns = START_NS,
			.now_ns = START_NS + i * 1000 * MS,
			.steps = steps,
			.memory = &memory,
		};
		const double since = now_secs();

		state.sort = wants->sort = i % VIEW_SORTS; /* so that all lines change */
		if (!view_draw(t, &picture, &state, false))
			check(-ENOMEM);
		times[i] = now_secs() - since;
		while (terminal_is_behind(t))
			terminal_catch_up(t);
	}
	say(what, times, ROUNDS);
}

static void measure_marks(struct machine *m)
{
	double times[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		const double since = now_secs();

		machine_mark(m);
		times[i] = now_secs() - since;
	}
	say("mark", times, ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		const double since = now_secs();

		machine_look(m, START_NS + (uint64_t)i);
		times[i] = now_secs() - since;
	}
	say("look", times, ROUNDS);
}

int main(int argc, char **argv)
{
	const uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 65536;
	const struct machine_config config = {.page_size = RECORDS_PAGE, .max_processes = n + 1};
	struct machine *m = machine_new(&config);
	struct view_rows *rows = view_rows_new();
	char name[] = "alice";
	struct view_wants wants = {
		.filter = "", .user = name_of, .container = container_of, .context = name};
	struct error err = {0};
	struct terminal *t = terminal_is_there() ? terminal_open(true, &err) : NULL;

	if (!m || !rows)
		check(-ENOMEM);
	for (uint32_t i = 1; i <= n; i++)
		start(m, i, i / 8);
	measure_rows("rows, flat", rows, m, &wants, 0);
	measure_rows("rows, flat, scrolled to the middle", rows, m, &wants, n / 2);
	wants.filter = "q4_k_m";
	measure_rows("rows, with a filter", rows, m, &wants, 0);
	wants.filter = "";
	wants.tree = true;
	measure_rows("rows, tree", rows, m, &wants, 0);
	measure_marks(m);
	if (t && !terminal_show(t)) {
		measure_frames("frame, tree", t, rows, m, &wants);
		wants.tree = false;
		measure_frames("frame, flat", t, rows, m, &wants);
	}
	terminal_close(t);
	printf("%" PRIu32 " processes, %d rows\n", n, ROWS);
	for (size_t i = 0; i < n_results; i++)
		puts(results[i]);
	if (!t)
		puts("no terminal: no frames");
	view_rows_free(rows);
	machine_free(m);
	return 0;
}
