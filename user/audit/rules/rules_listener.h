/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rules_listener.h - an audit takes processes for jobs because a rule matches them.
 *
 * Nothing polls. A process is held against the rules when it executes a program, by its command
 * line, and from 32 MiB of resident memory on when that changes much or it maps new code, by what
 * it has mapped and open. Such looks wait in a queue, a process once, and take at most a hundredth
 * of a CPU in the long run, however many processes there are and whatever they do.
 *
 * What is in a job is held against the recipes in the same way: their checkpoints become the job's.
 */
#ifndef QPROF_RULES_LISTENER_H
#define QPROF_RULES_LISTENER_H

#include "capture/listener.h"
#include "capture/marker.h"
#include "recipes/rules.h"

/* The rules must outlive it. marker: recipe_marker_of_jobs(), or NULL: no recipes. Returns NULL
 * when out of memory. */
struct listener *rules_listener_new(const struct rules *rules, struct marker *marker);

#endif
