// SPDX-License-Identifier: GPL-2.0-only
#include "bench/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/tty.h"
#include "base/units.h"

enum { BAR = 24, MAX_LABEL = 60 };

static bool is_shown; /* a bar stands on the terminal's line */

void progress_clear(void)
{
	if (is_shown)
		fputs("\r\x1b[K", stderr);
	is_shown = false;
}

void progress_begin(struct progress *p, size_t finished, size_t n, bool is_quiet)
{
	*p = (struct progress){.finished = finished,
			       .n = n,
			       .begun_ns = clock_ns(CLOCK_MONOTONIC),
			       .is_quiet = is_quiet,
			       .is_bar = !is_quiet && isatty(STDERR_FILENO)};
	if (finished && !is_quiet)
		log_info("%zu of %zu runs are finished: going on", finished, n);
}

/* " about 3m 20s left", or nothing before the first run is made. */
static void left(const struct progress *p, char *text, size_t size)
{
	char time[UNITS_TEXT_MAX];
	const uint64_t each = p->made ? (clock_ns(CLOCK_MONOTONIC) - p->begun_ns) / p->made : 0;

	*text = '\0';
	if (p->made && p->finished < p->n)
		snprintf(text, size, "  about %s left",
			 units_time_for_people(time, each * (p->n - p->finished)));
}

static void shown_label(char *safe, const struct bench *b, struct bench_run run,
			unsigned int columns)
{
	char *label = bench_label(b, run.combination);

	text_cut_middle(safe, label ? label : "", columns);
	free(label);
}

void progress_run(struct progress *p, const struct bench *b, struct bench_run run, bool is_warmup)
{
	char label[MAX_LABEL * TEXT_TERMINAL_GROWTH + 1], time[64], bar[BAR + 1];
	const size_t full = p->n ? BAR * p->finished / p->n : 0;
	const unsigned int width = tty_width(STDERR_FILENO), fixed = BAR + 50;

	p->run_begun_ns = clock_ns(CLOCK_MONOTONIC);
	if (!p->is_bar)
		return;
	shown_label(label, b, run,
		    width > fixed + 20 && width - fixed < MAX_LABEL ? width - fixed : 20);
	left(p, time, sizeof(time));
	memset(bar, '.', BAR);
	memset(bar, '#', full);
	bar[BAR] = '\0';
	fprintf(stderr, "\r\x1b[K[%s] %zu/%zu%s%s  %s", bar, p->finished, p->n, time,
		is_warmup ? "  warm-up" : "", label);
	fflush(stderr);
	is_shown = true;
}

void progress_made(struct progress *p, const struct bench *b, struct bench_run run)
{
	char label[MAX_LABEL * TEXT_TERMINAL_GROWTH + 1], time[64], took[UNITS_TEXT_MAX];

	p->finished++;
	p->made++;
	if (p->is_bar || p->is_quiet)
		return;
	shown_label(label, b, run, MAX_LABEL);
	left(p, time, sizeof(time));
	log_info("%zu/%zu %s: %s%s", p->finished, p->n, label,
		 units_time_for_people(took, clock_ns(CLOCK_MONOTONIC) - p->run_begun_ns), time);
}
