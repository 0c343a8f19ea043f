# SPDX-License-Identifier: MIT
"""Where pip installed this package: what it installed with it is below that."""

import os


def below(*parts):
    """PREFIX/parts, of PREFIX/lib/pythonX.Y/site-packages/qprof; else None: what lies above a package
    that was put anywhere, such as below /tmp, may be anybody's."""
    packages, _ = os.path.split(os.path.dirname(os.path.abspath(__file__)))
    python, name = os.path.split(packages)
    library, version = os.path.split(python)
    prefix, lib = os.path.split(library)
    if name not in ("site-packages", "dist-packages") or not version.startswith("python3") or lib not in ("lib", "lib64"):
        return None
    return os.path.join(prefix, *parts)
