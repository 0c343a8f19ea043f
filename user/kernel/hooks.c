/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/hooks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/installed.h"
#include "base/log.h"

static void add(struct hooks *hooks, const char *name, const char *value, const char *rest)
{
	size_t n = 0;

	while (hooks->variables[n])
		n++;
	if (n == HOOKS_MAX_VARIABLES || asprintf(&hooks->variables[n], "%s=%s%s%s", name, value,
						 rest ? ":" : "", rest ? rest : "") < 0)
		hooks->variables[n] = NULL;
}

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

/* Our directory comes before those of the user's PYTHONPATH. */
static void add_python(struct hooks *hooks, enum hooks_extent extent, const char *recipes,
		       void (*warn)(void *context, const char *what, const char *why),
		       void *context)
{
	char *directory = installed_data("qprof-bpf/python/hooks");
	char *library = installed_library("libqprof.so.0");

	/* A colon in its name would make two directories. */
	if (!directory || strchr(directory, ':')) {
		const char *why =
			directory ? "a directory with a colon cannot be on PYTHONPATH"
				  : "share/qprof-bpf/python is not installed beside qprof-bpf";

		/* The default is no wish of the user: most programs have no use for hooks. */
		if (extent == HOOKS_ALL)
			warn(context, "hooks for Python", why);
		else
			log_verbose("no hooks for Python: %s", why);
	} else {
		add(hooks, "PYTHONPATH", directory,
		    is_set("PYTHONPATH") ? getenv("PYTHONPATH") : NULL);
		if (extent == HOOKS_ALL)
			add(hooks, "QPROF_PYTHON_HOOKS", "all", NULL);
		if (recipes)
			add(hooks, HOOKS_RECIPES, recipes, NULL);
	}
	if (library && !is_set("QPROF_LIBRARY"))
		add(hooks, "QPROF_LIBRARY", library, NULL);
	free(directory);
	free(library);
}

static void add_nvtx(struct hooks *hooks,
		     void (*warn)(void *context, const char *what, const char *why), void *context)
{
	char *library = installed_library("libqprof-nvtx.so");

	if (is_set("NVTX_INJECTION64_PATH"))
		warn(context, "NVTX ranges", "NVTX_INJECTION64_PATH is set already, for another");
	else if (!library)
		warn(context, "NVTX ranges", "libqprof-nvtx.so is not installed");
	else
		add(hooks, "NVTX_INJECTION64_PATH", library, NULL);
	free(library);
}

void hooks_prepare(struct hooks *hooks, enum hooks_extent extent, const char *recipes,
		   void (*warn)(void *context, const char *what, const char *why), void *context)
{
	memset(hooks, 0, sizeof(*hooks));
	if (extent == HOOKS_NONE)
		return;
	add_python(hooks, extent, recipes, warn, context);
	if (extent == HOOKS_ALL)
		add_nvtx(hooks, warn, context);
}

/* Each as a string, and an empty one at the end. */
int hooks_send(const struct hooks *hooks, int pipe)
{
	int err = 0;

	for (size_t i = 0; !err && hooks->variables[i]; i++)
		err = file_write(pipe, hooks->variables[i], strlen(hooks->variables[i]) + 1);
	return err ? err : file_write(pipe, "", 1);
}

int hooks_receive(int pipe)
{
	FILE *in = fdopen(pipe, "r");
	char *variable = NULL;
	size_t room = 0;
	int err = 0;

	while (!err) {
		if (!in || getdelim(&variable, &room, '\0', in) <= 0)
			return -EPIPE;
		if (!*variable)
			break;
		err = putenv(variable) ? -errno : 0;
		variable = NULL; /* the environment's from now on */
		room = 0;
	}
	free(variable);
	return err;
}

void hooks_free(struct hooks *hooks)
{
	for (size_t i = 0; i < HOOKS_MAX_VARIABLES; i++)
		free(hooks->variables[i]);
	memset(hooks, 0, sizeof(*hooks));
}
