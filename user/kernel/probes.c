/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/probes.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/array.h"
#include "base/log.h"
#include "kernel/skeleton.h"
#include "kernel/uprobe_multi.h"

enum { DETACH_THREADS = 32, DETACH_MS = 2000, RELEASE_NS = 50000000 };

/* A link of libbpf's; or a link that libbpf does not know, with link NULL and its descriptor. */
struct attached {
	struct bpf_link *link;
	int fd;
	enum probe probe;
	struct probe_owner owner;
};

struct probes {
	struct bpf_program *programs[PROBE_KINDS];
	bool multi;
	struct attached *attached;
	size_t n, room;
	void (*announce)(void *context); /* or NULL */
	void *context;
};

static bool at_return(enum probe probe)
{
	return probe > PROBE_CALL;
}

struct probes *probes_new(struct qprof_bpf *bpf, bool multi, bool calls)
{
	struct probes *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct probes){
		.multi = multi,
		.programs =
			{
				[PROBE_SITE] = bpf->progs.site_hit,
				[PROBE_LINKER] = bpf->progs.objects_changed,
				[PROBE_ITEM] = bpf->progs.item_hit,
				[PROBE_CALL] = bpf->progs.library_call_begins,
				[PROBE_LIBC_VMSPLICE] = bpf->progs.libc_vmsplice_done,
				[PROBE_LIBAIO_SUBMIT] = bpf->progs.libaio_submitted,
				[PROBE_LIBC_SPLICE] = bpf->progs.libc_splice_done,
				[PROBE_LIBC_VM_READ] = bpf->progs.libc_vm_read_done,
				[PROBE_LIBC_VM_WRITE] = bpf->progs.libc_vm_write_done,
			},
	};
	for (enum probe probe = 0; probe < PROBE_KINDS; probe++) {
		struct bpf_program *program = p->programs[probe];

		bpf_program__set_autoload(program,
					  probe < PROBE_ITEM || (probe > PROBE_ITEM && calls));
		if (multi)
			bpf_program__set_expected_attach_type(
				program, (enum bpf_attach_type)TRACE_UPROBE_MULTI);
		bpf_program__set_autoattach(program, false);
	}
	return p;
}

void probes_add_program(struct probes *p, enum probe probe, struct bpf_program *program)
{
	p->programs[probe] = program;
}

/* ---- Attach ------------------------------------------------------------------------------------
 */

static int make_room(struct probes *p, size_t more)
{
	struct attached *attached =
		array_reserve(p->attached, p->n + more, &p->room, sizeof(*attached));

	if (!attached)
		return -ENOMEM;
	p->attached = attached;
	return 0;
}

/* One link for all places. */
static int attach_multi(struct probes *p, enum probe probe, struct probe_owner owner,
			const char *path, const struct probe_place *places, size_t n)
{
	uint64_t *words = calloc(3 * n, sizeof(*words));
	uint64_t *offsets, *semaphores, *cookies;
	int fd;

	if (!words)
		return -ENOMEM;
	offsets = words;
	semaphores = words + n;
	cookies = words + 2 * n;
	for (size_t i = 0; i < n; i++) {
		offsets[i] = places[i].offset;
		semaphores[i] = places[i].semaphore;
		cookies[i] = places[i].cookie;
	}
	fd = uprobe_multi_link(bpf_program__fd(p->programs[probe]), path, offsets, semaphores,
			       cookies, n, at_return(probe));
	free(words);
	if (fd < 0)
		return fd;
	p->attached[p->n++] = (struct attached){.fd = fd, .probe = probe, .owner = owner};
	return 0;
}

/* A perf event for each place, as kernels before 6.6 have it. */
static int attach_singly(struct probes *p, enum probe probe, struct probe_owner owner,
			 const char *path, const struct probe_place *places, size_t n)
{
	const size_t before = p->n;

	for (size_t i = 0; i < n; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .ref_ctr_offset = places[i].semaphore,
			    .bpf_cookie = places[i].cookie, .retprobe = at_return(probe));
		struct bpf_link *link = bpf_program__attach_uprobe_opts(
			p->programs[probe], -1, path, places[i].offset, &opts);
		int err = -errno;

		if (link) {
			p->attached[p->n++] = (struct attached){
				.link = link, .fd = -1, .probe = probe, .owner = owner};
			continue;
		}
		while (p->n > before)
			bpf_link__destroy(p->attached[--p->n].link);
		return err;
	}
	return 0;
}

int probes_attach(struct probes *p, enum probe probe, struct probe_owner owner, int fd,
		  const struct probe_place *places, size_t n)
{
	int err = make_room(p, p->multi ? 1 : n);
	char path[64];

	if (err)
		return err;
	if (p->announce)
		p->announce(p->context);
	/* By descriptor: the file's name may mean another file by now. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return p->multi ? attach_multi(p, probe, owner, path, places, n)
			: attach_singly(p, probe, owner, path, places, n);
}

void probes_announce(struct probes *p, void (*announce)(void *context), void *context)
{
	p->announce = announce;
	p->context = context;
}

size_t probes_count(const struct probes *p)
{
	return p->n;
}

static int link_fd(const struct attached *a)
{
	return a->link ? bpf_link__fd(a->link) : a->fd;
}

struct probe_link probes_link(const struct probes *p, size_t i)
{
	const struct attached *a = &p->attached[i];

	return (struct probe_link){.fd = link_fd(a), .probe = a->probe, .owner = a->owner};
}

int probes_adopt(struct probes *p, const struct probe_link *link)
{
	if (make_room(p, 1)) {
		close(link->fd);
		return -ENOMEM;
	}
	p->attached[p->n++] =
		(struct attached){.fd = link->fd, .probe = link->probe, .owner = link->owner};
	return 0;
}

/* ---- Detach ------------------------------------------------------------------------------------
 */

static void detach(struct attached *a)
{
	if (a->link)
		bpf_link__destroy(a->link);
	else
		close(a->fd);
}

/* What a thread detaches. */
struct released {
	size_t n;
	struct attached attached[];
};

static void *detach_released(void *arg)
{
	struct released *released = arg;

	for (size_t i = 0; i < released->n; i++)
		detach(&released->attached[i]);
	free(released);
	return NULL;
}

/*
 * The kernel removes the breakpoints at once, and then waits for every program that is at a probe;
 * this program may be waiting for us. So a thread detaches, and we wait for it only RELEASE_NS.
 */
static void detach_aside(struct released *released)
{
	struct timespec until;
	pthread_t thread;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += RELEASE_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_create(&thread, NULL, detach_released, released))
		detach_released(released);
	else if (pthread_timedjoin_np(thread, NULL, &until))
		pthread_detach(thread);
}

typedef bool (*whose_fn)(const struct attached *a, uint32_t number);

static bool is_of_group(const struct attached *a, uint32_t group)
{
	return a->owner.group == group;
}

static bool is_of_item(const struct attached *a, uint32_t item)
{
	return a->probe == PROBE_ITEM && a->owner.item == item;
}

static void detach_those(struct probes *p, whose_fn is_its, uint32_t number)
{
	struct released *released = malloc(sizeof(*released) + p->n * sizeof(*p->attached));
	size_t kept = 0;

	if (released)
		released->n = 0;
	for (size_t i = 0; i < p->n; i++) {
		if (!is_its(&p->attached[i], number))
			p->attached[kept++] = p->attached[i];
		else if (released)
			released->attached[released->n++] = p->attached[i];
		else
			detach(&p->attached[i]);
	}
	p->n = kept;
	if (released && released->n)
		detach_aside(released);
	else
		free(released);
}

void probes_detach(struct probes *p, uint32_t group)
{
	detach_those(p, is_of_group, group);
}

void probes_detach_item(struct probes *p, uint32_t item)
{
	detach_those(p, is_of_item, item);
}

/* ---- The end: all of them ----------------------------------------------------------------------
 */

/* A share of what is attached: every DETACH_THREADS-th link, from the first on. */
struct share {
	struct probes *probes;
	size_t first;
	pthread_t thread;
};

static void *detach_share(void *arg)
{
	const struct share *share = arg;
	const struct probes *p = share->probes;

	for (size_t i = share->first; i < p->n; i += DETACH_THREADS)
		detach(&p->attached[i]);
	return NULL;
}

/* For each link the kernel waits a grace period or two, some 90 ms: threads wait side by side. */
static void detach_in_parallel(struct probes *p)
{
	struct share shares[DETACH_THREADS];
	size_t n = 0;

	for (; n < DETACH_THREADS && n < p->n; n++) {
		shares[n] = (struct share){.probes = p, .first = n};
		if (pthread_create(&shares[n].thread, NULL, detach_share, &shares[n]))
			break;
	}
	for (size_t i = n; i < DETACH_THREADS && i < p->n; i++)
		detach_share(&(struct share){.probes = p, .first = i});
	for (size_t i = 0; i < n; i++)
		pthread_join(shares[i].thread, NULL);
}

static int compare_fds(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return (x > y) - (x < y);
}

/*
 * Closes all descriptors but the links: somebody may wait for the end of a pipe, a socket or a
 * file. Example: links at 5 and 9 leave 0 to 4, 6 to 8, and 10 on to be closed.
 */
static void close_others(const struct probes *p)
{
	int *kept = calloc(p->n, sizeof(*kept));
	unsigned int next = 0;

	if (!kept)
		return;
	for (size_t i = 0; i < p->n; i++)
		kept[i] = link_fd(&p->attached[i]);
	qsort(kept, p->n, sizeof(*kept), compare_fds);
	for (size_t i = 0; i < p->n; i++) {
		if ((unsigned int)kept[i] > next)
			close_range(next, kept[i] - 1, 0);
		next = kept[i] + 1;
	}
	close_range(next, ~0u, 0);
	free(kept);
}

/*
 * The kernel waits for every program that is at a probe, and a program may sleep there for as long
 * as its owner likes: its argument may lie in memory that a userfaultfd does not serve. The process
 * that closes a link's last descriptor waits, and cannot even be killed. So a child closes them,
 * and we wait for the child, but not for ever.
 */
static void detach_all(struct probes *p)
{
	struct pollfd done = {.events = POLLIN};
	pid_t child = p->n ? fork() : -1;

	if (!child) {
		close_others(p);
		detach_in_parallel(p);
		_exit(0);
	}
	if (child < 0) {
		detach_in_parallel(p);
		return;
	}
	for (size_t i = 0; i < p->n; i++)
		detach(&p->attached[i]);
	done.fd = pidfd_open(child, 0);
	if (done.fd < 0 || poll(&done, 1, DETACH_MS) > 0)
		waitpid(child, NULL, 0);
	else
		log_error("a process hangs in a probe, which cannot be removed before it goes on "
			  "or is killed; process %d waits for that",
			  child);
	if (done.fd >= 0)
		close(done.fd);
}

void probes_free(struct probes *p)
{
	if (!p)
		return;
	detach_all(p);
	free(p->attached);
	free(p);
}
