# SPDX-License-Identifier: GPL-2.0-only
"""qprof.h: the same probes from gcc and clang, as C and C++, however optimised and linked."""

import re
from collections import Counter

import pytest

import compiling as how

# What marks.c has, each line of it once. The scope is where the compiler puts it: at least once.
PROBES = Counter({"begin": 1, "end": 1, "mark": 3, "metric": 9})


def probes(path):
    """(name, semaphore, arguments) of each probe of ours that readelf tells of."""
    text = how.run(["readelf", "-n", path])
    found = re.findall(r"Provider: qprof\s+Name: (\S+)\s+Location: \S+, Base: \S+, "
                       r"Semaphore: (\S+)\s+Arguments: (.*)", text)
    return [(name, int(semaphore, 16), arguments.split()) for name, semaphore, arguments in found]


def needs(compiler):
    lacking = how.missing(compiler)
    if lacking:
        pytest.skip(f"{lacking} is not installed: tools/setup installs it")


@pytest.mark.parametrize("compiler", how.COMPILERS)
@pytest.mark.parametrize("standard", how.STANDARDS)
@pytest.mark.parametrize("optimisation", how.OPTIMISATIONS)
@pytest.mark.parametrize("link", how.LINKS)
def test_same_probes(tmp_path, compiler, standard, optimisation, link):
    needs(compiler)
    program, file = how.build(tmp_path, compiler, standard, optimisation, link)
    found = probes(file)
    names = Counter(name for name, _, _ in found)
    # C++ may end a scope in two places, and says there that an exception did it.
    extra = names - PROBES
    assert not PROBES - names, f"missing {PROBES - names} in {names}"
    assert set(extra) <= {"begin", "end", "metric"}, f"unexpected {extra} in {names}"
    assert extra["begin"] >= 1 and extra["end"] >= 1, f"the scope is missing in {names}"
    assert standard.startswith("c++") or not extra["metric"], f"unexpected {extra}"
    for name, semaphore, arguments in found:
        assert semaphore, f"{name} without a semaphore: {found}"
        assert len(arguments) == (2 if name == "metric" else 1), (name, arguments)
        for argument in arguments:
            assert ".L" not in argument, f"{name}: a compiler's label nobody can find: {arguments}"
    assert len({semaphore for _, semaphore, _ in found}) == len(names), "a semaphore each"
    # Nobody listens: nothing is evaluated.
    assert '"evaluated": 0' in how.run([program]), "arguments were evaluated"


@pytest.mark.parametrize("compiler", how.COMPILERS)
@pytest.mark.parametrize("standard", ["c99", "c11", "c17", "c++11", "c++14", "c++17", "c++20"])
def test_every_standard(tmp_path, compiler, standard):
    needs(compiler)
    _, file = how.build(tmp_path, compiler, standard, "-O2", "program")
    assert not PROBES - Counter(name for name, _, _ in probes(file))


@pytest.mark.parametrize("compiler", how.COMPILERS)
@pytest.mark.parametrize("standard", how.STANDARDS)
@pytest.mark.parametrize("why", ["-DQPROF_DISABLE", "no sys/sdt.h"])
def test_disabled(tmp_path, compiler, standard, why):
    """It compiles without a warning and leaves nothing, not even what it would have evaluated."""
    needs(compiler)
    extra = [why]
    if why == "no sys/sdt.h":
        hidden = tmp_path / "qprof.h"
        hidden.write_text((how.INCLUDE / "qprof.h").read_text().replace("<sys/sdt.h>", "<no/sdt.h>"))
        extra = [f"-I{tmp_path}", "-pedantic"]
    program, file = how.build(tmp_path, compiler, standard, "-O0", "program", extra)
    assert not probes(file), probes(file)
    assert how.run([program]).strip() == '{"evaluated": 0, "early_and_enabled": 1}'


@pytest.mark.parametrize("compiler", how.COMPILERS)
@pytest.mark.parametrize("standard", how.STANDARDS)
def test_beside_plain_probes(tmp_path, compiler, standard):
    """A file with probes of its own includes sys/sdt.h first: no semaphores for anyone in it."""
    needs(compiler)
    source = tmp_path / "plain.c"
    source.write_text('#include <sys/sdt.h>\n#include "qprof.h"\n'
                      'int main(void) { DTRACE_PROBE1(mine, seen, 1); QPROF_MARK("m");\n'
                      'return !QPROF_ENABLED(); }\n')
    program = tmp_path / "plain"
    how.run([*how.driver(compiler, standard), *how.WARNINGS, f"-I{how.INCLUDE}", source, "-o",
             program])
    assert [(name, semaphore) for name, semaphore, _ in probes(program)] == [("mark", 0)]
    how.run([program])


@pytest.mark.parametrize("compiler,flags", [("gcc", "-O2"), ("clang", "-O2"), ("gcc", "-O2 -flto"),
                                            ("clang", "-O2 -flto -fuse-ld=lld")])
def test_two_files_share_semaphores(tmp_path, compiler, flags):
    """Two files of a program that both include the header link, and have one semaphore a probe."""
    needs(compiler)
    for name, text in (("one.c", 'void two(void);\nint main(void) { QPROF_MARK("a"); two(); }\n'),
                       ("two.c", 'void two(void);\nvoid two(void) { QPROF_MARK("b"); }\n')):
        (tmp_path / name).write_text('#include "qprof.h"\n' + text)
    program = tmp_path / "both"
    how.run([compiler, *flags.split(), *how.WARNINGS, f"-I{how.INCLUDE}", tmp_path / "one.c",
             tmp_path / "two.c", "-o", program])
    found = probes(program)
    assert len(found) == 2 and found[0][1] == found[1][1] != 0, found


def test_value_too_wide(tmp_path):
    """A long double does not fit into a probe: the compiler says so, and not the profile."""
    source = tmp_path / "wide.c"
    source.write_text('#include "qprof.h"\nint main(void) { QPROF_METRIC("x", 1.0L); }\n')
    with pytest.raises(AssertionError, match="qprof_at_most_8_bytes"):
        how.run(["gcc", f"-I{how.INCLUDE}", source, "-o", tmp_path / "wide"])
