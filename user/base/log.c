/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

/* The one piece of global state: stderr is one, too. */
static enum log_level shown = LOG_NORMAL;
static void (*before_line)(void *context);
static void *hook_context;

void log_set_level(enum log_level level)
{
	shown = level;
}

enum log_level log_level(void)
{
	return shown;
}

void log_set_hook(void (*hook)(void *context), void *context)
{
	before_line = hook;
	hook_context = context;
}

/* A hostile process may have chosen a name in the text: see text_for_terminal(). */
static void write_line(const char *format, va_list args)
{
	char given[1024], line[sizeof(given) * TEXT_TERMINAL_GROWTH + 1];

	vsnprintf(given, sizeof(given), format, args);
	text_for_terminal(line, sizeof(line), given, sizeof(given));
	if (before_line)
		before_line(hook_context);
	fprintf(stderr, "qprof-bpf: %s\n", line);
}

#define LOG_FUNCTION(name, level)                                                                  \
	void name(const char *format, ...)                                                         \
	{                                                                                          \
		va_list args;                                                                      \
                                                                                                   \
		if (shown < (level))                                                               \
			return;                                                                    \
		va_start(args, format);                                                            \
		write_line(format, args);                                                          \
		va_end(args);                                                                      \
	}

LOG_FUNCTION(log_error, LOG_QUIET)
LOG_FUNCTION(log_info, LOG_NORMAL)
LOG_FUNCTION(log_verbose, LOG_VERBOSE)
