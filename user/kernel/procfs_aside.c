/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/procfs_aside.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/clock.h"
#include "kernel/patience.h"

enum {
	MAP_MS = 250,	/* for an answer */
	HURRY_MS = 50,	/* the same, of a process whose user rests */
	BUSY_MS = 2000, /* the same, while the child waits for nothing but a CPU */
	ALL_MS = 1000,	/* in PATIENCE_REST_MS */
	ANSWER = 32768,
	MOST_WORDS = 128 << 10,
};

enum question { CMDLINE, ENVIRON, EXECUTABLE, MAPPED, CODE, PATH, OPEN };

struct asked {
	enum question question;
	pid_t pid;
	uint64_t start, end; /* PATH and OPEN: of the mapping */
	size_t size;	     /* CMDLINE and ENVIRON: so many bytes are wanted */
};

/* A packet of the child: bytes of a text, or whole records. The last one has the result. */
struct answer {
	bool more;
	ssize_t result;
	uint64_t cpu_ns; /* that it took the child, in the last one */
	size_t n;
	_Alignas(uint64_t) char bytes[ANSWER];
};

/* Of EXECUTABLE and MAPPED. Is followed by the path and its NUL. size: of all, rounded up. */
struct record {
	bool skipped;
	uint32_t size;
	struct procfs_mapping mapping; /* its path means nothing */
};

static struct {
	struct engine *engine;
	struct aside child;
	struct patience patience;
	uint64_t cpu_ns;
	procfs_aside_lost_fn lost;
	void *context;
} reader = {.patience = PATIENCE(ALL_MS)};

/* ---- The child --------------------------------------------------------------------------------
 */

struct telling {
	int fd;
	struct answer answer;
};

static void send_answer(struct telling *t, int fd)
{
	aside_send(t->fd, &t->answer, offsetof(struct answer, bytes) + t->answer.n, fd);
	t->answer.n = 0;
}

/* Sends what there is, unless so many bytes find room. */
static char *make_room(struct telling *t, size_t size)
{
	if (t->answer.n + size > ANSWER) {
		t->answer.more = true;
		send_answer(t, -1);
		t->answer.more = false;
	}
	return t->answer.bytes + t->answer.n;
}

static int put_mapping(void *context, const struct procfs_mapping *m)
{
	const char *path = m ? m->path : "";
	const size_t len = strlen(path) + 1, word = sizeof(uint64_t);
	struct record record = {.skipped = !m};
	struct telling *t = context;
	char *at;

	if (m)
		record.mapping = *m;
	record.size = (uint32_t)((sizeof(record) + len + word - 1) / word * word);
	at = make_room(t, record.size);
	memcpy(at, &record, sizeof(record));
	memcpy(at + sizeof(record), path, len);
	t->answer.n += record.size;
	return 0;
}

static bool put_code(void *context, const struct wire_mapping *m)
{
	struct telling *t = context;

	memcpy(make_room(t, sizeof(*m)), m, sizeof(*m));
	t->answer.n += sizeof(*m);
	return true;
}

static ssize_t put_words(struct telling *t, const struct asked *asked)
{
	static char words[MOST_WORDS];
	const size_t size = asked->size < MOST_WORDS ? asked->size : MOST_WORDS;
	const ssize_t len = asked->question == CMDLINE ? procfs_cmdline(asked->pid, words, size)
						       : procfs_environ(asked->pid, words, size);

	for (ssize_t at = 0, n = 0; at < len; at += n) {
		n = len - at < ANSWER ? len - at : ANSWER;
		memcpy(make_room(t, (size_t)n), words + at, (size_t)n);
		t->answer.n += (size_t)n;
	}
	return len;
}

static ssize_t put_path(struct telling *t, const struct asked *asked)
{
	const ssize_t len = procfs_mapping_path(asked->pid, asked->start, asked->end,
						t->answer.bytes, PATH_MAX + 16);

	t->answer.n = len < 0 ? 0 : (size_t)len + 1;
	return len;
}

static ssize_t put_answer(struct telling *t, const struct asked *asked)
{
	switch (asked->question) {
	case CMDLINE:
	case ENVIRON:
		return put_words(t, asked);
	case EXECUTABLE:
		return procfs_each_executable(asked->pid, put_mapping, t);
	case MAPPED:
		return procfs_each_mapped(asked->pid, put_mapping, t);
	case CODE:
		return reader.engine
			       ? engine_tell_mappings(reader.engine, asked->pid, 0, put_code, t)
			       : -EINVAL;
	case PATH:
		return put_path(t, asked);
	case OPEN:
		return procfs_open_mapping(asked->pid, asked->start, asked->end);
	}
	return -EINVAL;
}

static void serve(void *context, int fd)
{
	static struct telling t;
	struct asked asked;
	uint64_t told_ns = 0;

	(void)context;
	t.fd = fd;
	while (recv(fd, &asked, sizeof(asked), 0) == sizeof(asked)) {
		t.answer.n = 0;
		t.answer.more = false;
		t.answer.result = put_answer(&t, &asked);
		/* With what sending the one before took. */
		t.answer.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - told_ns;
		told_ns += t.answer.cpu_ns;
		if (asked.question != OPEN || t.answer.result < 0) {
			send_answer(&t, -1);
			continue;
		}
		send_answer(&t, (int)t.answer.result);
		close((int)t.answer.result);
	}
}

/* ---- The parent -------------------------------------------------------------------------------
 */

/* Takes the bytes of a packet, and the descriptor that came with it, or -1. */
typedef void (*take_fn)(void *context, const struct answer *answer, int fd);

/*
 * Nobody was waited for of late, as a rule: then nobody asks whose process it is. Who has had his
 * share is not waited for; nor does he take it from others, whose processes answer at once.
 */
static unsigned int deadline_of(pid_t pid)
{
	const struct budget *b = &reader.patience.budget;
	const uint64_t now = clock_ms();
	uid_t uid;

	if (budget_is_full(b, now) || procfs_user(pid, &uid) ||
	    patience_has(&reader.patience, uid, now))
		return MAP_MS;
	return budget_has(b, uid, now) || budget_spent_on(b, uid, now) < HURRY_MS ? HURRY_MS : 0;
}

/* waited: in vain; else it was not even asked. */
static ssize_t give_up(pid_t pid, bool waited)
{
	uid_t uid;

	if (procfs_user(pid, &uid))
		return -ESRCH;
	if (waited)
		patience_rest(&reader.patience, uid, clock_ms());
	if (reader.lost)
		reader.lost(reader.context, uid);
	return -ETIMEDOUT;
}

/* Whose process was asked about pays for the time that the child slept, also if it answered. */
static void charge(pid_t pid, const struct aside_wait *wait)
{
	uid_t uid;

	if (wait->slept_ms && !procfs_user(pid, &uid))
		patience_spend(&reader.patience, uid, clock_ms(), wait->slept_ms);
}

static ssize_t listen_to(pid_t pid, unsigned int deadline_ms, take_fn take, void *context)
{
	static struct answer answer;
	struct aside_wait wait = {.asleep_ms = deadline_ms, .busy_ms = BUSY_MS};
	int fd;

	do {
		if (!aside_wait(&reader.child, &wait)) {
			charge(pid, &wait);
			aside_end(&reader.child);
			return give_up(pid, true);
		}
		if (aside_receive(reader.child.fd, &answer, sizeof(answer), &fd) <
		    (ssize_t)offsetof(struct answer, bytes)) {
			aside_end(&reader.child);
			return -EIO;
		}
		take(context, &answer, fd);
	} while (answer.more);
	charge(pid, &wait);
	reader.cpu_ns += answer.cpu_ns;
	return answer.result;
}

static ssize_t ask(const struct asked *asked, take_fn take, void *context)
{
	const unsigned int deadline_ms = deadline_of(asked->pid);
	int err = 0;

	if (!deadline_ms)
		return give_up(asked->pid, false);
	if (!reader.child.child)
		err = aside_begin(&reader.child, serve, engine_needs, NULL);
	if (err)
		return err == -EAGAIN ? give_up(asked->pid, false) : err;
	if (!aside_send(reader.child.fd, asked, sizeof(*asked), -1)) {
		aside_end(&reader.child);
		return -EIO;
	}
	return listen_to(asked->pid, deadline_ms, take, context);
}

/* ---- Texts ------------------------------------------------------------------------------------
 */

struct text {
	char *buffer;
	size_t size, n;
};

static void take_text(void *context, const struct answer *answer, int fd)
{
	struct text *text = context;
	const size_t room = text->size - text->n, n = answer->n < room ? answer->n : room;

	(void)fd;
	memcpy(text->buffer + text->n, answer->bytes, n);
	text->n += n;
}

static ssize_t ask_text(const struct asked *asked, char *buffer, size_t size)
{
	struct text text = {.buffer = buffer, .size = size};
	const ssize_t result = ask(asked, take_text, &text);

	return result < (ssize_t)text.n ? result : (ssize_t)text.n;
}

ssize_t procfs_aside_cmdline(pid_t pid, char *buffer, size_t size)
{
	return ask_text(&(struct asked){.question = CMDLINE, .pid = pid, .size = size}, buffer,
			size);
}

ssize_t procfs_aside_environ(pid_t pid, char *buffer, size_t size)
{
	return ask_text(&(struct asked){.question = ENVIRON, .pid = pid, .size = size}, buffer,
			size);
}

ssize_t procfs_aside_mapping_path(pid_t pid, uint64_t start, uint64_t end, char *path, size_t size)
{
	const ssize_t len =
		ask_text(&(struct asked){.question = PATH, .pid = pid, .start = start, .end = end},
			 path, size - 1);

	path[len < 0 ? 0 : len] = '\0';
	return len;
}

static void take_fd(void *context, const struct answer *answer, int fd)
{
	(void)answer;
	*(int *)context = fd;
}

int procfs_aside_open_mapping(pid_t pid, uint64_t start, uint64_t end)
{
	int fd = -1;
	const ssize_t result =
		ask(&(struct asked){.question = OPEN, .pid = pid, .start = start, .end = end},
		    take_fd, &fd);

	return result < 0 ? (int)result : fd < 0 ? -EMFILE : fd;
}

/* ---- Mappings ---------------------------------------------------------------------------------
 */

/* Whoever visits has seen enough once visited is not 0. */
struct visiting {
	procfs_visit_fn visit;
	engine_mapping_fn tell;
	void *context;
	int visited;
};

static void visit_all(void *context, const struct answer *answer, int fd)
{
	struct visiting *v = context;
	struct record record;

	(void)fd;
	for (size_t at = 0; !v->visited && at < answer->n; at += record.size) {
		memcpy(&record, answer->bytes + at, sizeof(record));
		record.mapping.path = answer->bytes + at + sizeof(record);
		v->visited = v->visit(v->context, record.skipped ? NULL : &record.mapping);
	}
}

static int each(enum question question, pid_t pid, procfs_visit_fn visit, void *context)
{
	struct visiting v = {.visit = visit, .context = context};
	const ssize_t result =
		ask(&(struct asked){.question = question, .pid = pid}, visit_all, &v);

	return v.visited ? v.visited : (int)result;
}

int procfs_aside_each_executable(pid_t pid, procfs_visit_fn visit, void *context)
{
	return each(EXECUTABLE, pid, visit, context);
}

int procfs_aside_each_mapped(pid_t pid, procfs_visit_fn visit, void *context)
{
	return each(MAPPED, pid, visit, context);
}

/* The mapping that begins at start, and where in its file that is. */
struct wanted {
	uint64_t start, offset;
};

static int find_start(void *context, const struct procfs_mapping *m)
{
	struct wanted *wanted = context;

	if (!m || m->start != wanted->start)
		return 0;
	wanted->offset = m->offset;
	return 1;
}

int procfs_aside_mapping_offset(pid_t pid, uint64_t start, uint64_t *offset)
{
	struct wanted wanted = {.start = start};
	const int found = procfs_aside_each_executable(pid, find_start, &wanted);

	*offset = wanted.offset;
	return found > 0 ? 0 : found ? found : -ENOENT;
}

static void tell_all(void *context, const struct answer *answer, int fd)
{
	struct visiting *v = context;
	struct wire_mapping m;

	(void)fd;
	for (size_t at = 0; !v->visited && at < answer->n; at += sizeof(m)) {
		memcpy(&m, answer->bytes + at, sizeof(m));
		v->visited = !v->tell(v->context, &m);
	}
}

int procfs_aside_tell_mappings(pid_t pid, engine_mapping_fn tell, void *context)
{
	struct visiting v = {.tell = tell, .context = context};
	const ssize_t result = ask(&(struct asked){.question = CODE, .pid = pid}, tell_all, &v);

	return v.visited ? 0 : (int)result;
}

/* ---- Its life ---------------------------------------------------------------------------------
 */

uint64_t procfs_aside_cpu_ns(void)
{
	return reader.cpu_ns;
}

void procfs_aside_begin(struct engine *e, procfs_aside_lost_fn lost, void *context)
{
	procfs_aside_end();
	reader.engine = e;
	reader.lost = lost;
	reader.context = context;
}

void procfs_aside_end(void)
{
	aside_end(&reader.child);
	reader.engine = NULL;
	reader.lost = NULL;
}
