/* SPDX-License-Identifier: GPL-2.0-only */
/* address.h - where metrics are served: a port of an address, or a Unix socket. */
#ifndef QPROF_ADDRESS_H
#define QPROF_ADDRESS_H

#include <stddef.h>
#include <sys/socket.h>

#include "base/error.h"

enum { ADDRESS_TEXT_MAX = 128 };

struct address {
	struct sockaddr_storage socket;
	socklen_t len;
};

/*
 * "9435" and ":9435" are of 127.0.0.1, "ADDRESS:PORT" and "[IPV6]:PORT" of that address; names are
 * not resolved. Port 0 is any that is free. "unix:PATH" and "/PATH" are Unix sockets. Returns 0, or
 * -EINVAL.
 */
int address_parse(const char *text, struct address *address);

/*
 * Listens. A Unix socket is made with the rights of the user who called sudo, if one did, and with
 * mode 0660; one that nobody listens at any more is replaced. Returns a descriptor, or -1 and *err.
 */
int address_listen(const struct address *at, struct error *err);
/* Says where a socket listens. */
void address_tell(int fd);
/* Removes a Unix socket. */
void address_leave(const struct address *at);

#endif
