/* SPDX-License-Identifier: GPL-2.0-only */
/* sections_test.c - programs get the kernel's numbers from us, and libbpf reads no types for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/btf.h>

#include "as_kernel.h"
#include "kernel/sections.h"
#include "kernel/skeleton.h"

static struct qprof_bpf *open_programs(void)
{
	struct qprof_bpf *bpf;

	assert_false(sections_begin());
	bpf = qprof_bpf__open();
	assert_non_null(bpf);
	return bpf;
}

/* What obj_needs_vmlinux_btf() of libbpf looks at, but for relocations, which have a file. */
static void test_libbpf_needs_no_types(void **state)
{
	struct qprof_bpf *bpf = open_programs();
	struct bpf_program *program;

	(void)state;
	bpf_object__for_each_program(program, bpf->obj)
	{
		const enum bpf_prog_type type = bpf_program__type(program);

		if (type == BPF_PROG_TYPE_TRACING || type == BPF_PROG_TYPE_UNSPEC)
			fail_msg("%s (%s): expected a section that sections.c has, got none",
				 bpf_program__name(program), bpf_program__section_name(program));
	}
	assert_true(btf__find_by_name_kind(bpf_object__btf(bpf->obj), ".ksyms", BTF_KIND_DATASEC) <
		    0);
	qprof_bpf__destroy(bpf);
}

/* A function, a tracepoint, an iterator; and what has one of their names, but is something else. */
static struct btf *kernel(int *call, int *tracepoint, int *iterator)
{
	struct btf *btf = btf__new_empty();
	int integer, proto, to_proto;

	assert_non_null(btf);
	integer = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	assert_true(btf__add_struct(btf, "btf_trace_rss_stat", 4) > 0);
	proto = btf__add_func_proto(btf, integer);
	to_proto = btf__add_ptr(btf, proto);
	assert_true(btf__add_typedef(btf, "bpf_iter_task", to_proto) > 0);
	*call = btf__add_func(btf, "bpf_rdonly_cast", BTF_FUNC_STATIC, proto);
	*tracepoint = btf__add_typedef(btf, "btf_trace_rss_stat", to_proto);
	*iterator = btf__add_func(btf, "bpf_iter_task", BTF_FUNC_STATIC, proto);
	assert_true(btf__add_typedef(btf, "btf_trace_of_others", to_proto) > 0);
	return btf;
}

static void test_numbers(void **state)
{
	struct qprof_bpf *bpf = open_programs();
	int call, tracepoint, iterator;
	struct btf *types = kernel(&call, &tracepoint, &iterator);
	struct kernel_btf read = as_kernel(types);

	(void)state;
	assert_false(sections_learn(&read, bpf->obj));
	kernel_btf_free(&read);
	assert_int_equal(sections_number("bpf_rdonly_cast"), call);
	assert_int_equal(sections_number("btf_trace_rss_stat"), tracepoint);
	assert_int_equal(sections_number("bpf_iter_task"), iterator);
	/* This kernel lacks it, and no program of ours asks for it. */
	assert_int_equal(sections_number("btf_trace_sched_switch"), 0);
	assert_int_equal(sections_number("btf_trace_of_others"), 0);
	assert_int_equal(sections_number("aio_complete_rw"), 0);
	assert_false(sections_learn_one("aio_complete_rw", 42));
	assert_int_equal(sections_number("aio_complete_rw"), 42);
	btf__free(types);
	qprof_bpf__destroy(bpf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libbpf_needs_no_types),
		cmocka_unit_test(test_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
