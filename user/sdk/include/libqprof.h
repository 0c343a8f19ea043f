/* SPDX-License-Identifier: MIT */
/*
 * libqprof.h - marks of qprof.h as functions of libqprof.so, for programs in any language.
 *
 * Each is thread-safe and async-signal-safe, allocates nothing, keeps no state, reports no error
 * and may be called at any time. While nobody listens, a call is a load and a branch.
 *
 * name: NUL-terminated UTF-8 of up to 255 bytes; what is longer is cut. NULL is "(no name)". It
 * stays the caller's and is read before the call returns.
 *
 * The ABI: functions are only ever added, under a new version in libqprof.map.
 */
#ifndef LIBQPROF_H
#define LIBQPROF_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The row "NAME Start": a phase begins. */
void qprof_begin(const char *name);

/* The row "NAME End": the phase of that name that this thread began last ends. */
void qprof_end(const char *name);

/* The row "NAME". */
void qprof_mark(const char *name);

/* A value that joins the next row, under `metrics`. The unit is the caller's. */
void qprof_metric(const char *name, double value);
void qprof_metric_int64(const char *name, int64_t value);

/* A value of the whole run, at the top level of the profile. The last one of a name counts. */
void qprof_summary(const char *name, double value);
void qprof_summary_int64(const char *name, int64_t value);

/* What a metric is: "NAME: definition", a line of the comments that end the profile. */
void qprof_define(const char *text);

/* Of qprof-bpf's own hooks: what a recipe's item has met. `what` is for qprof-bpf alone. */
void qprof_item(const char *name, int64_t what);
/* The same: an exception that nobody catches. */
void qprof_failed(const char *text, int64_t what);

/* 1 while somebody listens, else 0. */
int qprof_enabled(void);

/*
 * Where the kernel counts those who listen, always the same place. For languages to which a call is
 * expensive: while it is 0 none of the functions does anything.
 */
const volatile unsigned short *qprof_listeners(void);

#ifdef __cplusplus
}
#endif

#endif
