#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What Linux 6.1 has against BPF programs, as far as that can be told without it: oldest.py OBJECT.

Stacks: the frames of a function and all its callers share 512 bytes, each rounded up to 32, and there are
at most 8 of them; a step of bpf_loop() has a frame, too (kernel/bpf/verifier.c, check_max_stack_depth()).
6.1 looks at code that runs on this machine alone: what is for a nested pid namespace, say, is none of
its business outside of one. This looks at all code, so nobody finds out first. (It also adds what the
callback of a timer needs to who sets the timer, which 6.1 does not.)

Loops: their last instruction before the first one, in the order of the code, has to be a jump. A call
that falls into the begin of its loop is a "back-edge" (push_insn() and visit_insn() there).
"""
import sys
from collections import namedtuple

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

BYTES, FRAMES, ROUNDED_TO = 512, 8, 32
INSN = 8  # bytes of an instruction
FRAME_POINTER = 10
CLASS_LDX, CLASS_ST, CLASS_STX, CLASS_JMP, CLASS_JMP32 = 1, 2, 3, 5, 6
GO, EXIT = 0x05, 0x95  # goto; exit
LOAD_64, CALL, MOVE, ADD = 0x18, 0x85, 0xbf, 0x07  # r = number; call; r = r; r += number
TO_FUNCTION = 1  # in place of a register, in a call: not one of the kernel's

Insn = namedtuple("Insn", "code to by offset number")
Chain = namedtuple("Chain", "size names")


def decode(code):
    for at in range(0, len(code), INSN):
        word = code[at:at + INSN]
        yield Insn(word[0], word[1] & 15, word[1] >> 4, int.from_bytes(word[2:4], "little", signed=True),
                   int.from_bytes(word[4:8], "little", signed=True))


def frame_of(insns):
    """Bytes below the frame pointer that a function uses."""
    lowest = 0
    for insn, following in zip(insns, insns[1:] + [Insn(0, 0, 0, 0, 0)]):
        kind = insn.code & 7
        if (kind == CLASS_LDX and insn.by == FRAME_POINTER) or (kind in (CLASS_ST, CLASS_STX) and
                                                                insn.to == FRAME_POINTER):
            lowest = min(lowest, insn.offset)
        if insn.code == MOVE and insn.by == FRAME_POINTER and following.code == ADD and following.to == insn.to:
            lowest = min(lowest, following.number)
    return max(1, -lowest) + ROUNDED_TO - 1 & -ROUNDED_TO


def ways(insns, at):
    """Where an instruction leads to, and whether that may be back to the begin of a loop."""
    insn = insns[at]
    if insn.code == EXIT:
        return []
    if insn.code == GO:
        return [(at + 1 + insn.offset, True)]
    if insn.code & 7 not in (CLASS_JMP, CLASS_JMP32) or insn.code == CALL:
        return [(at + 1, False)]
    return [(at + 1, True), (at + 1 + insn.offset, True)]


def back_edges(insns):
    """Goes depth first, as 6.1 does. Returns the instructions that lead back and must not."""
    path, met, found = [(0, iter(ways(insns, 0)))], {0: True}, []  # True: it is on the path
    while path:
        at, further = path[-1]
        to, may_be_back = next(further, (None, None))
        if to is None:
            met[at] = False
            path.pop()
        elif to not in met:
            met[to] = True
            path.append((to, iter(ways(insns, to))))
        elif met[to] and not may_be_back:
            found.append(at)
    return found


class Object:
    """The functions of an object: name, size of the frame, and which they call, by section and offset."""

    def __init__(self, file):
        self.elf = ELFFile(file)
        self.symbols = next(s for s in self.elf.iter_sections() if isinstance(s, SymbolTableSection))
        self.relocations = {(s["sh_info"], r["r_offset"]): self.symbols.get_symbol(r["r_info_sym"])
                            for s in self.elf.iter_sections() if isinstance(s, RelocationSection)
                            for r in s.iter_relocations()}
        self.named = {(s["st_shndx"], s["st_value"]): s for s in self.symbols.iter_symbols()
                      if s["st_info"]["type"] == "STT_FUNC"}
        self.frames, self.calls, self.deepest, self.longest, self.back = {}, {}, {}, {}, {}
        for where, symbol in self.named.items():
            begin = symbol["st_value"]
            code = self.elf.get_section(where[0]).data()[begin:begin + symbol["st_size"]]
            insns = list(decode(code))
            self.frames[where] = frame_of(insns)
            self.back[where] = back_edges(insns)
            self.calls[where] = {to for i, insn in enumerate(insns) if (to := self.called(where, i, insn))}

    def called(self, where, i, insn):
        """The function that an instruction calls, or whose address it takes for bpf_loop(); or None."""
        section, begin = where
        symbol = self.relocations.get((section, begin + i * INSN))
        if insn.code == CALL and insn.by == TO_FUNCTION:
            to = insn.number + 1
            if symbol is None:
                return section, begin + (i + to) * INSN
            is_section = symbol["st_info"]["type"] == "STT_SECTION"
            return symbol["st_shndx"], to * INSN if is_section else symbol["st_value"]
        if insn.code == LOAD_64 and symbol is not None:
            is_section = symbol["st_info"]["type"] == "STT_SECTION"
            to = symbol["st_shndx"], insn.number if is_section else symbol["st_value"]
            return to if to in self.named else None
        return None

    def chain(self, where, known, size):
        """The chain of calls from a function on for which the sum of size(function) is the largest."""
        if where not in known:
            further = [self.chain(to, known, size) for to in self.calls[where]]
            most = max(further, key=lambda c: c.size, default=Chain(0, []))
            known[where] = Chain(size(where) + most.size, [self.named[where].name, *most.names])
        return known[where]

    def programs(self):
        return [where for where in self.named if self.elf.get_section(where[0]).name != ".text"]


def main():
    with open(sys.argv[1], "rb") as file:
        bpf = Object(file)
        found = 0
        for program in bpf.programs():
            for chain, most, what in ((bpf.chain(program, bpf.deepest, bpf.frames.get), BYTES, "bytes of stack"),
                                      (bpf.chain(program, bpf.longest, lambda where: 1), FRAMES, "frames")):
                if chain.size > most:
                    found += 1
                    print(f"{chain.size} {what}, at most {most}: {' -> '.join(chain.names)}")
        for where, symbol in bpf.named.items():
            for at in bpf.back[where]:
                found += 1
                print(f"a loop of {symbol.name} begins behind its instruction {at}, which is no jump")
        if len(bpf.programs()) < 10:
            found += 1
            print(f"expected some 50 programs in {sys.argv[1]}, found {len(bpf.programs())}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
