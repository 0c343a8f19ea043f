/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exporter.h - metrics over HTTP, for Prometheus: GET /metrics. Served between the wake-ups of a
 * capture, without a thread; it wakes up only when a client comes. Neither slow clients nor many of
 * them cost more than a few connections, and no connection lives for long.
 */
#ifndef QPROF_EXPORTER_H
#define QPROF_EXPORTER_H

#include <stddef.h>

#include "audit/metrics/address.h"
#include "base/error.h"
#include "capture/listener.h"

enum { EXPORTER_ADDRESSES = 4 };

struct exporter_addresses {
	struct address items[EXPORTER_ADDRESSES];
	size_t n;
};

/* What is to be served, malloc'ed; NULL when out of memory. Asked for once a second at most. */
typedef char *(*exporter_text_fn)(void *context, size_t *len);

struct exporter;

/* Listens, and says where; `at` must outlive it. NULL and *err. */
struct exporter *exporter_new(const struct exporter_addresses *at, struct capture *capture,
			      exporter_text_fn text, void *context, struct error *err);
/* Warns of callers who had fewer connections than they wanted. */
void exporter_finish(struct exporter *e);
/* Before the capture goes. NULL is fine. */
void exporter_free(struct exporter *e);

#endif
