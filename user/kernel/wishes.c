/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/wishes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <asm/ptrace.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "kernel/digest.h"
#include "kernel/functions.h"
#include "kernel/usdt.h"

enum { MARKS_AT_ONCE = 16 };

struct wisher {
	uint32_t tgid;
	uint64_t lists, of_job;
	UT_hash_handle hh;
};

/* ---- Who wishes what --------------------------------------------------------------------------
 */

/* Root has no share: it may do anything else, too. */
static bool has_share(const struct wishes *w, const struct wish_job *of)
{
	size_t all = 0, own = 0;

	for (size_t i = 0; i < WISHES_MAX; i++) {
		if (!(w->of_jobs & UINT64_C(1) << i))
			continue;
		all++;
		own += w->lists[i]->of->uid == of->uid;
	}
	return all < WISHES_OF_JOBS && (!of->uid || own < WISHES_OF_JOBS - all);
}

static bool has_items(const struct wish_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (!list->wishes[i].mark)
			return true;
	return false;
}

uint64_t wishes_add(struct wishes *w, struct wish_list *list)
{
	size_t free = WISHES_MAX;

	for (size_t i = 0; i < WISHES_MAX; i++) {
		if (w->lists[i] == list)
			return UINT64_C(1) << i;
		if (!w->lists[i] && free == WISHES_MAX)
			free = i;
	}
	if (free == WISHES_MAX || (list->of && !has_share(w, list->of)))
		return 0;
	w->lists[free] = list;
	if (!list->of)
		return UINT64_C(1) << free;
	w->of_jobs |= UINT64_C(1) << free;
	list->of->has_items = has_items(list);
	return UINT64_C(1) << free;
}

uint64_t wishes_of_job(const struct wishes *w, uint32_t job)
{
	for (size_t i = 0; w->of_jobs && i < WISHES_MAX; i++)
		if (w->of_jobs & UINT64_C(1) << i && w->lists[i]->of->job == job)
			return UINT64_C(1) << i;
	return 0;
}

static struct wisher *find(const struct wishes *w, uint32_t tgid)
{
	struct wisher *wisher;

	HASH_FIND(hh, w->wishers, &tgid, sizeof(tgid), wisher);
	return wisher;
}

static void forget(struct wishes *w, struct wisher *wisher)
{
	HASH_DEL(w->wishers, wisher);
	free(wisher);
}

/* Returns NULL without memory. */
static struct wisher *get(struct wishes *w, uint32_t tgid)
{
	struct wisher *wisher = find(w, tgid);

	if (wisher)
		return wisher;
	wisher = calloc(1, sizeof(*wisher));
	if (!wisher)
		return NULL;
	wisher->tgid = tgid;
	HASH_ADD(hh, w->wishers, tgid, sizeof(wisher->tgid), wisher);
	if (wisher->hh.tbl)
		return wisher;
	free(wisher);
	return NULL;
}

static void set(struct wishes *w, uint32_t tgid, uint64_t lists, bool of_job)
{
	struct wisher *wisher = lists ? get(w, tgid) : find(w, tgid);

	if (!wisher)
		return;
	*(of_job ? &wisher->of_job : &wisher->lists) = lists;
	if (!wisher->lists && !wisher->of_job)
		forget(w, wisher);
}

void wishes_use(struct wishes *w, uint32_t tgid, uint64_t lists)
{
	set(w, tgid, lists, false);
}

void wishes_use_of_job(struct wishes *w, uint32_t tgid, uint64_t lists)
{
	set(w, tgid, lists, true);
}

uint64_t wishes_of(const struct wishes *w, uint32_t tgid)
{
	const struct wisher *wisher = find(w, tgid);

	return wisher ? wisher->lists | wisher->of_job : 0;
}

void wishes_remove(struct wishes *w, const struct wish_list *list)
{
	struct wisher *wisher = NULL, *next;
	size_t i = 0;

	while (i < WISHES_MAX && w->lists[i] != list)
		i++;
	if (i == WISHES_MAX)
		return;
	w->lists[i] = NULL;
	w->of_jobs &= ~(UINT64_C(1) << i);
	HASH_ITER (hh, w->wishers, wisher, next) {
		wisher->lists &= ~(UINT64_C(1) << i);
		wisher->of_job &= ~(UINT64_C(1) << i);
		if (!wisher->lists && !wisher->of_job)
			forget(w, wisher);
	}
}

void wishes_free(struct wishes *w)
{
	while (w->wishers)
		forget(w, w->wishers);
}

/* ---- Places -----------------------------------------------------------------------------------
 */

/* The search of a file. */
struct places {
	struct wish_search *search;
	struct item_source *source;
	struct wish *wish;
	uint32_t job;		  /* whose alone they are; 0: they are a recipe's */
	enum probe probe;	  /* of the list: */
	struct probe_place *list; /* of a function or probe, or of marks */
	size_t n, room;
	int err;
};

static void warn(const struct places *p, const char *name, const char *why)
{
	char what[600];

	snprintf(what, sizeof(what), "%s in %s", name, p->search->path);
	if (!p->search->comparing)
		p->search->warn(p->search->context, what, why);
}

/* Returns the index of a new site, or -errno. */
static int add_site(struct places *p, const char *name, const struct wire_item_site *site)
{
	int index = sites_add_name(p->search->sites, name);
	int err = index < 0 ? index : item_source_set_site(p->source, (uint32_t)index, site);

	return err ? err : index;
}

static void add_place(struct places *p, uint64_t offset, uint64_t semaphore, int index)
{
	struct probe_place *list;

	digest_place(p->search->digest, p->search->fd, offset);
	if (p->search->comparing)
		return;
	list = index < 0 ? NULL : array_reserve(p->list, p->n, &p->room, sizeof(*list));
	if (!list) {
		p->err = index < 0 ? index : -ENOMEM;
		return;
	}
	p->list = list;
	list[p->n++] = (struct probe_place){
		.offset = offset, .semaphore = semaphore, .cookie = (uint32_t)index};
}

/* The registers that hold arguments 1 to 6 of a function. */
static struct wire_arg function_arg(size_t i)
{
#if defined(__x86_64__)
	static const uint16_t registers[WIRE_HIT_ARGS] = {
		offsetof(struct pt_regs, rdi), offsetof(struct pt_regs, rsi),
		offsetof(struct pt_regs, rdx), offsetof(struct pt_regs, rcx),
		offsetof(struct pt_regs, r8),  offsetof(struct pt_regs, r9),
	};
	const uint16_t reg = registers[i];
#else
	const uint16_t reg = (uint16_t)(offsetof(struct user_pt_regs, regs) + 8 * i);
#endif
	return (struct wire_arg){.kind = WIRE_ARG_REG, .reg = reg, .index = WIRE_NO_REG, .size = 8};
}

static struct wire_item_site site_of(const struct places *p)
{
	const struct wish *wish = p->wish;
	struct wire_item_site site = {.item = wish->item, .phase = wish->returns, .job = p->job};

	memcpy(site.text, wish->texts, sizeof(site.text));
	return site;
}

static int attach_some(struct places *p, const struct probe_place *list, size_t n)
{
	struct wish_search *s = p->search;
	const struct probe_owner owner = {s->group, p->list->cookie};
	const int err = probes_attach(engine_probes(s->engine), p->probe, owner, s->fd, list, n);

	s->attached |= !err;
	s->held |= err == -EBUSY;
	return err;
}

/*
 * Each function has its own, so that they can be removed without those of others. All of its places
 * at once; or, if the kernel refuses one of them, one by one, so that the rest work.
 */
static void attach(struct places *p)
{
	struct wish_search *s = p->search;
	int err = 0;

	s->cut |= p->n && s->until_ms && clock_ms() >= s->until_ms;
	if (p->n && !s->cut)
		err = attach_some(p, p->list, p->n);
	for (size_t i = 0; err && !p->search->held && i < p->n; i++) {
		const int one = attach_some(p, &p->list[i], 1);

		p->err = one ? one : p->err;
	}
	p->n = 0;
}

static void add_function(void *context, const struct function *function)
{
	struct places *p = context;
	struct wire_item_site site = site_of(p);
	int index = 0;

	if (p->wish->returns && function->unknown)
		warn(p, function->name, function->unknown);
	if (p->wish->returns && function->unknown && !function->n_returns)
		return;
	for (size_t i = 0; i < WIRE_HIT_ARGS; i++)
		if (p->wish->args & 1u << i)
			site.arg[i] = function_arg(i);
	if (!p->search->comparing)
		index = add_site(p, function->name, &site);
	add_place(p, function->begin, 0, index);
	site.returns = 1;
	if (!p->search->comparing && function->n_returns)
		index = add_site(p, function->name, &site);
	for (size_t i = 0; p->wish->returns && i < function->n_returns; i++)
		add_place(p, function->returns[i], 0, index);
	p->wish->places += !p->search->comparing;
	attach(p);
}

/* As sites_add() makes one of a pattern of --usdt. */
static void add_mark(struct places *p, const struct usdt_probe *probe)
{
	const struct wire_site site = {
		.what = WIRE_MARK, .job = (uint16_t)p->job, .named_by_site = 1};
	char name[2 * USDT_NAME_LEN];
	int index = 0, err;

	snprintf(name, sizeof(name), "%s:%s", probe->provider, probe->name);
	if (!p->search->comparing)
		index = sites_add_name(p->search->sites, name);
	err = index < 0 || p->search->comparing
		      ? 0
		      : engine_set_site(p->search->engine, (uint32_t)index, &site);
	add_place(p, probe->offset, probe->semaphore, err ? err : index);
	p->wish->places += !p->search->comparing;
	if (p->n == MARKS_AT_ONCE)
		attach(p);
}

static void add_probe(struct places *p, const struct usdt_probe *probe)
{
	struct wire_item_site site = site_of(p);
	char name[2 * USDT_NAME_LEN];
	int index = 0;

	snprintf(name, sizeof(name), "%s:%s", probe->provider, probe->name);
	for (size_t i = 0; i < WIRE_HIT_ARGS; i++) {
		if (!(p->wish->args & 1u << i))
			continue;
		site.arg[i] = probe->arg[i];
		if (i >= probe->nargs)
			warn(p, name, "it has fewer arguments than the recipe names");
	}
	if (!p->search->comparing)
		index = add_site(p, name, &site);
	add_place(p, probe->offset, probe->semaphore, index);
	p->wish->places += !p->search->comparing;
	attach(p);
}

/* ---- Search -----------------------------------------------------------------------------------
 */

static void search_functions(struct places *p, const struct wish_list *list)
{
	struct functions *functions = NULL;
	const char *why = NULL;
	int err = 0;

	for (size_t i = 0; i < list->n && !err; i++) {
		int n;

		p->wish = &list->wishes[i];
		if (!p->wish->function)
			continue;
		if (!functions)
			err = functions_open(p->search->fd, &functions, &why);
		if (err == -ENOEXEC)
			return;
		if (err)
			break;
		n = functions_find(functions, p->wish->pattern, p->wish->returns, add_function, p);
		if (n > FUNCTIONS_MAX)
			warn(p, p->wish->pattern, "more functions match than are probed: 256");
		p->err = n < 0 ? n : p->err;
	}
	if (err)
		warn(p, "functions", why ? why : strerror(-err));
	functions_free(functions);
}

static void search_probes(struct places *p, const struct wish_list *list)
{
	struct usdt_file file = {0};
	bool read = false;

	for (size_t i = 0; i < list->n; i++) {
		p->wish = &list->wishes[i];
		if (p->wish->function || p->wish->mark)
			continue;
		/* What is wrong with the file was said when it was searched for checkpoints. */
		if (!read && usdt_file_read(p->search->fd, &file, NULL))
			return;
		read = true;
		for (size_t k = 0; k < file.count; k++)
			if (sites_match(&file.probes[k], p->wish->pattern))
				add_probe(p, &file.probes[k]);
	}
	usdt_file_free(&file);
}

/* Returns the first wish for marks that the probe meets, or NULL. A probe that is a checkpoint
 * already would be two. */
static struct wish *mark_of(const struct places *p, const struct wish_list *list,
			    const struct usdt_probe *probe)
{
	const struct sites *s = p->search->sites;
	uint32_t named_by_site;

	if (sites_classify(probe, s->patterns, s->n_patterns, &named_by_site))
		return NULL;
	for (size_t i = 0; i < list->n; i++)
		if (list->wishes[i].mark && sites_match(probe, list->wishes[i].pattern))
			return &list->wishes[i];
	return NULL;
}

static void search_marks(struct places *p, const struct wish_list *list)
{
	struct usdt_file file = {0};
	size_t i = 0;

	while (i < list->n && !list->wishes[i].mark)
		i++;
	if (i == list->n || usdt_file_read(p->search->fd, &file, NULL))
		return;
	p->probe = PROBE_SITE;
	for (i = 0; i < file.count; i++) {
		p->wish = mark_of(p, list, &file.probes[i]);
		if (p->wish)
			add_mark(p, &file.probes[i]);
	}
	attach(p);
	usdt_file_free(&file);
}

/*
 * A USDT probe is a nop, and costs others who run the file half a microsecond where it is hit, as
 * rare as who wrote the file has made that. A function may be malloc(): those of a job are looked
 * for in its user's own files alone, or anybody could slow the whole machine.
 */
bool wishes_may_probe_functions(const struct wish_list *list, int fd)
{
	struct stat st;

	return !list->of || !list->of->uid || (!fstat(fd, &st) && st.st_uid == list->of->uid);
}

static void search_items(struct places *p, const struct wish_list *list)
{
	struct error ignored = {0};

	p->source = has_items(list) ? engine_items(p->search->engine, &ignored) : NULL;
	p->probe = PROBE_ITEM;
	if (!p->source)
		return;
	if (wishes_may_probe_functions(list, p->search->fd))
		search_functions(p, list);
	search_probes(p, list);
}

void wishes_search(struct wishes *w, uint64_t lists, struct wish_search *search)
{
	struct places p = {.search = search};

	for (size_t i = 0; i < WISHES_MAX; i++) {
		if (!(lists & UINT64_C(1) << i) || !w->lists[i])
			continue;
		p.job = w->lists[i]->of ? w->lists[i]->of->job : 0;
		search_items(&p, w->lists[i]);
		search_marks(&p, w->lists[i]);
	}
	if (p.err)
		warn(&p, "places of recipes", strerror(-p.err));
	free(p.list);
}
