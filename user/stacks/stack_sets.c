/* SPDX-License-Identifier: GPL-2.0-only */
#include "stacks/stack_sets.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/stack_mappings.h"

static void forget(struct stack_set_recent *recent)
{
	free(recent->parts);
	*recent = (struct stack_set_recent){.n = 0};
}

void stack_sets_end(struct stack_sets *s)
{
	for (size_t i = 0; i < STACK_SETS_RECENT; i++)
		forget(&s->recent[i]);
	s->n = 0;
}

/* ---- What sets have ---------------------------------------------------------------------------
 */

static struct stack_set_part part_of(const struct stack_mapping *m)
{
	return (struct stack_set_part){m->start,  m->end,   m->offset,
				       m->device, m->inode, m->changed_ns};
}

/* Returns false if the set has something that is not among the mappings. Both are by start. */
static bool are_all_of(const struct stack_set_recent *recent, const struct stack_mappings *m)
{
	size_t at = 0;

	for (size_t i = 0; i < recent->n; i++, at++) {
		struct stack_set_part part;

		while (at < m->n && m->list[at].start < recent->parts[i].start)
			at++;
		if (at == m->n)
			return false;
		part = part_of(&m->list[at]);
		if (memcmp(&part, &recent->parts[i], sizeof(part)) != 0)
			return false;
	}
	return true;
}

/* Returns a set that may get what it lacks of the mappings, or NULL. */
static struct stack_set_recent *find_smaller(struct stack_sets *s, const struct stack_mappings *m,
					     uint64_t seed)
{
	for (size_t i = 0; i < STACK_SETS_RECENT; i++)
		if (s->recent[i].parts && s->recent[i].seed == seed && are_all_of(&s->recent[i], m))
			return &s->recent[i];
	return NULL;
}

/* Without memory, the set gets no more. */
static void keep(struct stack_set_recent *recent, const struct stack_mappings *m, uint64_t seed,
		 uint32_t set)
{
	forget(recent);
	recent->parts = m->n ? calloc(m->n, sizeof(*recent->parts)) : NULL;
	if (!recent->parts)
		return;
	for (size_t i = 0; i < m->n; i++)
		recent->parts[i] = part_of(&m->list[i]);
	recent->n = m->n;
	recent->seed = seed;
	recent->set = set;
}

/* ---- The child --------------------------------------------------------------------------------
 */

static void tell(struct unwinder *u, uint32_t set, const struct stack_mapping *m, int fd)
{
	const struct unwind_mapping mapping = {.start = m->start,
					       .end = m->end,
					       .offset = m->offset,
					       .device = m->device,
					       .inode = m->inode,
					       .changed_ns = m->changed_ns,
					       .path = m->path};

	unwinder_add(u, set, &mapping, fd);
}

enum { HAD = INT_MIN }; /* in place of a descriptor: the set has the mapping */

static bool is_opened(int fd)
{
	return fd >= 0 || fd == -EREMOTE;
}

static void close_all(int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Opens what the set lacks: fds is by mapping, HAD for those that it has. Returns 0, or -errno of
 * the first that cannot be opened; -ENOENT if one is not there any more. */
static int open_more(const struct stack_set_recent *recent, pid_t pid,
		     const struct stack_mappings *m, int *fds)
{
	size_t had = 0;
	int err = 0;

	for (size_t i = 0; i < m->n; i++) {
		if (had < recent->n && m->list[i].start == recent->parts[had].start) {
			fds[i] = HAD;
			had++;
			continue;
		}
		fds[i] = stack_mappings_open(m, i, pid);
		if (!is_opened(fds[i]) && (!err || fds[i] == -ENOENT))
			err = fds[i];
	}
	return err;
}

static void tell_more(struct unwinder *u, uint32_t set, const struct stack_mappings *m,
		      const int *fds)
{
	for (size_t i = 0; i < m->n; i++)
		if (fds[i] != HAD)
			tell(u, set, &m->list[i], fds[i]);
}

/* Returns 0, or -errno if the set stays as it is, as open_more() does. */
static int add_to(struct stack_set_recent *recent, struct unwinder *u, pid_t pid,
		  const struct stack_mappings *m)
{
	int *fds = calloc(m->n, sizeof(*fds));
	const int err = fds ? open_more(recent, pid, m, fds) : -ENOMEM;

	if (!err)
		tell_more(u, recent->set, m, fds);
	else if (fds)
		close_all(fds, m->n);
	free(fds);
	return err;
}

/* Returns 0, and *has_all is false if a file could not be opened; or -errno. */
static int begin_set(struct unwinder *u, uint32_t set, pid_t pid, const struct stack_mappings *m,
		     bool *has_all)
{
	const struct stack_set_recent nothing = {.n = 0};
	int *fds = calloc(m->n, sizeof(*fds));
	const int err = fds ? open_more(&nothing, pid, m, fds) : -ENOMEM;

	*has_all = !err;
	if (err == -ENOENT)
		close_all(fds, m->n);
	else if (fds)
		tell_more(u, set, m, fds);
	free(fds);
	return err == -ENOENT || err == -ENOMEM ? err : 0;
}

enum unwind_end stack_sets_of(struct stack_sets *s, struct unwinder *u, pid_t pid,
			      const struct stack_mappings *m, uint64_t seed, uint32_t *set,
			      bool *lacks_files)
{
	const uint64_t digest = stack_mappings_digest(m, seed);
	struct stack_set_recent *recent;
	bool has_all;
	int err;

	for (*set = s->n; (*set)-- > 0;)
		if (s->digests[*set] == digest)
			return UNWIND_WHOLE;
	if (!unwinder_has_room(u, m->n))
		return UNWIND_OVERRUN;
	recent = find_smaller(s, m, seed);
	err = recent ? add_to(recent, u, pid, m) : 0;
	if (recent && !err) {
		*set = recent->set;
		keep(recent, m, seed, *set);
		s->digests[*set] = digest;
		return UNWIND_WHOLE;
	}
	if (err == -ENOENT)
		return UNWIND_OVERRUN;
	if (s->n == UNWIND_MAX_SETS)
		return UNWIND_TOO_MANY;
	*set = s->n;
	if (begin_set(u, *set, pid, m, &has_all))
		return UNWIND_OVERRUN;
	s->digests[s->n++] = 0;
	if (lacks_files)
		*lacks_files = !has_all;
	if (lacks_files && !has_all)
		return UNWIND_WHOLE;
	s->digests[*set] = digest;
	keep(&s->recent[s->next_recent++ % STACK_SETS_RECENT], m, seed, *set);
	return UNWIND_WHOLE;
}
