/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/metrics/peer.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

struct answer {
	struct nlmsghdr head;
	struct inet_diag_msg body;
	char rest[512]; /* attributes, which nobody reads */
};

static void put_address(__be32 to[4], __be16 *port, const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;

	if (address->ss_family == AF_INET) {
		memcpy(to, &v4->sin_addr, sizeof(v4->sin_addr));
		memcpy(port, &v4->sin_port, sizeof(*port));
	} else {
		memcpy(to, &v6->sin6_addr, sizeof(v6->sin6_addr));
		memcpy(port, &v6->sin6_port, sizeof(*port));
	}
}

/* Asks the kernel for the socket that is bound to `from` and connected to `to`. */
static bool ask_for_user(int fd, const struct sockaddr_storage *from,
			 const struct sockaddr_storage *to, uint32_t *uid)
{
	struct question question = {
		.head = {.nlmsg_len = sizeof(question),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = (uint8_t)from->ss_family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = 1u << TCP_ESTABLISHED,
			 .id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
	};
	struct answer answer;
	ssize_t n;

	put_address(question.body.id.idiag_src, &question.body.id.idiag_sport, from);
	put_address(question.body.id.idiag_dst, &question.body.id.idiag_dport, to);
	if (send(fd, &question, sizeof(question), 0) != sizeof(question))
		return false;
	n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
	if (n < (ssize_t)offsetof(struct answer, rest) ||
	    answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    answer.body.idiag_state != TCP_ESTABLISHED)
		return false;
	*uid = answer.body.idiag_uid;
	return true;
}

static bool user_over_tcp(const struct sockaddr_storage *from, const struct sockaddr_storage *to,
			  uint32_t *uid)
{
	const int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	bool known;

	if (fd < 0)
		return false;
	known = ask_for_user(fd, from, to, uid);
	close(fd);
	return known;
}

static void note_host(struct peer *peer, const struct sockaddr_storage *from)
{
	const struct sockaddr_in6 *v6 = (const void *)from;
	const struct sockaddr_in *v4 = (const void *)from;
	uint8_t *host = peer->host;

	if (from->ss_family == AF_INET6) {
		memcpy(host, &v6->sin6_addr, 16);
	} else {
		host[10] = host[11] = 0xff;
		memcpy(host + 12, &v4->sin_addr, 4);
	}
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)host)) {
		if (host[12] == 127) { /* all of 127.0.0.0/8 is here */
			host[13] = host[14] = 0;
			host[15] = 1;
		}
		return;
	}
	if (!IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)host))
		memset(host + 8, 0, 8);
}

struct peer peer_of(int fd)
{
	struct sockaddr_storage from = {0}, to = {0};
	socklen_t from_len = sizeof(from), to_len = sizeof(to), len = sizeof(struct ucred);
	struct ucred who = {0};
	struct peer peer = {0};

	if (getsockname(fd, (struct sockaddr *)&to, &to_len))
		return peer;
	if (to.ss_family == AF_UNIX) {
		peer.is_user = !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
		peer.uid = who.uid;
		return peer;
	}
	if (getpeername(fd, (struct sockaddr *)&from, &from_len))
		return peer;
	peer.is_user = user_over_tcp(&from, &to, &peer.uid);
	if (!peer.is_user)
		note_host(&peer, &from);
	return peer;
}

bool peer_is(const struct peer *a, const struct peer *b)
{
	if (a->is_user || b->is_user)
		return a->is_user && b->is_user && a->uid == b->uid;
	return !memcmp(a->host, b->host, sizeof(a->host));
}

char *peer_show(char *out, size_t size, const struct peer *peer)
{
	const bool is_v4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)peer->host);

	if (peer->is_user)
		snprintf(out, size, "user %u", peer->uid);
	else if (!inet_ntop(is_v4 ? AF_INET : AF_INET6, peer->host + (is_v4 ? 12 : 0), out,
			    (socklen_t)size))
		snprintf(out, size, "?");
	return out;
}
