# SPDX-License-Identifier: GPL-2.0-only
"""Makes the wheel of qprof-bpf from an installation: the program, what it needs, the Python package.

usage: wheel.py PREFIX DIRECTORY MACHINE

pip puts each file where the installation has it, below the prefix of the environment: so the program
finds the rest as it does there. The package goes where that Python looks for packages.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "user/sdk/python"))
from build_backend import METADATA, write_wheel  # noqa: E402

# tools/release has looked at what the libraries ask of libc. The second name is for old versions of pip.
PLATFORMS = ("manylinux_2_17_", "manylinux2014_")
LIBRARIES = ("lib/libqprof.so.0", "lib/libqprof-nvtx.so")  # by the names that programs ask for: a wheel has no links


def main():
    prefix, directory, machine = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    metadata = (METADATA.replace("Name: qprof\n", "Name: qprof-bpf\n")
                .replace("License: MIT\n", "License: GPL-2.0-only AND MIT\n")
                .replace("Marks the steps of a Python program for the profiler qprof-bpf",
                         "Exact memory and I/O profiles of processes, from the kernel's own events"))
    version = metadata.split("\nVersion: ")[1].split("\n")[0]
    data, info = f"qprof_bpf-{version}.data", f"qprof_bpf-{version}.dist-info"
    program = f"{data}/scripts/qprof-bpf"
    files = {program: (prefix / "bin/qprof-bpf").read_bytes()}
    shared = [str(path.relative_to(prefix)) for path in sorted((prefix / "share").rglob("*")) if path.is_file()]
    for name in [*LIBRARIES, *shared]:
        if not name.startswith("share/doc/"):
            files[f"{data}/data/{name}"] = (prefix / name).read_bytes()
    for path in sorted((prefix / "lib/python3/dist-packages/qprof").iterdir()):
        files[f"qprof/{path.name}"] = path.read_bytes()
    for path in sorted((prefix / "share/doc/qprof-bpf").glob("copyright*")):
        files[f"{info}/{path.name}"] = path.read_bytes()
    print(write_wheel(directory, files, metadata, [name + machine for name in PLATFORMS], (program,)))


main()
