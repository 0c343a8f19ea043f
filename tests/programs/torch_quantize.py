#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Quantizes a PyTorch model to 8 bits: torch_quantize.py [--megabytes MB] [--wait] OUT

A program as users have it: nothing in it knows of qprof-bpf. Linear layers of MB megabytes of
float32 in all (120 by default) go through quantize_dynamic, and the state dict is saved to OUT.
--wait makes it wait for a line on its input first, so that a profiler can be attached.

Prints one JSON line at the end.
"""

import argparse
import json
import os
import resource
import sys

import torch

WIDTH = 1024


def make_model(megabytes):
    """Linear layers of WIDTH x WIDTH weights, as many as make up megabytes."""
    torch.manual_seed(2)
    count = -(-megabytes * 2 ** 20 // (WIDTH * WIDTH * 4))
    return torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(count)))


def float_bytes(model):
    return sum(p.numel() * p.element_size() for p in model.parameters())


def main():
    parser = argparse.ArgumentParser(description="Quantizes a PyTorch model to 8 bits.")
    parser.add_argument("--megabytes", type=int, default=120)
    parser.add_argument("--wait", action="store_true",
                        help="wait for a line on the standard input before doing anything")
    parser.add_argument("out")
    args = parser.parse_args()

    if args.wait:
        print(json.dumps({"ready": os.getpid()}), flush=True)
        sys.stdin.readline()

    model = make_model(args.megabytes)
    size = float_bytes(model)
    quantized = torch.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    torch.save(quantized.state_dict(), args.out)

    sample = torch.randn(4, WIDTH)
    with torch.no_grad():
        error = (model(sample) - quantized(sample)).abs().max().item()
    print(json.dumps({"float_bytes": size, "output_bytes": os.path.getsize(args.out),
                      "max_abs_error": error,
                      "max_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


if __name__ == "__main__":
    main()
