/* SPDX-License-Identifier: GPL-2.0-only */
#include "recipes/rules_set.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A set ------------------------------------------------------------------------------------
 */

struct rules *rules_new(void)
{
	struct rules *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->arena = arena_new();
	if (r->arena)
		return r;
	free(r);
	return NULL;
}

void rules_free(struct rules *r)
{
	if (r)
		arena_free(r->arena);
	free(r);
}

size_t rules_count(const struct rules *r)
{
	return r->n;
}

struct rule_entry *rules_add(struct rules *r)
{
	struct rule_entry *entries = arena_grow(r->arena, r->entries, r->n, sizeof(*entries));

	if (!entries)
		return NULL;
	r->entries = entries;
	entries[r->n].rule.at = r->n;
	return &entries[r->n++];
}

struct rule_case *rules_add_case(struct rules *r, struct rule_entry *entry)
{
	struct rule_case *cases = arena_grow(r->arena, entry->cases, entry->n, sizeof(*cases));

	if (!cases)
		return NULL;
	entry->cases = cases;
	return &cases[entry->n++];
}

struct condition *rules_add_condition(struct rules *r, struct rule_case *c, enum rule_kind kind)
{
	struct condition *conditions =
		arena_grow(r->arena, c->conditions, c->n, sizeof(*conditions));

	if (!conditions)
		return NULL;
	c->conditions = conditions;
	conditions[c->n] = (struct condition){.kind = kind, .at = r->n_conditions++};
	return &conditions[c->n++];
}

/* Most names differ from most patterns at an end, and need no fnmatch(3). */
static void measure(struct pattern *p)
{
	static const char special[] = "*?[\\";
	size_t stars = 0, others = 0;

	p->prefix = strcspn(p->text, special);
	p->wild = p->prefix < p->len;
	p->whole = strchr(p->text, '/');
	for (const char *at = p->text; *at; at++) {
		stars += *at == '*';
		others += *at != '*' && strchr(special, *at);
	}
	/* The bytes after the last star are literal if there is no bracket or escape. */
	if (stars && !others)
		p->suffix = p->len - (size_t)(strrchr(p->text, '*') - p->text) - 1;
	p->ends_decide = stars == 1 && !others;
	p->anywhere = stars == 2 && !others && !p->prefix && !p->suffix;
}

struct pattern *rules_add_pattern(struct rules *r, struct condition *condition, const char *text,
				  size_t len)
{
	struct pattern *patterns =
		arena_grow(r->arena, condition->patterns, condition->n, sizeof(*patterns));
	const char *copy = arena_text(r->arena, text, len);

	if (patterns)
		condition->patterns = patterns;
	if (!patterns || !copy)
		return NULL;
	patterns[condition->n] = (struct pattern){.text = copy, .len = len};
	measure(&patterns[condition->n]);
	return &patterns[condition->n++];
}

/* The patterns stay where they are. */
static int copy_case(struct rules *r, struct rule_entry *entry, const struct rule_case *from)
{
	struct rule_case *c = rules_add_case(r, entry);

	for (size_t i = 0; c && i < from->n; i++) {
		struct condition *condition = rules_add_condition(r, c, from->conditions[i].kind);

		if (!condition)
			return -1;
		condition->patterns = from->conditions[i].patterns;
		condition->n = from->conditions[i].n;
	}
	return c ? 0 : -1;
}

int rules_append(struct rules *r, const struct rules *from)
{
	for (size_t i = 0; i < from->n; i++) {
		struct rule_entry *entry = rules_add(r);

		if (!entry)
			return -1;
		memcpy(entry->rule.name, from->entries[i].rule.name, sizeof(entry->rule.name));
		entry->rule.job = from->entries[i].rule.job;
		for (size_t k = 0; k < from->entries[i].n; k++)
			if (copy_case(r, entry, &from->entries[i].cases[k]))
				return -1;
	}
	return 0;
}

void rules_each_pattern(const struct rules *r, enum rule_kind kind, rules_pattern_fn tell,
			void *context)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct rule_entry *entry = &r->entries[i];

		for (size_t j = 0; j < entry->n; j++) {
			const struct rule_case *c = &entry->cases[j];

			for (size_t k = 0; k < c->n; k++)
				for (size_t p = 0;
				     c->conditions[k].kind == kind && p < c->conditions[k].n; p++)
					tell(context, c->conditions[k].patterns[p].text);
		}
	}
}

static bool is_by_ends(const struct rule_case *c)
{
	const struct condition *condition = c->conditions;

	if (c->n != 1 || condition->kind != RULE_ARGUMENT)
		return false;
	for (size_t i = 0; i < condition->n; i++)
		if (!condition->patterns[i].ends_decide || condition->patterns[i].prefix ||
		    strchr(condition->patterns[i].text, ' ')) /* "-m NAME" are two arguments */
			return false;
	return true;
}

void rules_each_end(const struct rules *r, rules_pattern_fn tell, void *context)
{
	for (size_t i = 0; i < r->n; i++)
		for (size_t j = 0; j < r->entries[i].n; j++) {
			const struct rule_case *c = &r->entries[i].cases[j];

			for (size_t p = 0; is_by_ends(c) && p < c->conditions->n; p++)
				tell(context, c->conditions->patterns[p].text + 1);
		}
}

/* ---- Matching ---------------------------------------------------------------------------------
 */

struct finding {
	const char *found; /* NULL: the condition is not met */
	char name[MACHINE_EVIDENCE_MAX];
};

struct rules_match {
	const struct rules *rules;
	struct finding findings[]; /* of each condition */
};

struct rules_match *rules_match_new(const struct rules *r)
{
	struct rules_match *m = calloc(1, sizeof(*m) + r->n_conditions * sizeof(m->findings[0]));

	if (m)
		m->rules = r;
	return m;
}

void rules_match_free(struct rules_match *m)
{
	free(m);
}

void rules_match_reset(struct rules_match *m)
{
	for (size_t i = 0; i < m->rules->n_conditions; i++)
		m->findings[i].found = NULL;
}

/* A name, and what follows its last slash. */
struct name {
	const char *whole, *last;
	size_t whole_len, last_len;
};

static bool matches(const struct pattern *p, const struct name *name)
{
	const char *text = p->whole ? name->whole : name->last;
	const size_t len = p->whole ? name->whole_len : name->last_len;

	if (len < p->prefix + p->suffix || memcmp(text, p->text, p->prefix) != 0 ||
	    memcmp(text + len - p->suffix, p->text + p->len - p->suffix, p->suffix) != 0)
		return false;
	if (!p->wild)
		return len == p->len;
	if (p->anywhere)
		return memmem(text, len, p->text + 1, p->len - 2);
	return p->ends_decide || !fnmatch(p->text, text, 0);
}

static bool is_met_by(const struct condition *condition, const struct name *name)
{
	for (size_t i = 0; i < condition->n; i++)
		if (matches(&condition->patterns[i], name))
			return true;
	return false;
}

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* Copies a text; or "..." and its end, which says more than its beginning, cut before a character,
 * if it does not fit into room (at least 4). */
static void copy_end(char *out, size_t room, const char *text, size_t len)
{
	static const char dots[] = "...";
	const char *from = text;

	if (len >= room) {
		from = text + len - (room - sizeof(dots));
		for (int i = 0; i < 3 && is_continuation(*from); i++)
			from++;
		memcpy(out, dots, sizeof(dots) - 1);
		out += sizeof(dots) - 1;
	}
	memcpy(out, from, (size_t)(text + len - from) + 1);
}

static bool is_met(const struct rules_match *m, const struct condition *condition)
{
	return m->findings[condition->at].found;
}

/* Returns true if the case cannot be met any more: it lacks names of an earlier kind. */
static bool is_lost(const struct rules_match *m, const struct rule_case *c, enum rule_kind kind)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->conditions[i].kind < kind && !is_met(m, &c->conditions[i]))
			return true;
	return false;
}

static bool offer_to_case(struct rules_match *m, const struct rule_case *c, enum rule_kind kind,
			  const char *found, const struct name *name)
{
	bool met = false;

	for (size_t i = 0; i < c->n; i++) {
		const struct condition *condition = &c->conditions[i];
		struct finding *finding = &m->findings[condition->at];

		if (condition->kind != kind || finding->found || !is_met_by(condition, name))
			continue;
		finding->found = found;
		copy_end(finding->name, sizeof(finding->name), name->whole, name->whole_len);
		met = true;
	}
	return met;
}

bool rules_match_offer(struct rules_match *m, enum rule_kind kind, const char *found,
		       const char *name)
{
	const char *slash = strrchr(name, '/');
	struct name n = {.whole = name, .last = slash ? slash + 1 : name};
	bool met = false;

	n.whole_len = strlen(n.whole);
	n.last_len = n.whole_len - (size_t)(n.last - n.whole);
	for (size_t i = 0; i < m->rules->n; i++) {
		const struct rule_entry *entry = &m->rules->entries[i];

		for (size_t j = 0; j < entry->n; j++)
			if (!is_lost(m, &entry->cases[j], kind))
				met |= offer_to_case(m, &entry->cases[j], kind, found, &n);
	}
	return met;
}

static bool is_complete(const struct rules_match *m, const struct rule_case *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (!is_met(m, &c->conditions[i]))
			return false;
	return true;
}

static const struct rule_case *complete_case(const struct rules_match *m,
					     const struct rule_entry *entry)
{
	for (size_t i = 0; i < entry->n; i++)
		if (is_complete(m, &entry->cases[i]))
			return &entry->cases[i];
	return NULL;
}

static bool case_asks(const struct rules_match *m, const struct rule_case *c, enum rule_kind kind)
{
	bool asks = false;

	for (size_t i = 0; i < c->n; i++)
		asks |= c->conditions[i].kind == kind && !is_met(m, &c->conditions[i]);
	return asks && !is_lost(m, c, kind);
}

static bool any_asks(const struct rules_match *m, enum rule_kind kind, bool ends_apart)
{
	for (size_t i = 0; i < m->rules->n; i++) {
		const struct rule_entry *entry = &m->rules->entries[i];

		if (complete_case(m, entry))
			return false; /* later rules do not count */
		for (size_t j = 0; j < entry->n; j++)
			if (case_asks(m, &entry->cases[j], kind) &&
			    !(ends_apart && is_by_ends(&entry->cases[j])))
				return true;
	}
	return false;
}

bool rules_match_asks(const struct rules_match *m, enum rule_kind kind)
{
	return any_asks(m, kind, false);
}

bool rules_match_hinges(const struct rules_match *m, bool ends_apart)
{
	return any_asks(m, RULE_ARGUMENT, ends_apart);
}

static const struct rule_entry *verdict(const struct rules_match *m)
{
	for (size_t i = 0; i < m->rules->n; i++)
		if (complete_case(m, &m->rules->entries[i]))
			return &m->rules->entries[i];
	return NULL;
}

const struct rule *rules_match_verdict(const struct rules_match *m)
{
	const struct rule_entry *entry = verdict(m);

	return entry ? &entry->rule : NULL;
}

void rules_match_evidence(const struct rules_match *m, char out[MACHINE_EVIDENCE_MAX])
{
	static const char between[] = "; ";
	const struct rule_entry *entry = verdict(m);
	const struct rule_case *c = entry ? complete_case(m, entry) : NULL;
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; c && i < c->n; i++) {
		const struct finding *finding = &m->findings[c->conditions[i].at];
		/* The rest of the room is shared evenly. */
		const size_t share = (MACHINE_EVIDENCE_MAX - used) / (c->n - i);

		used += (size_t)snprintf(out + used, share, "%s%s ", i ? between : "",
					 finding->found);
		copy_end(out + used, share - (i ? 2 : 0) - strlen(finding->found) - 1,
			 finding->name, strlen(finding->name));
		used += strlen(out + used);
	}
}
