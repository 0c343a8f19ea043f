# SPDX-License-Identifier: GPL-2.0-only
"""What --files costs: a program at each request for a disk, at its end, and at each page that becomes dirty."""

from harness import by_profile, columns as c, hot, workloads

ORDERS = {"page read cold": ("cold", 500), "page read ahead": ("ahead", 8000), "page made dirty": ("dirty", 2000)}
EMPTY = "empty tp_btf programs"
TITLE = "Added by --files"
NOTES = ["Nanoseconds of CPU time of the thread, for 4 KiB of a file on a disk. Read cold: each is a request, and a folio, "
         "of its own. Read ahead: in order, so that the kernel makes large requests. Made dirty: of a clean page in the "
         "page cache. The end of a request is in an interrupt, and mostly not the thread's time. The empty programs are "
         "on block_bio_queue, block_rq_complete and writeback_dirty_folio.",
         f"Whole runs: {by_profile.NOTE[0].lower()}{by_profile.NOTE[1:]}"]


def run(env):
    result = hot.section(env, __name__, TITLE, ORDERS, EMPTY, NOTES, lambda load: {
        EMPTY: c.Hooks(env, "storage"),
        "ours, untracked": c.ours_elsewhere(env, "files"),
        "ours, tracked": c.Hooks(env, "files", load.pid),
    }, bursts=3)
    for workload in [*workloads.prepare(env, quick=True), workloads.cold_read(env, 256)]:
        result.tables.append(by_profile.table_of(env, result, workload, ("--files",)))
    return result
