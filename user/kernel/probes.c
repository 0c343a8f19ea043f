/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/probes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/array.h"
#include "kernel/holders.h"
#include "kernel/put_off.h"
#include "kernel/removals.h"
#include "kernel/skeleton.h"
#include "kernel/uprobe_multi.h"

struct attached {
	struct removable at;
	enum probe probe;
	struct probe_owner owner;
};

struct probes {
	struct bpf_program *programs[PROBE_KINDS];
	bool multi;
	struct attached *attached;
	size_t n, room;
	struct removals removals;
	struct holders holders;
	enum { WAY_UNKNOWN, WAY_FREE, WAY_BARRED } way; /* of the file in hand */
	int *leases;					/* until the end */
	size_t n_leases, leases_room;
};

enum { LOST_MS = 1000 }; /* to holders, in ten seconds */

static bool is_loaded(enum probe probe, bool calls)
{
	switch (probe) {
	case PROBE_SITE:
	case PROBE_LINKER:
		return true;
	case PROBE_ITEM:
	case PROBE_GPU:
	case PROBE_GPU_RETURN:
		return false;
	default:
		return calls;
	}
}

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
		.removals = {.epoll = -1, .holders = -1},
		.holders = {.program = -1, .patience = PATIENCE(LOST_MS)},
		.programs =
			{
				[PROBE_SITE] = bpf->progs.site_hit,
				[PROBE_LINKER] = bpf->progs.objects_changed,
				[PROBE_ITEM] = bpf->progs.item_hit,
				[PROBE_GPU] = bpf->progs.gpu_call_begins,
				[PROBE_GPU_RETURN] = bpf->progs.gpu_call_returns,
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

		bpf_program__set_autoload(program, is_loaded(probe, calls));
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

void probes_mind_holders(struct probes *p, const struct bpf_program *program, bool strangers)
{
	p->holders.strangers = strangers;
	p->holders.program = p->removals.holders = bpf_program__fd(program);
}

void probes_begin_file(struct probes *p)
{
	p->way = WAY_UNKNOWN;
}

void probes_look(struct probes *p, int fd)
{
	p->way = holders_let(&p->holders, fd) ? WAY_FREE : WAY_BARRED;
}

pid_t probes_holder(const struct probes *p)
{
	return p->holders.found;
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
	p->attached[p->n++] = (struct attached){.at.fd = fd, .probe = probe, .owner = owner};
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
			p->attached[p->n++] =
				(struct attached){.at = {link, -1}, .probe = probe, .owner = owner};
			continue;
		}
		while (p->n > before)
			removable_close(&p->attached[--p->n].at);
		return err;
	}
	return 0;
}

void probes_prepare(struct probes *p)
{
	put_off_load(p->programs[PROBE_SITE]);
}

int probes_attach(struct probes *p, enum probe probe, struct probe_owner owner, int fd,
		  const struct probe_place *places, size_t n)
{
	int err = put_off_load(p->programs[probe]);
	char path[64];

	if (!err)
		err = make_room(p, p->multi ? 1 : n);
	if (err)
		return err;
	if (p->way == WAY_UNKNOWN)
		probes_look(p, fd);
	if (p->way == WAY_BARRED)
		return -EBUSY;
	/* By descriptor: the file's name may mean another file by now. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return p->multi ? attach_multi(p, probe, owner, path, places, n)
			: attach_singly(p, probe, owner, path, places, n);
}

size_t probes_count(const struct probes *p)
{
	return p->n;
}

struct probe_link probes_link(const struct probes *p, size_t i)
{
	const struct attached *a = &p->attached[i];

	return (struct probe_link){
		.fd = removable_fd(&a->at), .probe = a->probe, .owner = a->owner};
}

int probes_adopt(struct probes *p, const struct probe_link *link)
{
	if (make_room(p, 1)) {
		close(link->fd);
		return -ENOMEM;
	}
	p->attached[p->n++] =
		(struct attached){.at.fd = link->fd, .probe = link->probe, .owner = link->owner};
	return 0;
}

/* ---- Detach ------------------------------------------------------------------------------------
 */

typedef bool (*whose_fn)(const struct attached *a, struct probe_owner owner);

static bool is_of_group(const struct attached *a, struct probe_owner owner)
{
	return a->owner.group == owner.group;
}

static bool is_of_item(const struct attached *a, struct probe_owner owner)
{
	return a->probe == PROBE_ITEM && a->owner.item == owner.item &&
	       a->owner.group == owner.group;
}

static bool is_any(const struct attached *a, struct probe_owner owner)
{
	(void)a;
	(void)owner;
	return true;
}

static bool detach_those(struct probes *p, whose_fn is_its, struct probe_owner owner,
			 const struct removable_group *group)
{
	struct removable *links = p->n ? calloc(p->n, sizeof(*links)) : NULL;
	size_t kept = 0, n = 0;

	for (size_t i = 0; i < p->n; i++) {
		if (!is_its(&p->attached[i], owner))
			p->attached[kept++] = p->attached[i];
		else if (links)
			links[n++] = p->attached[i].at;
		else
			removable_close(&p->attached[i].at);
	}
	p->n = kept;
	if (n || group->lease >= 0 || group->n_leases)
		removals_add(&p->removals, group, links, n);
	free(links);
	return n || group->lease >= 0;
}

bool probes_detach(struct probes *p, uint32_t group, const struct wire_file *file, int lease)
{
	return detach_those(
		p, is_of_group, (struct probe_owner){.group = group},
		&(struct removable_group){.group = group, .file = *file, .lease = lease});
}

uint32_t probes_group_with(const struct probes *p, uint32_t item)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->attached[i].probe == PROBE_ITEM && p->attached[i].owner.item == item)
			return p->attached[i].owner.group;
	return 0;
}

void probes_detach_item(struct probes *p, struct probe_owner owner, const struct wire_file *file,
			int lease)
{
	detach_those(p, is_of_item, owner,
		     &(struct removable_group){.file = *file, .lease = lease});
}

/* Without memory, the probes go while nobody looks whether that holds up the machine. */
void probes_take_lease(struct probes *p, int lease)
{
	int *leases = array_reserve(p->leases, p->n_leases, &p->leases_room, sizeof(*leases));

	if (!leases) {
		close(lease);
		return;
	}
	p->leases = leases;
	p->leases[p->n_leases++] = lease;
}

void probes_watch(struct probes *p, int epoll, void (*gone)(void *context, uint32_t group),
		  void *context)
{
	p->removals.epoll = epoll;
	p->removals.gone = gone;
	p->removals.context = context;
}

void probes_tend(struct probes *p)
{
	removals_tend(&p->removals);
}

bool probes_leaving(const struct probes *p)
{
	return p->removals.first != NULL;
}

bool probes_settle(struct probes *p, const struct wire_file *file)
{
	enum { SETTLE_MS = 50 };

	return removals_settle(&p->removals, file, SETTLE_MS);
}

void probes_free(struct probes *p)
{
	if (!p)
		return;
	if (p->n || p->n_leases)
		detach_those(p, is_any, (struct probe_owner){0},
			     &(struct removable_group){
				     .lease = -1, .leases = p->leases, .n_leases = p->n_leases});
	removals_finish(&p->removals);
	free(p->leases);
	free(p->attached);
	free(p);
}
