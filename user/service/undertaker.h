/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * undertaker.h - has a child process close the connections of clients.
 *
 * A client may send descriptors, which we never receive. Whoever closes the last descriptor of the
 * connection drops them, and waits for what the client made of them: a TCP socket with SO_LINGER
 * may take an hour. So the last one is the child's. A child that hangs is killed, which ends such
 * waits at once, and another takes its place.
 *
 * For the main thread alone.
 */
#ifndef QPROF_UNDERTAKER_H
#define QPROF_UNDERTAKER_H

/* Starts the child. Returns 0, or -errno. */
int undertaker_begin(void);
/* Ends the connection, and closes our descriptor of it. Never waits. */
void undertaker_take(int fd);
void undertaker_end(void);

#endif
