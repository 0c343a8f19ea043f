/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/metrics/metrics_listener.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/diskstats.h"
#include "base/log.h"
#include "base/names.h"
#include "audit/limits/job_limits.h"
#include "audit/metrics/meter.h"
#include "audit/metrics/metrics_file.h"
#include "capture/audit_state.h"

enum {
	REFRESH_NS = 1000000000, /* I/O and CPU are not asked for more often */
	FIRST_NS = 1000000,	 /* the file is there as soon as the audit runs */
	LINGER_SECS = 24 * 3600,
	PID_LINGER_SECS = 300, /* nobody waits for a pid to come back */
};

struct metrics_listener {
	struct listener listener; /* first */
	const struct metrics_options *options;
	struct capture *capture; /* NULL before start() */
	struct audit *audit;
	struct meter *meter;
	struct exporter *exporter;
	struct wake timer; /* of the file */
	bool failing;	   /* the file could not be written, and that was said */
	bool finished;
	struct diskstats disks; /* when last read */
	bool has_disks;
	uint64_t start_ns; /* of the audit, CLOCK_REALTIME; 0: not known yet */
	struct series *build, *losses[QUALITY_MAX_COUNTS];
	char container[CGROUP_CONTAINER_MAX];
};

static struct metrics_listener *listener_of(struct listener *listener)
{
	return (struct metrics_listener *)listener;
}

/* ---- Figures that are not in the model --------------------------------------------------------
 */

/* Of devices that come and go, what they did while they were there. */
static void note_devices(struct metrics_listener *p, struct series *machine)
{
	struct diskstats now, more;

	if (diskstats_read(&now))
		return;
	more = now;
	diskstats_since(&more, &p->disks);
	for (size_t i = 0; p->has_disks && i < more.n; i++) {
		series_add(machine, M_DEVICE_READ, more.devices[i].read);
		series_add(machine, M_DEVICE_WRITTEN, more.devices[i].written);
	}
	p->disks = now;
	p->has_disks = true;
}

static void note_losses(struct metrics_listener *p, uint64_t now_ns)
{
	struct quality_count counts[QUALITY_MAX_COUNTS];
	const size_t n = audit_counts(p->audit, counts);

	for (size_t i = 0; i < n; i++) {
		if (!p->losses[i])
			p->losses[i] = series_take(meter_metrics(p->meter), METRIC_LOSS,
						   (const char *const[]){counts[i].key}, 0, now_ns);
		series_raise(p->losses[i], M_LOST, counts[i].count);
	}
}

static uint64_t own_rss(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*u %lu", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void note_self(struct metrics_listener *p)
{
	struct series *self = metrics_only(meter_metrics(p->meter), METRIC_SELF);

	series_raise(self, M_SELF_CPU, clock_ns(CLOCK_PROCESS_CPUTIME_ID));
	series_set(self, M_SELF_RSS, own_rss());
	series_set(self, M_SELF_START, capture_began_ns(p->capture));
}

static void note_audit(struct metrics_listener *p, struct series *machine)
{
	if (!p->start_ns)
		p->start_ns = audit_start_ns(p->audit) + (uint64_t)realtime_offset_ns();
	series_set(machine, M_AUDIT_START, p->start_ns);
	series_set(machine, M_AUDIT_RUNNING, !p->finished);
	series_set(machine, M_UPDATED, clock_ns(CLOCK_REALTIME));
}

static void update(struct metrics_listener *p)
{
	struct series *machine = metrics_only(meter_metrics(p->meter), METRIC_MACHINE);
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	audit_refresh(p->audit, REFRESH_NS);
	meter_look(p->meter, audit_machine(p->audit), now);
	note_audit(p, machine);
	note_devices(p, machine);
	note_losses(p, now);
	note_self(p);
}

/* To be freed; NULL when out of memory. */
static char *text_of(struct metrics_listener *p, bool self, size_t *len)
{
	char *text = NULL;
	FILE *out;
	bool failed;

	update(p);
	out = open_memstream(&text, len);
	if (!out)
		return NULL;
	metrics_write(meter_metrics(p->meter), self, out);
	failed = ferror(out);
	failed |= fclose(out) != 0;
	if (!failed)
		return text;
	free(text);
	return NULL;
}

static char *text_for_http(void *context, size_t *len)
{
	return text_of(context, true, len);
}

/* ---- The file ---------------------------------------------------------------------------------
 */

static void say_failed(struct metrics_listener *p, const char *why)
{
	char what[512];

	if (p->failing)
		return;
	p->failing = true;
	log_info("cannot write '%s': %s; it is tried again each time", p->options->file, why);
	snprintf(what, sizeof(what), "metrics in '%s'", p->options->file);
	capture_warn(p->capture, what, why);
}

static void write_file(struct metrics_listener *p)
{
	size_t len;
	char *text = text_of(p, false, &len);
	const int err = text ? metrics_file_write(p->options->file, text, len) : 0;

	if (!text)
		say_failed(p, "out of memory");
	else if (err)
		say_failed(p, strerror(-err));
	else if (p->failing)
		log_info("'%s' is written again", p->options->file);
	p->failing = !text || err;
	free(text);
}

static void timer_fired(struct wake *wake)
{
	struct metrics_listener *p = wake->context;

	timer_clear(wake->fd);
	write_file(p);
	timer_set(wake->fd, p->options->interval_ns);
}

static int start_file(struct metrics_listener *p, struct error *err)
{
	const size_t len = strlen(p->options->file);

	if (metrics_file_check(p->options->file, err))
		return -1;
	if (len < 5 || strcmp(p->options->file + len - 5, ".prom"))
		log_info("node_exporter reads only files whose names end in .prom: '%s' does not",
			 p->options->file);
	p->timer = (struct wake){timer_new(), timer_fired, p};
	if (p->timer.fd < 0 || capture_add(p->capture, &p->timer))
		return error_set(err, "cannot set up a timer for '%s'", p->options->file);
	timer_set(p->timer.fd, FIRST_NS);
	return 0;
}

/* ---- The listener -----------------------------------------------------------------------------
 */

static const char *container_label(void *context, uint64_t cgroup)
{
	struct metrics_listener *p = context;

	return short_container(p->container, sizeof(p->container),
			       audit_cgroup(p->audit, cgroup)->container);
}

/* At the limit itself, a nanosecond and a byte are left: 0 would be unknown. */
static void limits_of(void *context, const struct machine_job *job, uint64_t *left, uint64_t *ns)
{
	const struct metrics_listener *p = context;
	struct growth_end end;

	if (!job_limits_left(p->options->limits, job, left))
		return;
	*left += !*left;
	if (job_limits_end(p->options->limits, job, &end))
		*ns = end.ns + !end.ns;
}

static struct meter *new_meter(struct metrics_listener *p)
{
	const uint64_t linger = p->options->labels & METRIC_PID ? PID_LINGER_SECS : LINGER_SECS;
	const struct meter_config config = {
		.metrics = {.max_series = p->options->max_series,
			    .linger_ns = linger * 1000000000,
			    .labels = p->options->labels,
			    .waits = p->options->waits},
		.page_size = sysconf(_SC_PAGESIZE),
		.container = container_label,
		.limits = limits_of,
		.context = p,
	};

	return meter_new(&config);
}

static int start(struct listener *listener, struct capture *c, struct error *err)
{
	struct metrics_listener *p = listener_of(listener);
	const struct run_info *info = capture_info(c);

	p->capture = c;
	p->audit = audit_of(c);
	p->meter = new_meter(p);
	if (!p->meter)
		return error_set(err, "out of memory");
	p->build = series_take(meter_metrics(p->meter), METRIC_BUILD,
			       (const char *const[]){info->version, info->kernel}, 0, 0);
	series_set(p->build, M_BUILD, 1);
	note_devices(p, metrics_only(meter_metrics(p->meter), METRIC_MACHINE));
	if (p->options->file && start_file(p, err))
		return -1;
	if (!p->options->listen)
		return 0;
	p->exporter = exporter_new(p->options->listen, c, text_for_http, p, err);
	return p->exporter ? 0 : -1;
}

static void record(struct listener *listener, const struct wire_header *record,
		   const struct machine_news *news)
{
	meter_took(listener_of(listener)->meter, record, news);
}

static void finish(struct listener *listener)
{
	struct metrics_listener *p = listener_of(listener);

	p->finished = true;
	if (p->exporter)
		exporter_finish(p->exporter);
	if (p->options->file)
		write_file(p);
}

static void close_listener(struct listener *listener)
{
	struct metrics_listener *p = listener_of(listener);

	exporter_free(p->exporter);
	if (p->timer.fd >= 0) {
		capture_remove(p->capture, &p->timer);
		close(p->timer.fd);
	}
	meter_free(p->meter);
	free(p);
}

struct listener *metrics_listener_new(const struct metrics_options *options)
{
	struct metrics_listener *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->listener = (struct listener){
		.start = start, .record = record, .finish = finish, .close = close_listener};
	p->options = options;
	p->timer.fd = -1;
	return &p->listener;
}
