/* SPDX-License-Identifier: GPL-2.0-only */
/* A run is served: its records come from the socket, and wait in a queue as those of rings do. */
#include "service/service.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/array.h"
#include "kernel/pids.h"
#include "kernel/record_queue.h"
#include "kernel/wire_record.h"
#include "service/talk.h"
#include "service/request.h"

enum {
	ANSWER_MS = 10000, /* that the service may take to answer */
	RECORDS_A_SLICE = 128,
	PACKETS_A_SLICE = 64,
	MAX_SITES = 65536,
};

struct served {
	struct source source; /* first: see served_of() */
	const char *path;
	bool curves, waits, files;
	const struct service_asks *asks;
	struct talk_welcome welcome;
	struct record_queue queue;
	char **names; /* of sites */
	size_t n_names, names_cap;
	char **old_names; /* of sites that are others by now: what was told of them may be in use */
	size_t n_old, old_cap;
	unsigned char packet[TALK_PACKET] __attribute__((aligned(8)));
};

static struct served *served_of(const struct source *s)
{
	return (struct served *)s;
}

/* ---- Asking -----------------------------------------------------------------------------------
 */

static int cannot_reach(const struct served *s, int code, struct error *err)
{
	switch (code) {
	case ENOENT:
	case ECONNREFUSED:
		return error_set(err,
				 "there is no service at '%s': run this with sudo, or ask the "
				 "administrator for 'systemctl enable --now qprof-bpf.socket' (or "
				 "'qprof-bpf -a --serve')",
				 s->path);
	case EACCES:
		return error_set(err,
				 "you may not use the service at '%s': its group may; ask the "
				 "administrator, or run this with sudo",
				 s->path);
	case E2BIG:
		return error_set(err,
				 "a service profiles at most %u processes and their "
				 "descendants at a time: name fewer, or run this with sudo",
				 (unsigned int)WIRE_TARGETS);
	case ESRCH:
		return error_set(err,
				 "a process has ended, or is outside of the pid namespace that "
				 "qprof-bpf runs in");
	case ENAMETOOLONG:
		return error_set(err, "--service %s: the path of a socket has at most %zu bytes",
				 s->path, sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
	default:
		return error_set(err, "cannot reach the service at '%s': %s", s->path,
				 strerror(code));
	}
}

/* The socket is the run's, and stays so: the command's own is closed at its exec. */
static int ask(struct source *source)
{
	const struct served *s = served_of(source);
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(s->path) >= sizeof(address.sun_path))
		return ENAMETOOLONG;
	memcpy(address.sun_path, s->path, strlen(s->path));
	return connect(source->fd, (struct sockaddr *)&address, sizeof(address)) ? errno : 0;
}

/* Numbers for system calls, each once. Returns how many; 0: they are too many; or -ESRCH. */
static int find_numbers(uint32_t numbers[WIRE_TARGETS], const uint32_t *pids, size_t n)
{
	int found = 0;

	for (size_t i = 0; i < n; i++) {
		const uint32_t number = (uint32_t)pids_number((pid_t)pids[i]);
		int at = 0;

		if (!number)
			return -ESRCH;
		while (at < found && numbers[at] != number)
			at++;
		if (at == WIRE_TARGETS)
			return 0;
		numbers[at] = number;
		found += at == found;
	}
	return found;
}

static int ask_for(struct source *source, const uint32_t *pids, size_t n)
{
	uint32_t numbers[WIRE_TARGETS];
	const int found = find_numbers(numbers, pids, n);
	struct sockaddr_un name;
	uint64_t random;

	if (found <= 0)
		return found ? ESRCH : E2BIG;
	do { /* the name may be another's */
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return errno;
		if (!bind(source->fd, (struct sockaddr *)&name,
			  request_name(&name, numbers, (size_t)found, random)))
			return ask(source);
	} while (errno == EADDRINUSE);
	return errno;
}

static int make_socket(void)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	const struct timeval patience = {.tv_sec = ANSWER_MS / 1000};

	if (fd >= 0) /* of connect(2), too */
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

/* Returns the size of the next packet; 0 at the end; -EAGAIN, or another -errno. */
static ssize_t receive(struct served *s)
{
	for (int attempt = 0;; attempt++) {
		const ssize_t n = recv(s->source.fd, s->packet, sizeof(s->packet), MSG_DONTWAIT);

		if (n >= 0)
			return n;
		/* It closed without reading all: what it said before comes next. */
		if ((errno != ECONNRESET && errno != EINTR) || attempt > 1)
			return errno == ECONNRESET ? 0 : -errno;
	}
}

static ssize_t await_answer(struct served *s)
{
	struct pollfd event = {.fd = s->source.fd, .events = POLLIN};
	int ready;

	do
		ready = poll(&event, 1, ANSWER_MS);
	while (ready < 0 && errno == EINTR);
	return ready > 0 ? receive(s) : -ETIMEDOUT;
}

static uint32_t kind_of(const struct served *s, ssize_t size)
{
	uint32_t kind = 0;

	if (size >= (ssize_t)sizeof(kind))
		memcpy(&kind, s->packet, sizeof(kind));
	return kind;
}

static const char *text_or_null(char *text, size_t size)
{
	text[size - 1] = '\0';
	return *text ? text : NULL;
}

static void take_welcome(struct served *s, struct run_info *info)
{
	struct talk_welcome *w = &s->welcome;

	memcpy(w, s->packet, sizeof(*w));
	if (w->n_notes > TALK_NOTES)
		w->n_notes = TALK_NOTES;
	for (size_t i = 0; i < w->n_notes; i++)
		w->notes[i][TALK_NOTE_MAX - 1] = '\0';
	w->rss[TALK_BACKEND_MAX - 1] = w->io_calls[TALK_BACKEND_MAX - 1] = '\0';
	w->io_storage[TALK_BACKEND_MAX - 1] = w->checkpoints[TALK_BACKEND_MAX - 1] = '\0';
	info->backend_rss = w->rss;
	info->backend_io_calls = w->io_calls;
	info->backend_io_storage = w->io_storage;
	info->backend_checkpoints = w->checkpoints;
	info->backend_oom_kills = text_or_null(w->oom_kills, TALK_BACKEND_MAX);
}

static int refuse_version(const struct served *s, struct error *err)
{
	struct talk_version is;

	memcpy(&is, s->packet, sizeof(is));
	return error_set(err,
			 "the service at '%s' is qprof-bpf %s, which speaks version %u.%x of its "
			 "protocol, and this program speaks %u.%x: use the same version of "
			 "qprof-bpf",
			 s->path, text_or_null(is.release, sizeof(is.release)), is.version,
			 is.layout, (unsigned int)TALK_VERSION, TALK_LAYOUT);
}

static bool is_our_version(const struct served *s, ssize_t size)
{
	const struct talk_version *is = (const struct talk_version *)s->packet;

	return size == sizeof(struct talk_welcome) && is->version == TALK_VERSION &&
	       is->layout == TALK_LAYOUT;
}

static int lacks(const struct served *s, const char *option, struct error *err)
{
	return error_set(err,
			 "the service at '%s' was started without %s: leave it out, or ask the "
			 "administrator for 'qprof-bpf -a --serve %s'",
			 s->path, option, option);
}

/* Takes what the service says if it has what was asked for. */
static int take_offer(struct served *s, struct run_info *info, struct error *err)
{
	take_welcome(s, info);
	s->source.recipes = s->welcome.recipes;
	if (s->waits && !s->welcome.waits)
		return lacks(s, "--waits", err);
	if (s->files && !s->welcome.files)
		return lacks(s, "--files", err);
	return 0;
}

static bool is_site(const struct wire_header *h)
{
	return h->kind == TALK_SITE && h->size == sizeof(struct talk_site) &&
	       ((const struct talk_site *)h)->site < MAX_SITES;
}

static int queue_records(struct served *s, size_t size)
{
	size_t at = sizeof(struct talk_records);

	while (at + sizeof(struct wire_header) <= size) {
		const struct wire_header *h = (const void *)(s->packet + at);

		if (h->size < sizeof(*h) || h->size > size - at)
			break;
		if (!is_site(h) && !wire_record_ok(h, h->size))
			s->source.account.bad_records++;
		else if (!record_queue_add(&s->queue, h))
			return -ENOMEM;
		at += talk_aligned(h->size);
	}
	s->source.account.bad_records += at < size;
	return 0;
}

static int refused(struct served *s, struct error *err)
{
	struct talk_refused *refused = (struct talk_refused *)s->packet;

	return error_set(err, "the service at '%s' refuses: %s", s->path,
			 text_or_null(refused->why, sizeof(refused->why)));
}

static void fill_place(struct talk_place *place, const struct wish *wish)
{
	place->item = wish->item;
	place->flags = (wish->function ? TALK_PLACE_FUNCTION : 0u) |
		       (wish->returns ? TALK_PLACE_RETURNS : 0u) |
		       (wish->mark ? TALK_PLACE_MARK : 0u);
	place->args = wish->args;
	memcpy(place->texts, wish->texts, sizeof(place->texts));
	snprintf(place->pattern, sizeof(place->pattern), "%s", wish->pattern);
}

/* Records may come before the answer, of processes that run. */
static int await_taken(struct served *s, struct error *err)
{
	for (;;) {
		const ssize_t size = await_answer(s);

		if (size == -ETIMEDOUT)
			return error_set(err, "the service at '%s' does not answer", s->path);
		if (size == sizeof(struct talk_refused) && kind_of(s, size) == TALK_REFUSED)
			return refused(s, err);
		if (size == sizeof(struct talk_taken) && kind_of(s, size) == TALK_TAKEN)
			return 0;
		if (size <= 0 || kind_of(s, size) != TALK_RECORDS || queue_records(s, (size_t)size))
			return error_set(err, "the service at '%s' has gone", s->path);
	}
}

static int ask_more(struct served *s, struct error *err)
{
	const struct wish_list *places = &s->asks->places;
	struct talk_asks packet = {.kind = TALK_ASKS, .heard = s->asks->heard};

	if (!places->n && !source_hears(&packet.heard))
		return 0;
	for (; packet.n < places->n; packet.n++)
		fill_place(&packet.places[packet.n], &places->wishes[packet.n]);
	if (send(s->source.fd, &packet, sizeof(packet), MSG_NOSIGNAL) != sizeof(packet))
		return error_set(err, "the service at '%s' has gone", s->path);
	return await_taken(s, err);
}

static int open_served(struct source *source, int asked, struct run_info *info, struct error *err)
{
	struct served *s = served_of(source);
	ssize_t size;

	if (asked)
		return cannot_reach(s, asked, err);
	size = await_answer(s);
	if (size == -ETIMEDOUT)
		return error_set(err, "the service at '%s' does not answer", s->path);
	if (size >= (ssize_t)sizeof(struct talk_version) && kind_of(s, size) == TALK_WELCOME) {
		if (!is_our_version(s, size))
			return refuse_version(s, err);
		return take_offer(s, info, err) ? -1 : ask_more(s, err);
	}
	if (size == sizeof(struct talk_refused) && kind_of(s, size) == TALK_REFUSED)
		return refused(s, err);
	return error_set(err, "what answers at '%s' is no service of qprof-bpf, or has gone",
			 s->path);
}

/* ---- Reading ----------------------------------------------------------------------------------
 */

static void take_account(struct served *s)
{
	const uint64_t bad = s->source.account.bad_records;
	struct talk_account packet;

	memcpy(&packet, s->packet, sizeof(packet));
	s->source.account = packet.account;
	if (s->source.account.n_places > SOURCE_PLACES_MAX)
		s->source.account.n_places = SOURCE_PLACES_MAX;
	s->source.account.bad_records += bad;
	s->source.ended = true;
}

static int take_packet(struct served *s, ssize_t size)
{
	switch (kind_of(s, size)) {
	case TALK_RECORDS:
		return queue_records(s, (size_t)size);
	case TALK_ACCOUNT:
		if (size == sizeof(struct talk_account))
			take_account(s);
		return 0;
	default: /* nothing more, or nothing that can be understood */
		s->source.ended = s->source.lost = true;
		return 0;
	}
}

/* Returns 1 if there may be more packets; 0; or -errno. */
static int receive_some(struct served *s)
{
	for (int i = 0; i < PACKETS_A_SLICE; i++) {
		ssize_t size;
		int err;

		if (s->source.ended || record_queue_is_full(&s->queue))
			return 0;
		size = receive(s);
		if (size == -EAGAIN)
			return 0;
		err = size < 0 ? (int)size : take_packet(s, size);
		if (err)
			return err;
	}
	return 1;
}

static int keep_old(struct served *s, char *name)
{
	char **old = array_reserve(s->old_names, s->n_old, &s->old_cap, sizeof(*old));

	if (!old)
		return -ENOMEM;
	s->old_names = old;
	s->old_names[s->n_old++] = name;
	return 0;
}

static int name_site(struct served *s, const struct talk_site *site)
{
	char **at, *name;

	while (s->n_names <= site->site) {
		char **names = array_reserve(s->names, s->n_names, &s->names_cap, sizeof(*names));

		if (!names)
			return -ENOMEM;
		s->names = names;
		s->names[s->n_names++] = NULL;
	}
	at = &s->names[site->site];
	if (*at && !strncmp(*at, site->name, sizeof(site->name) - 1))
		return 0;
	name = strndup(site->name, sizeof(site->name) - 1);
	if (!name || (*at && keep_old(s, *at))) {
		free(name);
		return -ENOMEM;
	}
	*at = name;
	return 0;
}

static bool is_of_files(const struct wire_header *h)
{
	return h->kind == WIRE_STORED || h->kind == WIRE_STORED_NAME || h->kind == WIRE_SPACE ||
	       h->kind == WIRE_DEVICE || h->kind == WIRE_DEVICE_HOW_LONG;
}

static int hand_out(struct served *s, const struct wire_header *h,
		    int (*record)(void *context, const struct wire_header *h), void *context)
{
	if (h->kind == TALK_SITE)
		return name_site(s, (const struct talk_site *)h);
	if ((h->kind == WIRE_USAGE && !s->curves) || (!s->files && is_of_files(h)))
		return 0;
	return record(context, h);
}

static int read_served(struct source *source,
		       int (*record)(void *context, const struct wire_header *h), void *context)
{
	struct served *s = served_of(source);
	const int more = receive_some(s);

	if (more < 0)
		return more;
	for (int i = 0; i < RECORDS_A_SLICE; i++) {
		const struct wire_header *h = record_queue_next(&s->queue);
		int err;

		if (!h)
			return more;
		err = hand_out(s, h, record, context);
		if (err)
			return err;
	}
	return 1;
}

static const char *site_name(const struct source *source, uint32_t site)
{
	const struct served *s = served_of(source);

	return site < s->n_names && s->names[site] ? s->names[site] : "?";
}

/* ---- The end ----------------------------------------------------------------------------------
 */

static void finish(struct source *source)
{
	if (!source->ended)
		shutdown(source->fd, SHUT_WR);
}

static size_t notes(const struct source *source, const char **texts, size_t max)
{
	const struct served *s = served_of(source);
	size_t n = 0;

	for (; n < s->welcome.n_notes && n < max; n++)
		texts[n] = s->welcome.notes[n];
	if (n < max)
		texts[n++] = "the service saw it: what quality counts of the kernel side is of all "
			     "processes of the machine, while this ran";
	return n;
}

static void free_names(char **names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

static void close_served(struct source *source)
{
	struct served *s = served_of(source);

	if (source->fd >= 0)
		close(source->fd);
	record_queue_end(&s->queue);
	free_names(s->names, s->n_names);
	free_names(s->old_names, s->n_old);
	free(s);
}

struct source *service_source_new(const char *path, const struct engine_config *wanted,
				  const struct service_asks *asks)
{
	struct served *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	record_queue_begin(&s->queue);
	s->path = path;
	s->curves = wanted->curves;
	s->waits = wanted->waits;
	s->files = wanted->files;
	s->asks = asks;
	s->source = (struct source){
		.ask = ask,
		.ask_for = ask_for,
		.open = open_served,
		.read = read_served,
		.site_name = site_name,
		.finish = finish,
		.notes = notes,
		.close = close_served,
		.fd = make_socket(),
	};
	return &s->source;
}

bool service_is_at(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISSOCK(st.st_mode);
}
