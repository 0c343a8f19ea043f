/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exporter.h - metrics over HTTP, for Prometheus: GET /metrics. Served between the wake-ups of a
 * capture, without a thread; it wakes up only when a client comes. Neither slow clients nor many of
 * them cost more than a few connections, and no connection lives for long.
 */
#ifndef QPROF_EXPORTER_H
#define QPROF_EXPORTER_H

#include <stddef.h>
#include <sys/socket.h>

#include "base/error.h"
#include "capture/listener.h"

enum { EXPORTER_ADDRESS_MAX = 80 };

struct exporter_address {
	struct sockaddr_storage address;
	socklen_t len;
};

/*
 * "9435" and ":9435" are of 127.0.0.1, "ADDRESS:PORT" and "[IPV6]:PORT" of that address; names are
 * not resolved. Port 0 is any that is free. 0, or -EINVAL.
 */
int exporter_parse_address(const char *text, struct exporter_address *address);

/* What is to be served, malloc'ed; NULL when out of memory. Asked for once a second at most. */
typedef char *(*exporter_text_fn)(void *context, size_t *len);

struct exporter;

/* Listens, and says where. NULL and *err. */
struct exporter *exporter_new(const struct exporter_address *address, struct capture *capture,
			      exporter_text_fn text, void *context, struct error *err);
/* Before the capture goes. NULL is fine. */
void exporter_free(struct exporter *e);

#endif
