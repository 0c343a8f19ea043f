/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions of GPUs' libraries that a program has the address of; and processes that used one. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "kernel/discovery_state.h"
#include "kernel/gpu_calls.h"
#include "kernel/procfs_aside.h"

/* The executable mapping that has an address. */
struct place {
	uint64_t address;
	struct wire_mapping mapping;
	bool found;
};

static bool note_place(void *context, const struct wire_mapping *m)
{
	struct place *place = context;

	if (place->address < m->start || place->address >= m->end)
		return true;
	place->mapping = *m;
	place->found = true;
	return false;
}

void discovery_watch_gpu(struct discovery *d, const struct wire_gpu_code *code)
{
	const pid_t pid = (pid_t)code->h.tgid;
	struct gpu_source *source = engine_gpu_loaded(d->engine);
	struct place place = {.address = code->address};
	const struct known_file *file;
	uint64_t offset;
	int fd, err;

	if (!source || procfs_aside_tell_mappings(pid, note_place, &place) || !place.found)
		return;
	file = known_files_find(&d->files, &place.mapping.file);
	/* In an audit it does not wait, and may run another program by now. */
	if (!file || !file->gpu || !engine_tracks(d->engine, code->h.tgid, code->h.started_ns) ||
	    procfs_aside_mapping_offset(pid, place.mapping.start, &offset))
		return;
	fd = procfs_aside_open_mapping(pid, place.mapping.start, place.mapping.end);
	if (fd < 0)
		return;
	offset += code->address - place.mapping.start;
	err = gpu_source_attach_at(source, engine_probes(d->engine),
				   (struct probe_owner){.group = file->group}, fd, offset,
				   code->call);
	if (err)
		d->warn(d->context, gpu_functions[code->call % n_gpu_functions].symbol,
			strerror(-err));
	close(fd);
}

void discovery_forget_gpu(struct discovery *d, const struct wire_header *h)
{
	struct gpu_source *source = engine_gpu_loaded(d->engine);

	if (source && ((const struct wire_gpu *)h)->why == WIRE_GPU_EXIT)
		gpu_source_forget(source, h->tgid, h->started_ns);
}
