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

/* Returns a descriptor that the program writes to as it is read, or -errno. */
static int begin(struct bpf_program *program, pid_t pid, struct bpf_link **link)
{
	union bpf_iter_link_info info = {.task = {.tid = pid}};
	/* Set one by one: libbpf wants the padding behind them to be 0, and an initializer with
	 * values may leave it as it was. */
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);

	opts.link_info = pid ? &info : NULL;
	opts.link_info_len = pid ? sizeof(info) : 0;
	*link = bpf_program__attach_iter(program, &opts);
	return *link ? bpf_iter_create(bpf_link__fd(*link)) : -errno;
}

static void end(int fd, struct bpf_link *link)
{
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
}

int iterator_run(struct bpf_program *program, pid_t pid, size_t size, iterator_fn each,
		 void *context)
{
	struct bpf_link *link;
	const int fd = begin(program, pid, &link);
	const int err = fd < 0 ? fd : read_records(fd, size, each, context);

	end(fd, link);
	return err;
}

int iterator_first(struct bpf_program *program, pid_t pid, void *record, size_t size)
{
	struct bpf_link *link;
	const int fd = begin(program, pid, &link);
	ssize_t n = fd < 0 ? fd : 0;

	if (fd >= 0) {
		do
			n = read(fd, record, size); /* the kernel walks until it has so much */
		while (n < 0 && errno == EINTR);
		n = n < 0 ? -errno : n == (ssize_t)size;
	}
	end(fd, link);
	return (int)n;
}
