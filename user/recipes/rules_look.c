/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/rules_look.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "capture/capture.h"
#include "kernel/procfs_aside.h"

/* ---- Names that the process was given ---------------------------------------------------------
 */

/* Returns true if that was new to one of them. */
static bool offer(const struct look_matches *l, enum rule_kind kind, const char *found,
		  const char *name)
{
	bool met = false;

	for (size_t i = 0; i < l->n; i++)
		met |= rules_match_offer(l->matches[i], kind, found, name);
	return met;
}

/* A comm of 15 bytes may be cut: argv[0] and the file's name are whole. */
static void offer_comm(const struct look_matches *l, const char *comm)
{
	if (strlen(comm) < WIRE_COMM_LEN - 1)
		offer(l, RULE_EXECUTABLE, "runs", comm);
}

/* Offers "-m NAME" as one argument, too: that is how python3 gets its module. */
static void offer_module(const struct look_matches *l, const char *name)
{
	char text[WIRE_CMDLINE_MAX + 4];

	snprintf(text, sizeof(text), "-m %s", name);
	offer(l, RULE_ARGUMENT, "argument", text);
}

/* args has len bytes. A NUL ends each argument, but perhaps not the last. */
static void offer_cmdline(const struct look_matches *l, const char *args, size_t len)
{
	char text[WIRE_CMDLINE_MAX + 1];
	bool first = true, module = false;

	len = len < WIRE_CMDLINE_MAX ? len : WIRE_CMDLINE_MAX;
	memcpy(text, args, len);
	text[len] = '\0';
	for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
		if (first)
			offer(l, RULE_EXECUTABLE, "runs", text + at);
		else
			offer(l, RULE_ARGUMENT, "argument", text + at);
		if (module)
			offer_module(l, text + at);
		module = !first && !strcmp(text + at, "-m");
		first = false;
	}
}

const struct rule *look_at_exec(struct rules_match *m, const struct wire_process *exec)
{
	const struct look_matches l = {.matches = {m}, .n = 1};
	char comm[WIRE_COMM_LEN + 1] = "";

	rules_match_reset(m);
	memcpy(comm, exec->comm, WIRE_COMM_LEN);
	offer_comm(&l, comm);
	offer_cmdline(&l, exec->cmdline, exec->cmdline_len);
	return rules_match_verdict(m);
}

/* ---- What it has mapped and open --------------------------------------------------------------
 */

struct look {
	const struct look_matches *to;
	enum rule_kind kind;
	const char *found;
	size_t left;		/* mappings or descriptors that may yet be looked at */
	uint64_t until_ns;	/* CLOCK_MONOTONIC */
	uint64_t device, inode; /* of the mapping before: a file's stand together */
	bool cut;
};

enum { ENOUGH = 1 };

static bool any_asks(const struct look_matches *l, enum rule_kind kind)
{
	for (size_t i = 0; i < l->n; i++)
		if (rules_match_asks(l->matches[i], kind))
			return true;
	return false;
}

/* Counts every mapping and descriptor, even if it brings no new name: reading it took time. */
static bool may_go_on(struct look *look)
{
	look->cut |= !look->left || clock_ns(CLOCK_MONOTONIC) > look->until_ns;
	if (look->cut)
		return false;
	look->left--;
	return true;
}

/* Returns ENOUGH if there is nothing more to learn. */
static int offer_path(struct look *look, const char *path)
{
	static const char deleted[] = " (deleted)";
	const size_t len = strlen(path), tail = sizeof(deleted) - 1;
	char name[PATH_MAX];

	if (path[0] != '/') /* a pipe, a socket */
		return 0;
	if (len > tail && len - tail < sizeof(name) && !strcmp(path + len - tail, deleted)) {
		memcpy(name, path, len - tail);
		name[len - tail] = '\0';
		path = name;
	}
	return offer(look->to, look->kind, look->found, path) && !any_asks(look->to, look->kind)
		       ? ENOUGH
		       : 0;
}

static int offer_mapping(void *context, const struct procfs_mapping *mapping)
{
	struct look *look = context;

	if (!may_go_on(look))
		return ENOUGH;
	if (!mapping || (mapping->device == look->device && mapping->inode == look->inode))
		return 0;
	look->device = mapping->device;
	look->inode = mapping->inode;
	return offer_path(look, mapping->path);
}

static int offer_open(void *context, const char *path)
{
	return may_go_on(context) ? offer_path(context, path) : ENOUGH;
}

static void offer_executable(const struct look_matches *l, pid_t pid)
{
	char path[PATH_MAX];

	if (procfs_executable(pid, path, sizeof(path)) > 0)
		offer(l, RULE_EXECUTABLE, "runs", path);
}

/* Each of these three ends by until_ns. Returns true if it has not seen all. */

static bool look_at_libraries(const struct look_matches *l, pid_t pid, uint64_t until_ns)
{
	struct look look = {.to = l,
			    .kind = RULE_LIBRARY,
			    .found = "maps",
			    .left = LOOK_MAX_MAPPINGS,
			    .until_ns = until_ns};

	if (any_asks(l, RULE_LIBRARY))
		procfs_aside_each_executable(pid, offer_mapping, &look);
	return look.cut;
}

static bool look_at_mapped(const struct look_matches *l, pid_t pid, uint64_t until_ns)
{
	struct look look = {.to = l,
			    .kind = RULE_FILE,
			    .found = "maps",
			    .left = LOOK_MAX_MAPPINGS,
			    .until_ns = until_ns};

	if (any_asks(l, RULE_FILE))
		procfs_aside_each_mapped(pid, offer_mapping, &look);
	return look.cut;
}

static bool look_at_open(const struct look_matches *l, pid_t pid, uint64_t until_ns)
{
	struct look look = {.to = l,
			    .kind = RULE_FILE,
			    .found = "has open",
			    .left = LOOK_MAX_OPEN,
			    .until_ns = until_ns};

	if (any_asks(l, RULE_FILE))
		procfs_each_open(pid, offer_open, &look);
	return look.cut;
}

bool look_at_process(const struct look_matches *l, const struct profile_process *process,
		     bool files, bool *cut)
{
	const uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + LOOK_MAX_MS * 1000000ull;
	const pid_t pid = (pid_t)process->tgid;
	char cmdline[WIRE_CMDLINE_MAX];
	ssize_t len = procfs_aside_cmdline(pid, cmdline, sizeof(cmdline));

	for (size_t i = 0; i < l->n; i++)
		rules_match_reset(l->matches[i]);
	offer_comm(l, process->comm);
	offer_executable(l, pid);
	if (len > 0)
		offer_cmdline(l, cmdline, (size_t)len);
	*cut = look_at_libraries(l, pid, until_ns);
	/* Open files come first: they cost less. */
	if (files) {
		*cut |= look_at_open(l, pid, until_ns);
		*cut |= look_at_mapped(l, pid, until_ns);
	}
	/* The names are this process's if it still has the pid. */
	return procfs_is_still(pid, process->started_ns);
}
