/* SPDX-License-Identifier: GPL-2.0-only */
#include "service/request.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define BEGIN "qprof-bpf/"

enum {
	RANDOM_DIGITS = 16,
	MOST_PID = 4194304, /* PID_MAX_LIMIT of linux/threads.h */
};

/* After the NUL that makes the name abstract. */
static const size_t begin = 1 + sizeof(BEGIN) - 1;

socklen_t request_name(struct sockaddr_un *name, const uint32_t *pids, size_t n, uint64_t random)
{
	const size_t room = sizeof(name->sun_path) - 1;
	char *text = name->sun_path + 1;
	size_t len;

	_Static_assert(sizeof(name->sun_path) - 1 >=
			       sizeof(BEGIN) + RANDOM_DIGITS + WIRE_TARGETS * sizeof("4194304"),
		       "the name of a socket has room for all");
	if (!n || n > WIRE_TARGETS)
		return 0;
	*name = (struct sockaddr_un){.sun_family = AF_UNIX};
	len = (size_t)snprintf(text, room, BEGIN "%016" PRIx64, random);
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(text + len, room - len, "%c%u", i ? ',' : '/', pids[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

/* Reads a number as request_name() writes it, of at most MOST_PID. Returns where it ends, or NULL.
 */
static const char *read_pid(const char *at, const char *end, uint32_t *pid)
{
	const char *first = at;

	*pid = 0;
	while (at < end && *at >= '0' && *at <= '9' && *pid <= MOST_PID)
		*pid = *pid * 10 + (uint32_t)(*at++ - '0');
	return *pid && *pid <= MOST_PID && *first != '0' ? at : NULL;
}

static bool is_twice(const struct request *request)
{
	for (uint32_t i = 0; i < request->n; i++)
		for (uint32_t j = 0; j < i; j++)
			if (request->pids[i] == request->pids[j])
				return true;
	return false;
}

int request_read(struct request *request, const struct sockaddr_un *name, socklen_t len)
{
	const size_t header = offsetof(struct sockaddr_un, sun_path);
	const char *at = name->sun_path, *end;

	*request = (struct request){0};
	if (len <= header) /* it has no name: it was not asked for one */
		return 0;
	if (len > sizeof(*name))
		return -1;
	end = at + (len - header);
	if ((size_t)(end - at) <= begin + RANDOM_DIGITS || at[0] ||
	    memcmp(at + 1, BEGIN, begin - 1))
		return -1;
	at += begin;
	for (int i = 0; i < RANDOM_DIGITS; i++, at++)
		if (!(*at >= '0' && *at <= '9') && !(*at >= 'a' && *at <= 'f'))
			return -1;
	for (char before = '/'; at < end; before = ',') {
		if (*at != before || request->n == WIRE_TARGETS)
			return -1;
		at = read_pid(at + 1, end, &request->pids[request->n]);
		if (!at)
			return -1;
		request->n++;
	}
	return request->n && !is_twice(request) ? 0 : -1;
}
