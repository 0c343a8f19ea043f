/* SPDX-License-Identifier: GPL-2.0-only */
#include "service/places.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "capture/audit_state.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

struct places {
	struct wish_list list;
	struct wish_job of;
	struct wish wishes[SOURCE_PLACES_MAX];
	struct talk_asks asked;
	bool ended;
};

/* ---- What it asks for -------------------------------------------------------------------------
 */

static bool is_pattern(const char pattern[TALK_PATTERN_MAX])
{
	const size_t len = strnlen(pattern, TALK_PATTERN_MAX);

	for (size_t i = 0; i < len; i++)
		if (!isascii((unsigned char)pattern[i]) || !isprint((unsigned char)pattern[i]))
			return false;
	return len && len < TALK_PATTERN_MAX;
}

static bool is_place(const struct talk_place *place)
{
	const uint32_t all = TALK_PLACE_FUNCTION | TALK_PLACE_RETURNS | TALK_PLACE_MARK;
	const bool is_function = place->flags & TALK_PLACE_FUNCTION;

	for (size_t i = 0; i < WIRE_HIT_TEXTS; i++)
		if (place->texts[i] > WIRE_HIT_ARGS)
			return false;
	return !(place->flags & ~all) && !(place->flags & TALK_PLACE_RETURNS && !is_function) &&
	       !(place->flags & TALK_PLACE_MARK && is_function) &&
	       place->args < 1u << WIRE_HIT_ARGS && is_pattern(place->pattern);
}

/* Returns true for one or more bytes, ff each, the rest 0: from the low one on, or the high one. */
static bool is_mask(uint64_t mask, bool from_high)
{
	const uint64_t ones = from_high ? ~mask : mask;

	return mask && !(ones & (ones + 1)) && __builtin_popcountll(mask) % 8 == 0;
}

static bool are_literals(const struct source_heard *heard)
{
	bool more = heard->texts == SOURCE_TEXTS_WITH_LITERALS;

	for (size_t i = 0; i < WIRE_MAX_LITERALS; i++) {
		const struct wire_literal *literal = &heard->literals[i];

		if (literal->mask ? !more || !is_mask(literal->mask, false) : literal->bytes)
			return false;
		more &= literal->mask != 0;
	}
	return heard->texts <= SOURCE_ALL_TEXTS &&
	       (heard->texts != SOURCE_TEXTS_WITH_LITERALS || heard->literals[0].mask);
}

static bool are_parts(const struct source_heard *heard)
{
	bool more = heard->files;

	for (size_t i = 0; i < WIRE_MAX_NAME_PARTS; i++) {
		const struct wire_name_part *part = &heard->parts[i];

		if (part->anywhere > 1 || part->reserved || (part->mask && !more) ||
		    (part->mask ? !is_mask(part->mask, !part->anywhere) : part->bytes))
			return false;
		more &= part->mask != 0;
	}
	return heard->files <= 1;
}

static bool is_heard(const struct source_heard *heard)
{
	const uint32_t told = WIRE_TOLD_END | WIRE_TOLD_CHILDREN;

	return are_literals(heard) && are_parts(heard) && !(heard->told & ~told) &&
	       !heard->reserved;
}

int places_look(int fd, struct talk_asks *asks, struct error *err)
{
	const ssize_t size = recv(fd, asks, sizeof(*asks), MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
	bool is_ours = size == sizeof(*asks) && asks->kind == TALK_ASKS &&
		       asks->n <= SOURCE_PLACES_MAX && is_heard(&asks->heard) &&
		       (asks->n || source_hears(&asks->heard));

	if (size <= 0) /* it has shut down its side */
		return 0;
	for (uint32_t i = 0; is_ours && i < asks->n; i++)
		is_ours = is_place(&asks->places[i]);
	return is_ours ? 1
		       : error_set(err, "what was said says of nothing to be told of: it is none "
					"of qprof-bpf's");
}

/* ---- Their life -------------------------------------------------------------------------------
 */

static void make_wishes(struct places *p)
{
	for (uint32_t i = 0; i < p->asked.n; i++) {
		const struct talk_place *place = &p->asked.places[i];
		struct wish *wish = &p->wishes[i];

		*wish = (struct wish){
			.function = place->flags & TALK_PLACE_FUNCTION,
			.returns = place->flags & TALK_PLACE_RETURNS,
			.mark = place->flags & TALK_PLACE_MARK,
			.pattern = place->pattern,
			.args = place->args,
		};
		memcpy(wish->texts, place->texts, sizeof(wish->texts));
	}
	p->list = (struct wish_list){.wishes = p->wishes, .n = p->asked.n, .of = &p->of};
}

/* Groups that are not known do not help. */
static void find_groups(struct wish_job *of, int fd)
{
	socklen_t size = sizeof(of->groups);

	if (!getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, of->groups, &size))
		of->n_groups = size / sizeof(*of->groups);
}

struct places *places_new(struct capture *c, const struct talk_asks *asked, uint32_t job, int fd,
			  uid_t uid, gid_t gid, struct error *err)
{
	struct places *p = calloc(1, sizeof(*p));
	int code;

	if (!p) {
		error_set(err, "the service is out of memory");
		return NULL;
	}
	p->asked = *asked;
	p->of = (struct wish_job){.job = job, .uid = uid, .gid = gid};
	find_groups(&p->of, fd);
	make_wishes(p);
	engine_say_loading(c->engine, true);
	code = discovery_add_places(c->discovery, &p->list, err);
	engine_say_loading(c->engine, false);
	if (!code)
		return p;
	free(p);
	return NULL;
}

void places_end(struct places *p, struct capture *c)
{
	if (!p || p->ended)
		return;
	p->ended = true;
	discovery_drop_places(c->discovery, &p->list);
}

void places_tell_running(struct capture *c, const struct talk_asks *asked, uint32_t index)
{
	struct marker *marker = c->options->marker;
	const struct profile_process *const *processes;
	size_t n;

	processes = machine_processes(audit_machine(audit_of(c)), &n);
	for (size_t i = 0; i < n; i++) {
		const struct profile_process *p = processes[i];
		const struct machine_job *job = p->end_ns ? NULL : machine_job_of(p);

		if (!job || job->index != index || job->end_ns)
			continue;
		if (source_hears(&asked->heard))
			marker->hear_process(marker, index, p->tgid, p->started_ns);
		if (!asked->n)
			continue;
		discovery_use_places(c->discovery, p->tgid, index);
		discovery_search_changed(c->discovery, p->tgid, p->started_ns, DISCOVERY_OF_SERVED);
	}
}

uint32_t places_item(const struct places *p, uint32_t item)
{
	const bool of_recipe = item < WISH_ITEMS_OF_JOBS;

	for (uint32_t i = 0; p && i < p->asked.n; i++) {
		if (of_recipe && p->asked.places[i].item == item && p->wishes[i].places)
			return WIRE_SITE_NONE;
		if (!of_recipe && p->wishes[i].item == item)
			return p->asked.places[i].item;
	}
	return of_recipe ? item : WIRE_SITE_NONE;
}

void places_tell(const struct places *p, struct source_account *account)
{
	if (!p)
		return;
	account->unreadable_files = p->of.unreadable;
	account->n_places = p->asked.n;
	for (uint32_t i = 0; i < p->asked.n; i++)
		account->places[i] = (struct source_place){
			.item = p->asked.places[i].item,
			.found = p->wishes[i].places,
			.limited = p->wishes[i].limited,
		};
}

void places_free(struct places *p)
{
	if (p)
		free(p->of.files);
	free(p);
}
