/* SPDX-License-Identifier: GPL-2.0-only */
/* wire_record.h - is this a record of bpf/wire.h? */
#ifndef QPROF_WIRE_RECORD_H
#define QPROF_WIRE_RECORD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Returns true if size bytes at data are a whole record of a known kind, whose counts and
 * enumerators are in range.
 */
bool wire_record_ok(const void *data, size_t size);

#endif
