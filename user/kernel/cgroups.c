/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/cgroups.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

enum {
	MAX_CACHED = 4096,    /* beyond, the oldest entry goes */
	KERNFS_HANDLE = 0xfe, /* FILEID_KERNFS, linux/exportfs.h: the id is the handle */
	CONTAINER_ID_LEN = 64,
	POD_UID_LEN = 36,
	CRUN_MIN_ID = 12,
};

/* ---- Names that runtimes give -----------------------------------------------------------------
 */

/* A component of a path, without its slashes. */
struct component {
	const char *at;
	size_t len;
};

static bool is_hex(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isdigit((unsigned char)text[i]) && (text[i] < 'a' || text[i] > 'f'))
			return false;
	return len;
}

static bool cut_front(struct component *part, const char *front)
{
	const size_t len = strlen(front);

	if (part->len < len || memcmp(part->at, front, len))
		return false;
	part->at += len;
	part->len -= len;
	return true;
}

static bool cut_back(struct component *part, const char *back)
{
	const size_t len = strlen(back);

	if (part->len < len || memcmp(part->at + part->len - len, back, len))
		return false;
	part->len -= len;
	return true;
}

/* Returns true if it may be shown as it is: it has only what names of machines are made of. */
static bool is_name(const struct component *part)
{
	for (size_t i = 0; i < part->len; i++)
		if (!isalnum((unsigned char)part->at[i]) && !strchr("-_.:", part->at[i]))
			return false;
	return part->len && part->len < CGROUP_CONTAINER_MAX;
}

static void set_container(struct cgroup *out, const char *runtime, const struct component *part)
{
	out->runtime = runtime;
	memcpy(out->container, part->at, part->len);
	out->container[part->len] = '\0';
}

/* "docker-<id>.scope" and so on, as the systemd driver of the runtimes names it. */
static bool parse_scope(const struct component *whole, struct cgroup *out)
{
	static const struct {
		const char *front, *runtime;
	} scopes[] = {
		{"docker-", "docker"},	    {"cri-containerd-", "containerd"},
		{"nerdctl-", "containerd"}, {"crio-", "cri-o"},
		{"libpod-", "podman"},
	};

	for (size_t i = 0; i < sizeof(scopes) / sizeof(*scopes); i++) {
		struct component part = *whole;

		if (!cut_front(&part, scopes[i].front) || !cut_back(&part, ".scope"))
			continue;
		/* crio-conmon-<id>.scope is the monitor, no container; nor is libpod-conmon-. */
		if (part.len != CONTAINER_ID_LEN || !is_hex(part.at, part.len))
			continue;
		set_container(out, scopes[i].runtime, &part);
		return true;
	}
	return false;
}

/* Machines of systemd and of LXC have names. */
static bool parse_machine(const struct component *whole, struct cgroup *out)
{
	struct component part = *whole;

	if (cut_front(&part, "machine-") && cut_back(&part, ".scope") && is_name(&part)) {
		set_container(out, "systemd-nspawn", &part);
		return true;
	}
	part = *whole;
	if (cut_front(&part, "systemd-nspawn@") && cut_back(&part, ".service") && is_name(&part)) {
		set_container(out, "systemd-nspawn", &part);
		return true;
	}
	part = *whole;
	if (cut_front(&part, "lxc.payload.") && is_name(&part)) {
		set_container(out, "lxc", &part);
		return true;
	}
	return false;
}

/* "<id>" alone, as the cgroupfs driver names it: the component before says which runtime. */
static bool parse_bare(const struct component *part, const struct component *before, bool in_pod,
		       struct cgroup *out)
{
	struct component id = *part, parent = *before;
	const char *runtime = "";

	if (cut_front(&id, "libpod-"))
		runtime = "podman";
	else if (cut_front(&id, "crio-"))
		runtime = "cri-o";
	else if (cut_front(&parent, "docker") && !parent.len)
		runtime = "docker";
	else if (in_pod)
		runtime = "containerd";
	if (id.len != CONTAINER_ID_LEN || !is_hex(id.at, id.len) || !*runtime)
		return false;
	set_container(out, runtime, &id);
	return true;
}

/* "...-pod<uid>.slice", where systemd has _ for -, or "pod<uid>". */
static bool parse_pod(const struct component *whole, struct cgroup *out)
{
	static const char *const fronts[] = {"kubepods-besteffort-pod", "kubepods-burstable-pod",
					     "kubepods-pod", "pod"};
	struct component part = *whole;
	char uid[POD_UID_LEN];
	bool found = false;

	cut_back(&part, ".slice");
	for (size_t i = 0; !found && i < sizeof(fronts) / sizeof(*fronts); i++)
		found = cut_front(&part, fronts[i]);
	if (!found)
		return false;
	/* Static pods have the 32 digits of a hash. */
	if (part.len != POD_UID_LEN && !(part.len == 32 && is_hex(part.at, part.len)))
		return false;
	for (size_t i = 0; i < part.len; i++) {
		uid[i] = part.at[i] == '_' ? '-' : part.at[i];
		if (!is_hex(&uid[i], 1) && uid[i] != '-')
			return false;
	}
	memcpy(out->pod, uid, part.len);
	out->pod[part.len] = '\0';
	return true;
}

static void copy_path(struct cgroup *out, const char *path)
{
	const size_t len = strlen(path), most = sizeof(out->path) - 1;

	if (len <= most)
		memcpy(out->path, path, len + 1);
	else
		snprintf(out->path, sizeof(out->path), "...%s", path + len - most + 3);
}

/* Of nested containers the outermost counts: the machine runs that one. */
void cgroup_parse(const char *path, struct cgroup *out)
{
	struct component part, before = {"", 0};
	bool in_kubepods = false;

	*out = (struct cgroup){.runtime = ""};
	copy_path(out, path);
	for (; *path; path = part.at + part.len) {
		path += strspn(path, "/");
		part = (struct component){path, strcspn(path, "/")};
		if (!part.len)
			break;
		in_kubepods |= part.len >= 8 && !memcmp(part.at, "kubepods", 8);
		if (!out->pod[0] && in_kubepods)
			parse_pod(&part, out);
		if (!out->container[0] && !parse_scope(&part, out) && !parse_machine(&part, out))
			parse_bare(&part, &before, out->pod[0], out);
		before = part;
	}
}

/* ---- From ids to paths ------------------------------------------------------------------------
 */

struct cached {
	uint64_t id;
	struct cgroup cgroup;
	UT_hash_handle hh;
};

struct cgroups {
	int mount; /* a descriptor in the cgroup2 hierarchy, or -1 */
	char mount_path[256];
	struct cached *cached;
	struct cgroup unknown;
};

static void find_mount(struct cgroups *c)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	const struct mntent *entry;

	if (!mounts)
		return;
	while (c->mount < 0 && (entry = getmntent(mounts))) {
		if (strcmp(entry->mnt_type, "cgroup2") ||
		    strlen(entry->mnt_dir) >= sizeof(c->mount_path))
			continue;
		snprintf(c->mount_path, sizeof(c->mount_path), "%s", entry->mnt_dir);
		c->mount = open(entry->mnt_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	endmntent(mounts);
}

struct cgroups *cgroups_new(void)
{
	struct cgroups *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->unknown.runtime = "";
	c->mount = -1;
	find_mount(c);
	return c;
}

void cgroups_free(struct cgroups *c)
{
	struct cached *cached, *next;

	if (!c)
		return;
	HASH_ITER (hh, c->cached, cached, next) {
		HASH_DEL(c->cached, cached);
		free(cached);
	}
	if (c->mount >= 0)
		close(c->mount);
	free(c);
}

/* Leaves path as it is if the cgroup is gone, or cannot be looked up. */
static void path_of_id(const struct cgroups *c, uint64_t id, char *path, size_t size)
{
	struct {
		struct file_handle head;
		unsigned char id[sizeof(id)];
	} handle = {.head = {.handle_bytes = sizeof(id), .handle_type = KERNFS_HANDLE}};
	char link[64], full[PATH_MAX];
	const size_t skip = strlen(c->mount_path);
	ssize_t n;
	int fd;

	memcpy(handle.head.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(c->mount, &handle.head, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, full, sizeof(full) - 1);
	close(fd);
	if (n < 0)
		return;
	full[n] = '\0';
	if (!strncmp(full, c->mount_path, skip))
		snprintf(path, size, "%s", full[skip] ? full + skip : "/");
}

const struct cgroup *cgroups_get(struct cgroups *c, uint64_t id)
{
	char path[PATH_MAX] = "";
	struct cached *cached;

	HASH_FIND(hh, c->cached, &id, sizeof(id), cached);
	if (cached)
		return &cached->cgroup;
	if (!id || c->mount < 0)
		return &c->unknown;
	if (HASH_COUNT(c->cached) >= MAX_CACHED) {
		cached = c->cached;
		HASH_DEL(c->cached, cached);
		free(cached);
	}
	cached = calloc(1, sizeof(*cached));
	if (!cached)
		return &c->unknown;
	cached->id = id;
	path_of_id(c, id, path, sizeof(path)); /* "" if it is gone */
	cgroup_parse(path, &cached->cgroup);
	HASH_ADD(hh, c->cached, id, sizeof(cached->id), cached);
	if (cached->hh.tbl)
		return &cached->cgroup;
	free(cached);
	return &c->unknown;
}
