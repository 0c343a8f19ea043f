/* SPDX-License-Identifier: GPL-2.0-only */
#include "audit/metrics/exporter.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/metrics/httpd.h"
#include "audit/metrics/turns.h"
#include "base/log.h"
#include "base/units.h"

enum {
	CONNECTION_ROOM = 16 * 1024, /* bytes of a request, and of the answer's head */
	IDLE_SECS = 10,		     /* of a connection on which nothing moves */
	LIFE_SECS = 30,		     /* of any connection: one request each */
	KEEP_NS = 1000000000,	     /* how long an answer is good for whoever else asks */
	RUNS = 16, /* of the server, and callers, in one wake-up, so that it blocks nobody */
};

static const struct httpd *httpd; /* NULL: no metrics were served yet */

static const char text_type[] = "text/plain; version=0.0.4; charset=utf-8";
static const char page[] = "<!DOCTYPE html><html lang=\"en\"><title>qprof-bpf</title>"
			   "<h1>qprof-bpf</h1><p><a href=\"/metrics\">Metrics</a></html>\n";

struct entrance {
	struct exporter *exporter;
	struct wake callers;
	const struct address *address;
};

struct exporter {
	struct capture *capture;
	struct MHD_Daemon *daemon;
	struct wake ready, timer;
	struct entrance entrances[EXPORTER_ADDRESSES];
	size_t n_entrances;
	exporter_text_fn text;
	void *context;
	struct MHD_Response *metrics; /* as of made_ns, or NULL */
	uint64_t made_ns;
	struct turns turns;
	bool closed; /* a connection, by the last run of the server */
};

/* ---- Answers ----------------------------------------------------------------------------------
 */

static struct MHD_Response *head(struct MHD_Response *response, const char *type)
{
	if (!response)
		return NULL;
	httpd->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	httpd->add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	return response;
}

static struct MHD_Response *say(const char *text, const char *type)
{
	return head(httpd->create_response_from_buffer(strlen(text), (void *)text,
						       MHD_RESPMEM_PERSISTENT),
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
		httpd->destroy_response(e->metrics); /* those that are being sent live on */
	text = e->text(e->context, &len);
	e->metrics =
		text ? httpd->create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE) : NULL;
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
	result = httpd->queue_response(connection, status, response);
	httpd->destroy_response(response);
	return result;
}

static enum MHD_Result refuse_method(struct MHD_Connection *connection)
{
	struct MHD_Response *response = say("only GET and HEAD\n", "text/plain");

	if (response)
		httpd->add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
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
	return httpd->queue_response(connection, MHD_HTTP_OK, response);
}

/* ---- Connections ------------------------------------------------------------------------------
 */

static void note_connection(void *context, struct MHD_Connection *connection, void **state,
			    enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info =
		httpd->get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct exporter *e = context;
	struct turn *turn = *state;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		e->closed = true;
		if (turn)
			turns_end(turn);
		return;
	}
	for (size_t i = 0; info && i < TURNS_ALL; i++)
		if (e->turns.all[i].served && e->turns.all[i].fd == info->connect_fd)
			*state = &e->turns.all[i];
}

/* Gives callers to the server: as many as there are places for. */
static void serve_next(struct exporter *e)
{
	struct sockaddr_storage from;
	struct turn *turn, *ends;

	while ((turn = turns_next(&e->turns, &ends))) {
		socklen_t len = sizeof(from);

		turn->until_ns = clock_ns(CLOCK_MONOTONIC) + LIFE_SECS * 1000000000ull;
		memset(&from, 0, sizeof(from));
		if (getpeername(turn->fd, (struct sockaddr *)&from, &len)) {
			close(turn->fd);
			turns_end(turn);
		} else if (httpd->add_connection(e->daemon, turn->fd, (struct sockaddr *)&from,
						 len) != MHD_YES) {
			turns_end(turn); /* it has closed the descriptor */
		}
	}
	if (ends)
		shutdown(ends->fd, SHUT_RDWR); /* the server sees the end of it */
}

/* Who is still here after so long gets no more: the server sees the end of it. */
static uint64_t end_old_ones(struct exporter *e)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < TURNS_ALL; i++) {
		struct turn *turn = &e->turns.all[i];

		if (!turn->served)
			continue;
		if (turn->until_ns <= now) {
			shutdown(turn->fd, SHUT_RDWR);
			turn->until_ns = now + LIFE_SECS * 1000000000ull;
		}
		if (turn->until_ns - now < next)
			next = turn->until_ns - now;
	}
	return next;
}

/* Whether there is more to do at once. */
static bool run(struct exporter *e, uint64_t *next_ns)
{
	MHD_UNSIGNED_LONG_LONG ms;

	e->closed = false;
	serve_next(e);
	httpd->run(e->daemon);
	*next_ns = httpd->get_timeout(e->daemon, &ms) == MHD_YES ? ms * 1000000 : UINT64_MAX;
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

static void callers_come(struct wake *wake)
{
	struct exporter *e = ((struct entrance *)wake->context)->exporter;

	for (int i = 0; i < RUNS; i++) {
		const int fd = accept4(wake->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct peer peer;
		int gone;

		if (fd < 0)
			break;
		peer = peer_of(fd);
		gone = turns_come(&e->turns, fd, &peer);
		if (gone >= 0)
			close(gone);
	}
	serve(e);
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

static int start(struct exporter *e)
{
	const union MHD_DaemonInfo *info;

	e->daemon = httpd->start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG, 0, NULL, NULL, answer,
		e, MHD_OPTION_EXTERNAL_LOGGER, log_server, NULL, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)TURNS_PLACES, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_ROOM, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_SECS,
		MHD_OPTION_NOTIFY_CONNECTION, note_connection, e, MHD_OPTION_END);
	if (!e->daemon)
		return -ENOMEM;
	info = httpd->get_daemon_info(e->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -ENOSYS;
	e->ready = (struct wake){info->epoll_fd, server_is_ready, e};
	e->timer = (struct wake){timer_new(), timer_fired, e};
	if (e->timer.fd < 0 || capture_add(e->capture, &e->timer))
		return -errno;
	return capture_add(e->capture, &e->ready);
}

static int open_entrance(struct exporter *e, const struct address *address, struct error *err)
{
	struct entrance *entrance = &e->entrances[e->n_entrances];
	const int fd = address_listen(address, err);

	if (fd < 0)
		return -1;
	*entrance = (struct entrance){e, {fd, callers_come, entrance}, address};
	e->n_entrances++;
	if (capture_add(e->capture, &entrance->callers))
		return error_set(err, "cannot serve metrics: %s", strerror(errno));
	address_tell(fd);
	return 0;
}

struct exporter *exporter_new(const struct exporter_addresses *at, struct capture *capture,
			      exporter_text_fn text, void *context, struct error *err)
{
	struct exporter *e = calloc(1, sizeof(*e));
	int failed;

	if (!e) {
		error_set(err, "out of memory");
		return NULL;
	}
	e->capture = capture;
	e->text = text;
	e->context = context;
	e->ready.fd = e->timer.fd = -1;
	turns_begin(&e->turns);
	httpd = httpd_load(err);
	if (!httpd) {
		exporter_free(e);
		return NULL;
	}
	failed = start(e);
	if (failed) {
		error_set(err, "cannot serve metrics: the HTTP server did not start: %s",
			  strerror(-failed));
		exporter_free(e);
		return NULL;
	}
	for (size_t i = 0; i < at->n; i++)
		if (open_entrance(e, &at->items[i], err)) {
			exporter_free(e);
			return NULL;
		}
	return e;
}

void exporter_finish(struct exporter *e)
{
	char who[INET6_ADDRSTRLEN + 16], what[sizeof(who) + 32], calls[UNITS_TEXT_MAX];
	char why[UNITS_TEXT_MAX + 64];

	for (size_t i = 0; i < TURNS_CUT_SHORT && e->turns.cut_short[i].calls; i++) {
		snprintf(what, sizeof(what), "connections of %s",
			 peer_show(who, sizeof(who), &e->turns.cut_short[i].peer));
		units_counted(calls, sizeof(calls), e->turns.cut_short[i].calls, "connection(s)");
		snprintf(why, sizeof(why), "%s ended early: others had fewer", calls);
		capture_warn(e->capture, what, why);
	}
}

static void close_entrance(struct exporter *e, struct entrance *entrance)
{
	capture_remove(e->capture, &entrance->callers);
	close(entrance->callers.fd);
	address_leave(entrance->address);
}

void exporter_free(struct exporter *e)
{
	if (!e)
		return;
	for (size_t i = 0; i < e->n_entrances; i++)
		close_entrance(e, &e->entrances[i]);
	for (size_t i = 0; i < TURNS_ALL; i++)
		if (e->turns.all[i].fd >= 0 && !e->turns.all[i].served)
			close(e->turns.all[i].fd);
	if (e->ready.fd >= 0)
		capture_remove(e->capture, &e->ready);
	if (e->timer.fd >= 0) {
		capture_remove(e->capture, &e->timer);
		close(e->timer.fd);
	}
	if (e->daemon)
		httpd->stop_daemon(e->daemon);
	if (e->metrics)
		httpd->destroy_response(e->metrics);
	free(e);
}
