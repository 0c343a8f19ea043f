# SPDX-License-Identifier: GPL-2.0-only
"""ELF files that are as much work as possible to whoever searches them for probes."""

import array
import os
import struct

PAGE = 4096
NAME_BYTES = 1000  # of the one name that all symbols have: two are compared to its end
NULL, PROGBITS, SYMTAB, STRTAB, NOTE, DYNSYM = 0, 1, 2, 3, 7, 11
LOAD, READ_EXECUTE = 1, 5
X86_64 = 62


def symbols(size):
    """Functions of one name at different addresses, in no order."""
    count = size // 24
    words = array.array("Q", bytes(24 * count))
    words[0::3] = array.array("Q", [1 | 2 << 32 | 1 << 48]) * count  # st_name, STT_FUNC, st_shndx
    words[1::3] = array.array("Q", os.urandom(8 * count))
    return words.tobytes()


def note(pc, args):
    owner = b"stapsdt\0"
    desc = struct.pack("<3Q", pc, 0, 0) + b"qprof\0mark\0" + args + b"\0"
    return struct.pack("<3I", len(owner), len(desc), 3) + owner + desc + bytes(-len(desc) % 4)


def write(path, symbol_bytes, probe=b"8@missing(%rip)"):
    """A library with so many bytes of symbols in each of its tables, and a probe whose argument is at one."""
    names = b"\0.note.stapsdt\0"
    parts = [(NULL, 0, b"", 0), (PROGBITS, 0, b"\x90" * PAGE, 0), (STRTAB, 0, names, 0),
             (NOTE, 1, note(PAGE, probe), 0), (STRTAB, 0, b"\0" + b"x" * NAME_BYTES + b"\0", 0)]
    if symbol_bytes:
        parts += [(SYMTAB, 0, symbols(symbol_bytes), 4), (DYNSYM, 0, symbols(symbol_bytes), 4)]
    at, headers = PAGE, []
    with open(path, "wb") as out:
        for kind, name, content, link in parts:
            out.seek(at)
            out.write(content)
            headers.append(struct.pack("<2I4Q2I2Q", name, kind, 0, 0, at, len(content), link, 0, 1, 24))
            at += -(-len(content) // PAGE) * PAGE
        out.seek(at)
        out.write(b"".join(headers))
        out.seek(0)
        out.write(struct.pack("<16s2HI3QI6H", b"\x7fELF\2\1\1", 3, X86_64, 1, 0, 64, at, 0, 64, 56, 1, 64,
                              len(parts), 2))
        out.write(struct.pack("<2I6Q", LOAD, READ_EXECUTE, PAGE, PAGE, PAGE, PAGE, PAGE, PAGE))
