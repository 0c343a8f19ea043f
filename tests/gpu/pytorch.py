# SPDX-License-Identifier: GPL-2.0-only
"""PyTorch on a GPU, a part at a time: pytorch.py PART. Each phase prints a JSON line of what PyTorch says of it:
the most that its allocator has reserved, and what it holds at the end."""

import gc
import json
import sys

import qprof
import torch

MIB = 1 << 20
cuda = torch.cuda


class phase:
    """A phase, and the allocator's own peak of it."""

    def __init__(self, name):
        self.name = name
        self.scope = qprof.scope(name)

    def __enter__(self):
        cuda.synchronize()
        cuda.reset_peak_memory_stats()
        self.scope.__enter__()

    def __exit__(self, *error):
        cuda.synchronize()
        self.scope.__exit__(*error)
        print(json.dumps({"phase": self.name, "peak": cuda.max_memory_reserved(), "held": cuda.memory_reserved()}),
              flush=True)


def release():
    gc.collect()
    cuda.empty_cache()


def blocks():
    with phase("grow"):
        held = [torch.empty((i + 1) * 7 * MIB, dtype=torch.uint8, device="cuda") for i in range(16)]
    with phase("shrink"):
        del held[::2]
        release()
    with phase("regrow"):
        held.append(torch.empty(200 * MIB, dtype=torch.uint8, device="cuda"))
        del held[-1]
    del held
    with phase("empty"):
        release()


def matmul():
    """cuBLAS takes a workspace for each handle and stream, which PyTorch allocates."""
    a = torch.randn(2048, 2048, device="cuda", dtype=torch.float16)
    with phase("matmul"):
        streams = [cuda.Stream() for _ in range(3)]
        for stream in streams:
            with cuda.stream(stream):
                a @ a
    with phase("empty"):
        del a
        release()


def graph():
    """A graph has a pool of its own, which stays as long as it does."""
    x = torch.zeros(8 * MIB, device="cuda")
    with phase("graph"):
        captured = cuda.CUDAGraph()
        with cuda.graph(captured):
            y = (x + 1) * 2
        captured.replay()
    with phase("empty"):
        del captured, x, y
        release()


def oom():
    with phase("refused"):
        free, total = cuda.mem_get_info()
        try:
            torch.empty(2 * total, dtype=torch.uint8, device="cuda")
        except torch.cuda.OutOfMemoryError:
            pass


def child(barrier, mib):
    torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")
    held = torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")
    cuda.synchronize()
    barrier.wait(60)
    del held


def processes():
    """Two workers hold 300 and 500 MiB at the same time, each in a process of its own."""
    import torch.multiprocessing as mp
    context = mp.get_context("spawn")
    barrier = context.Barrier(2)
    with qprof.scope("workers"):
        workers = [context.Process(target=child, args=(barrier, mib)) for mib in (300, 500)]
        for one in workers:
            one.start()
        for one in workers:
            one.join(90)
    print(json.dumps({"phase": "workers", "peak": None, "held": 0, "at_least": 800 * MIB}), flush=True)


def quantize():
    """Layers of a model of some GB: one after the other to the device, to 4 bits, and back."""
    layers = [torch.randn(4096, 8192, dtype=torch.float16) for _ in range(24)]
    results = []
    with phase("Quantize"):
        for number, weights in enumerate(layers):
            with qprof.scope(f"Layer {number}"):
                on_device = weights.cuda().float()
                scale = on_device.abs().amax(dim=1, keepdim=True) / 7
                results.append((on_device / scale).round().to(torch.int8).cpu())
                del on_device, scale
    with phase("empty"):
        release()


if __name__ == "__main__":
    if not cuda.is_available():
        print(json.dumps({"error": "PyTorch has no CUDA here"}))
        sys.exit(3)
    cuda.init()
    {"blocks": blocks, "matmul": matmul, "graph": graph, "oom": oom, "processes": processes,
     "quantize": quantize}[sys.argv[1]]()
