/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * httpd.h - libmicrohttpd, loaded when metrics are served, and not with the program: it brings
 * gnutls and eight libraries more, which few runs need. A static build has it within.
 */
#ifndef QPROF_HTTPD_H
#define QPROF_HTTPD_H

#include <microhttpd.h>

#include "base/error.h"

/* Each function of the library that is used. */
#define HTTPD_FUNCTIONS(F)                                                                         \
	F(start_daemon)                                                                            \
	F(stop_daemon)                                                                             \
	F(get_daemon_info)                                                                         \
	F(get_connection_info)                                                                     \
	F(add_connection)                                                                          \
	F(run)                                                                                     \
	F(get_timeout)                                                                             \
	F(create_response_from_buffer)                                                             \
	F(add_response_header)                                                                     \
	F(queue_response)                                                                          \
	F(destroy_response)

#define HTTPD_POINTER(name) __typeof__(MHD_##name) *(name);
struct httpd {
	HTTPD_FUNCTIONS(HTTPD_POINTER)
};
#undef HTTPD_POINTER

/* Returns the library's functions, or NULL and *err. It stays until the end. */
const struct httpd *httpd_load(struct error *err);

#endif
