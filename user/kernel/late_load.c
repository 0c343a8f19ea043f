/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/late_load.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/log.h"
#include "kernel/skeleton.h"

static int share_maps(struct qprof_bpf *own, const struct qprof_bpf *engines, const char *maps)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, own->obj)
	{
		const struct bpf_map *other =
			bpf_object__find_map_by_name(engines->obj, bpf_map__name(map));
		int err;

		if (other && !bpf_map__autocreate(other)) {
			bpf_map__set_autocreate(
				map, maps && !strncmp(bpf_map__name(map), maps, strlen(maps)));
			continue;
		}
		err = other ? bpf_map__reuse_fd(map, bpf_map__fd(other)) : -ENOENT;
		if (err)
			return err;
	}
	return 0;
}

/* The engine has chosen how its programs attach. */
static void choose(struct bpf_program *program, const struct qprof_bpf *engines, bool load)
{
	const struct bpf_program *other =
		bpf_object__find_program_by_name(engines->obj, bpf_program__name(program));

	bpf_program__set_autoload(program, load);
	if (load && other)
		bpf_program__set_expected_attach_type(program,
						      bpf_program__expected_attach_type(other));
}

static bool is_one_of(const char *name, const char *const names[])
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

static int load(struct qprof_bpf *own, const struct qprof_bpf *engines, const char *const names[],
		const char *maps)
{
	struct bpf_program *program = NULL;
	const int err = share_maps(own, engines, maps);

	while ((program = bpf_object__next_program(own->obj, program)))
		choose(program, engines, is_one_of(bpf_program__name(program), names));
	/* What is dead code for this run is so by the engine's constants, which are frozen. */
	memcpy(own->rodata, engines->rodata, sizeof(*own->rodata));
	return err ? err : qprof_bpf__load(own);
}

struct qprof_bpf *late_load(const struct qprof_bpf *engines, const char *types,
			    const char *const names[], const char *maps, int *code)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = types);
	struct qprof_bpf *own = qprof_bpf__open_opts(&opts);

	log_verbose("loads what was not expected to be needed: %s", names[0]);
	*code = own ? load(own, engines, names, maps) : -errno;
	if (!*code)
		return own;
	qprof_bpf__destroy(own);
	return NULL;
}
