# SPDX-License-Identifier: GPL-2.0-only
"""What tests of traces share."""

import subprocess
import sys

import pytest

from reports import DEADLINE, ROOT


@pytest.fixture(scope="session")
def pb2(tmp_path_factory):
    """The messages of Perfetto's format, as classes."""
    schema = ROOT / "user" / "report" / "perfetto.proto"
    out = tmp_path_factory.mktemp("pb2")
    subprocess.run(["protoc", f"--python_out={out}", f"-I{schema.parent}", schema], check=True,
                   timeout=DEADLINE)
    sys.path.insert(0, str(out))
    import perfetto_pb2  # pylint: disable=import-error,import-outside-toplevel
    return perfetto_pb2
