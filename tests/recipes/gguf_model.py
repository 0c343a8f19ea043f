#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""A small GGUF file of the llama architecture with random weights: gguf_model.py OUT [LAYERS [WIDTH]]

As https://github.com/ggml-org/ggml/blob/master/docs/gguf.md describes the format. What it holds is
what llama-quantize and llama-imatrix read; its words are 256 bytes and a few letters.
"""

import random
import struct
import sys

UINT32, FLOAT32, STRING, ARRAY, INT32 = 4, 6, 8, 9, 5
ALIGN = 32


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    if kind == STRING:
        body = text(value)
    elif kind == ARRAY:
        of, items = value
        packed = b"".join(map(text, items)) if of == STRING else struct.pack(
            f"<{len(items)}{'f' if of == FLOAT32 else 'i'}", *items)
        body = struct.pack("<IQ", of, len(items)) + packed
    else:
        body = struct.pack("<f" if kind == FLOAT32 else "<I", value)
    return text(key) + struct.pack("<I", kind) + body


def vocabulary():
    words = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + [
        "\u2581"] + [chr(letter) for letter in range(ord("a"), ord("z") + 1)]
    kinds = [2, 3, 3] + [6] * 256 + [1] * 27
    return words, kinds


def entries(layers, width):
    words, kinds = vocabulary()
    return [
        entry("general.architecture", STRING, "llama"),
        entry("llama.block_count", UINT32, layers),
        entry("llama.context_length", UINT32, 512),
        entry("llama.embedding_length", UINT32, width),
        entry("llama.feed_forward_length", UINT32, 2 * width),
        entry("llama.attention.head_count", UINT32, 4),
        entry("llama.attention.layer_norm_rms_epsilon", FLOAT32, 1e-5),
        entry("llama.rope.dimension_count", UINT32, width // 4),
        entry("general.file_type", UINT32, 0),
        entry("tokenizer.ggml.model", STRING, "llama"),
        entry("tokenizer.ggml.tokens", ARRAY, (STRING, words)),
        entry("tokenizer.ggml.scores", ARRAY, (FLOAT32, [-float(i) for i in range(len(words))])),
        entry("tokenizer.ggml.token_type", ARRAY, (INT32, kinds)),
    ]


def tensors(layers, width):
    """Name and shape, the fastest dimension first."""
    words = len(vocabulary()[0])
    yield "token_embd.weight", (width, words)
    for i in range(layers):
        yield f"blk.{i}.attn_norm.weight", (width,)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"blk.{i}.{name}.weight", (width, width)
        yield f"blk.{i}.ffn_norm.weight", (width,)
        yield f"blk.{i}.ffn_gate.weight", (width, 2 * width)
        yield f"blk.{i}.ffn_up.weight", (width, 2 * width)
        yield f"blk.{i}.ffn_down.weight", (2 * width, width)
    yield "output_norm.weight", (width,)
    yield "output.weight", (width, words)


def write(path, layers=2, width=256):
    shapes = list(tensors(layers, width))
    keys = entries(layers, width)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(keys)) + b"".join(keys)
    at = 0
    for name, shape in shapes:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, at)
        at += -(-4 * shape[0] * (shape[1] if len(shape) > 1 else 1) // ALIGN) * ALIGN
    row = struct.pack("<4096f", *(random.Random(2).gauss(0, 0.02) for _ in range(4096)))
    with open(path, "wb") as out:
        out.write(head + b"\0" * (-len(head) % ALIGN))
        for _, shape in shapes:
            size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
            out.write((row * (size // len(row) + 1))[:size] + b"\0" * (-size % ALIGN))
    return [name for name, _ in shapes]


if __name__ == "__main__":
    write(sys.argv[1], *map(int, sys.argv[2:]))
