/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a process finds a file, by its mounts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "kernel/file_system.h"
#include "kernel/mount_paths.h"

static void shown_as(uint32_t device, const char *within, const char *expected)
{
	static const char parts[] = "30 1 8:1 /srv /data rw - ext4 /dev/sda1 rw\n"
				    "31 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
				    "32 1 8:1 /srv/a\\040b /deep rw - ext4 /dev/sda1 rw\n"
				    "33 1 8:2 /part /part rw - ext4 /dev/sda2 rw\n";
	FILE *file = fmemopen((void *)parts, sizeof(parts) - 1, "r");
	struct mount_list mounts = {0};
	char *path;

	assert_non_null(file);
	assert_int_equal(mount_list_read(&mounts, file), 0);
	path = mount_list_find(&mounts, device, within);
	if (expected) {
		assert_non_null(path);
		assert_string_equal(path, expected);
	} else {
		assert_null(path);
	}
	free(path);
	mount_list_free(&mounts);
	fclose(file);
}

/* The mount that shows the smallest part of it, by whole names. */
static void paths(void **state)
{
	(void)state;
	shown_as(8 << 20 | 1, "/srv/model", "/data/model");
	shown_as(8 << 20 | 1, "/srv/a b/model", "/deep/model");
	shown_as(8 << 20 | 1, "/srvx/model", "/srvx/model");
	shown_as(8 << 20 | 2, "/elsewhere/model", NULL);
	shown_as(8 << 20 | 3, "/model", NULL);
}

/* A process of another namespace, or one that is gone, has what was known, and then what we have.
 */
static void namespaces(void **state)
{
	enum { KNOWN = 5, GONE = 1 << 30 };
	const uint32_t device = 4095u << 20 | 7; /* nobody has it */
	struct mount_paths paths = {0};
	struct mount *mount = calloc(1, sizeof(*mount));
	struct mount_list seen = {.list = mount, .n = 1, .cap = 1};
	char *path;

	(void)state;
	assert_non_null(mount);
	*mount = (struct mount){device, strdup("/srv"), strdup("/in")};
	paths.known[3] = (struct mount_namespace){.number = KNOWN, .mounts = seen};
	path = mount_paths_find(&paths, GONE, KNOWN, device, "/srv/model");
	assert_non_null(path);
	assert_string_equal(path, "/in/model");
	free(path);
	assert_null(mount_paths_find(&paths, GONE, KNOWN, device, "/other/model"));
	for (uint32_t i = 1; i <= 2 * MOUNT_NAMESPACES; i++) {
		path = mount_paths_find(&paths, GONE, 100 + i, device, "/srv/model");
		assert_null(path);
	}
	assert_null(mount_paths_find(&paths, (uint32_t)getpid(), KNOWN, device, "/srv/model"));
	mount_paths_free(&paths);
}

/* A process that is gone was in our own namespace, of which nothing is known yet: we can tell. */
static void gone_from_our_namespace(void **state)
{
	struct mount_paths paths = {0};
	struct stat ours, root;
	const uint32_t gone = 0x7fffffff; /* no pid is as high */
	char *path;

	(void)state;
	assert_int_equal(stat("/proc/self/ns/mnt", &ours), 0);
	assert_int_equal(stat("/proc", &root), 0);
	path = mount_paths_find(&paths, gone, (uint32_t)ours.st_ino,
				file_system_device(major(root.st_dev), minor(root.st_dev)),
				"/version");
	assert_non_null(path);
	assert_string_equal(path, "/proc/version");
	free(path);
	mount_paths_free(&paths);
}

/* Who has many mounts gets no more memory than that; and where nobody is to be told by our mounts,
 * nothing is found by them. */
static void bounds(void **state)
{
	static const char line[] = "30 1 8:1 /srv /data rw - ext4 /dev/sda1 rw\n";
	FILE *file = fmemopen((void *)line, sizeof(line) - 1, "r");
	struct mount_list mounts = {.most = sizeof(struct mount) + strlen("/srv/data") - 1};
	struct mount_paths paths = {.most = 1};
	struct stat ours, root;
	uint32_t device;

	(void)state;
	assert_non_null(file);
	assert_int_equal(mount_list_read(&mounts, file), -E2BIG);
	mount_list_free(&mounts);
	mounts.most = sizeof(struct mount) + strlen("/srv/data");
	rewind(file);
	assert_int_equal(mount_list_read(&mounts, file), 0);
	mount_list_free(&mounts);
	fclose(file);
	assert_int_equal(stat("/proc/self/ns/mnt", &ours), 0);
	assert_int_equal(stat("/proc", &root), 0);
	device = file_system_device(major(root.st_dev), minor(root.st_dev));
	assert_null(mount_paths_find_there(&paths, (uint32_t)getpid(), (uint32_t)ours.st_ino,
					   device, "/version"));
	mount_paths_free(&paths);
	paths = (struct mount_paths){0};
	assert_null(mount_paths_find_there(&paths, 0x7fffffff, 1, device, "/version"));
	mount_paths_free(&paths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),
		cmocka_unit_test(namespaces),
		cmocka_unit_test(gone_from_our_namespace),
		cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
