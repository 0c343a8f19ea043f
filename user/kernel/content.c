/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/content.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "kernel/digest.h"
#include "kernel/elf_file.h"
#include "kernel/gpu_calls.h"
#include "kernel/gpu_source.h"

enum {
	FIRST_PROBES = 16, /* that are attached at once, if there is a limit of time */
	QUICK_MS = 10,	   /* and if they took less, twice as many */
};

static void digest_probe(struct content *c, int fd, const struct usdt_probe *probe)
{
	digest_place(&c->digest, fd, probe->offset);
	digest_bytes(&c->digest, &probe->semaphore, sizeof(probe->semaphore));
	digest_bytes(&c->digest, probe->provider, strlen(probe->provider) + 1);
	digest_bytes(&c->digest, probe->name, strlen(probe->name) + 1);
	for (size_t i = 0; i < WIRE_HIT_ARGS; i++)
		digest_bytes(&c->digest, &probe->arg[i], sizeof(probe->arg[i]));
}

static void warn_of_probe(struct content *c, const struct usdt_probe *probe, const char *path,
			  const char *why)
{
	char what[2 * USDT_NAME_LEN + 512 + sizeof(": in ")];

	snprintf(what, sizeof(what), "%s:%s in %s", probe->provider, probe->name, path);
	c->warn(c->context, what, why);
}

/* The places of a file's checkpoints, and the probe at each. */
struct chosen {
	struct probe_place *places;
	const struct usdt_probe **probes;
	size_t n;
};

/* Returns how many sites the file would have if there were room. */
static size_t count_sites(const struct content *c, const struct usdt_file *file)
{
	const struct sites *s = c->sites;
	uint32_t named_by_site;
	size_t n = 0;

	for (size_t i = 0; i < file->count; i++)
		n += sites_classify(&file->probes[i], s->patterns, s->n_patterns, &named_by_site) !=
		     0;
	return n;
}

/* A file that is too large by itself waits for no room. */
static bool must_wait(const struct content *c, const struct usdt_file *file)
{
	size_t n;

	if (!c->make_room || c->comparing)
		return false;
	n = count_sites(c, file);
	return n > sites_left_for_file(c->sites) && n <= sites_most_for_file(c->sites) &&
	       c->make_room(c->discovery);
}

static int choose_probes(struct content *c, const char *path, const struct usdt_file *file,
			 struct chosen *chosen)
{
	*chosen = (struct chosen){
		.places = calloc(file->count, sizeof(*chosen->places)),
		.probes = calloc(file->count, sizeof(*chosen->probes)),
	};
	if (!chosen->places || !chosen->probes)
		return -ENOMEM;
	for (size_t i = 0; i < file->count; i++) {
		const struct usdt_probe *probe = &file->probes[i];
		const char *why;
		int index = sites_add(c->sites, c->engine, probe, &why);

		if (index == -EDQUOT) {
			c->crowded = true;
			c->warn(c->context, path,
				"it, or its user's files, have more probes than are left for all "
				"others; the rest of them are not attached");
			break;
		}
		if (why)
			warn_of_probe(c, probe, path, why);
		if (index < 0)
			continue;
		chosen->probes[chosen->n] = probe;
		chosen->places[chosen->n++] = (struct probe_place){
			.offset = probe->offset, .semaphore = probe->semaphore, .cookie = index};
	}
	return 0;
}

static int attach(struct content *c, enum probe probe, int fd, const struct probe_place *places,
		  size_t n)
{
	const struct probe_owner owner = {.group = c->group};
	int err = probes_attach(engine_probes(c->engine), probe, owner, fd, places, n);

	c->attached |= !err;
	c->held |= err == -EBUSY;
	return err;
}

/* Attaches n, from that one on, at once; or, if the kernel refuses one of them, one by one, so that
 * the rest work. */
static void attach_some(struct content *c, int fd, const char *path, const struct chosen *chosen,
			size_t first, size_t n)
{
	if (!attach(c, PROBE_SITE, fd, &chosen->places[first], n) || c->held)
		return;
	for (size_t i = first; i < first + n; i++) {
		int err = attach(c, PROBE_SITE, fd, &chosen->places[i], 1);

		if (err)
			warn_of_probe(c, chosen->probes[i], path, strerror(-err));
	}
}

/* The first probes are attached in any case. */
static bool is_over(struct content *c)
{
	c->cut |= c->until_ms && clock_ms() >= c->until_ms;
	return c->cut;
}

/*
 * All at once, which is quickest. Where there is so much time and no more, a few at a time: the
 * kernel attaches each probe to each process that has the file mapped, and cannot be interrupted.
 * Example: 8,192 probes that 1,000 processes have mapped take 25 s; 16 of them 50 ms.
 */
static void attach_chosen(struct content *c, int fd, const char *path, const struct chosen *chosen)
{
	size_t step = c->until_ms ? FIRST_PROBES : chosen->n, n;

	for (size_t at = 0; at < chosen->n && !c->held && !(at && is_over(c)); at += n) {
		const uint64_t began = clock_ms();

		n = step < chosen->n - at ? step : chosen->n - at;
		attach_some(c, fd, path, chosen, at, n);
		if (clock_ms() - began < QUICK_MS)
			step *= 2;
	}
}

static void attach_probes(struct content *c, int fd, const char *path)
{
	struct usdt_file file;
	struct chosen chosen;
	const char *why = NULL;
	int err = usdt_file_read(fd, &file, &why);

	if (err == -ENOEXEC)
		return;
	c->cut |= elf_is_too_much();
	if (err) {
		c->warn(c->context, path, why ? why : strerror(-err));
		return;
	}
	if (file.bad_notes)
		c->warn(c->context, path, "some of its probe notes make no sense and were skipped");
	if (file.truncated)
		c->warn(c->context, path, "it has more probes than are read of one file");
	for (size_t i = 0; i < file.count; i++)
		digest_probe(c, fd, &file.probes[i]);
	c->postponed = must_wait(c, &file);
	if (file.count && !c->comparing && !c->postponed && !c->cut) {
		err = choose_probes(c, path, &file, &chosen);
		if (err)
			c->warn(c->context, path, strerror(-err));
		else
			attach_chosen(c, fd, path, &chosen);
		free(chosen.places);
		free(chosen.probes);
	}
	usdt_file_free(&file);
}

static bool begins(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* glibc's, and musl's, which is both dynamic linker and libc. */
static bool is_linker(const char *name)
{
	return begins(name, "ld-linux") || begins(name, "ld-musl") || begins(name, "ld64.so") ||
	       begins(name, "ld.so") || begins(name, "ld-2.");
}

static bool is_libc(const char *name)
{
	return begins(name, "libc.so") || begins(name, "libc-2.") || begins(name, "libc.musl") ||
	       begins(name, "ld-musl");
}

static bool is_libaio(const char *name)
{
	return begins(name, "libaio.so");
}

static void attach_function(struct content *c, enum probe probe, int fd, const char *path,
			    const char *function)
{
	struct probe_place place = {0};
	int err = usdt_find_function(fd, function, &place.offset);
	int site = 0;
	char what[600];

	if (!err)
		digest_place(&c->digest, fd, place.offset);
	if (c->comparing)
		return;
	if (!err)
		site = sites_add_name(c->sites, function); /* it counts as any */
	place.cookie = (uint32_t)site;
	if (!err)
		err = site < 0 ? site : attach(c, probe, fd, &place, 1);
	if (!err || c->held)
		return;
	snprintf(what, sizeof(what), "%s in %s", function, path);
	c->warn(c->context, what, strerror(-err));
}

/* With --count-splice. Attaches the begin first: a return without a begin is not counted. */
static void attach_calls(struct content *c, int fd, const char *path, const char *name)
{
	static const struct {
		bool (*is_in)(const char *name);
		enum probe probe;
		const char *function;
	} calls[] = {
		{is_libc, PROBE_CALL, "vmsplice"},
		{is_libc, PROBE_LIBC_VMSPLICE, "vmsplice"},
		{is_libc, PROBE_LIBC_SPLICE, "splice"},
		{is_libc, PROBE_LIBC_SPLICE, "tee"},
		{is_libc, PROBE_LIBC_VM_READ, "process_vm_readv"},
		{is_libc, PROBE_LIBC_VM_WRITE, "process_vm_writev"},
		{is_libaio, PROBE_CALL, "io_submit"},
		{is_libaio, PROBE_LIBAIO_SUBMIT, "io_submit"},
	};

	if (!is_libc(name) && !is_libaio(name))
		return;
	/* The BPF side would misread what such a function returns: -1 as 4 GiB. */
	if (usdt_is_narrow(fd)) {
		c->warn(c->context, path,
			"of 32 bits: splice, native AIO and their like of programs that use it are "
			"not counted");
		return;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i].is_in(name))
			attach_function(c, calls[i].probe, fd, path, calls[i].function);
}

static void attach_gpu(struct content *c, int fd, const char *path, enum wire_gpu_vendor vendor)
{
	const struct probe_owner owner = {.group = c->group};
	struct gpu_source *source;
	struct gpu_places places;
	struct error why = {0};
	int err = gpu_source_find(fd, vendor, &places, &c->digest);

	if (err == -ENOEXEC || c->comparing)
		return;
	engine_say_loading(c->engine, true);
	source = places.n ? engine_gpu(c->engine, &why) : NULL;
	if (source)
		err = gpu_source_attach(source, engine_probes(c->engine), owner, fd, &places);
	engine_say_loading(c->engine, false);
	c->attached |= source && !err;
	c->held |= err == -EBUSY;
	if (c->held)
		return;
	if (!source || err)
		c->warn(c->context, path,
			*why.text ? why.text
			: err	  ? strerror(-err)
				  : "it has none of the functions that allocate memory on GPUs");
}

static void attach_libraries(struct content *c, int fd, const char *path)
{
	const char *name = base_name(path);

	if (is_linker(name)) {
		attach_function(c, PROBE_LINKER, fd, path, "_dl_debug_state");
		c->linker_added |= !c->comparing;
		c->narrow_added |= !c->comparing && usdt_is_narrow(fd);
	}
	if (gpu_library_vendor(name))
		attach_gpu(c, fd, path, gpu_library_vendor(name));
	if (engine_features(c->engine)->calls == CALLS_PROBED)
		attach_calls(c, fd, path, name);
}

static void begin(struct content *c, int fd)
{
	struct stat st;

	c->crowded = c->postponed = c->held = c->cut = false;
	if (!c->way_known)
		probes_begin_file(engine_probes(c->engine));
	sites_begin_file(c->sites, c->group, c->of ? c->of->uid : fstat(fd, &st) ? 0 : st.st_uid);
}

/* Their digests are added, in whichever order they come. */
static void search_wishes(struct content *c, int fd, const char *path, uint64_t lists)
{
	for (size_t i = 0; i < WISHES_MAX; i++) {
		uint64_t digest = digest_of_nothing;
		struct wish_search search = {
			.engine = c->engine,
			.sites = c->sites,
			.fd = fd,
			.group = c->group,
			.path = path,
			.digest = &digest,
			.comparing = c->comparing,
			.until_ms = c->until_ms,
			.warn = c->warn,
			.context = c->context,
		};

		if (!(lists & UINT64_C(1) << i))
			continue;
		wishes_search(c->wishes, UINT64_C(1) << i, &search);
		c->cut |= search.cut || elf_is_too_much();
		c->attached |= search.attached;
		c->held |= search.held;
		c->digest += digest;
	}
}

void content_search_wishes(struct content *c, int fd, const char *path, uint64_t lists)
{
	begin(c, fd);
	search_wishes(c, fd, path, lists);
}

void content_search(struct content *c, int fd, const char *path, uint64_t lists)
{
	begin(c, fd);
	c->digest = digest_of_nothing;
	attach_probes(c, fd, path);
	if (!c->postponed && !c->held)
		attach_libraries(c, fd, path);
	if (c->postponed || c->held)
		return;
	search_wishes(c, fd, path, lists);
}

bool content_is_gpu(const char *path)
{
	return gpu_library_vendor(base_name(path)) != 0;
}

bool content_is_linker(const char *path)
{
	return is_linker(base_name(path));
}

bool content_is_watched(const struct content *c, const char *path)
{
	const char *name = base_name(path);

	return is_linker(name) || content_is_gpu(path) ||
	       (engine_features(c->engine)->calls == CALLS_PROBED &&
		(is_libc(name) || is_libaio(name)));
}
