/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/storage.h"

#include <bpf/libbpf.h>

#include "kernel/engine_state.h"
#include "kernel/call.h"

void storage_choose(struct qprof_bpf *bpf, bool wanted, bool copies, unsigned int max_files)
{
	bpf_program__set_autoload(bpf->progs.tell_private_mappings, copies);
	bpf_program__set_autoload(bpf->progs.storage_asked, wanted);
	bpf_program__set_autoload(bpf->progs.storage_dirtied, wanted);
	bpf_program__set_autoload(bpf->progs.storage_told, wanted);
	bpf_program__set_autoload(bpf->progs.device_ends, wanted);
	bpf_program__set_autoload(bpf->progs.device_ends_one, wanted);
	if (wanted) {
		if (max_files)
			bpf_map__set_max_entries(bpf->maps.stored_files, max_files);
		return;
	}
	bpf_map__set_autocreate(bpf->maps.stored_files, false);
	bpf_map__set_autocreate(bpf->maps.stored_rests, false);
	bpf_map__set_autocreate(bpf->maps.stored_pieces, false);
	bpf_map__set_autocreate(bpf->maps.stored_rooms, false);
	bpf_map__set_autocreate(bpf->maps.stored_spaces, false);
	bpf_map__set_autocreate(bpf->maps.stored_devices, false);
	bpf_map__set_autocreate(bpf->maps.stored_asked, false);
	bpf_map__set_autocreate(bpf->maps.stored_no_device, false);
}

int engine_tell_files(struct engine *e)
{
	uint32_t more;
	const int err = call_program(e->bpf->progs.storage_told, NULL, 0, &more);

	return err ? err : (int)more;
}
