/* SPDX-License-Identifier: GPL-2.0-only */
/* served.h - a run whose records come from a service: see source.h. */
#ifndef QPROF_SERVED_H
#define QPROF_SERVED_H

#include "capture/capture.h"
#include "kernel/launch.h"

/* Returns how the command asks the service, if the run has one: before its exec. */
struct launch_first served_ask(struct capture *c);

/* Takes the answer of the service, if the run has one; asked: see struct source. Before the
 * listeners write to any file: it may refuse. Returns 0 or -1. */
int served_open(struct capture *c, int asked);

/* Asks the service for processes that run, and takes its answer. exits: what wakes us when they
 * end. Returns 0 or -1. */
int served_open_running(struct capture *c, const uint32_t *pids, const struct wake *exits,
			size_t n);

/* Reads until *started is set: the service has told of all processes that were there before.
 * Returns 0 or -1. */
int served_await_start(struct capture *c, const bool *started);

/* For a model: the service has said where the process finds a file. */
char *served_place(void *context, const struct wire_stored_name *record, const char *within);

/* Reads until the service has told all, or is late. */
void served_drain(struct capture *c);

#endif
