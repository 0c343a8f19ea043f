/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/iterator.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

/* An iterator writes whole records, but a read may end within one. Returns 0, or -errno. */
static int read_records(int fd, size_t size, iterator_fn each, void *context)
{
	_Alignas(uint64_t) char bytes[32768];
	size_t have = 0;
	ssize_t n;

	for (;;) {
		size_t at;

		n = read(fd, bytes + have, sizeof(bytes) - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		have += n;
		for (at = 0; size && have - at >= size; at += size)
			if (!each(context, bytes + at))
				return 0;
		have -= at;
		memmove(bytes, bytes + at, have);
	}
}

int iterator_run(struct bpf_program *program, pid_t pid, size_t size, iterator_fn each,
		 void *context)
{
	union bpf_iter_link_info info = {.task = {.tid = pid}};
	/* Set one by one: libbpf wants the padding behind them to be 0, and an initializer with
	 * values may leave it as it was. */
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);
	struct bpf_link *link;
	int fd, err;

	opts.link_info = pid ? &info : NULL;
	opts.link_info_len = pid ? sizeof(info) : 0;
	link = bpf_program__attach_iter(program, &opts);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	err = fd < 0 ? fd : read_records(fd, size, each, context);
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err;
}
