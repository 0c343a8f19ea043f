/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/metrics/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/invoker.h"
#include "base/log.h"

/* ADDRESS:PORT taken apart; an address that is not said is 127.0.0.1. */
static int split(const char *text, char *host, size_t size, const char **port)
{
	const char *colon = strrchr(text, ':'), *begin = text, *end = colon;

	*port = colon ? colon + 1 : text;
	if (!colon || colon == text) {
		snprintf(host, size, "127.0.0.1");
		return 0;
	}
	if (*begin == '[' && end[-1] == ']') {
		begin++;
		end--;
	} else if (memchr(begin, ':', (size_t)(end - begin))) {
		return -EINVAL;
	}
	if (end <= begin || (size_t)(end - begin) >= size)
		return -EINVAL;
	memcpy(host, begin, (size_t)(end - begin));
	host[end - begin] = '\0';
	return 0;
}

static int parse_path(const char *path, struct address *address)
{
	struct sockaddr_un *to = (void *)&address->socket;
	const size_t len = strlen(path);

	if (!len || len >= sizeof(to->sun_path))
		return -EINVAL;
	*address = (struct address){.len = sizeof(*to)};
	to->sun_family = AF_UNIX;
	memcpy(to->sun_path, path, len);
	return 0;
}

/* Such as fe80::1%eth0: a name or number of the interface may follow. */
static bool parse_v6(char *host, struct sockaddr_in6 *to)
{
	char *scope = strchr(host, '%'), *end = "";

	if (scope) {
		*scope++ = '\0';
		to->sin6_scope_id = if_nametoindex(scope);
		if (!to->sin6_scope_id)
			to->sin6_scope_id = (uint32_t)strtoul(scope, &end, 10);
		if (!*scope || *end)
			return false;
	}
	to->sin6_family = AF_INET6;
	return inet_pton(AF_INET6, host, &to->sin6_addr) == 1;
}

/* By hand: getaddrinfo(3) can ask servers, too, for which libc loads libraries. */
static int parse_host(char *host, in_port_t port, struct address *address)
{
	struct sockaddr_in *v4 = (void *)&address->socket;
	struct sockaddr_in6 *v6 = (void *)&address->socket;

	*address = (struct address){.len = sizeof(*v4)};
	/* inet_aton(3) knows 127.1 as well, and ends at the first space. */
	if (!host[strcspn(host, " \t\n\v\f\r")] && inet_aton(host, &v4->sin_addr)) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		return 0;
	}
	*address = (struct address){.len = sizeof(*v6)};
	v6->sin6_port = htons(port);
	return parse_v6(host, v6) ? 0 : -EINVAL;
}

int address_parse(const char *text, struct address *address)
{
	char host[ADDRESS_TEXT_MAX];
	const char *port;

	if (!strncmp(text, "unix:", 5) || *text == '/')
		return parse_path(*text == '/' ? text : text + 5, address);
	if (split(text, host, sizeof(host), &port))
		return -EINVAL;
	if (!*port || strlen(port) > 5 || port[strspn(port, "0123456789")] || atoi(port) > 65535)
		return -EINVAL;
	return parse_host(host, (in_port_t)atoi(port), address);
}

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;

	if (address->ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		return v6->sin6_addr.s6_addr[12] == 127;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* As in a URL. */
static char *show_address(char out[ADDRESS_TEXT_MAX], const struct sockaddr_storage *address,
			  socklen_t len)
{
	const struct sockaddr_un *path = (const void *)address;
	char host[64], port[8];

	if (address->ss_family == AF_UNIX)
		snprintf(out, ADDRESS_TEXT_MAX, "unix:%s", path->sun_path);
	else if (getnameinfo((const struct sockaddr *)address, len, host, sizeof(host), port,
			     sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(out, ADDRESS_TEXT_MAX, "?");
	else
		snprintf(out, ADDRESS_TEXT_MAX,
			 address->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	return out;
}

/* ---- Sockets ----------------------------------------------------------------------------------
 */

/* Removes a socket that a killed program of this user left behind. */
static void remove_left(const struct address *at)
{
	const struct sockaddr_un *path = (const void *)&at->socket;
	const struct invoker *who = invoker_get();
	struct stat st;
	int fd;

	if (lstat(path->sun_path, &st) || !S_ISSOCK(st.st_mode) ||
	    st.st_uid != (who ? who->uid : geteuid()))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)path, at->len) && errno == ECONNREFUSED)
		unlink(path->sun_path);
	close(fd);
}

static int bind_path(int fd, const struct address *at)
{
	const int as = invoker_enter();
	mode_t mask;
	int failed;

	if (as < 0)
		return as;
	remove_left(at);
	mask = umask(0117);
	failed = bind(fd, (const struct sockaddr *)&at->socket, at->len) ? -errno : 0;
	umask(mask);
	invoker_leave(as);
	return failed;
}

static int bind_port(int fd, const struct address *at)
{
	const int yes = 1;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(fd, (const struct sockaddr *)&at->socket, at->len))
		return -errno;
	return 0;
}

int address_listen(const struct address *at, struct error *err)
{
	char shown[ADDRESS_TEXT_MAX];
	int failed;
	int fd = socket(at->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	failed = fd < 0				   ? -errno
		 : at->socket.ss_family == AF_UNIX ? bind_path(fd, at)
						   : bind_port(fd, at);
	if (!failed && listen(fd, SOMAXCONN))
		failed = -errno;
	if (!failed)
		return fd;
	if (fd >= 0)
		close(fd);
	show_address(shown, &at->socket, at->len);
	return error_set(err, "cannot serve metrics at %s: %s; choose another with --listen", shown,
			 failed != -EADDRINUSE		   ? strerror(-failed)
			 : at->socket.ss_family == AF_UNIX ? "it is in use, or not ours"
							   : "the port is in use");
}

void address_tell(int fd)
{
	char shown[ADDRESS_TEXT_MAX];
	struct address at = {.len = sizeof(at.socket)};

	if (getsockname(fd, (struct sockaddr *)&at.socket, &at.len))
		return;
	show_address(shown, &at.socket, at.len);
	if (at.socket.ss_family == AF_UNIX)
		log_info("metrics at %s, for its owner and group", shown);
	else
		log_info("metrics at http://%s/metrics%s", shown,
			 is_loopback(&at.socket) ? ""
						 : ", for whoever can reach it: there is no "
						   "password and no encryption");
}

void address_leave(const struct address *at)
{
	const struct sockaddr_un *path = (const void *)&at->socket;
	int as;

	if (at->socket.ss_family != AF_UNIX)
		return;
	as = invoker_enter();
	if (as >= 0)
		unlink(path->sun_path);
	invoker_leave(as);
}
