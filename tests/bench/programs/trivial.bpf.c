// SPDX-License-Identifier: GPL-2.0-only
/* trivial.bpf.c - programs that do nothing: what a hook costs, whatever is done in it. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "GPL";

SEC("?tp_btf/rss_stat")
int trivial_rss_stat(void *ctx)
{
	return 0;
}

SEC("?tp_btf/sys_exit")
int trivial_sys_exit(void *ctx)
{
	return 0;
}

SEC("?tp_btf/sched_switch")
int trivial_sched_switch(void *ctx)
{
	return 0;
}

SEC("?tp_btf/sched_wakeup")
int trivial_sched_wakeup(void *ctx)
{
	return 0;
}

SEC("?tp_btf/block_bio_queue")
int trivial_block_bio_queue(void *ctx)
{
	return 0;
}

SEC("?tp_btf/block_rq_complete")
int trivial_block_rq_complete(void *ctx)
{
	return 0;
}

SEC("?tp_btf/writeback_dirty_folio")
int trivial_writeback_dirty_folio(void *ctx)
{
	return 0;
}

SEC("?usdt")
int trivial_usdt(struct pt_regs *ctx)
{
	return 0;
}

SEC("?uprobe")
int trivial_call(struct pt_regs *ctx)
{
	return 0;
}

SEC("?uretprobe.s")
int trivial_return(struct pt_regs *ctx)
{
	return 0;
}
