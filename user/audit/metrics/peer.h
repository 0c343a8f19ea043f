/* SPDX-License-Identifier: GPL-2.0-only */
/* peer.h - who is at the other end of a connection: a user of this machine, or another host. */
#ifndef QPROF_PEER_H
#define QPROF_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct peer {
	bool is_user;
	uint32_t uid;	  /* if it is a user */
	uint8_t host[16]; /* if it is none: an IPv6 address, as far as it tells hosts apart */
};

/*
 * Of a connected socket. A Unix socket tells the user; over TCP the kernel knows whose the socket
 * at the other end is, if it is on this machine. All addresses of the machine's own are one host,
 * and so is each /64 of IPv6: whoever has one address of these has all.
 */
struct peer peer_of(int fd);
bool peer_is(const struct peer *a, const struct peer *b);
/* "user 1000" or "192.0.2.1". Returns out. */
char *peer_show(char *out, size_t size, const struct peer *peer);

#endif
