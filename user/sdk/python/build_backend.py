# SPDX-License-Identifier: MIT
"""Builds this package with nothing but Python itself, so that pip needs no network (PEP 517, 660)."""

import base64
import hashlib
import re
import tarfile
import zipfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parent
_SOURCES = [path for path in sorted((_ROOT / "qprof").iterdir())
            if path.suffix == ".py" or path.name == "py.typed"]
_VERSION = re.search(r'^__version__ = "(.*)"$', (_ROOT / "qprof" / "__init__.py").read_text(),
                     re.MULTILINE).group(1)

METADATA = f"""\
Metadata-Version: 2.1
Name: qprof
Version: {_VERSION}
Summary: Marks the steps of a Python program for the profiler qprof-bpf
License: MIT
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Software Development :: Debuggers
Classifier: Typing :: Typed
Requires-Python: >=3.8
"""
_WHEEL = """\
Wheel-Version: 1.0
Generator: qprof
Root-Is-Purelib: true
"""


def _record(name, content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def write_wheel(directory, files, metadata=METADATA, platforms=("any",), programs=()):
    """files: contents by name. The same files make the same wheel, whenever it is built. Of them
    `programs` can be executed. Also for wheels that have more than this package."""
    name = "-".join(re.search(f"^{key}: (.*)$", metadata, re.MULTILINE)[1].replace("-", "_")
                    for key in ("Name", "Version"))
    info = f"{name}.dist-info"
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    files = {**files, f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": (_WHEEL + tags).encode()}
    records = "".join(_record(*file) for file in files.items()) + f"{info}/RECORD,,\n"
    files[f"{info}/RECORD"] = records.encode()
    wheel = f"{name}-py3-none-{'.'.join(platforms)}.whl"
    with zipfile.ZipFile(Path(directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name in programs else 0o100644) << 16
            archive.writestr(entry, content)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory,
                       {f"qprof/{path.name}": path.read_bytes() for path in _SOURCES})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {"qprof.pth": f"{_ROOT}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    name = f"qprof-{_VERSION}"
    with tarfile.open(Path(sdist_directory) / f"{name}.tar.gz", "w:gz") as archive:
        for path in [_ROOT / "pyproject.toml", Path(__file__), *_SOURCES]:
            archive.add(path, f"{name}/{path.relative_to(_ROOT)}")
    return f"{name}.tar.gz"
