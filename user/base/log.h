/* SPDX-License-Identifier: GPL-2.0-only */
/* log.h - lines on stderr that begin with the program's name. */
#ifndef QPROF_LOG_H
#define QPROF_LOG_H

enum log_level { LOG_QUIET, LOG_NORMAL, LOG_VERBOSE };

/* Sets which lines are shown from now on, libbpf's included. Errors always are. */
void log_set_level(enum log_level level);
enum log_level log_level(void);

/* Sets a function that is called before each line, to clear a live line; NULL for none. */
void log_set_hook(void (*hook)(void *context), void *context);

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_verbose(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
