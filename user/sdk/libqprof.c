/* SPDX-License-Identifier: MIT */
#include "libqprof.h"

/* One counter behind all probes, so that one look tells whether anybody listens to any of them. */
#define QPROF_SEMAPHORES_ELSEWHERE_
#define COUNTED_BY_ALL(probe)                                                                      \
	extern volatile unsigned short qprof_##probe##_semaphore                                   \
		__attribute__((alias("listeners"), visibility("hidden")))

/* Aligned: see qprof.h. */
static volatile unsigned short listeners __attribute__((section(".probes"), aligned(4096), used)) =
	0;

COUNTED_BY_ALL(begin);
COUNTED_BY_ALL(end);
COUNTED_BY_ALL(mark);
COUNTED_BY_ALL(metric);
COUNTED_BY_ALL(summary);
COUNTED_BY_ALL(define);
COUNTED_BY_ALL(item);
COUNTED_BY_ALL(failed);

#include "qprof.h"

static const char *named(const char *name)
{
	return name ? name : "(no name)";
}

void qprof_begin(const char *name)
{
	QPROF_BEGIN(named(name));
}

void qprof_end(const char *name)
{
	QPROF_END(named(name));
}

void qprof_mark(const char *name)
{
	QPROF_MARK(named(name));
}

void qprof_metric(const char *name, double value)
{
	QPROF_METRIC(named(name), value);
}

void qprof_metric_int64(const char *name, int64_t value)
{
	QPROF_METRIC(named(name), value);
}

void qprof_summary(const char *name, double value)
{
	QPROF_SUMMARY(named(name), value);
}

void qprof_summary_int64(const char *name, int64_t value)
{
	QPROF_SUMMARY(named(name), value);
}

void qprof_define(const char *text)
{
	QPROF_DEFINE(named(text));
}

void qprof_item(const char *name, int64_t what)
{
	QPROF_VALUED_(item, named(name), what);
}

void qprof_failed(const char *text, int64_t what)
{
	QPROF_VALUED_(failed, named(text), what);
}

int qprof_enabled(void)
{
	return listeners != 0;
}

const volatile unsigned short *qprof_listeners(void)
{
	return &listeners;
}
