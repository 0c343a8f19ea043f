/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/copies.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "kernel/engine.h"
#include "kernel/procfs.h"

enum { WORDS = 32768 }; /* of pagemap, that are read at a time: of 128 MiB in pages of 4 KiB */

/* A word of /proc/PID/pagemap: Documentation/admin-guide/mm/pagemap.rst. */
static const uint64_t IS_THERE = 1ull << 63, IS_SWAPPED = 1ull << 62, IS_OF_FILE = 1ull << 61,
		      IS_GUARD = 1ull << 58;

struct question {
	size_t n;
	struct copies_process processes[COPIES_MAX_PROCESSES];
};

/* A packet of the child: a file; or, at last, how the look ended. */
struct answer {
	bool is_last, mapped_unknown;
	int err;
	uint64_t began_ns, ended_ns;
	struct copied_file file;
};

/* ---- The child --------------------------------------------------------------------------------
 */

struct found {
	UT_hash_handle hh;
	struct copied_file pub;
};

/* Of one process. */
struct mappings {
	struct wire_mapping *list;
	size_t n, cap;
	int err;
};

struct looking {
	struct engine *engine;
	struct found *by_id;
	uint64_t memories[COPIES_MAX_PROCESSES]; /* that were read: processes may share one */
	size_t n_memories;
	bool mapped_unknown;
};

static bool note_mapping(void *context, const struct wire_mapping *m)
{
	struct mappings *mappings = context;
	void *list = mappings->n < COPIES_MAX_MAPPINGS
			     ? array_reserve(mappings->list, mappings->n, &mappings->cap,
					     sizeof(*mappings->list))
			     : NULL;

	if (!list) {
		mappings->err = -E2BIG;
		return false;
	}
	mappings->list = list;
	mappings->list[mappings->n++] = *m;
	return true;
}

static int walk(struct engine *e, pid_t pid, struct mappings *mappings)
{
	const int err = engine_tell_file_mappings(e, pid, note_mapping, mappings);

	return err ? err : mappings->err;
}

/* Returns the next mapping from *i on, or NULL; all: also such as have no copies. */
static const struct wire_mapping *next_of(const struct mappings *mappings, size_t *i, bool all)
{
	while (*i < mappings->n) {
		const struct wire_mapping *m = &mappings->list[(*i)++];

		if (all || m->written_to)
			return m;
	}
	return NULL;
}

static bool are_same(const struct mappings *a, const struct mappings *b, bool all)
{
	const struct wire_mapping *x, *y;
	size_t i = 0, j = 0;

	do {
		x = next_of(a, &i, all);
		y = next_of(b, &j, all);
		if (!x || !y)
			return x == y;
	} while (x->start == y->start && x->end == y->end && x->memory == y->memory &&
		 !memcmp(&x->file, &y->file, sizeof(x->file)));
	return false;
}

/* In pages. */
struct counts {
	uint64_t mapped, copied;
};

static void count(const uint64_t *words, size_t n, struct counts *counts)
{
	for (size_t i = 0; i < n; i++) {
		const bool of_file = words[i] & IS_OF_FILE;

		counts->mapped += words[i] & IS_THERE && of_file;
		counts->copied +=
			words[i] & (IS_THERE | IS_SWAPPED) && !of_file && !(words[i] & IS_GUARD);
	}
}

/* Returns 0 or -errno. */
static int read_pages(int pagemap, const struct wire_mapping *m, struct counts *counts)
{
	static uint64_t words[WORDS];
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t at = m->start / page;

	*counts = (struct counts){0};

	while (at < m->end / page) {
		const uint64_t left = m->end / page - at, n = left < WORDS ? left : WORDS;
		const ssize_t got =
			pread(pagemap, words, n * sizeof(*words), (off_t)(at * sizeof(*words)));

		if (got < (ssize_t)sizeof(*words))
			return got < 0 ? -errno : -ESRCH;
		count(words, (size_t)got / sizeof(*words), counts);
		at += (size_t)got / sizeof(*words);
	}
	/* What has no page of the file there may be memory of a device. */
	if (!m->written_to)
		counts->copied = 0;
	return 0;
}

/* As the process has it. Of a file without a name the kernel says so behind it. */
static void find_path(pid_t pid, const struct wire_mapping *m, struct copied_file *file)
{
	static const char deleted[] = " (deleted)";
	static char path[PATH_MAX + sizeof(deleted)];
	const ssize_t found = procfs_mapping_path(pid, m->start, m->end, path, sizeof(path));
	size_t len = found < 0 ? 0 : (size_t)found;
	const char *from = path;

	if (!m->links && len >= sizeof(deleted) &&
	    !strcmp(path + len - (sizeof(deleted) - 1), deleted))
		len -= sizeof(deleted) - 1;
	if (len >= COPIES_PATH)
		from = path + len - (COPIES_PATH - 1);
	len -= (size_t)(from - path);
	memcpy(file->path, from, len);
	file->path[len] = '\0';
}

static int add(struct looking *l, pid_t pid, const struct wire_mapping *m,
	       const struct counts *counts)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct found *found;

	if (!counts->mapped && !counts->copied)
		return 0;

	HASH_FIND(hh, l->by_id, &m->file, sizeof(m->file), found);
	if (!found) {
		found = HASH_COUNT(l->by_id) < COPIES_MAX_FILES ? calloc(1, sizeof(*found)) : NULL;
		if (!found)
			return -E2BIG;
		found->pub.file = m->file;
		HASH_ADD(hh, l->by_id, pub.file, sizeof(found->pub.file), found);
		if (!found->hh.tbl) {
			free(found);
			return -ENOMEM;
		}
		find_path(pid, m, &found->pub);
	}
	found->pub.size = m->size;
	found->pub.is_deleted = !m->links;
	found->pub.mapped += counts->mapped * page;
	found->pub.copied += counts->copied * page;
	return 0;
}

static bool was_read(struct looking *l, uint64_t memory)
{
	for (size_t i = 0; i < l->n_memories; i++)
		if (l->memories[i] == memory)
			return true;
	l->memories[l->n_memories++] = memory;
	return false;
}

static int read_mappings(struct looking *l, pid_t pid, const struct mappings *mappings)
{
	struct counts counts;
	char path[64];
	int pagemap, err = 0;

	snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	for (size_t i = 0; !err && i < mappings->n; i++) {
		err = read_pages(pagemap, &mappings->list[i], &counts);
		err = err ? err : add(l, pid, &mappings->list[i], &counts);
	}
	close(pagemap);
	return err;
}

static int look_at(struct looking *l, const struct copies_process *process)
{
	const pid_t pid = (pid_t)process->tgid;
	struct mappings before = {0}, after = {0};
	int err = walk(l->engine, pid, &before);

	if (!err && before.n && !was_read(l, before.list[0].memory)) {
		err = read_mappings(l, pid, &before);
		err = err ? err : walk(l->engine, pid, &after);
		if (!err && !are_same(&before, &after, false))
			err = -EAGAIN;
		l->mapped_unknown |= !err && !are_same(&before, &after, true);
	}
	/* Who is about to end has no mappings, whatever it had. */
	if (!err && !procfs_has_memory(pid, process->started_ns))
		err = -ESRCH;
	free(before.list);
	free(after.list);
	return err;
}

static void send_found(int fd, struct answer *answer, struct looking *l)
{
	struct found *found = l->by_id, *next;

	HASH_CLEAR(hh, l->by_id);
	for (; found; found = next) {
		next = found->hh.next;
		answer->file = found->pub;
		if (!answer->err)
			aside_send(fd, answer, sizeof(*answer), -1);
		free(found);
	}
	answer->is_last = true;
	answer->mapped_unknown = l->mapped_unknown;
	aside_send(fd, answer, sizeof(*answer), -1);
}

static void serve(void *context, int fd)
{
	static struct question question;
	static struct looking l;

	l.engine = context;
	while (recv(fd, &question, sizeof(question), 0) == sizeof(question)) {
		struct answer answer = {.began_ns = clock_ns(CLOCK_MONOTONIC)};

		l.n_memories = 0;
		l.mapped_unknown = false;
		for (size_t i = 0; !answer.err && i < question.n; i++)
			answer.err = look_at(&l, &question.processes[i]);
		answer.ended_ns = clock_ns(CLOCK_MONOTONIC);
		send_found(fd, &answer, &l);
	}
}

/* ---- The parent -------------------------------------------------------------------------------
 */

static int ask(struct copies_helper *h, const struct question *question)
{
	if (send(h->aside.fd, question, sizeof(*question), MSG_DONTWAIT | MSG_NOSIGNAL) ==
	    sizeof(*question))
		return 0;
	aside_end(&h->aside);
	return -EIO;
}

int copies_ask(struct copies_helper *h, struct engine *e, const struct copies_process *processes,
	       size_t n)
{
	static struct question question;
	int err = 0;

	if (n > COPIES_MAX_PROCESSES)
		return -E2BIG;
	memcpy(question.processes, processes, n * sizeof(*processes));
	question.n = n;
	h->look.n = 0;
	if (!h->aside.child)
		err = aside_begin(&h->aside, serve, engine_needs, e);
	return err ? err : ask(h, &question);
}

int copies_fd(const struct copies_helper *h)
{
	return h->aside.child ? h->aside.fd : -1;
}

static int keep(struct copies_look *look, const struct copied_file *file)
{
	void *list = array_reserve(look->list, look->n, &look->cap, sizeof(*look->list));

	if (!list)
		return -ENOMEM;
	look->list = list;
	look->list[look->n] = *file;
	look->list[look->n++].path[COPIES_PATH - 1] = '\0';
	return 0;
}

static bool fail(struct copies_helper *h, int err)
{
	aside_end(&h->aside);
	h->look.n = 0;
	h->look.err = err;
	return true;
}

bool copies_take(struct copies_helper *h)
{
	static struct answer answer;

	for (;;) {
		int fd;
		const ssize_t n = aside_receive(h->aside.fd, &answer, sizeof(answer), &fd);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (n != sizeof(answer))
			return fail(h, -EIO);
		if (answer.is_last) {
			h->look.began_ns = answer.began_ns;
			h->look.ended_ns = answer.ended_ns;
			h->look.err = answer.err;
			h->look.mapped_unknown = answer.mapped_unknown;
			return true;
		}
		if (keep(&h->look, &answer.file))
			return fail(h, -ENOMEM);
	}
}

void copies_give_up(struct copies_helper *h)
{
	fail(h, -ETIMEDOUT);
}

void copies_end(struct copies_helper *h)
{
	aside_end(&h->aside);
	free(h->look.list);
	h->look = (struct copies_look){0};
}
