/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/names.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/aside.h"
#include "base/clock.h"
#include "base/directory.h"
#include "base/hash.h"

enum {
	MAX_USERS = 4096,    /* that are remembered: containers may have any number of them */
	WAIT_MS = 250,	     /* for a name; after that, the number is shown meanwhile */
	PATIENCE_MS = 10000, /* with a directory that does not answer: then it is asked anew */
};

struct user {
	uint32_t uid;
	char name[DIRECTORY_NAME_MAX];
	UT_hash_handle hh;
};

struct user_names {
	struct user *known;
	struct user unknown; /* the last one without a name yet, or that there was no memory for */
	struct aside asking; /* a child that looks up one after the other */
	bool waiting;	     /* for its answer: */
	uint32_t asked;	     /* about whom */
	uint64_t quiet_until_ms; /* nobody is asked before that */
};

struct user_names *user_names_new(void)
{
	return calloc(1, sizeof(struct user_names));
}

static void stop_asking(struct user_names *users)
{
	aside_end(&users->asking);
	users->waiting = false;
}

static void forget_known(struct user_names *users)
{
	struct user *user, *next;

	HASH_ITER (hh, users->known, user, next) {
		HASH_DEL(users->known, user);
		free(user);
	}
}

void user_names_forget(struct user_names *users)
{
	forget_known(users);
	if (!users->waiting)
		stop_asking(users); /* what it has read of the system's settings is old, too */
}

void user_names_free(struct user_names *users)
{
	if (!users)
		return;
	stop_asking(users);
	forget_known(users);
	free(users);
}

/* Returns a user without a name yet. */
static struct user *add_user(struct user_names *users, uint32_t uid)
{
	struct user *user;

	if (HASH_COUNT(users->known) >= MAX_USERS)
		forget_known(users);
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

/* The child: answers each number with a name, or with an empty one. */
static void look_up(void *context, int fd)
{
	struct directory_user user;
	uint32_t uid;

	(void)context;
	while (recv(fd, &uid, sizeof(uid), 0) == sizeof(uid)) {
		if (!directory_user(uid, &user))
			user.name[0] = '\0';
		if (send(fd, user.name, strlen(user.name) + 1, MSG_NOSIGNAL) < 0)
			return;
	}
}

/* Takes the answer, which is there. Without one, the child has come to grief. */
static void take_answer(struct user_names *users)
{
	char name[DIRECTORY_NAME_MAX] = "";
	struct user *user;

	if (recv(users->asking.fd, name, sizeof(name) - 1, MSG_DONTWAIT) <= 0)
		stop_asking(users);
	users->waiting = false;
	user = add_user(users, users->asked);
	if (*name)
		memcpy(user->name, name, sizeof(name));
	else
		snprintf(user->name, sizeof(user->name), "%u", users->asked);
}

/* Asks for a name, unless a look-up hangs or did so a moment ago. */
static void ask(struct user_names *users, uint32_t uid)
{
	const uint64_t now = clock_ms();

	if (users->waiting && now >= users->quiet_until_ms)
		stop_asking(users);
	if (users->waiting || now < users->quiet_until_ms)
		return;
	if (!users->asking.child && aside_begin(&users->asking, look_up, NULL, NULL))
		return;
	users->asked = uid;
	users->waiting = true;
	if (send(users->asking.fd, &uid, sizeof(uid), MSG_NOSIGNAL) < 0)
		stop_asking(users);
	else if (aside_has_answered(&users->asking, WAIT_MS))
		take_answer(users);
	else
		users->quiet_until_ms = now + PATIENCE_MS;
}

static const struct user *find_user(const struct user_names *users, uint32_t uid)
{
	struct user *user;

	HASH_FIND(hh, users->known, &uid, sizeof(uid), user);
	return user;
}

const char *user_names_get(struct user_names *users, uint32_t uid)
{
	const struct user *user;

	if (users->waiting && aside_has_answered(&users->asking, 0))
		take_answer(users);
	user = find_user(users, uid);
	if (!user) {
		ask(users, uid);
		user = find_user(users, uid);
	}
	if (user)
		return user->name;
	snprintf(users->unknown.name, sizeof(users->unknown.name), "%u", uid);
	return users->unknown.name;
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
