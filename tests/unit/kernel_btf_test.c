/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's types are read as libbpf reads them, and nothing is read beyond their end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/btf.h>

#include "as_kernel.h"

/* One type of each kind that libbpf 1.1 can make. */
static struct btf *all_kinds(void)
{
	struct btf *btf = btf__new_empty();
	int integer, proto;

	assert_non_null(btf);
	integer = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	btf__add_ptr(btf, btf__add_const(btf, integer));
	btf__add_array(btf, integer, integer, 3);
	btf__add_struct(btf, "task", 8);
	assert_false(btf__add_field(btf, "pid", integer, 0, 0));
	assert_false(btf__add_field(btf, "tgid", integer, 32, 0));
	btf__add_union(btf, NULL, 4);
	assert_false(btf__add_field(btf, "a", integer, 0, 0));
	btf__add_enum(btf, "state", 4);
	assert_false(btf__add_enum_value(btf, "DEAD", 16));
	btf__add_enum64(btf, "large", 8, false);
	assert_false(btf__add_enum64_value(btf, "FAR", 1ull << 40));
	btf__add_fwd(btf, "mm", BTF_FWD_STRUCT);
	btf__add_typedef(btf, "gate_t", integer);
	btf__add_volatile(btf, integer);
	btf__add_restrict(btf, integer);
	btf__add_type_tag(btf, "rcu", integer);
	btf__add_float(btf, "double", 8);
	proto = btf__add_func_proto(btf, integer);
	assert_false(btf__add_func_param(btf, "fd", integer));
	btf__add_func(btf, "close", BTF_FUNC_STATIC, proto);
	btf__add_var(btf, "jiffies", BTF_VAR_GLOBAL_ALLOCATED, integer);
	btf__add_datasec(btf, ".data", 4);
	assert_false(btf__add_datasec_var_info(btf, 1, 0, 4));
	btf__add_decl_tag(btf, "kfunc", proto + 1, -1);
	assert_true(btf__add_struct(btf, "last", 0) > 0);
	return btf;
}

static void assert_read_alike(const struct btf *btf)
{
	struct kernel_btf kernel = as_kernel(btf);

	assert_int_equal(kernel.n, btf__type_cnt(btf));
	for (uint32_t id = 1; id < kernel.n; id++) {
		const struct btf_type *ours = kernel_btf_type(&kernel, id),
				      *theirs = btf__type_by_id(btf, id);

		assert_int_equal(ours->info, theirs->info);
		assert_string_equal(kernel_btf_name(&kernel, ours->name_off),
				    btf__name_by_offset(btf, theirs->name_off));
	}
	assert_null(kernel_btf_type(&kernel, 0));
	assert_null(kernel_btf_type(&kernel, kernel.n));
	kernel_btf_free(&kernel);
}

static void test_all_kinds(void **state)
{
	struct btf *btf = all_kinds();

	(void)state;
	assert_read_alike(btf);
	btf__free(btf);
}

static void test_this_kernel(void **state)
{
	struct btf *btf = btf__parse("/sys/kernel/btf/vmlinux", NULL);

	(void)state;
	if (!btf)
		skip(); /* it has none, or shows it to root alone */
	assert_true(btf__type_cnt(btf) > 1000);
	assert_read_alike(btf);
	btf__free(btf);
}

static void test_find(void **state)
{
	struct btf *btf = all_kinds();
	struct kernel_btf kernel = as_kernel(btf);

	(void)state;
	assert_int_equal(kernel_btf_find(&kernel, "last", BTF_KIND_STRUCT), kernel.n - 1);
	assert_int_equal(kernel_btf_find(&kernel, "last", BTF_KIND_UNION), 0);
	assert_int_equal(kernel_btf_find(&kernel, "las", BTF_KIND_STRUCT), 0);
	assert_string_equal(kernel_btf_name(&kernel, UINT32_MAX), "");
	kernel_btf_free(&kernel);
	btf__free(btf);
}

/* A copy of its own size, so that the sanitizer sees a byte beyond. */
static int read_copy(const void *data, size_t size)
{
	struct kernel_btf kernel;
	void *copy = malloc(size ? size : 1);
	int err;

	assert_non_null(copy);
	memcpy(copy, data, size);
	err = kernel_btf_read(&kernel, copy, size);
	for (uint32_t id = 1; !err && id < kernel.n; id++)
		(void)strlen(kernel_btf_name(&kernel, kernel_btf_type(&kernel, id)->name_off));
	if (!err)
		kernel_btf_free(&kernel);
	free(copy);
	return err;
}

/* Cut anywhere it is refused, and with any byte changed nothing is read beyond its end. */
static void test_broken(void **state)
{
	struct btf *btf = all_kinds();
	uint32_t size;
	const void *data = btf__raw_data(btf, &size);
	unsigned char *broken = malloc(size);

	(void)state;
	assert_non_null(broken);
	assert_false(read_copy(data, size));
	for (uint32_t cut = 0; cut < size; cut++)
		assert_int_equal(read_copy(data, cut), -EINVAL);
	for (uint32_t i = 0; i < size; i++)
		for (unsigned int value = 0; value < 256; value += 15) {
			memcpy(broken, data, size);
			broken[i] = (unsigned char)value;
			(void)read_copy(broken, size);
		}
	free(broken);
	btf__free(btf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds),
		cmocka_unit_test(test_this_kernel),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
