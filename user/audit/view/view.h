/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * view.h - the live view of an audit, like top: on the controlling terminal, in its alternate
 * screen. It is drawn when something has happened, a few times a second at most; a machine on which
 * nothing happens is not woken up.
 */
#ifndef QPROF_VIEW_H
#define QPROF_VIEW_H

#include "capture/listener.h"

/* The listener. NULL and *err: there is no terminal that can be drawn on, or no memory.
 * The terminal is left as it is until the audit starts. */
struct listener *view_listener_new(bool colour, struct error *err);

/* Has files of jobs be shown while these go on. view: a view_listener_new(); files: a
 * job_files_listener_new() of the same audit. */
void view_show_files(struct listener *view, struct listener *files);

#endif
