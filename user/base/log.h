/* SPDX-License-Identifier: GPL-2.0-only */
/* log.h - lines on stderr, each beginning with the program's name. */
#ifndef QPROF_LOG_H
#define QPROF_LOG_H

enum log_level { LOG_QUIET, LOG_NORMAL, LOG_VERBOSE };

/* What is shown from now on; errors always are. Also decides whether libbpf's own lines are. */
void log_set_level(enum log_level level);
enum log_level log_level(void);

/* Before a line is written, *hook is called: to clear a live line. NULL for none. */
void log_set_hook(void (*hook)(void *context), void *context);

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
