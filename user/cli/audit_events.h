/* SPDX-License-Identifier: GPL-2.0-only */
/* audit_events.h - the options of an audit that are about events. */
#ifndef QPROF_AUDIT_EVENTS_H
#define QPROF_AUDIT_EVENTS_H

#include <argp.h>

#include "events.h"

/* What holds unless an option says otherwise. */
extern const struct event_options audit_events_default;

/* A child of the command's parser; its input is a struct event_options. */
extern const struct argp audit_events_argp;

#endif
