/* SPDX-License-Identifier: GPL-2.0-only */
/* The profile of a run, as a file that is whole at every moment. */
#include <stddef.h>
#include <string.h>

#include "capture/output.h"
#include "capture/run.h"
#include "format/yaml.h"
#include "run/listeners.h"

/* What the file does not take at once waits in memory, up to this. */
enum { MAX_WAITING = 64 << 20 };

/* A later look at GPUs says nothing of a row. */
enum { LOOK_AFTER_NS = 100000000 };

struct profile_listener {
	struct output output; /* first */
	struct yaml yaml;
	void (*flush)(struct listener *l); /* of the output */
	uint64_t row_ns;		   /* of the last row */
};

static struct profile_listener *listener_of(struct listener *l)
{
	return (struct profile_listener *)l;
}

static int start(struct listener *l, struct capture *c, struct error *err)
{
	struct profile_listener *p = listener_of(l);

	(void)err; /* the capture waits a moment for the file, then asks for errors by batch() */
	p->yaml.e = p->output.emit;
	output_check(&p->output, yaml_begin(&p->yaml, capture_info(c)));
	return 0;
}

/* Once a look at GPUs that was asked for after the last row is there, or none is to come. */
static void end_row(struct profile_listener *p)
{
	const struct run_gpus *gpus = capture_info(p->output.capture)->gpus;
	const bool is_told = gpus && gpus->knows_used && gpus->asked_ns >= p->row_ns;

	if (!p->yaml.has_open_row || (!is_told && gpus && gpus->is_awaited))
		return;
	output_check(&p->output,
		     yaml_row_end(&p->yaml, is_told && gpus->told_ns - p->row_ns <= LOOK_AFTER_NS
						    ? gpus->used
						    : 0));
}

static int write_row(struct profile_listener *p, const struct profile_checkpoint *step)
{
	const struct run_gpus *gpus = capture_info(p->output.capture)->gpus;
	const int err = yaml_row_end(&p->yaml, 0);

	p->row_ns = step->time_ns;
	if (err || !gpus || !gpus->is_awaited)
		return err ? err : yaml_row(&p->yaml, step);
	return yaml_row_begin(&p->yaml, step);
}

static void batch(struct listener *l)
{
	struct profile_listener *p = listener_of(l);

	if (p->yaml.e)
		end_row(p);
	p->flush(l);
}

/* If the file takes nothing for long, memory is the limit: the model goes on, rows are left out. */
static void record(struct listener *l, const struct wire_header *h, const struct machine_news *news)
{
	struct profile_listener *p = listener_of(l);

	(void)h;
	if (!news->step)
		return;
	p->output.rest = "; what was written until then is valid";
	if (emit_waiting(p->yaml.e) > MAX_WAITING)
		capture_count_dropped_row(p->output.capture);
	else
		output_check(&p->output, write_row(p, news->step));
}

static void finish(struct listener *l)
{
	struct profile_listener *p = listener_of(l);
	struct capture *c = p->output.capture;

	end_row(p);
	output_check(&p->output, yaml_finish(&p->yaml, run_profile(c), capture_quality(c)));
}

const char *profile_listener_path(const struct listener *profile, const char **old)
{
	const struct output *o = (const struct output *)profile;

	*old = o->keep.moved ? o->keep.old : NULL;
	return strcmp(o->path, "-") ? o->path : NULL;
}

struct listener *profile_listener_new(const char *path)
{
	struct output *o = output_new(sizeof(struct profile_listener), path, "the profile");

	if (!o)
		return NULL;
	((struct profile_listener *)o)->flush = o->listener.batch;
	o->listener.batch = batch;
	o->listener.start = start;
	o->listener.record = record;
	o->listener.finish = finish;
	return &o->listener;
}
