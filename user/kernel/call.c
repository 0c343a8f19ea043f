/* SPDX-License-Identifier: GPL-2.0-only */
#include "kernel/call.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

int call_program(struct bpf_program *program, void *args, uint32_t size, uint32_t *answer)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = size);
	int code = bpf_prog_test_run_opts(bpf_program__fd(program), &opts);

	*answer = opts.retval;
	return code;
}
