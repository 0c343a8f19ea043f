/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/metrics/exporter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

enum {
	MAX_CONNECTIONS = 16,
	CONNECTION_ROOM = 16 * 1024, /* bytes of a request, and of the answer's head */
	IDLE_SECS = 10,		     /* of a connection on which nothing moves */
	LIFE_SECS = 30,		     /* of any connection: one request each */
	KEEP_NS = 1000000000,	     /* how long an answer is good for whoever else asks */
	RUNS = 16,		     /* of the server in one wake-up, so that it blocks nobody */
};

static const char text_type[] = "text/plain; version=0.0.4; charset=utf-8";
static const char page[] = "<!DOCTYPE html><html lang=\"en\"><title>qprof-bpf</title>"
			   "<h1>qprof-bpf</h1><p><a href=\"/metrics\">Metrics</a></html>\n";

struct client {
	int fd; /* -1: the place is free */
	uint64_t until_ns;
};

struct exporter {
	struct capture *capture;
	struct MHD_Daemon *daemon;
	struct wake ready, timer;
	exporter_text_fn text;
	void *context;
	struct MHD_Response *metrics; /* as of made_ns, or NULL */
	uint64_t made_ns;
	struct client clients[MAX_CONNECTIONS];
	bool closed; /* a connection, by the last run of the server */
};

/* ---- Addresses --------------------------------------------------------------------------------
 */

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

int exporter_parse_address(const char *text, struct exporter_address *address)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC,
				       .ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
	char host[EXPORTER_ADDRESS_MAX];
	struct addrinfo *found;
	const char *port;

	if (split(text, host, sizeof(host), &port))
		return -EINVAL;
	/* getaddrinfo takes more than a port: "", " 1", "99999". */
	if (!*port || strlen(port) > 5 || port[strspn(port, "0123456789")] || atoi(port) > 65535)
		return -EINVAL;
	if (getaddrinfo(host, port, &hints, &found))
		return -EINVAL;
	memset(address, 0, sizeof(*address));
	memcpy(&address->address, found->ai_addr, found->ai_addrlen);
	address->len = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
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
static char *show_address(char out[EXPORTER_ADDRESS_MAX], const struct sockaddr_storage *address,
			  socklen_t len)
{
	char host[64], port[8];

	if (getnameinfo((const struct sockaddr *)address, len, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(out, EXPORTER_ADDRESS_MAX, "?");
	else
		snprintf(out, EXPORTER_ADDRESS_MAX,
			 address->ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
	return out;
}

/* ---- Answers ----------------------------------------------------------------------------------
 */

static struct MHD_Response *head(struct MHD_Response *response, const char *type)
{
	if (!response)
		return NULL;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	return response;
}

static struct MHD_Response *say(const char *text, const char *type)
{
	return head(
		MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT),
		type);
}

/* Those who ask within a second get the same, so that asking costs no more than that. */
static struct MHD_Response *metrics(struct exporter *e)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	size_t len;
	char *text;

	if (e->metrics && now - e->made_ns < KEEP_NS)
		return e->metrics;
	if (e->metrics)
		MHD_destroy_response(e->metrics); /* those that are being sent live on */
	text = e->text(e->context, &len);
	e->metrics =
		text ? MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE) : NULL;
	if (text && !e->metrics)
		free(text);
	e->made_ns = clock_ns(CLOCK_MONOTONIC);
	return head(e->metrics, text_type);
}

/* Gives the response away. */
static enum MHD_Result queue(struct MHD_Connection *connection, unsigned int status,
			     struct MHD_Response *response)
{
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result refuse_method(struct MHD_Connection *connection)
{
	struct MHD_Response *response = say("only GET and HEAD\n", "text/plain");

	if (response)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	return queue(connection, MHD_HTTP_METHOD_NOT_ALLOWED, response);
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **state)
{
	struct exporter *e = context;
	struct MHD_Response *response;

	(void)version;
	(void)upload;
	(void)upload_size;
	(void)state;
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return refuse_method(connection);
	if (!strcmp(url, "/"))
		return queue(connection, MHD_HTTP_OK, say(page, "text/html; charset=utf-8"));
	if (strcmp(url, "/metrics"))
		return queue(connection, MHD_HTTP_NOT_FOUND,
			     say("there is /metrics\n", "text/plain"));
	response = metrics(e);
	if (!response)
		return queue(connection, MHD_HTTP_INTERNAL_SERVER_ERROR,
			     say("out of memory\n", "text/plain"));
	return MHD_queue_response(connection, MHD_HTTP_OK, response);
}

/* ---- Connections ------------------------------------------------------------------------------
 */

static void note_connection(void *context, struct MHD_Connection *connection, void **state,
			    enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct exporter *e = context;
	struct client *client = *state;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		e->closed = true;
		if (client)
			client->fd = -1;
		return;
	}
	for (size_t i = 0; info && i < MAX_CONNECTIONS; i++) {
		client = &e->clients[i];
		if (client->fd >= 0)
			continue;
		client->fd = info->connect_fd;
		client->until_ns = clock_ns(CLOCK_MONOTONIC) + LIFE_SECS * 1000000000ull;
		*state = client;
		return;
	}
}

/* Who is still here after so long gets no more: the server sees the end of it. */
static uint64_t end_old_ones(struct exporter *e)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
		struct client *client = &e->clients[i];

		if (client->fd < 0)
			continue;
		if (client->until_ns <= now) {
			shutdown(client->fd, SHUT_RDWR);
			client->until_ns = now + LIFE_SECS * 1000000000ull;
		}
		if (client->until_ns - now < next)
			next = client->until_ns - now;
	}
	return next;
}

/* Whether there is more to do at once. Where as many are connected as may be, the server looks for
 * others only at its next run after one has gone. */
static bool run(struct exporter *e, uint64_t *next_ns)
{
	MHD_UNSIGNED_LONG_LONG ms;

	e->closed = false;
	MHD_run(e->daemon);
	*next_ns = MHD_get_timeout(e->daemon, &ms) == MHD_YES ? ms * 1000000 : UINT64_MAX;
	return e->closed || !*next_ns;
}

static void serve(struct exporter *e)
{
	uint64_t next, next_end;
	bool more = true;

	for (int i = 0; i < RUNS && more; i++)
		more = run(e, &next);
	next_end = end_old_ones(e);
	if (next_end < next)
		next = next_end;
	if (more)
		next = 1;
	timer_set(e->timer.fd, next == UINT64_MAX ? 0 : next);
}

static void server_is_ready(struct wake *wake)
{
	serve(wake->context);
}

static void timer_fired(struct wake *wake)
{
	timer_clear(wake->fd);
	serve(wake->context);
}

/* ---- Life -------------------------------------------------------------------------------------
 */

static void log_server(void *context, const char *format, va_list args)
{
	char text[256];

	(void)context;
	vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	log_verbose("libmicrohttpd: %s", text);
}

/* A descriptor, or -1 and *err. */
static int listen_at(const struct exporter_address *at, struct error *err)
{
	char shown[EXPORTER_ADDRESS_MAX];
	const int yes = 1;
	int failed;
	int fd = socket(at->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) &&
	    !bind(fd, (const struct sockaddr *)&at->address, at->len) &&
	    !listen(fd, MAX_CONNECTIONS))
		return fd;
	failed = errno;
	if (fd >= 0)
		close(fd);
	show_address(shown, &at->address, at->len);
	if (failed == EADDRINUSE)
		return error_set(err,
				 "cannot serve metrics at %s: the port is in use; choose another "
				 "with --listen",
				 shown);
	return error_set(err, "cannot serve metrics at %s: %s; choose another with --listen", shown,
			 strerror(failed));
}

static void say_where(int fd)
{
	char shown[EXPORTER_ADDRESS_MAX];
	struct exporter_address at = {.len = sizeof(at.address)};

	if (getsockname(fd, (struct sockaddr *)&at.address, &at.len))
		return;
	show_address(shown, &at.address, at.len);
	log_info("metrics at http://%s/metrics%s", shown,
		 is_loopback(&at.address)
			 ? ""
			 : ", for whoever can reach it: there is no password and no encryption");
}

static int start(struct exporter *e, int fd)
{
	const union MHD_DaemonInfo *info;

	e->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, NULL, NULL, answer, e,
		MHD_OPTION_EXTERNAL_LOGGER, log_server, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)MAX_CONNECTIONS,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_ROOM,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_SECS,
		MHD_OPTION_NOTIFY_CONNECTION, note_connection, e, MHD_OPTION_END);
	if (!e->daemon)
		return -ENOMEM;
	info = MHD_get_daemon_info(e->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -ENOSYS;
	e->ready = (struct wake){info->epoll_fd, server_is_ready, e};
	e->timer = (struct wake){timer_new(), timer_fired, e};
	if (e->timer.fd < 0 || capture_add(e->capture, &e->timer))
		return -errno;
	return capture_add(e->capture, &e->ready);
}

struct exporter *exporter_new(const struct exporter_address *address, struct capture *capture,
			      exporter_text_fn text, void *context, struct error *err)
{
	struct exporter *e;
	int fd = listen_at(address, err), failed;

	if (fd < 0)
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e) {
		error_set(err, "out of memory");
		close(fd);
		return NULL;
	}
	e->capture = capture;
	e->text = text;
	e->context = context;
	e->ready.fd = e->timer.fd = -1;
	for (size_t i = 0; i < MAX_CONNECTIONS; i++)
		e->clients[i].fd = -1;
	failed = start(e, fd);
	if (failed) {
		error_set(err, "cannot serve metrics: the HTTP server did not start: %s",
			  strerror(-failed));
		if (!e->daemon)
			close(fd);
		exporter_free(e);
		return NULL;
	}
	say_where(fd);
	return e;
}

void exporter_free(struct exporter *e)
{
	if (!e)
		return;
	if (e->ready.fd >= 0)
		capture_remove(e->capture, &e->ready);
	if (e->timer.fd >= 0) {
		capture_remove(e->capture, &e->timer);
		close(e->timer.fd);
	}
	if (e->daemon)
		MHD_stop_daemon(e->daemon); /* closes the socket */
	if (e->metrics)
		MHD_destroy_response(e->metrics);
	free(e);
}
