/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/names.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

char *user_name(char *out, size_t size, uint32_t uid)
{
	struct passwd entry, *found = NULL;
	char room[4096];

	if (!getpwuid_r(uid, &entry, room, sizeof(room), &found) && found)
		snprintf(out, size, "%s", found->pw_name);
	else
		snprintf(out, size, "%u", uid);
	return out;
}

const char *short_command(const char *cmdline, const char *comm)
{
	const char *slash;

	if (!cmdline || !cmdline[0])
		return comm;
	slash = memrchr(cmdline, '/', strcspn(cmdline, " "));
	return slash ? slash + 1 : cmdline;
}

char *short_container(char *out, size_t size, const char *container)
{
	enum { ID = 64, SHORT_ID = 12 };
	const size_t len = strlen(container);

	snprintf(out, size, "%.*s", (int)(len == ID ? SHORT_ID : len), container);
	return out;
}
