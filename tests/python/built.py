# SPDX-License-Identifier: BSD-3-Clause
"""built.py - marks of tests that need compiled parts: without these they are reported as not
run."""

from __future__ import annotations

import pytest

from batchplane.base.problems import RunFailed
from batchplane.daemon.process import find_program
from batchplane.native.loader import extension_path


def _has_daemon() -> bool:
    try:
        find_program()
    except RunFailed:
        return False
    return True


needs_extension = pytest.mark.skipif(
    extension_path() is None,
    reason="NOT RUN: the extension is not built: tools/build.sh run native",
)
needs_daemon = pytest.mark.skipif(
    not _has_daemon(), reason="NOT RUN: the daemon is not built: tools/build.sh run batchplaned"
)
# The daemon program determines the routes of each generator's packets.
needs_daemon_and_extension = pytest.mark.skipif(
    not _has_daemon() or extension_path() is None,
    reason="NOT RUN: tools/build.sh run batchplaned native has not been run",
)
