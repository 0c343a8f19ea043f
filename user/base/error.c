/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

int error_set(struct error *err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	if (!err->status)
		err->status = 125;
	return -1;
}
