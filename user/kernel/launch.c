/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <paths.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void do_first(const struct launch_first *first, int failed)
{
	const int err = first->call ? first->call(first->context) : 0;

	if (first->call && (write(failed, &err, sizeof(err)) != sizeof(err) || err))
		_exit(125);
}

/* In the child: waits to be let go, becomes the user, execs. If it cannot, sends the errno. */
static void __attribute__((noreturn))
become_command(char *const *argv, const struct invoker *as, int go, int failed)
{
	int err = -hooks_receive(go);

	if (!err && as)
		err = -invoker_become(as);
	if (!err) {
		execvp(argv[0], argv);
		err = errno;
	}
	if (write(failed, &err, sizeof(err)) != sizeof(err))
		_exit(125);
	_exit(err == ENOENT ? 127 : 126);
}

int launch_prepare(struct launch *launch, char *const *argv, const struct invoker *as,
		   const struct launch_first *first, struct error *err)
{
	int go[2], failed[2];

	if (pipe2(go, O_CLOEXEC))
		return error_set(err, "cannot make a pipe: %s", strerror(errno));
	if (pipe2(failed, O_CLOEXEC)) {
		close(go[0]);
		close(go[1]);
		return error_set(err, "cannot make a pipe: %s", strerror(errno));
	}
	launch->pid = fork();
	if (!launch->pid) {
		close(go[1]);
		close(failed[0]);
		do_first(first, failed[1]);
		become_command(argv, as, go[0], failed[1]);
	}
	close(go[0]);
	close(failed[1]);
	launch->go = go[1];
	launch->failed = failed[0];
	launch->has_first = first->call;
	if (launch->pid > 0)
		return 0;
	close(launch->go);
	close(launch->failed);
	return error_set(err, "cannot fork: %s", strerror(errno));
}

int launch_first(struct launch *launch)
{
	int err = 0;
	ssize_t n;

	if (!launch->has_first)
		return 0;
	launch->has_first = false;
	do
		n = read(launch->failed, &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	return n == sizeof(err) ? err : EPIPE;
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void launch_go(struct launch *launch, const struct hooks *hooks)
{
	launch->went = !hooks_send(hooks, launch->go);
	close(launch->go);
}

int launch_answer(struct launch *launch, const char *command, struct error *err)
{
	int why = 0;
	ssize_t n = -1;

	if (launch->went)
		do
			n = read(launch->failed, &why, sizeof(why));
		while (n < 0 && errno == EINTR);
	close(launch->failed);
	if (!n)
		return 0;
	reap(launch->pid);
	err->status = why == ENOENT ? 127 : 126;
	if (why == ENOENT)
		return error_set(err, "cannot start '%s': command not found", command);
	return error_set(err, "cannot start '%s': %s", command, strerror(why ? why : EPIPE));
}

void launch_cancel(struct launch *launch)
{
	close(launch->go);
	close(launch->failed);
	reap(launch->pid);
}

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISDIR(st.st_mode);
}

/* Returns the path of a command in the first directory of PATH that has it, or NULL. */
static char *search_path(const char *command)
{
	const char *dirs = getenv("PATH"), *end;
	char *path;

	for (dirs = dirs ? dirs : _PATH_DEFPATH;; dirs = end + 1) {
		end = strchrnul(dirs, ':');
		if (asprintf(&path, "%.*s/%s", end > dirs ? (int)(end - dirs) : 1,
			     end > dirs ? dirs : ".", command) < 0)
			return NULL;
		if (is_file(path))
			return path;
		free(path);
		if (!*end)
			return NULL;
	}
}

char *launch_find(const char *command, struct error *err)
{
	char *path = strchr(command, '/') ? strdup(command) : search_path(command);

	if (!path || access(path, F_OK)) {
		err->status = 127;
		error_set(err, "cannot start '%s': command not found", command);
	} else if (access(path, X_OK) || !is_file(path)) {
		err->status = 126;
		error_set(err, "cannot start '%s': %s", command,
			  is_file(path) ? strerror(errno) : "it is a directory");
	} else {
		return path;
	}
	free(path);
	return NULL;
}
