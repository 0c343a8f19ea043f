/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/gpu_source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/array.h"
#include "kernel/code.h"
#include "kernel/digest.h"
#include "kernel/elf_symbols.h"
#include "kernel/gpu_calls.h"
#include "kernel/late_load.h"
#include "kernel/skeleton.h"

/* A place that has its probes. */
struct watched {
	uint32_t group;
	uint64_t offset;
};

struct gpu_source {
	struct qprof_bpf *own;
	struct watched *watched;
	size_t n, room;
};

/* ---- Programs ---------------------------------------------------------------------------------
 */

void gpu_source_hold(struct qprof_bpf *engines)
{
	bpf_map__set_autocreate(engines->maps.gpu_ledger, false);
	bpf_map__set_autocreate(engines->maps.gpu_contexts, false);
	bpf_map__set_autocreate(engines->maps.gpu_calls, false);
	bpf_map__set_autocreate(engines->maps.gpu_threads, false);
	bpf_map__set_autocreate(engines->maps.gpu_functions, false);
	bpf_map__set_autocreate(engines->maps.gpu_names, false);
	bpf_program__set_autoload(engines->progs.gpu_forget, false);
}

/* Programs wait often, so in an audit who waits for a GPU is told only if the user asked. */
static bool is_wanted(const struct qprof_bpf *bpf, uint32_t function)
{
	return !bpf->rodata->config.audit || bpf->rodata->config.waits ||
	       gpu_functions[function].call.does != WIRE_GPU_WAITS;
}

/* Names that several symbols have mean the first of them. */
static int fill_functions(const struct qprof_bpf *bpf)
{
	const int functions = bpf_map__fd(bpf->maps.gpu_functions);
	const int names = bpf_map__fd(bpf->maps.gpu_names);
	int err = 0;

	for (uint32_t i = 0; !err && i < n_gpu_functions; i++) {
		char name[WIRE_GPU_NAME_MAX];

		err = bpf_map_update_elem(functions, &i, &gpu_functions[i].call, BPF_ANY);
		if (err || gpu_functions[i].call.vendor != WIRE_GPU_NVIDIA || !is_wanted(bpf, i))
			continue;
		gpu_function_name(gpu_functions[i].symbol, name);
		err = bpf_map_update_elem(names, name, &i, BPF_NOEXIST);
		if (err == -EEXIST)
			err = 0;
	}
	return err;
}

struct gpu_source *gpu_source_new(const struct qprof_bpf *engines, const char *types,
				  struct error *err)
{
	static const char *const programs[] = {"gpu_call_begins", "gpu_call_returns", "gpu_forget",
					       NULL};
	struct gpu_source *source = calloc(1, sizeof(*source));
	int code;

	if (!source) {
		error_set(err, "out of memory");
		return NULL;
	}
	source->own = late_load(engines, types, programs, "gpu_", &code);
	if (source->own)
		code = fill_functions(source->own);
	if (!code)
		return source;
	gpu_source_free(source);
	error_set(err, "cannot load the programs that see what is allocated on GPUs: %s",
		  strerror(-code));
	return NULL;
}

void gpu_source_free(struct gpu_source *source)
{
	if (!source)
		return;
	qprof_bpf__destroy(source->own);
	free(source->watched);
	free(source);
}

struct bpf_program *gpu_source_program(const struct gpu_source *source, bool returns)
{
	return returns ? source->own->progs.gpu_call_returns : source->own->progs.gpu_call_begins;
}

const struct qprof_bpf *gpu_source_own(const struct gpu_source *source)
{
	return source ? source->own : NULL;
}

void gpu_source_forget(struct gpu_source *source, uint32_t tgid, uint64_t started_ns)
{
	struct {
		uint64_t started_ns, tgid;
	} gone = {started_ns, tgid};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &gone, .ctx_size_in = sizeof(gone));

	bpf_prog_test_run_opts(bpf_program__fd(source->own->progs.gpu_forget), &opts);
}

/* ---- Probes -----------------------------------------------------------------------------------
 */

static uint64_t cheap_entry(int fd, uint64_t offset)
{
	uint8_t code[32];
	const ssize_t n = pread(fd, code, sizeof(code), (off_t)offset);

	return offset + (n > 0 ? code_entry(code_read, code, (size_t)n) : 0);
}

static bool is_watched(const struct gpu_source *source, uint32_t group, uint64_t offset)
{
	for (size_t i = 0; i < source->n; i++)
		if (source->watched[i].group == group && source->watched[i].offset == offset)
			return true;
	return false;
}

static int note_watched(struct gpu_source *source, uint32_t group, const struct probe_place *places,
			size_t n)
{
	struct watched *watched = array_reserve(source->watched, source->n + n, &source->room,
						sizeof(*source->watched));

	if (!watched)
		return -ENOMEM;
	source->watched = watched;
	for (size_t i = 0; i < n; i++)
		watched[source->n++] = (struct watched){group, places[i].offset};
	return 0;
}

/* Attaches the returns first: a call whose return nobody sees would hide those after it. */
static int attach(struct gpu_source *source, struct probes *probes, struct probe_owner owner,
		  int fd, const struct probe_place *places, size_t n)
{
	int err = probes_attach(probes, PROBE_GPU_RETURN, owner, fd, places, n);

	if (!err)
		err = probes_attach(probes, PROBE_GPU, owner, fd, places, n);
	return err ? err : note_watched(source, owner.group, places, n);
}

/* Several names may be of one function: it is attached once. */
static bool has_place(const struct gpu_places *places, uint64_t offset)
{
	for (size_t i = 0; i < places->n; i++)
		if (places->place[i].offset == offset)
			return true;
	return false;
}

static void find_places(struct elf_file *f, struct elf_symbols *symbols,
			enum wire_gpu_vendor vendor, struct gpu_places *places)
{
	for (uint32_t i = 0; i < n_gpu_functions; i++) {
		const char *symbol = gpu_functions[i].symbol;
		uint64_t address, offset;

		if (gpu_functions[i].call.vendor != vendor ||
		    elf_symbols_find(symbols, f, symbol, strlen(symbol), &address) ||
		    !elf_file_offset(f, address, 1, PF_X, &offset))
			continue;
		offset = cheap_entry(f->fd, offset);
		if (!has_place(places, offset))
			places->place[places->n++] =
				(struct probe_place){.offset = offset, .cookie = i};
	}
}

int gpu_source_find(int fd, enum wire_gpu_vendor vendor, struct gpu_places *places,
		    uint64_t *digest)
{
	struct elf_symbols symbols = {0};
	struct elf_file f;
	int err = elf_file_open(&f, fd);

	places->n = 0;
	if (!err && f.narrow)
		err = -ENOEXEC;
	if (!err)
		find_places(&f, &symbols, vendor, places);
	elf_symbols_free(&symbols);
	elf_file_close(&f);
	for (size_t i = 0; i < places->n; i++)
		digest_place(digest, fd, places->place[i].offset);
	return err;
}

int gpu_source_attach(struct gpu_source *source, struct probes *probes, struct probe_owner owner,
		      int fd, const struct gpu_places *places)
{
	struct gpu_places wanted = {.n = 0};

	for (size_t i = 0; i < places->n; i++)
		if (is_wanted(source->own, (uint32_t)places->place[i].cookie))
			wanted.place[wanted.n++] = places->place[i];
	return wanted.n ? attach(source, probes, owner, fd, wanted.place, wanted.n) : 0;
}

int gpu_source_attach_at(struct gpu_source *source, struct probes *probes, struct probe_owner owner,
			 int fd, uint64_t offset, uint32_t call)
{
	const struct probe_place place = {.offset = cheap_entry(fd, offset), .cookie = call};

	if (is_watched(source, owner.group, place.offset))
		return 0;
	return attach(source, probes, owner, fd, &place, 1);
}
