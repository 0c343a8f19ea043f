/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/getent.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/aside.h"

/* What getent(1) says of a key. */
struct answer {
	FILE *file; /* NULL: nothing */
	pid_t child;
};

/* The child ends with us, however long its server hangs. */
static void become_getent(const struct getent *from, int to, pid_t parent, const char *database,
			  const char *key)
{
	static char *const environment[] = {NULL};
	char *const words[] = {"getent", (char *)database, (char *)key, NULL};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	to = fcntl(to, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	aside_open_standard();
	if (to >= 0 && dup2(to, STDOUT_FILENO) >= 0)
		execve(from->program, words, environment);
	_exit(1);
}

static struct answer ask(const struct getent *from, const char *database, const char *key)
{
	const pid_t parent = getpid();
	struct answer a = {.file = NULL};
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return a;
	a.child = fork();
	if (!a.child)
		become_getent(from, ends[1], parent, database, key);
	close(ends[1]);
	a.file = a.child > 0 ? fdopen(ends[0], "r") : NULL;
	if (!a.file)
		close(ends[0]);
	return a;
}

static void end(struct answer *a)
{
	if (a->file)
		fclose(a->file);
	if (a->child > 0)
		waitpid(a->child, NULL, 0);
}

/* ---- A user: getent(1) writes the lines of passwd(5) ------------------------------------------
 */

static bool find_user(FILE *file, uid_t uid, struct directory_user *user)
{
	struct passwd entry, *found = NULL;
	char room[4096];

	while (file && !fgetpwent_r(file, &entry, room, sizeof(room), &found))
		if (entry.pw_uid == uid) {
			snprintf(user->name, sizeof(user->name), "%s", entry.pw_name);
			snprintf(user->home, sizeof(user->home), "%s", entry.pw_dir);
			return true;
		}
	return false;
}

static bool find_local_user(const char *passwd, uid_t uid, struct directory_user *user)
{
	FILE *file = fopen(passwd, "re");
	const bool found = find_user(file, uid, user);

	if (file)
		fclose(file);
	return found;
}

bool getent_user(const struct getent *from, uid_t uid, struct directory_user *user)
{
	struct answer a;
	char key[16];
	bool found;

	snprintf(key, sizeof(key), "%u", uid);
	a = ask(from, "passwd", key);
	found = find_user(a.file, uid, user);
	end(&a);
	return found || find_local_user(from->passwd, uid, user);
}

/* ---- Groups -----------------------------------------------------------------------------------
 */

struct groups {
	gid_t *gids;
	int n, max;
	bool fit;
};

static void add_group(struct groups *groups, gid_t gid)
{
	for (int i = 0; i < groups->n; i++)
		if (groups->gids[i] == gid)
			return;
	if (groups->n < groups->max)
		groups->gids[groups->n++] = gid;
	else
		groups->fit = false;
}

/* "name 4 24 27". Returns false if there is not even the name: no such database (musl). Names of a
 * directory service may have blanks. */
static bool read_numbers(FILE *file, const char *name, struct groups *groups)
{
	const size_t length = strlen(name);
	char *line = NULL, *at, *end;
	size_t room = 0;
	bool found;

	found = file && getline(&line, &room, file) > 0 && !strncmp(line, name, length);
	for (at = found ? line + length : NULL; at; at = end) {
		const unsigned long gid = strtoul(at, &end, 10);

		if (end == at)
			break;
		add_group(groups, (gid_t)gid);
	}
	free(line);
	return found;
}

static void read_local_groups(const char *path, const char *name, struct groups *groups)
{
	FILE *file = fopen(path, "re");
	const struct group *entry;

	while (file && (entry = fgetgrent(file)))
		for (char **member = entry->gr_mem; *member; member++)
			if (!strcmp(*member, name))
				add_group(groups, entry->gr_gid);
	if (file)
		fclose(file);
}

int getent_groups(const struct getent *from, const char *name, gid_t gid, gid_t *gids, int max)
{
	struct groups groups = {.gids = gids, .n = 1, .max = max, .fit = true};
	struct answer a = ask(from, "initgroups", name);
	bool answered;

	gids[0] = gid;
	answered = read_numbers(a.file, name, &groups);
	end(&a);
	if (!answered)
		read_local_groups(from->group, name, &groups);
	return groups.fit ? groups.n : 1;
}
