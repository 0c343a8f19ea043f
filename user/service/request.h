/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * request.h - which processes a run asks for that run already: qprof-bpf -p. It says so by the name
 * of its socket, which the kernel tells the service with the connection: so nothing is read from
 * it.
 *
 * Such a name is abstract (unix(7)), and as nobody may have one that another has, it has a random
 * number. Example, of 4711 and 42: "\0qprof-bpf/00c0ffee12345678/4711,42". The numbers are those of
 * the run's own pid namespace.
 */
#ifndef QPROF_REQUEST_H
#define QPROF_REQUEST_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "kernel/engine.h"

struct request {
	uint32_t n; /* 0: a command, which waits for its exec and has connected itself */
	uint32_t pids[WIRE_TARGETS];
};

/* Sets the name. Returns its length, as bind(2) wants it; 0: these are too many. */
socklen_t request_name(struct sockaddr_un *name, const uint32_t *pids, size_t n, uint64_t random);

/* Reads the name of a socket, of which the kernel says how long it is. Returns 0; or -1: it is none
 * that request_name() has made. */
int request_read(struct request *request, const struct sockaddr_un *name, socklen_t len);

#endif
