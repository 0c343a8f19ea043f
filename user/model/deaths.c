// SPDX-License-Identifier: GPL-2.0-only
#include "model/deaths.h"

#include <errno.h>
#include <signal.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "model/cxx_name.h"
#include "model/processes.h"
#include "model/refusal.h"

/* Puts what comes before a name in front of it: the names are read from the end. */
static size_t names_within(const char *const names, size_t size, uint32_t n, const char **found,
			   uint32_t max)
{
	const char *at = names;
	size_t taken = 0;

	while (taken < n && taken < max) {
		const char *end = memchr(at, '\0', (size_t)(names + size - at));

		if (!end || end == at)
			break;
		found[taken++] = at;
		at = end + 1;
	}
	return taken;
}

char *deaths_path(const char *names, size_t size, uint32_t n, bool cut)
{
	enum { MAX_NAMES = 64 };
	const char *found[MAX_NAMES];
	const size_t taken = names_within(names, size, n, found, MAX_NAMES);
	char raw[WIRE_PATH_MAX + sizeof("...")], *at = raw, *path;
	const size_t room = (size + sizeof("...")) * TEXT_GROWTH + 1;

	if (cut)
		at = stpcpy(at, "...");
	for (size_t i = taken; i; i--) {
		*at++ = '/';
		at = stpcpy(at, found[i - 1]);
	}
	if (at == raw)
		*at++ = '/';
	path = malloc(room);
	if (path)
		text_repair(path, room, raw, (size_t)(at - raw), NULL);
	return path;
}

/* Returns room for one more at the end of `list`, or NULL and *err. */
static struct profile_death *new_death(struct death_list *list, int *err)
{
	struct profile_death *deaths;

	*err = -ENOSPC;
	if (list->n == PROFILE_MAX_DEATHS)
		return NULL;
	*err = -ENOMEM;
	deaths = array_reserve(list->deaths, list->n, &list->cap, sizeof(*deaths));
	if (!deaths)
		return NULL;
	list->deaths = deaths;
	*err = 0;
	return &deaths[list->n++];
}

static void free_death(struct profile_death *death)
{
	free(death->path);
	free(death->file);
	free(death->exception);
	free(death->left);
	free(death->file_system);
	free(death->written_file);
}

static void repair_comm(char (*to)[WIRE_COMM_LEN * 3], const char comm[WIRE_COMM_LEN])
{
	text_repair(*to, sizeof(*to), comm, strnlen(comm, WIRE_COMM_LEN), NULL);
}

static int add_oom(struct deaths *d, const struct wire_death *wire, const char *phase,
		   uint64_t page_size)
{
	struct profile_death death = {
		.how = PROFILE_BY_OOM,
		.started_ns = wire->h.started_ns,
		.time_ns = wire->h.time_ns,
		.tgid = wire->h.tgid,
		.asked_by = wire->asked_by,
		.scope = wire->scope,
		.usage = wire->usage * page_size,
		.limit = wire->limit * page_size,
		.with_swap = wire->with_swap,
		.tree = memory_from_wire(&wire->tree, page_size),
		.own = memory_from_wire(&wire->own, page_size),
		.phase = phase,
	};
	struct profile_death *new;
	int err;

	if (wire->scope == WIRE_SCOPE_CGROUP) {
		death.path =
			deaths_path(wire->path, sizeof(wire->path), wire->components, wire->cut);
		if (!death.path)
			return -ENOMEM;
	}
	repair_comm(&death.asked_by_comm, wire->asked_by_comm);
	new = new_death(&d->sure, &err);
	if (new)
		*new = death;
	else
		free_death(&death);
	return err;
}

/* ---- Signals and failures ---------------------------------------------------------------------
 */

/* Returns 0, or -ENOMEM. */
static int add_thrown(struct profile_death *death, const struct wire_ending *wire)
{
	char type[sizeof(wire->thrown)], name[2 * sizeof(type)];
	char *text;

	if (!wire->thrown[0])
		return 0;
	memcpy(type, wire->thrown, sizeof(type));
	type[sizeof(type) - 1] = '\0';
	cxx_name(name, sizeof(name), type);
	text = malloc(sizeof(name) * TEXT_GROWTH + 1);
	if (!text)
		return -ENOMEM;
	text_repair(text, sizeof(name) * TEXT_GROWTH + 1, name, strlen(name), NULL);
	death->exception = text;
	if (death->how == PROFILE_BY_SIGNAL)
		death->how = PROFILE_BY_EXCEPTION;
	return 0;
}

static struct gpu_refused *refused_to(const struct deaths *d, const struct wire_header *h)
{
	for (size_t i = 0; i < d->n_refused; i++)
		if (d->refused[i].refusal.tgid == h->tgid &&
		    d->refused[i].refusal.started_ns == h->started_ns)
			return &d->refused[i];
	return NULL;
}

static struct profile_death *awaited(struct deaths *d, uint32_t tgid, uint32_t signal)
{
	for (size_t i = 0; i < d->awaited.n; i++)
		if (d->awaited.deaths[i].tgid == tgid && d->awaited.deaths[i].signal == signal)
			return &d->awaited.deaths[i];
	return NULL;
}

static int await(struct deaths *d, const struct wire_ending *wire, const char *phase,
		 const struct profile_config *config)
{
	const uint64_t page_size = config->page_size;
	struct profile_death death = {
		.how = PROFILE_BY_SIGNAL,
		.started_ns = wire->h.started_ns,
		.time_ns = wire->h.time_ns,
		.tgid = wire->h.tgid,
		.signal = wire->signal,
		.code = wire->code,
		.address = wire->address,
		.stack_overflow = wire->stack_overflow,
		.by = wire->by,
		.sender = wire->sender,
		.tree = memory_from_wire(&wire->tree, page_size),
		.own = memory_from_wire(&wire->own, page_size),
		.phase = phase,
		.in_file = wire->signal == SIGBUS && wire->n_written,
	};
	struct profile_death *new;
	int err;

	if (awaited(d, wire->h.tgid, wire->signal))
		return 0;
	if (refusal_find(&death, wire, config))
		return -ENOMEM;
	if (death.refused_by)
		death.how = PROFILE_BY_REFUSAL;
	else if (!wire->signal && !refused_to(d, &wire->h))
		return 0;
	if (wire->components)
		death.file =
			deaths_path(wire->path, sizeof(wire->path), wire->components, wire->cut);
	if ((wire->components && !death.file) || add_thrown(&death, wire)) {
		free_death(&death);
		return -ENOMEM;
	}
	repair_comm(&death.sender_comm, wire->sender_comm);
	new = new_death(&d->awaited, &err);
	if (new)
		*new = death;
	else
		free_death(&death);
	return err;
}

int deaths_feed(struct deaths *d, const struct wire_header *record, const char *phase,
		const struct profile_config *config, struct profile_losses *losses)
{
	const void *data = record;
	const int err = record->kind == WIRE_DEATH ? add_oom(d, data, phase, config->page_size)
						   : await(d, data, phase, config);

	losses->dropped_processes += err == -ENOSPC;
	return err == -ENOSPC ? 0 : err;
}

/* Signals by which the kernel or the program itself says that it has gone wrong. */
static bool is_of_an_error(uint32_t signal)
{
	switch (signal) {
	case SIGILL:
	case SIGTRAP:
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGSEGV:
	case SIGSYS:
	case SIGXCPU:
	case SIGXFSZ:
		return true;
	default:
		return false;
	}
}

/*
 * A ^C is what the user wanted. And programs end their helpers by signals: a pool its workers by
 * SIGTERM, `yes | head` the first by SIGPIPE.
 */
static bool is_bad(const struct profile_death *death, bool is_target)
{
	if (!death->signal || is_of_an_error(death->signal))
		return true;
	return death->signal != SIGINT && (is_target || death->by != WIRE_BY_TREE);
}

/* Returns whether more is known of that end: the OOM killer's SIGKILL, an exception's status. */
static bool is_told(const struct deaths *d, const struct profile_death *ended)
{
	const enum profile_how how = ended->signal ? PROFILE_BY_OOM : PROFILE_BY_EXCEPTION;

	if (ended->signal && ended->signal != SIGKILL)
		return false;
	for (size_t i = 0; i < d->sure.n; i++) {
		const struct profile_death *death = &d->sure.deaths[i];

		if (death->tgid == ended->tgid && death->started_ns == ended->started_ns &&
		    death->how == how && !death->in_thread)
			return true;
	}
	return false;
}

/* In order of time. */
static int make_sure(struct deaths *d, const struct profile_death *death)
{
	struct profile_death *list;
	int err;

	if (!new_death(&d->sure, &err))
		return err;
	list = d->sure.deaths;
	for (size_t i = d->sure.n - 1;; i--) {
		if (!i || list[i - 1].time_ns <= death->time_ns) {
			list[i] = *death;
			return 0;
		}
		list[i] = list[i - 1];
	}
}

/* Takes what is awaited of the process. Returns true and fills in *ended if one is how it ended. */
static bool take_awaited(struct deaths *d, uint32_t tgid, uint32_t signal,
			 struct profile_death *ended)
{
	struct death_list *list = &d->awaited;
	bool found = false;

	for (size_t i = list->n; i-- > 0;) {
		if (list->deaths[i].tgid != tgid)
			continue;
		if (list->deaths[i].signal == signal && !found) {
			*ended = list->deaths[i];
			found = true;
		} else {
			free_death(&list->deaths[i]);
		}
		list->deaths[i] = list->deaths[--list->n];
	}
	return found;
}

/* ---- Refused by a GPU -------------------------------------------------------------------------
 */

int deaths_refuse(struct deaths *d, const struct profile_gpu_refusal *refusal)
{
	const struct wire_header of = {.tgid = refusal->tgid, .started_ns = refusal->started_ns};
	struct gpu_refused *list, *known = refused_to(d, &of);

	if (!known && d->n_refused == DEATHS_MAX_REFUSED)
		known = &d->refused[refusal->number % DEATHS_MAX_REFUSED];
	if (!known) {
		list = array_reserve(d->refused, d->n_refused, &d->room_for_refused, sizeof(*list));
		if (!list)
			return -ENOMEM;
		d->refused = list;
		known = &list[d->n_refused++];
	}
	*known = (struct gpu_refused){.refusal = *refusal};
	return 0;
}

void deaths_gpu(struct deaths *d, const struct wire_gpu *record, const char *phase)
{
	struct gpu_refused *known = refused_to(d, &record->h);

	if (!known)
		return;
	known->is_last = record->refused;
	known->phase = phase;
}

/* Takes what is known of the process. Returns whether it may have ended of that. */
static bool take_refused(struct deaths *d, const struct wire_header *h, struct gpu_refused *refused)
{
	struct gpu_refused *known = refused_to(d, h);

	if (!known)
		return false;
	*refused = *known;
	*known = d->refused[--d->n_refused];
	return refused->is_last;
}

static void put_down_to_gpu(struct profile_death *death, const struct profile_gpu_refusal *refusal)
{
	free(death->file_system);
	death->file_system = NULL;
	if (death->how == PROFILE_BY_SIGNAL)
		death->how = PROFILE_BY_REFUSAL;
	death->refused_by = PROFILE_GPU;
	death->gpu = *refusal;
}

/* Returns the exception that ended the process, if it told of one after the refusal. */
static struct profile_death *exception_after(struct deaths *d,
					     const struct profile_gpu_refusal *refusal)
{
	for (size_t i = d->sure.n; i-- > 0;) {
		struct profile_death *death = &d->sure.deaths[i];

		if (death->how == PROFILE_BY_EXCEPTION && !death->in_thread &&
		    death->tgid == refusal->tgid && death->started_ns == refusal->started_ns)
			return death->time_ns >= refusal->time_ns ? death : NULL;
	}
	return NULL;
}

/* Returns whether a refusal is why the process ended, and says so in *ended or in its exception. */
static bool ended_by_gpu(struct deaths *d, const struct wire_process *event, bool is_awaited,
			 struct profile_death *ended)
{
	struct profile_death *exception;
	struct gpu_refused refused;

	if (!take_refused(d, &event->h, &refused) || !(event->exit_code & 0xff7f) ||
	    (ended->signal && !(is_awaited && refusal_may_be(ended))))
		return false;
	if (!is_awaited)
		ended->phase = refused.phase;
	put_down_to_gpu(ended, &refused.refusal);
	exception = exception_after(d, &refused.refusal);
	if (exception && !exception->refused_by)
		put_down_to_gpu(exception, &refused.refusal);
	return true;
}

void deaths_exit(struct deaths *d, const struct wire_process *event, struct profile_losses *losses)
{
	const uint32_t signal = event->exit_code & 0x7f, code = event->exit_code >> 8 & 0xff;
	struct profile_death ended = {
		.how = PROFILE_BY_REFUSAL,
		.started_ns = event->h.started_ns,
		.time_ns = event->h.time_ns,
		.tgid = event->h.tgid,
		.signal = signal,
		.has_no_memory = true,
	};
	const bool is_awaited = take_awaited(d, event->h.tgid, signal, &ended);

	if (!ended_by_gpu(d, event, is_awaited, &ended) &&
	    (!is_awaited || (!signal && !ended.refused_by))) {
		free_death(&ended);
		return;
	}
	ended.exit_code = signal ? 0 : code;
	if (is_bad(&ended, event->flags & WIRE_PROCESS_TARGET) && (signal || code) &&
	    !is_told(d, &ended)) {
		if (!make_sure(d, &ended))
			return;
		losses->dropped_processes++;
	}
	free_death(&ended);
}

/* ---- Exceptions -------------------------------------------------------------------------------
 */

enum { MAX_WORDS = 4096 };

/* Returns the exception of that thread that came last, or NULL. */
static struct profile_death *exception_of(struct deaths *d, const struct wire_header *h)
{
	for (size_t i = d->sure.n; i-- > 0;) {
		struct profile_death *death = &d->sure.deaths[i];

		if (death->how == PROFILE_BY_EXCEPTION && death->tid == h->tid &&
		    death->started_ns == h->started_ns)
			return death;
	}
	return NULL;
}

static int begin_exception(struct deaths *d, const struct wire_checkpoint *cp, const char *text,
			   const char *phase, uint64_t page_size)
{
	struct profile_death death = {
		.how = PROFILE_BY_EXCEPTION,
		.time_ns = cp->h.time_ns,
		.started_ns = cp->h.started_ns,
		.tgid = cp->h.tgid,
		.tid = cp->h.tid,
		.tree = memory_from_wire(&cp->tree.memory, page_size),
		.own = memory_from_wire(&cp->own.memory, page_size),
		.phase = phase,
		.in_thread = (cp->value & 0xff) == SAID_IN_THREAD,
		.exception = strdup(text),
	};
	const int err = death.exception ? make_sure(d, &death) : -ENOMEM;

	if (err)
		free_death(&death);
	return err;
}

static int add_words(struct profile_death *death, const char *text)
{
	const size_t len = strlen(death->exception), more = strlen(text);
	char *longer;

	if (len + more > MAX_WORDS)
		return 0;
	longer = realloc(death->exception, len + more + 1);
	if (!longer)
		return -ENOMEM;
	memcpy(longer + len, text, more + 1);
	death->exception = longer;
	return 0;
}

static int set_text(char **at, const char *text)
{
	free(*at);
	*at = strdup(text);
	return *at ? 0 : -ENOMEM;
}

static void set_limit(struct profile_death *death, const char *name, uint64_t most)
{
	enum profile_limit limit = PROFILE_MAPPINGS;

	while (limit < PROFILE_FILE_SYSTEM && strcmp(name, profile_limit_name(limit)) != 0)
		limit++;
	if (limit == PROFILE_FILE_SYSTEM)
		return;
	death->refused_by = limit;
	if (death->refused_by == PROFILE_MAPPINGS)
		death->mappings_max = most;
	else
		death->limit = most;
}

static void set_used(struct profile_death *death, uint64_t used)
{
	if (death->refused_by == PROFILE_MAPPINGS)
		death->mappings = used;
	else
		death->usage = used;
}

static bool is_quota(enum profile_limit limit)
{
	return limit == PROFILE_QUOTA_OF_USER || limit == PROFILE_QUOTA_OF_GROUP;
}

/* "user 1000", or "group 100". */
static void set_quota(struct profile_death *death, const char *whose, uint64_t most)
{
	const bool of_user = sscanf(whose, "user %" SCNu32, &death->quota_id) == 1;

	if (!of_user && sscanf(whose, "group %" SCNu32, &death->quota_id) != 1)
		return;
	death->refused_by = of_user ? PROFILE_QUOTA_OF_USER : PROFILE_QUOTA_OF_GROUP;
	death->limit = most;
}

static int go_on(struct profile_death *death, enum deaths_said said, const char *text,
		 uint64_t number)
{
	switch (said) {
	case SAID_MORE:
		return add_words(death, text);
	case SAID_PHASE:
		return set_text(&death->left, text);
	case SAID_LIMIT:
		set_limit(death, text, number);
		break;
	case SAID_USED:
		set_used(death, number);
		break;
	case SAID_FULL:
		if (!is_quota(death->refused_by))
			death->refused_by = PROFILE_FILE_SYSTEM;
		death->left_bytes = number;
		return set_text(&death->file_system, text);
	case SAID_QUOTA:
		set_quota(death, text, number);
		break;
	case SAID_FILE:
		death->file_system_bytes = number;
		return *text ? set_text(&death->written_file, text) : 0;
	case SAID_FAILED:
	case SAID_IN_THREAD:
		break;
	}
	return 0;
}

void deaths_fail(struct deaths *d, const struct wire_checkpoint *cp, const char *text,
		 const char *phase, uint64_t page_size, struct profile_losses *losses)
{
	const enum deaths_said said = cp->value & 0xff;
	struct profile_death *death = NULL;
	int err;

	if (said > SAID_IN_THREAD) {
		death = exception_of(d, &cp->h);
		/* Of an empty name, the text says that it is one. */
		if (said == SAID_FILE && !cp->name_len)
			text = "";
		err = death ? go_on(death, said, text, cp->value >> 8) : 0;
	} else {
		err = begin_exception(d, cp, text, phase, page_size);
	}
	losses->dropped_processes += err != 0;
}

int deaths_name_files(struct deaths *d, const struct files *files, bool base_names)
{
	for (size_t i = 0; i < d->sure.n; i++) {
		struct profile_death *death = &d->sure.deaths[i];
		const char *path = death->written_file ? death->written_file
						       : files_path(files, &death->written);
		const char *last = path && base_names ? strrchr(path, '/') : NULL;
		char *name;

		if (!path || (path == death->written_file && !last))
			continue;
		name = strdup(last ? last + 1 : path);
		if (!name)
			return -ENOMEM;
		free(death->written_file);
		death->written_file = name;
	}
	return 0;
}

static void free_list(struct death_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free_death(&list->deaths[i]);
	free(list->deaths);
}

void deaths_free(struct deaths *d)
{
	free_list(&d->sure);
	free_list(&d->awaited);
	free(d->refused);
}
