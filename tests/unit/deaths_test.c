/* SPDX-License-Identifier: GPL-2.0-only */
/* The path of a cgroup, which comes name by name, the last first; which ends of processes are bad.
 */
#include "model/cxx_name.h"
#include "model/deaths.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void is_path(const char *names, size_t size, uint32_t n, bool cut, const char *expected)
{
	char *path = deaths_path(names, size, n, cut);

	assert_non_null(path);
	assert_string_equal(path, expected);
	free(path);
}

static void paths(void **state)
{
	static const char names[] = "job\0docker";

	(void)state;
	is_path(names, sizeof(names), 2, false, "/docker/job");
	is_path(names, sizeof(names), 1, false, "/job");
	is_path(names, sizeof(names), 1, true, ".../job");
	is_path(names, sizeof(names), 0, false, "/");
	is_path("caf\xe9", 5, 1, false, "/caf\xef\xbf\xbd");
}

/* The count is from the kernel side, and the bytes are as they may: nothing beyond them is read. */
static void names_that_do_not_end(void **state)
{
	char full[WIRE_PATH_MAX], single[WIRE_PATH_MAX], *path;

	(void)state;
	memset(full, 'x', sizeof(full));
	is_path(full, sizeof(full), 3, false, "/");
	is_path("a\0b", 3, 5, false, "/a");
	full[sizeof(full) - 1] = '\0';
	path = deaths_path(full, sizeof(full), 1, true);
	assert_int_equal(strlen(path), strlen(".../") + sizeof(full) - 1);
	free(path);
	for (size_t i = 0; i < sizeof(single); i++)
		single[i] = i & 1 ? '\0' : 'x';
	path = deaths_path(single, sizeof(single), UINT32_MAX, false);
	assert_int_equal(strlen(path) % strlen("/x"), 0);
	free(path);
}

/* ---- Signals ----------------------------------------------------------------------------------
 */

enum { PAGE = 4096, TARGET = WIRE_PROCESS_TARGET };

/* Device 5 is full for all but root, 6 has room, 7 has quotas, of others nobody knows. */
static bool disk(void *context, const struct wire_written *written, bool as_root,
		 struct profile_disk *disk)
{
	const uint32_t device = written->device;

	(void)context;
	*disk = (struct profile_disk){.mount = "/caf\xe9", .size = 64 << 20, .left = 2 << 20};
	if (device == 5)
		disk->left = as_root ? 3 << 20 : 4096;
	if (device == 7 && written->uid == 1000)
		disk->user = (struct profile_quota){.limit = 32 << 20, .used = (32 << 20) - 4096};
	if (device == 7)
		disk->user.used += written->uid == 1001; /* and no limit */
	if (device == 7 && written->gid == 100)
		disk->group = (struct profile_quota){.limit = 64 << 20, .used = 65 << 20};
	if (device == 7 && written->gid == 101)
		disk->group = (struct profile_quota){.limit = 64 << 20, .used = 62 << 20};
	return device >= 5 && device <= 7;
}

static struct profile_quota promised; /* a limit of 0: as much as anybody wants */

static bool committed(void *context, const struct wire_header *ended, uint64_t private_bytes,
		      struct profile_quota *all)
{
	(void)context;
	(void)ended;
	*all = promised;
	all->used += private_bytes;
	return promised.limit;
}

static const struct profile_config config = {
	.page_size = PAGE, .disk = disk, .committed = committed};
static struct profile_losses losses;

static struct wire_ending signal_to(uint32_t tgid, uint32_t signal, enum wire_sender by,
				    uint64_t time_ns)
{
	return (struct wire_ending){
		.h = {.kind = WIRE_ENDING, .tgid = tgid, .time_ns = time_ns},
		.signal = signal,
		.by = by,
		.sender = by == WIRE_BY_KERNEL ? 0 : 900,
		.room = {.mappings = 10,
			 .mappings_max = 100,
			 .total = 1000,
			 .data = 500,
			 .as_max = ~0ull,
			 .data_max = ~0ull,
			 .locked_max = ~0ull},
	};
}

static void await(struct deaths *d, const struct wire_ending *ending)
{
	assert_int_equal(deaths_feed(d, &ending->h, NULL, &config, &losses), 0);
}

/* status: as wait(2) has it. */
static void ends(struct deaths *d, uint32_t tgid, uint32_t status, uint32_t flags)
{
	const struct wire_process exit = {
		.h = {.kind = WIRE_EXIT, .tgid = tgid}, .exit_code = status, .flags = flags};

	deaths_exit(d, &exit, &losses);
	assert_int_equal(d->awaited.n, 0);
}

static size_t told(uint32_t signal, enum wire_sender by, uint32_t status, uint32_t flags)
{
	struct wire_ending sent = signal_to(7, signal, by, 1);
	struct deaths d = {0};
	size_t n;

	await(&d, &sent);
	ends(&d, 7, status, flags);
	n = d.sure.n;
	deaths_free(&d);
	return n;
}

static void only_bad_ends(void **state)
{
	(void)state;
	assert_int_equal(told(SIGSEGV, WIRE_BY_KERNEL, SIGSEGV, 0), 1);
	assert_int_equal(told(SIGSEGV, WIRE_BY_KERNEL, SIGSEGV | 0x80, 0), 1); /* with a core */
	assert_int_equal(told(SIGABRT, WIRE_BY_TREE, SIGABRT, 0), 1);
	assert_int_equal(told(SIGTERM, WIRE_BY_TREE, SIGTERM, 0), 0);
	assert_int_equal(told(SIGTERM, WIRE_BY_TREE, SIGTERM, TARGET), 1);
	assert_int_equal(told(SIGTERM, WIRE_BY_PROCESS, SIGTERM, 0), 1);
	assert_int_equal(told(SIGKILL, WIRE_BY_TREE, SIGKILL, 0), 0);
	assert_int_equal(told(SIGKILL, WIRE_BY_KERNEL, SIGKILL, 0), 1);
	assert_int_equal(told(SIGINT, WIRE_BY_PROCESS, SIGINT, TARGET), 0);
}

/* A debugger kept the signal, or another one was faster. */
static void other_ends(void **state)
{
	(void)state;
	assert_int_equal(told(SIGSEGV, WIRE_BY_KERNEL, 0, TARGET), 0);
	assert_int_equal(told(SIGSEGV, WIRE_BY_KERNEL, 3 << 8, TARGET), 0);
	assert_int_equal(told(SIGSEGV, WIRE_BY_KERNEL, SIGKILL, TARGET), 0);
}

static void in_order_of_time(void **state)
{
	struct wire_ending first = signal_to(7, SIGSEGV, WIRE_BY_KERNEL, 1);
	struct wire_ending again = signal_to(7, SIGSEGV, WIRE_BY_KERNEL, 2);
	struct wire_ending second = signal_to(8, SIGBUS, WIRE_BY_KERNEL, 3);
	struct deaths d = {0};

	(void)state;
	await(&d, &first);
	await(&d, &again);
	await(&d, &second);
	assert_int_equal(d.awaited.n, 2);
	deaths_exit(&d, &(struct wire_process){.h.tgid = 8, .exit_code = SIGBUS}, &losses);
	ends(&d, 7, SIGSEGV, 0);
	assert_int_equal(d.sure.n, 2);
	assert_int_equal(d.sure.deaths[0].time_ns, 1);
	assert_int_equal(d.sure.deaths[1].time_ns, 3);
	deaths_free(&d);
}

/* The OOM killer sends a SIGKILL, too: one death, not two. */
static void oom_is_told_once(void **state)
{
	const struct wire_death oom = {.h = {.kind = WIRE_DEATH, .tgid = 7, .time_ns = 2},
				       .scope = WIRE_SCOPE_MACHINE};
	struct wire_ending sent = signal_to(7, SIGKILL, WIRE_BY_KERNEL, 1);
	struct deaths d = {0};

	(void)state;
	await(&d, &sent);
	assert_int_equal(deaths_feed(&d, &oom.h, NULL, &config, &losses), 0);
	ends(&d, 7, SIGKILL, TARGET);
	assert_int_equal(d.sure.n, 1);
	assert_int_equal(d.sure.deaths[0].how, PROFILE_BY_OOM);
	deaths_free(&d);
}

static enum profile_limit refused(struct wire_room room, uint32_t signal, uint32_t status)
{
	struct wire_ending sent = signal_to(7, signal, WIRE_BY_KERNEL, 1);
	enum profile_limit limit = PROFILE_NO_LIMIT;
	struct deaths d = {0};

	sent.room = room;
	await(&d, &sent);
	ends(&d, 7, status, TARGET);
	if (d.sure.n && d.sure.deaths[0].how == PROFILE_BY_REFUSAL)
		limit = d.sure.deaths[0].refused_by;
	deaths_free(&d);
	return limit;
}

static void refusals(void **state)
{
	const struct wire_room plenty = {.mappings = 99,
					 .mappings_max = 100,
					 .total = 1000,
					 .data = 500,
					 .as_max = 2000 * PAGE,
					 .data_max = 2000 * PAGE,
					 .locked = 100,
					 .locked_max = 200 * PAGE};
	struct wire_room mappings = plenty, space = plenty, data = plenty, unknown = plenty;
	struct wire_room locked = plenty, locks_nothing = plenty;

	(void)state;
	mappings.mappings = 100;
	space.as_max = 1066 * PAGE;
	data.data_max = 533 * PAGE;
	unknown.mappings_max = 0;
	locked.locked_max = 106 * PAGE;
	locks_nothing.locked = locks_nothing.locked_max = 0;
	assert_int_equal(refused(plenty, 0, 1 << 8), PROFILE_NO_LIMIT);
	assert_int_equal(refused(unknown, 0, 1 << 8), PROFILE_NO_LIMIT);
	assert_int_equal(refused(mappings, 0, 1 << 8), PROFILE_MAPPINGS);
	assert_int_equal(refused(space, 0, 1 << 8), PROFILE_ADDRESS_SPACE);
	assert_int_equal(refused(data, 0, 1 << 8), PROFILE_DATA);
	assert_int_equal(refused(locked, 0, 1 << 8), PROFILE_LOCKED);
	assert_int_equal(refused(locks_nothing, 0, 1 << 8), PROFILE_NO_LIMIT);
	assert_int_equal(refused(mappings, SIGABRT, SIGABRT), PROFILE_MAPPINGS);
	assert_int_equal(refused(mappings, SIGKILL, SIGKILL), PROFILE_NO_LIMIT);
	assert_int_equal(refused(mappings, 0, 0), PROFILE_NO_LIMIT);
	promised = (struct profile_quota){.limit = 10000 * PAGE, .used = 8900 * PAGE};
	assert_int_equal(refused(plenty, SIGABRT, SIGABRT), PROFILE_OVERCOMMIT);
	assert_int_equal(refused(plenty, 0, 1 << 8), PROFILE_OVERCOMMIT);
	assert_int_equal(refused(space, 0, 1 << 8), PROFILE_ADDRESS_SPACE);
	assert_int_equal(refused(plenty, SIGKILL, SIGKILL), PROFILE_NO_LIMIT);
	promised.used = 8800 * PAGE;
	assert_int_equal(refused(plenty, 0, 1 << 8), PROFILE_NO_LIMIT);
	promised.limit = 0;
}

static void full_file_system(uint32_t signal, enum wire_sender by, uint32_t fsuid, bool expected)
{
	struct wire_ending sent = signal_to(7, signal, by, 1);
	struct deaths d = {0};

	sent.written[0].device = 4;
	sent.written[1].device = 6;
	sent.written[2].device = 5;
	if (signal == SIGBUS)
		sent.written[2].file = (struct wire_file){.device = 5, .inode = 77};
	sent.n_written = 3;
	sent.fsuid = fsuid;
	await(&d, &sent);
	ends(&d, 7, signal ? signal : 1 << 8, TARGET);
	assert_int_equal(d.sure.n, expected || signal ? 1 : 0);
	if (expected) {
		assert_int_equal(d.sure.deaths[0].how, PROFILE_BY_REFUSAL);
		assert_int_equal(d.sure.deaths[0].refused_by, PROFILE_FILE_SYSTEM);
		assert_string_equal(d.sure.deaths[0].file_system, "/caf\xef\xbf\xbd");
		assert_int_equal(d.sure.deaths[0].left_bytes, 4096);
		assert_int_equal(d.sure.deaths[0].file_system_bytes, 64 << 20);
		assert_int_equal(d.sure.deaths[0].written.inode, signal == SIGBUS ? 77 : 0);
	} else if (signal) {
		assert_int_equal(d.sure.deaths[0].how, PROFILE_BY_SIGNAL);
	}
	deaths_free(&d);
}

static enum profile_limit full_quota(struct wire_written written, bool passes_quotas, uint32_t id,
				     uint64_t left)
{
	struct wire_ending sent = signal_to(7, 0, WIRE_BY_KERNEL, 1);
	enum profile_limit limit = PROFILE_NO_LIMIT;
	struct deaths d = {0};

	sent.written[sent.n_written++] = written;
	sent.passes_quotas = passes_quotas;
	await(&d, &sent);
	ends(&d, 7, 1 << 8, TARGET);
	if (d.sure.n) {
		assert_int_equal(d.sure.deaths[0].how, PROFILE_BY_REFUSAL);
		assert_string_equal(d.sure.deaths[0].file_system, "/caf\xef\xbf\xbd");
		assert_int_equal(d.sure.deaths[0].quota_id, id);
		assert_int_equal(d.sure.deaths[0].left_bytes, left);
		limit = d.sure.deaths[0].refused_by;
	}
	deaths_free(&d);
	return limit;
}

static void full_quotas(void **state)
{
	const struct wire_written of_user = {.device = 7, .uid = 1000, .gid = 102};
	const struct wire_written of_group = {.device = 7, .uid = 1001, .gid = 100};
	const struct wire_written roomy = {.device = 7, .uid = 1001, .gid = 101};
	const struct wire_written elsewhere = {.device = 6, .uid = 1000, .gid = 100};

	(void)state;
	assert_int_equal(full_quota(of_user, false, 1000, 4096), PROFILE_QUOTA_OF_USER);
	assert_int_equal(full_quota(of_group, false, 100, 0), PROFILE_QUOTA_OF_GROUP);
	assert_int_equal(full_quota(of_user, true, 0, 0), PROFILE_NO_LIMIT);
	assert_int_equal(full_quota(roomy, false, 0, 0), PROFILE_NO_LIMIT);
	assert_int_equal(full_quota(elsewhere, false, 0, 0), PROFILE_NO_LIMIT);
}

static void full_file_systems(void **state)
{
	(void)state;
	full_file_system(0, WIRE_BY_KERNEL, 1000, true);
	full_file_system(0, WIRE_BY_KERNEL, 0, false);
	full_file_system(SIGBUS, WIRE_BY_KERNEL, 1000, true);
	full_file_system(SIGABRT, WIRE_BY_PROCESS, 1000, false);
	full_file_system(SIGTERM, WIRE_BY_KERNEL, 1000, false);
}

/* Root has it by its number, or anybody by a capability. */
static void room_that_is_kept(void **state)
{
	struct wire_ending sent = signal_to(7, 0, WIRE_BY_KERNEL, 1);

	(void)state;
	sent.written[0].device = 5;
	sent.n_written = 1;
	sent.fsuid = 1000;
	for (uint32_t passes = 0; passes < 2; passes++) {
		struct deaths d = {0};

		sent.passes_quotas = passes;
		await(&d, &sent);
		ends(&d, 7, 1 << 8, TARGET);
		assert_int_equal(d.sure.n, passes ? 0 : 1);
		deaths_free(&d);
	}
}

static void no_more_than_the_most(void **state)
{
	const uint64_t before = losses.dropped_processes;
	struct deaths d = {0};

	(void)state;
	for (uint32_t i = 0; i <= PROFILE_MAX_DEATHS; i++) {
		struct wire_ending sent = signal_to(1000 + i, SIGSEGV, WIRE_BY_KERNEL, i);

		await(&d, &sent);
	}
	assert_int_equal(losses.dropped_processes, before + 1);
	deaths_free(&d);
}

/* ---- Refused by a GPU -------------------------------------------------------------------------
 */

static void refuse(struct deaths *d, uint32_t tgid, uint64_t bytes)
{
	const struct profile_gpu_refusal refusal = {.tgid = tgid, .time_ns = 5, .bytes = bytes};

	assert_int_equal(deaths_refuse(d, &refusal), 0);
}

/* gives_none: it was given no memory since. */
static void leaves_gpu(struct deaths *d, uint32_t tgid, bool gives_none)
{
	const struct wire_gpu record = {.h.tgid = tgid, .refused = gives_none};

	deaths_gpu(d, &record, "Load");
}

static void by_gpu(uint32_t signal, enum wire_sender by, uint32_t status, bool gives_none,
		   enum profile_limit expected)
{
	struct wire_ending sent = signal_to(7, signal, by, 10);
	struct deaths d = {0};

	refuse(&d, 8, 1);
	refuse(&d, 7, 2);
	refuse(&d, 7, 3);
	if (signal)
		await(&d, &sent);
	leaves_gpu(&d, 7, gives_none);
	ends(&d, 7, status, 0);
	assert_int_equal(d.n_refused, 1);
	assert_int_equal(d.sure.n ? d.sure.deaths[0].refused_by : PROFILE_NO_LIMIT, expected);
	if (expected) {
		assert_int_equal(d.sure.deaths[0].how, PROFILE_BY_REFUSAL);
		assert_int_equal(d.sure.deaths[0].gpu.bytes, 3);
		assert_int_equal(d.sure.deaths[0].has_no_memory, !signal);
	}
	deaths_free(&d);
}

static void refused_by_gpus(void **state)
{
	(void)state;
	by_gpu(0, WIRE_BY_KERNEL, 1 << 8, true, PROFILE_GPU);
	by_gpu(0, WIRE_BY_KERNEL, 1 << 8, false, PROFILE_NO_LIMIT);
	by_gpu(0, WIRE_BY_KERNEL, 0, true, PROFILE_NO_LIMIT);
	by_gpu(SIGABRT, WIRE_BY_KERNEL, SIGABRT, true, PROFILE_GPU);
	by_gpu(SIGABRT, WIRE_BY_KERNEL, SIGABRT, false, PROFILE_NO_LIMIT);
	by_gpu(SIGABRT, WIRE_BY_PROCESS, SIGABRT, true, PROFILE_NO_LIMIT);
	by_gpu(SIGTERM, WIRE_BY_PROCESS, SIGTERM, true, PROFILE_NO_LIMIT);
}

/* ---- Exceptions -------------------------------------------------------------------------------
 */

static void says(struct deaths *d, uint32_t tid, enum deaths_said what, const char *text,
		 uint64_t number)
{
	const struct wire_checkpoint hit = {.h = {.tgid = 7, .tid = tid, .time_ns = tid},
					    .value = what | number << 8,
					    .name_len = (uint32_t)strlen(text)};

	deaths_fail(d, &hit, *text ? text : "(empty name)", "Phase", PAGE, &losses);
}

/* Two threads that fail at once; and what belongs to nothing that was said. */
static void exceptions(void **state)
{
	const uint64_t before = losses.dropped_processes;
	struct deaths d = {0};

	(void)state;
	says(&d, 8, SAID_MORE, "lost", 0);
	says(&d, 8, SAID_FAILED, "ValueError: a", 0);
	says(&d, 9, SAID_IN_THREAD, "MemoryError", 0);
	says(&d, 8, SAID_MORE, "b", 0);
	says(&d, 8, SAID_PHASE, "Layer 3", 0);
	says(&d, 9, SAID_LIMIT, "RLIMIT_AS", 1000);
	says(&d, 9, SAID_USED, "", 990);
	says(&d, 9, 200, "unknown", 1);
	says(&d, 9, SAID_LIMIT, "of the program", 1);
	assert_int_equal(d.sure.n, 2);
	assert_string_equal(d.sure.deaths[0].exception, "ValueError: ab");
	assert_string_equal(d.sure.deaths[0].left, "Layer 3");
	assert_false(d.sure.deaths[0].in_thread);
	assert_string_equal(d.sure.deaths[1].exception, "MemoryError");
	assert_true(d.sure.deaths[1].in_thread);
	assert_int_equal(d.sure.deaths[1].refused_by, PROFILE_ADDRESS_SPACE);
	assert_int_equal(d.sure.deaths[1].usage, 990);
	for (int i = 0; i < 10000; i++)
		says(&d, 8, SAID_MORE, "0123456789", 0);
	assert_in_range(strlen(d.sure.deaths[0].exception), 4000, 4096);
	assert_int_equal(losses.dropped_processes, before);
	deaths_free(&d);
}

static void exception_over_a_quota(void **state)
{
	const struct profile_death *death;
	struct deaths d = {0};

	(void)state;
	says(&d, 8, SAID_FAILED, "OSError: [Errno 122]", 0);
	says(&d, 8, SAID_QUOTA, "of the program", 1);
	death = &d.sure.deaths[0];
	assert_int_equal(death->refused_by, PROFILE_NO_LIMIT);
	says(&d, 8, SAID_QUOTA, "group 100", 1 << 20);
	says(&d, 8, SAID_USED, "", (1 << 20) - 4096);
	says(&d, 8, SAID_FULL, "/data", 4096);
	assert_int_equal(death->refused_by, PROFILE_QUOTA_OF_GROUP);
	assert_int_equal(death->quota_id, 100);
	assert_int_equal(death->limit, 1 << 20);
	assert_int_equal(death->usage, (1 << 20) - 4096);
	assert_int_equal(death->left_bytes, 4096);
	says(&d, 8, SAID_FILE, "/data/model.bin", 0);
	assert_string_equal(death->written_file, "/data/model.bin");
	says(&d, 9, SAID_FAILED, "OSError: [Errno 28]", 0);
	says(&d, 9, SAID_FULL, "/data", 4096);
	says(&d, 9, SAID_FILE, "", 1 << 20);
	assert_int_equal(d.sure.deaths[1].file_system_bytes, 1 << 20);
	assert_null(d.sure.deaths[1].written_file);
	death = &d.sure.deaths[0];
	says(&d, 8, SAID_QUOTA, "user 1000", 1 << 20);
	assert_int_equal(death->refused_by, PROFILE_QUOTA_OF_USER);
	deaths_free(&d);
}

static void exception_of_a_gpu(void **state)
{
	struct deaths d = {0};

	(void)state;
	refuse(&d, 7, 3);
	says(&d, 7, SAID_FAILED, "OutOfMemoryError", 0);
	leaves_gpu(&d, 7, true);
	ends(&d, 7, 1 << 8, TARGET);
	assert_int_equal(d.sure.n, 1);
	assert_int_equal(d.sure.deaths[0].how, PROFILE_BY_EXCEPTION);
	assert_int_equal(d.sure.deaths[0].refused_by, PROFILE_GPU);
	assert_false(d.sure.deaths[0].has_no_memory);
	deaths_free(&d);
}

/* It was raised before: that is not why. */
static void exception_before_a_gpu(void **state)
{
	struct deaths d = {0};

	(void)state;
	says(&d, 4, SAID_FAILED, "ValueError", 0); /* at 4 ns */
	refuse(&d, 7, 3);
	leaves_gpu(&d, 7, true);
	ends(&d, 7, 1 << 8, TARGET);
	assert_int_equal(d.sure.n, 1);
	assert_int_equal(d.sure.deaths[0].refused_by, PROFILE_NO_LIMIT);
	deaths_free(&d);
}

/* A process that has told of its exception fails with a status: one end, not two. */
static void exception_is_told_once(void **state)
{
	struct wire_ending full = signal_to(7, 0, WIRE_BY_KERNEL, 20);
	struct deaths d = {0};

	(void)state;
	full.room.mappings = full.room.mappings_max;
	says(&d, 7, SAID_FAILED, "MemoryError", 0);
	await(&d, &full);
	ends(&d, 7, 1 << 8, TARGET);
	assert_int_equal(d.sure.n, 1);
	assert_int_equal(d.sure.deaths[0].how, PROFILE_BY_EXCEPTION);
	deaths_free(&d);
}

static void is_class(const char *type, const char *expected)
{
	char name[100];

	cxx_name(name, sizeof(name), type);
	assert_string_equal(name, expected);
}

static void classes(void **state)
{
	(void)state;
	is_class("St9bad_alloc", "std::bad_alloc");
	is_class("7failure", "failure");
	is_class("*7failure", "failure");
	is_class("N3c105ErrorE", "c10::Error");
	is_class("NSt8ios_base7failureB5cxx11E", "std::ios_base::failure");
	is_class("N12_GLOBAL__N_16hiddenE", "(anonymous namespace)::hidden");
	is_class("St6vectorIiSaIiEE", "St6vectorIiSaIiEE"); /* not taken apart */
	is_class("i", "i");
	is_class("N3c10", "N3c10");
	is_class("N999999999999999999999x", "N999999999999999999999x");
	is_class("9short", "9short");
	is_class("N", "N");
}

/* The kernel side's bytes may lack the end. */
static void exceptions_that_abort(void **state)
{
	struct wire_ending sent = signal_to(7, SIGABRT, WIRE_BY_TREE, 1);
	struct deaths d = {0};

	(void)state;
	memset(sent.thrown, 'x', sizeof(sent.thrown));
	await(&d, &sent);
	ends(&d, 7, SIGABRT, TARGET);
	assert_int_equal(d.sure.n, 1);
	assert_int_equal(d.sure.deaths[0].how, PROFILE_BY_EXCEPTION);
	assert_int_equal(strlen(d.sure.deaths[0].exception), sizeof(sent.thrown) - 1);
	deaths_free(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),
		cmocka_unit_test(names_that_do_not_end),
		cmocka_unit_test(only_bad_ends),
		cmocka_unit_test(other_ends),
		cmocka_unit_test(in_order_of_time),
		cmocka_unit_test(oom_is_told_once),
		cmocka_unit_test(refusals),
		cmocka_unit_test(classes),
		cmocka_unit_test(exceptions_that_abort),
		cmocka_unit_test(full_file_systems),
		cmocka_unit_test(room_that_is_kept),
		cmocka_unit_test(full_quotas),
		cmocka_unit_test(no_more_than_the_most),
		cmocka_unit_test(exceptions),
		cmocka_unit_test(exception_is_told_once),
		cmocka_unit_test(refused_by_gpus),
		cmocka_unit_test(exception_over_a_quota),
		cmocka_unit_test(exception_of_a_gpu),
		cmocka_unit_test(exception_before_a_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
