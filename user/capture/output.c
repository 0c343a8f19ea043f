/* SPDX-License-Identifier: GPL-2.0-only */
#include "capture/output.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/capture.h"

static struct output *output_of(struct listener *l)
{
	return (struct output *)l;
}

void output_check(struct output *o, int err)
{
	if (err)
		capture_failf(o->capture, "cannot write %s to '%s': %s%s", o->what, o->path,
			      strerror(-err), o->rest);
}

static int prepare(struct listener *l, struct capture *c, struct error *err)
{
	struct output *o = output_of(l);
	int fd = keep_open(&o->keep, o->path, err);

	if (fd < 0)
		return -1;
	o->capture = c;
	o->emit = emit_new(fd);
	if (!o->emit) {
		close(fd);
		return error_set(err, "out of memory");
	}
	l->output.fd = emit_event(o->emit);
	return 0;
}

static void batch(struct listener *l)
{
	struct output *o = output_of(l);

	if (o->capture && o->capture->attached)
		keep_begun(&o->keep);
	if (o->emit)
		output_check(o, emit_flush(o->emit));
}

static bool is_idle(struct listener *l)
{
	struct output *o = output_of(l);

	return !o->emit || emit_is_idle(o->emit);
}

static void close_output(struct listener *l)
{
	struct output *o = output_of(l);

	emit_free(o->emit);
	keep_close(&o->keep);
	free(o);
}

struct output *output_new(size_t size, const char *path, const char *what)
{
	struct output *o = calloc(1, size);

	if (!o)
		return NULL;
	o->listener = (struct listener){
		.prepare = prepare,
		.batch = batch,
		.is_idle = is_idle,
		.close = close_output,
	};
	o->path = path;
	o->what = what;
	o->rest = "";
	return o;
}
