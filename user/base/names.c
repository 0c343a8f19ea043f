/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/names.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum {
	MAX_USERS = 4096, /* that are remembered: containers may have any number of them */
	USER_NAME_MAX = 128,
};

struct user {
	uint32_t uid;
	char name[USER_NAME_MAX];
	UT_hash_handle hh;
};

struct user_names {
	struct user *known;
	struct user unknown; /* the last one that there was no memory for */
};

struct user_names *user_names_new(void)
{
	return calloc(1, sizeof(struct user_names));
}

void user_names_forget(struct user_names *users)
{
	struct user *user, *next;

	HASH_ITER (hh, users->known, user, next) {
		HASH_DEL(users->known, user);
		free(user);
	}
}

void user_names_free(struct user_names *users)
{
	if (!users)
		return;
	user_names_forget(users);
	free(users);
}

/* Returns a user without a name yet. */
static struct user *add_user(struct user_names *users, uint32_t uid)
{
	struct user *user;

	if (HASH_COUNT(users->known) >= MAX_USERS)
		user_names_forget(users);
	user = calloc(1, sizeof(*user));
	if (!user)
		return &users->unknown;
	user->uid = uid;
	HASH_ADD(hh, users->known, uid, sizeof(user->uid), user);
	if (user->hh.tbl)
		return user;
	free(user);
	return &users->unknown;
}

const char *user_names_get(struct user_names *users, uint32_t uid)
{
	struct passwd entry, *found = NULL;
	struct user *user;
	char room[4096];

	HASH_FIND(hh, users->known, &uid, sizeof(uid), user);
	if (user)
		return user->name;
	user = add_user(users, uid);
	if (!getpwuid_r(uid, &entry, room, sizeof(room), &found) && found)
		snprintf(user->name, sizeof(user->name), "%s", found->pw_name);
	else
		snprintf(user->name, sizeof(user->name), "%u", uid);
	return user->name;
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
