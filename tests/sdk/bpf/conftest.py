# SPDX-License-Identifier: GPL-2.0-only
"""The tests of the SDK on the real kernel have the harness and the fixtures of tests/bpf."""

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS / "bpf"), str(TESTS / "sdk")]

from fixtures import *  # noqa: E402,F401,F403
