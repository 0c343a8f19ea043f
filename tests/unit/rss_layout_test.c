/* SPDX-License-Identifier: GPL-2.0-only */
/* Which layouts of the kernel's counts are read, and that no other is taken for one of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <bpf/btf.h>

#include "as_kernel.h"
#include "kernel/rss_layout.h"

static char why[128];

/* The kernel's types, as far as a test wants them. */
struct types {
	struct btf *btf;
	int s32, s64, index;
};

static struct types begin(void)
{
	struct types t = {.btf = btf__new_empty()};

	assert_non_null(t.btf);
	t.s32 = btf__add_int(t.btf, "int", 4, BTF_INT_SIGNED);
	t.s64 = btf__add_int(t.btf, "long long", 8, BTF_INT_SIGNED);
	t.index = t.s32;
	return t;
}

static enum rss_layout layout_of(const struct btf *btf)
{
	struct kernel_btf kernel = as_kernel(btf);
	const enum rss_layout layout = rss_layout_of(&kernel, why, sizeof(why));

	kernel_btf_free(&kernel);
	return layout;
}

/* An mm_struct whose members are in a struct without a name, as the kernel has it. */
static enum rss_layout layout_with(struct types *t, const char *member, int type)
{
	int inner, alias = btf__add_typedef(t->btf, "alias", type);
	enum rss_layout layout;

	inner = btf__add_struct(t->btf, NULL, 4096);
	assert_false(btf__add_field(t->btf, "mm_users", t->s32, 0, 0));
	assert_false(btf__add_field(t->btf, member, alias, 64, 0));
	btf__add_struct(t->btf, "mm_struct", 4096);
	assert_false(btf__add_field(t->btf, NULL, inner, 0, 0));
	memset(why, 0, sizeof(why));
	layout = layout_of(t->btf);
	btf__free(t->btf);
	return layout;
}

static int percpu_counter(struct types *t, const char *name, int count, int counters)
{
	int lock = btf__add_struct(t->btf, "raw_spinlock", 4), type;
	int pointer = btf__add_ptr(t->btf, counters);

	type = btf__add_struct(t->btf, name, 40);
	assert_false(btf__add_field(t->btf, "lock", lock, 0, 0));
	assert_false(btf__add_field(t->btf, "count", count, 64, 0));
	assert_false(btf__add_field(t->btf, "counters", pointer, 256, 0));
	return type;
}

static int array_of(struct types *t, int type, uint32_t n)
{
	return btf__add_array(t->btf, t->index, type, n);
}

static int atomic_stat(struct types *t, int counter, uint32_t n)
{
	int atomic = btf__add_struct(t->btf, NULL, 8), array, stat;

	assert_false(btf__add_field(t->btf, "counter", counter, 0, 0));
	array = array_of(t, btf__add_typedef(t->btf, "atomic_long_t", atomic), n);
	stat = btf__add_struct(t->btf, "mm_rss_stat", 32);
	assert_false(btf__add_field(t->btf, "count", array, 0, 0));
	return stat;
}

static void known(void **state)
{
	struct types t = begin();

	(void)state;
	assert_int_equal(
		layout_with(&t, "rss_stat",
			    array_of(&t, percpu_counter(&t, "percpu_counter", t.s64, t.s32), 4)),
		RSS_PERCPU);
	t = begin();
	assert_int_equal(layout_with(&t, "rss_stat", atomic_stat(&t, t.s64, 4)), RSS_ATOMIC);
}

static void assert_unknown(struct types *t, const char *member, int type, const char *reason)
{
	assert_int_equal(layout_with(t, member, type), RSS_UNKNOWN);
	assert_non_null(strstr(why, reason));
}

static void unknown(void **state)
{
	const char *neither = "neither 4 percpu_counters nor 4 atomic counts";
	struct types t = begin();

	(void)state;
	assert_unknown(&t, "rss", t.s64, "no rss_stat");
	t = begin(); /* a fifth counter: which is which? */
	assert_unknown(&t, "rss_stat",
		       array_of(&t, percpu_counter(&t, "percpu_counter", t.s64, t.s32), 5),
		       neither);
	t = begin(); /* another kind of counter */
	assert_unknown(&t, "rss_stat",
		       array_of(&t, percpu_counter(&t, "lazy_counter", t.s64, t.s32), 4), neither);
	t = begin(); /* narrower, wider */
	assert_unknown(&t, "rss_stat",
		       array_of(&t, percpu_counter(&t, "percpu_counter", t.s32, t.s32), 4),
		       neither);
	t = begin();
	assert_unknown(&t, "rss_stat",
		       array_of(&t, percpu_counter(&t, "percpu_counter", t.s64, t.s64), 4),
		       neither);
	t = begin();
	assert_unknown(&t, "rss_stat", atomic_stat(&t, t.s32, 4), neither);
	t = begin();
	assert_unknown(&t, "rss_stat", atomic_stat(&t, t.s64, 3), neither);
	t = begin();
	assert_unknown(&t, "rss_stat", t.s64, neither);
}

static void no_types(void **state)
{
	struct btf *btf = btf__new_empty();

	(void)state;
	assert_int_equal(layout_of(btf), RSS_UNKNOWN);
	btf__free(btf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known),
		cmocka_unit_test(unknown),
		cmocka_unit_test(no_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
