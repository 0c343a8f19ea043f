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

struct profile_listener {
	struct output output; /* first */
	struct yaml yaml;
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
		output_check(&p->output, yaml_row(&p->yaml, news->step));
}

static void finish(struct listener *l)
{
	struct profile_listener *p = listener_of(l);
	struct capture *c = p->output.capture;

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
	o->listener.start = start;
	o->listener.record = record;
	o->listener.finish = finish;
	return &o->listener;
}
