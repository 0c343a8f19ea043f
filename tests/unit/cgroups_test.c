/* SPDX-License-Identifier: GPL-2.0-only */
/* What paths of cgroups say, as runtimes make them and as nobody should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/cgroups.h"

#define ID  "3f2a8c1d9e4b5a6f7081920a1b2c3d4e5f60718293a4b5c6d7e8f9012345abcd"
#define POD "0123abcd-4567-89ab-cdef-0123456789ab"

struct example {
	const char *path, *runtime, *container, *pod;
};

static const struct example examples[] = {
	{"/", "", "", ""},
	{"", "", "", ""},
	{"/user.slice/user-1000.slice/session-3.scope", "", "", ""},
	{"/system.slice/docker.service", "", "", ""},
	{"/system.slice/docker-" ID ".scope", "docker", ID, ""},
	{"/docker/" ID, "docker", ID, ""},
	/* systemd in a container */
	{"/system.slice/docker-" ID ".scope/init.scope", "docker", ID, ""},
	/* a container in a container: the machine runs the outer */
	{"/docker/" ID "/docker/"
	 "0000000000000000000000000000000000000000000000000000000000000000",
	 "docker", ID, ""},
	{"/machine.slice/libpod-" ID ".scope/container", "podman", ID, ""},
	{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", "podman",
	 ID, ""},
	{"/libpod_parent/libpod-" ID, "podman", ID, ""},
	{"/machine.slice/libpod-conmon-" ID ".scope", "", "", ""},
	{"/kubepods.slice/kubepods-burstable.slice/"
	 "kubepods-burstable-pod0123abcd_4567_89ab_cdef_0123456789ab.slice/cri-containerd-" ID
	 ".scope",
	 "containerd", ID, POD},
	{"/kubepods.slice/kubepods-pod0123abcd_4567_89ab_cdef_0123456789ab.slice/crio-" ID ".scope",
	 "cri-o", ID, POD},
	{"/kubepods.slice/kubepods-pod0123abcd_4567_89ab_cdef_0123456789ab.slice/crio-conmon-" ID
	 ".scope",
	 "", "", POD},
	{"/kubepods/besteffort/pod" POD "/" ID, "containerd", ID, POD},
	/* a static pod */
	{"/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" ID, "containerd", ID,
	 "0123456789abcdef0123456789abcdef"},
	/* kind: a node that is a container itself */
	{"/docker/" ID "/kubelet.slice/kubelet-kubepods.slice/"
	 "kubelet-kubepods-pod0123abcd_4567_89ab_cdef_0123456789ab.slice",
	 "docker", ID, ""},
	{"/machine.slice/machine-debian\\x2d12.scope", "", "", ""}, /* an escape is no name */
	{"/machine.slice/machine-debian12.scope/payload", "systemd-nspawn", "debian12", ""},
	{"/machine.slice/systemd-nspawn@web.service/payload", "systemd-nspawn", "web", ""},
	{"/lxc.payload.c1/system.slice", "lxc", "c1", ""},

	/* Made by whoever may make cgroups. */
	{"/docker-.scope", "", "", ""},
	{"/docker-" ID, "", "", ""},
	{"/docker-" ID "0.scope", "", "", ""},
	{"/docker-3F2A8C1D9E4B5A6F7081920A1B2C3D4E5F60718293A4B5C6D7E8F9012345ABCD.scope", "", "",
	 ""},
	{"/evil/" ID, "", "", ""},
	{"/pod" POD "/" ID, "", "", ""}, /* no kubepods above it */
	{"/kubepods/pod0123abcd-4567-89ab-cdef-0123456789aX/" ID, "", "", ""},
	{"/kubepods/podshort/" ID, "", "", ""},
	{"/lxc.payload.\x1b[2J", "", "", ""},
	{"/lxc.payload.", "", "", ""},
	{"////", "", "", ""},
	{"no slash", "", "", ""},
};

static void paths_are_told_apart(void **state)
{
	struct cgroup cgroup;

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++) {
		const struct example *e = &examples[i];

		cgroup_parse(e->path, &cgroup);
		if (strcmp(cgroup.runtime, e->runtime) || strcmp(cgroup.container, e->container) ||
		    strcmp(cgroup.pod, e->pod))
			fail_msg("%s: expected '%s' '%s' '%s', got '%s' '%s' '%s'", e->path,
				 e->runtime, e->container, e->pod, cgroup.runtime, cgroup.container,
				 cgroup.pod);
		assert_string_equal(cgroup.path, e->path);
	}
}

static void long_paths_are_cut(void **state)
{
	char path[8192], name[400];
	struct cgroup cgroup;

	(void)state;
	memset(path, 'x', sizeof(path));
	path[0] = '/';
	strcpy(path + sizeof(path) - sizeof("/docker-" ID ".scope"), "/docker-" ID ".scope");
	cgroup_parse(path, &cgroup);
	assert_string_equal(cgroup.container, ID);
	assert_int_equal(strlen(cgroup.path), CGROUP_PATH_MAX - 1);
	assert_memory_equal(cgroup.path, "...", 3);
	/* A name that does not fit is none. */
	memset(name, 'a', sizeof(name));
	memcpy(name, "/lxc.payload.", 13);
	name[sizeof(name) - 1] = '\0';
	cgroup_parse(name, &cgroup);
	assert_string_equal(cgroup.container, "");
}

static void unknown_ids_are_empty(void **state)
{
	struct cgroups *c = cgroups_new();

	(void)state;
	assert_non_null(c);
	assert_string_equal(cgroups_get(c, 0)->path, "");
	assert_string_equal(cgroups_get(c, UINT64_MAX)->path, "");
	/* More than are cached. */
	for (uint64_t id = 1ull << 40; id < (1ull << 40) + 5000; id++)
		assert_string_equal(cgroups_get(c, id)->container, "");
	cgroups_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_told_apart),
		cmocka_unit_test(long_paths_are_cut),
		cmocka_unit_test(unknown_ids_are_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
