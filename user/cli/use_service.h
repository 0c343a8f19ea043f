/* SPDX-License-Identifier: GPL-2.0-only */
/* use_service.h - whether a run is served, or has an engine of its own. */
#ifndef QPROF_USE_SERVICE_H
#define QPROF_USE_SERVICE_H

#include <stdbool.h>

#include "capture/run.h"
#include "cli/chosen_recipes.h"
#include "service/service.h"

/*
 * Sets *path to the socket of the service that the run is to use, or to NULL. asked: the value of
 * --service, or NULL: then it is used if it is there and we could not load an engine. Returns 0; or
 * -1 and *err: an option needs an engine of its own.
 */
int use_service(const char *asked, const struct run_options *run,
		const struct capture_options *capture, const char **path, struct error *err);

/* Fills in what the run asks the service for besides: patterns of --usdt, and what the marker (or
 * NULL) listens to. The wishes are the caller's, to be freed. Returns 0, or -1 and *err. */
int use_service_asks(const struct texts *patterns, struct marker *marker, struct service_asks *asks,
		     struct error *err);

/* Returns true if the service at its usual path may be used by us. */
bool use_service_may(void);

#endif
