/* SPDX-License-Identifier: GPL-2.0-only */
/* How disks served a tree: sums, times, and what of them belongs to which phase. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "profile_run.h"

enum { VDA = 254 << 20, VDB = 254 << 20 | 16, US = 1000 };

static int set_up_devices(void **state)
{
	return set_up_with(state, true);
}

static struct wire_device record_of(const struct run *run, uint32_t device, const char *name)
{
	struct wire_device r = {.device = device};

	r.h = (struct wire_header){
		.kind = WIRE_DEVICE, .size = sizeof(r), .time_ns = run->now_ns - 10};
	snprintf(r.name, sizeof(r.name), "%s", name);
	return r;
}

/* What vda had read by then: n requests of 4 KiB, each of 3 us, one of which nobody saw the end. */
static void told(struct run *run, uint64_t n, uint32_t flags)
{
	struct wire_device r = record_of(run, VDA, "vda");
	struct wire_requests *reads = &r.sums.of[WIRE_DEVICE_READ];

	r.flags = flags;
	reads->n = n;
	reads->bytes = n * 4096;
	reads->timed = n ? n - 1 : 0;
	reads->ns = reads->timed * 3 * US;
	reads->max_ns = n ? 7 * US : 0;
	r.sums.busy_ns = n * 2 * US;
	r.open = 5;
	assert_true(wire_record_ok(&r, sizeof(r)));
	assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
}

static const struct profile_device *only(struct run *run)
{
	size_t n;
	const struct profile_device *devices = profile_devices(run->p, &n);

	assert_int_equal(n, 1);
	assert_string_equal(devices->name, "vda");
	return devices;
}

/* A record has what there was before the first end in a step: phases have the differences. */
static void test_phases(void **state)
{
	struct run *run = *state;
	const struct profile_device *vda;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	told(run, 0, 0);
	hit(run, MAIN, WIRE_BEGIN, "Load", 10, 10);
	told(run, 10, 0);
	hit(run, MAIN, WIRE_END, "Load", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "Save", 10, 10);
	told(run, 40, 0);
	hit(run, MAIN, WIRE_END, "Save", 10, 10);
	hit(run, MAIN, WIRE_BEGIN, "Idle", 10, 10);
	hit(run, MAIN, WIRE_END, "Idle", 10, 10);
	told(run, 45, 0);
	hit(run, MAIN, WIRE_BEGIN, "Load", 10, 10);
	told(run, 50, 0);
	hit(run, MAIN, WIRE_END, "Load", 10, 10);
	told(run, 53, WIRE_STORED_LAST);
	finish(run);
	vda = only(run);
	assert_int_equal(vda->of[WIRE_DEVICE_READ].n, 53);
	assert_int_equal(vda->of[WIRE_DEVICE_READ].timed, 52);
	assert_int_equal(vda->of[WIRE_DEVICE_READ].ns, 52 * 3 * US);
	assert_int_equal(vda->busy_ns, 53 * 2 * US);
	assert_int_equal(vda->open, 5);
	assert_int_equal(vda->n_uses, 2);
	assert_string_equal(vda->uses[0].name, "Load");
	assert_int_equal(vda->uses[0].of[WIRE_DEVICE_READ].n, 30 + 3);
	assert_int_equal(vda->uses[0].of[WIRE_DEVICE_READ].bytes, 33 * 4096);
	assert_int_equal(vda->uses[0].busy_ns, 33 * 2 * US);
	assert_int_equal(vda->uses[0].ns, 2 * 1000000);
	assert_string_equal(vda->uses[1].name, "Save");
	assert_int_equal(vda->uses[1].of[WIRE_DEVICE_READ].n, 5);
}

/* Two CPUs tell in the wrong order: nothing is taken back. */
static void test_swapped(void **state)
{
	struct run *run = *state;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	told(run, 20, 0);
	told(run, 10, 0);
	told(run, 30, WIRE_STORED_LAST);
	told(run, 25, WIRE_STORED_LAST);
	finish(run);
	assert_int_equal(only(run)->of[WIRE_DEVICE_READ].n, 30);
}

static struct wire_device_times times_of(uint32_t device)
{
	struct wire_device_times r = {.device = device};

	r.h = (struct wire_header){.kind = WIRE_DEVICE_HOW_LONG, .size = sizeof(r)};
	return r;
}

/* Times are those of the counter's end, at most an eighth too high, and never above the longest. */
static void check_quantiles(struct run *run, uint64_t max_ns, const struct wire_device_times *times,
			    uint64_t p50_ns, uint64_t p99_ns)
{
	struct wire_device r = record_of(run, times->device, "vda");
	const struct profile_device *devices;
	size_t n;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	r.flags = WIRE_STORED_LAST;
	r.sums.of[WIRE_DEVICE_WRITE].max_ns = max_ns;
	assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
	assert_true(wire_record_ok(times, sizeof(*times)));
	assert_int_equal(profile_feed(run->p, &times->h, &run->step), 0);
	finish(run);
	devices = profile_devices(run->p, &n);
	assert_int_equal(n, 1);
	assert_int_equal(devices->of[WIRE_DEVICE_WRITE].p50_ns, p50_ns);
	assert_int_equal(devices->of[WIRE_DEVICE_WRITE].p99_ns, p99_ns);
}

/* 98 requests of 3 us, one of 16 or 17 us (counter 16), one of 134 s and more (the last one). */
static void test_times(void **state)
{
	struct wire_device_times times = times_of(VDA);

	times.n[WIRE_DEVICE_WRITE][3] = 98;
	times.n[WIRE_DEVICE_WRITE][16] = 1;
	times.n[WIRE_DEVICE_WRITE][WIRE_DEVICE_TIMES - 1] = 1;
	check_quantiles(*state, 400000000000, &times, 4 * US - 1, 18 * US - 1);
}

static void test_longest_of_all(void **state)
{
	struct wire_device_times times = times_of(VDA);

	times.n[WIRE_DEVICE_WRITE][WIRE_DEVICE_TIMES - 1] = 2;
	check_quantiles(*state, 400000000000, &times, 400000000000, 400000000000);
}

static void test_no_longer_than_the_longest(void **state)
{
	struct wire_device_times times = times_of(VDA);

	times.n[WIRE_DEVICE_WRITE][24] = 1; /* 32 to 35 us */
	check_quantiles(*state, 33 * US, &times, 33 * US, 33 * US);
}

/* The busiest is first; a name is no more than text; one without its end is no record. */
static void test_many(void **state)
{
	struct run *run = *state;
	struct wire_device r = record_of(run, VDB, "sd\xff");
	const struct profile_device *devices;
	size_t n;

	hit(run, MAIN, WIRE_START, "", 10, 10);
	told(run, 20, WIRE_STORED_LAST);
	r.flags = WIRE_STORED_LAST;
	r.sums.busy_ns = 1000000000;
	assert_int_equal(profile_feed(run->p, &r.h, &run->step), 0);
	finish(run);
	devices = profile_devices(run->p, &n);
	assert_int_equal(n, 2);
	assert_string_equal(devices[0].name, "sd\xef\xbf\xbd");
	assert_string_equal(devices[1].name, "vda");
	memset(r.name, 'x', sizeof(r.name));
	assert_false(wire_record_ok(&r, sizeof(r)));
	assert_false(wire_record_ok(&r, sizeof(r) - 1));
}

int main(void)
{
#define DEVICES(name) cmocka_unit_test_setup_teardown(test_##name, set_up_devices, tear_down)
	const struct CMUnitTest tests[] = {
		DEVICES(phases),
		DEVICES(swapped),
		DEVICES(times),
		DEVICES(longest_of_all),
		DEVICES(no_longer_than_the_longest),
		DEVICES(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
