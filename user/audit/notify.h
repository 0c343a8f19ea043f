/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * notify.h - tells the service manager that started us when we are ready, how things stand, and
 * that we are about to end: the protocol of sd_notify(3), which is stable and a datagram a message,
 * so that no library is needed.
 */
#ifndef QPROF_NOTIFY_H
#define QPROF_NOTIFY_H

#include "capture/listener.h"

/* A listener of an audit; to be the last, so that all others have started when it says READY. NULL:
 * out of memory, or nobody wants to know (no NOTIFY_SOCKET). */
struct listener *notify_listener_new(void);

#endif
