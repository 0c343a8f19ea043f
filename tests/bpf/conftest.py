# SPDX-License-Identifier: GPL-2.0-only
"""Pytest's name for fixtures.py, which tests/sdk/bpf uses, too."""

from fixtures import *  # noqa: F401,F403
