# SPDX-License-Identifier: GPL-2.0-only
"""What an allocation on a GPU costs: its call is seen at its begin and at its return."""

import os
from functools import partial

from harness import columns as c, hot

ORDERS = {"": ("allocations", 200)}
EMPTY = "trivial programs"
TITLE = "An allocation on a GPU"
NOTES = ["cuMemAlloc_v2 and cuMemFree_v2 of the library that is in place of the driver's in the tests: two calls, four "
         "hits; nanoseconds of CPU time of the thread."]


def run(env):
    library = env.build / "tests" / "programs" / "libcuda.so.1"
    os.environ["LD_LIBRARY_PATH"] = str(library.parent)
    try:
        bystander = env.cleanup.enter_context(c.Load(env))
        bystander.do("allocations", 1, 1)

        def attached(load):
            load.do("allocations", 1, 1)  # loads it
            return {
                EMPTY: c.Hooks(env, "calls", library),
                "ours, untracked": partial(c.ours_attached, env, bystander.pid),
                "ours, tracked": partial(c.ours_attached, env, load.pid),
            }
        return hot.section(env, __name__, TITLE, ORDERS, EMPTY, NOTES, attached)
    finally:
        del os.environ["LD_LIBRARY_PATH"]
