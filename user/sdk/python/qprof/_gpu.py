# SPDX-License-Identifier: MIT
"""What PyTorch holds on GPUs, asked only where the program uses CUDA already.

To ask must change nothing: not load PyTorch, not begin CUDA, and make no context on a device that the
program does not use. So nothing is asked before torch.cuda is initialized, and the driver only about
devices on which PyTorch's allocator holds something.
"""

import sys
import time
from typing import Any, Callable, Optional, Tuple

# What the two metrics are, for the comments of a profile.
_RESERVED = ("torch_cuda_reserved_mb", "what PyTorch's allocator holds on all GPUs, in MiB: "
             "torch.cuda.memory_reserved()")
_ALLOCATED = ("torch_cuda_allocated_mb", "of that, what tensors take: torch.cuda.memory_allocated()")

_REST = 50  # to ask takes at most a part in so many of the time
_due = 0.0


def _cuda() -> Any:
    """torch.cuda, if the program uses CUDA through it; in a child that was forked since, it cannot."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    asked = getattr(cuda, "is_initialized", None)
    return cuda if asked is not None and asked() else None


def _held(cuda: Any, device: int) -> Tuple[int, int]:
    stats = cuda.memory_stats_as_nested_dict(device)
    return (stats.get("reserved_bytes", {}).get("all", {}).get("current", 0),
            stats.get("allocated_bytes", {}).get("all", {}).get("current", 0))


def held() -> Optional[Tuple[int, int]]:
    """Bytes that PyTorch has reserved and allocated on all devices; None if it uses no CUDA."""
    try:
        cuda = _cuda()
        if cuda is None:
            return None
        pairs = [_held(cuda, device) for device in range(cuda.device_count())]
    except Exception:  # pylint: disable=broad-except; of another version: the program is what matters
        return None
    return sum(one for one, _ in pairs), sum(other for _, other in pairs)


def in_use() -> Optional[int]:
    """Bytes that the devices have in use, by everybody, of those that PyTorch holds something on."""
    try:
        cuda = _cuda()
        if cuda is None:
            return None
        used = 0
        for device in range(cuda.device_count()):
            if _held(cuda, device)[0]:
                free, total = cuda.mem_get_info(device)
                used += total - free
        return used
    except Exception:  # pylint: disable=broad-except
        return None


def report(metric: Callable[[bytes, float], None], define: Callable[[bytes], None]) -> None:
    """Two metrics that join the next row, unless it was asked a moment ago."""
    global _due
    if "torch" not in sys.modules:
        return
    began = time.monotonic()
    if began < _due:
        return
    amounts = held()
    if amounts is None:
        return
    first = _due == 0
    _due = began + _REST * (time.monotonic() - began)
    for (name, definition), amount in zip((_RESERVED, _ALLOCATED), amounts):
        if first:
            define(f"{name}: {definition}".encode())
        metric(name.encode(), amount / 2 ** 20)
