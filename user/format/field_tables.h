/* SPDX-License-Identifier: GPL-2.0-only */
/* field_tables.h - what the tables of fields are written with: fields.c and fields_reasons.c. */
#ifndef QPROF_FIELD_TABLES_H
#define QPROF_FIELD_TABLES_H

#include "format/fields.h"

#define FIELD(type, k, member, kind_)                                                              \
	.key = (k), .kind = (kind_), .offset = offsetof(struct recording_##type, member)
#define LIST(base, k, member, kind_, max_)                                                         \
	.key = (k), .kind = (kind_), .offset = offsetof(base, member),                             \
	.count = offsetof(base, n_##member), .max = (max_)
#define N_FIELDS(list) (sizeof(list) / sizeof(*(list)))
#define RECORD(type, name_, list, first_)                                                          \
	{                                                                                          \
		.name = (name_),                                                                   \
		.fields = (list),                                                                  \
		.n_fields = N_FIELDS(list),                                                        \
		.size = sizeof(struct recording_##type),                                           \
		.has = offsetof(struct recording_##type, has),                                     \
		.first = (first_),                                                                 \
	};                                                                                         \
	_Static_assert(N_FIELDS(list) <= RECORD_MAX_FIELDS, #list " needs more bits of has");      \
	_Static_assert(sizeof(((struct recording_##type *)0)->has) == sizeof(uint64_t),            \
		       #type " has no uint64_t has")

/* What a moment's memory is made of. */
#define MEMORY_FIELDS(type)                                                                        \
	{FIELD(type, "file_mb", file, FIELD_BYTES), .required = true},                             \
		{FIELD(type, "anon_mb", anon, FIELD_BYTES), .required = true},                     \
		{FIELD(type, "shmem_mb", shmem, FIELD_BYTES), .required = true},                   \
	{                                                                                          \
		FIELD(type, "swap_mb", swap, FIELD_BYTES), .required = true                        \
	}

#endif
