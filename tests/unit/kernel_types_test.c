/* SPDX-License-Identifier: GPL-2.0-only */
/* Of the kernel's types, those of the programs are chosen, with all that they contain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/btf.h>

#include "as_kernel.h"
#include "kernel/kernel_types.h"

/* struct task { int pid; struct mm *mm; struct entity se; union { int a; gate *next; }; }, and
 * struct rq, which the programs do not name. */
static struct btf *kernel(void)
{
	struct btf *btf = btf__new_empty();
	int integer, mm, entity, inner, next, array, to_mm;

	assert_non_null(btf);
	integer = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	btf__add_struct(btf, "rq", 8);
	assert_false(btf__add_field(btf, "nr", integer, 0, 0));
	mm = btf__add_struct(btf, "mm", 4);
	assert_false(btf__add_field(btf, "users", integer, 0, 0));
	array = btf__add_array(btf, integer, integer, 3);
	entity = btf__add_struct(btf, "entity", 12);
	assert_false(btf__add_field(btf, "sums", array, 0, 0));
	next = btf__add_ptr(btf, btf__add_typedef(btf, "gate_t", btf__add_const(btf, integer)));
	inner = btf__add_union(btf, NULL, 8);
	assert_false(btf__add_field(btf, "a", integer, 0, 0));
	assert_false(btf__add_field(btf, "next", next, 0, 0));
	to_mm = btf__add_ptr(btf, mm);
	btf__add_struct(btf, "task", 40);
	assert_false(btf__add_field(btf, "pid", integer, 0, 0));
	assert_false(btf__add_field(btf, "mm", to_mm, 64, 0));
	assert_false(btf__add_field(btf, "se", entity, 128, 0));
	assert_false(btf__add_field(btf, NULL, inner, 256, 0));
	btf__add_enum(btf, "state", 4);
	assert_false(btf__add_enum_value(btf, "DEAD", 16));
	return btf;
}

static struct btf *programs(void)
{
	struct btf *btf = btf__new_empty();

	assert_non_null(btf);
	btf__add_struct(btf, "task___old", 0);
	btf__add_enum(btf, "state", 4);
	assert_false(btf__add_enum_value(btf, "DEAD", 16));
	return btf;
}

/* Of what kernel() has, what programs() want. */
static struct btf *choose(void)
{
	struct btf *all = kernel(), *own = programs(), *btf;
	struct kernel_btf types = as_kernel(all);
	size_t size;
	void *data;

	assert_false(kernel_types_of(&types, own, &data, &size));
	btf = btf__new(data, (uint32_t)size);
	assert_non_null(btf);
	free(data);
	kernel_btf_free(&types);
	btf__free(own);
	btf__free(all);
	return btf;
}

static const struct btf_type *find(const struct btf *btf, const char *name, uint32_t kind)
{
	const int id = btf__find_by_name_kind(btf, name, kind);

	return id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
}

static const struct btf_type *member(const struct btf *btf, const struct btf_type *type, uint32_t i)
{
	return btf__type_by_id(btf, btf_members(type)[i].type);
}

static void test_chosen(void **state)
{
	struct btf *btf = choose();
	const struct btf_type *task, *inner, *array;

	(void)state;
	task = find(btf, "task", BTF_KIND_STRUCT);
	assert_non_null(task);
	assert_int_equal(task->size, 40);
	assert_int_equal(btf_vlen(task), 4);
	assert_string_equal(btf__name_by_offset(btf, btf_members(task)[2].name_off), "se");
	assert_int_equal(btf_members(task)[2].offset, 128);
	assert_string_equal(btf__name_by_offset(btf, member(btf, task, 0)->name_off), "int");
	array = member(btf, member(btf, task, 2), 0);
	assert_true(btf_is_array(array));
	assert_true(btf_is_int(btf__type_by_id(btf, btf_array(array)->type)));
	assert_int_equal(btf_array(array)->nelems, 3);
	/* What a pointer leads to, unless it is a struct of its own. */
	assert_true(btf_is_ptr(member(btf, task, 1)));
	assert_int_equal(member(btf, task, 1)->type, 0);
	inner = member(btf, task, 3);
	assert_true(btf_is_union(inner));
	assert_string_equal(
		btf__name_by_offset(btf,
				    btf__type_by_id(btf, member(btf, inner, 1)->type)->name_off),
		"gate_t");
	assert_int_equal(btf_enum(find(btf, "state", BTF_KIND_ENUM))->val, 16);
	btf__free(btf);
}

static void test_not_chosen(void **state)
{
	struct btf *btf = choose();

	(void)state;
	assert_null(find(btf, "rq", BTF_KIND_STRUCT));
	assert_null(find(btf, "mm", BTF_KIND_STRUCT));
	btf__free(btf);
}

/* Returns the member of a struct that is called so, NULL if there is none. */
static const struct btf_member *named(const struct btf *btf, const struct btf_type *type,
				      const char *name)
{
	for (uint32_t i = 0; i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), name))
			return &btf_members(type)[i];
	return NULL;
}

/* Of this kernel's own: libbpf takes what is written, and members are where they were. */
static void test_this_kernel(void **state)
{
	struct btf *all = btf__parse("/sys/kernel/btf/vmlinux", NULL), *own, *btf;
	const struct btf_type *was, *is;
	struct kernel_btf types;
	size_t size;
	void *data;

	(void)state;
	if (!all)
		skip(); /* it has none, or shows it to root alone */
	own = btf__new_empty();
	btf__add_struct(own, "task_struct", 0);
	btf__add_struct(own, "mm_struct___old", 0);
	btf__add_enum(own, "pid_type", 4);
	types = as_kernel(all);
	assert_false(kernel_types_of(&types, own, &data, &size));
	btf = btf__new(data, (uint32_t)size);
	assert_non_null(btf);
	assert_in_range(btf__type_cnt(btf), 100, btf__type_cnt(all) / 10);
	assert_non_null(find(btf, "mm_struct", BTF_KIND_STRUCT));
	assert_non_null(find(btf, "pid_type", BTF_KIND_ENUM));
	was = find(all, "task_struct", BTF_KIND_STRUCT);
	is = find(btf, "task_struct", BTF_KIND_STRUCT);
	assert_int_equal(is->info, was->info);
	assert_int_equal(is->size, was->size);
	for (uint32_t i = 0; i < btf_vlen(was); i++) {
		const char *name = btf__name_by_offset(all, btf_members(was)[i].name_off);
		const struct btf_member *member = named(btf, is, name);

		assert_non_null(member);
		if (!*name) /* one of several */
			continue;
		assert_int_equal(member->offset, btf_members(was)[i].offset);
		assert_int_equal(btf__resolve_size(btf, member->type),
				 btf__resolve_size(all, btf_members(was)[i].type));
	}
	free(data);
	kernel_btf_free(&types);
	btf__free(btf);
	btf__free(own);
	btf__free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chosen),
		cmocka_unit_test(test_not_chosen),
		cmocka_unit_test(test_this_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
