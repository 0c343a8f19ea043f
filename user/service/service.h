/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * service.h - both ends of profiling without root: the listener by which an audit serves runs, and
 * the source by which a run is served. What they say to each other is in talk.h.
 */
#ifndef QPROF_SERVICE_H
#define QPROF_SERVICE_H

#include "capture/listener.h"
#include "capture/source.h"
#include "kernel/engine.h"
#include "kernel/wishes.h"

/* Of an audit with engine_config.serves. path must outlive it. NULL when out of memory. */
struct listener *service_listener_new(const char *path);

/* What a run is to be told of besides: see struct talk_asks. */
struct service_asks {
	struct wish_list places; /* SOURCE_PLACES_MAX at most, with numbers of the run's own */
	struct source_heard heard;
};

/* path: of the service's socket. wanted: curves, waits and files of it. path and asks must outlive
 * the source. NULL when out of memory. */
struct source *service_source_new(const char *path, const struct engine_config *wanted,
				  const struct service_asks *asks);

/* Returns true if there is a socket at the path. */
bool service_is_at(const char *path);

#endif
