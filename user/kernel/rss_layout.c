/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/rss_layout.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <bpf/btf.h>

#include "kernel/kernel_btf.h"

enum { COUNTERS = 4, MAX_DEPTH = 8 };

static const struct btf_type *resolve(const struct kernel_btf *btf, uint32_t id)
{
	const struct btf_type *type = kernel_btf_type(btf, id);

	while (type && (btf_is_mod(type) || btf_is_typedef(type)))
		type = kernel_btf_type(btf, type->type);
	return type;
}

static bool is_called(const struct kernel_btf *btf, const struct btf_type *type, const char *name)
{
	return type && !strcmp(kernel_btf_name(btf, type->name_off), name);
}

/* Returns the type of a member, or NULL. Looks into nested structs without a name, too. */
static const struct btf_type *member_of(const struct kernel_btf *btf, const struct btf_type *type,
					const char *name, int depth)
{
	const struct btf_member *member;
	const struct btf_type *found = NULL;

	if (!type || !btf_is_composite(type) || depth == MAX_DEPTH)
		return NULL;
	member = btf_members(type);
	for (uint32_t i = 0; i < btf_vlen(type) && !found; i++) {
		const char *its = kernel_btf_name(btf, member[i].name_off);

		if (!strcmp(its, name))
			return resolve(btf, member[i].type);
		if (!*its)
			found = member_of(btf, resolve(btf, member[i].type), name, depth + 1);
	}
	return found;
}

static bool is_integer(const struct btf_type *type, uint32_t size)
{
	return type && btf_is_int(type) && type->size == size;
}

/* Returns the type of the elements of an array of COUNTERS, or NULL for any other type. */
static const struct btf_type *element_of(const struct kernel_btf *btf, const struct btf_type *type)
{
	if (!type || !btf_is_array(type) || btf_array(type)->nelems != COUNTERS)
		return NULL;
	return resolve(btf, btf_array(type)->type);
}

/* { raw_spinlock_t lock; s64 count; ... s32 *counters; } */
static bool is_percpu_counter(const struct kernel_btf *btf, const struct btf_type *type)
{
	const struct btf_type *counters = member_of(btf, type, "counters", 0);

	return is_called(btf, type, "percpu_counter") && member_of(btf, type, "lock", 0) &&
	       is_integer(member_of(btf, type, "count", 0), 8) && counters &&
	       btf_is_ptr(counters) && is_integer(resolve(btf, counters->type), 4);
}

/* { s64 counter; } */
static bool is_atomic_long(const struct kernel_btf *btf, const struct btf_type *type)
{
	return is_integer(member_of(btf, type, "counter", 0), 8);
}

enum rss_layout rss_layout_of(const struct kernel_btf *btf, char *why, size_t size)
{
	const uint32_t id = kernel_btf_find(btf, "mm_struct", BTF_KIND_STRUCT);
	const struct btf_type *stat = member_of(btf, kernel_btf_type(btf, id), "rss_stat", 0);

	if (is_percpu_counter(btf, element_of(btf, stat)))
		return RSS_PERCPU;
	if (is_atomic_long(btf, element_of(btf, member_of(btf, stat, "count", 0))))
		return RSS_ATOMIC;
	snprintf(why, size,
		 stat ? "mm_struct.rss_stat is neither 4 percpu_counters nor 4 atomic counts"
		      : "struct mm_struct has no rss_stat");
	return RSS_UNKNOWN;
}
