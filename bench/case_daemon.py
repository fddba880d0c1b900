# SPDX-License-Identifier: BSD-3-Clause
"""case_daemon.py - runs a case of a benchmark script on a daemon that ends with it, however that
is."""

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

from batchplane.base.consoles import errors  # noqa: E402
from batchplane.commands.start import RunOptions, start_document  # noqa: E402
from batchplane.control.options import ControlOptions  # noqa: E402
from batchplane.daemon.client import Client  # noqa: E402
from batchplane.daemon.process import Daemon, StartOptions, find_program, stop_daemon  # noqa: E402
from batchplane.lang.canonical import Document  # noqa: E402
from batchplane.lang.kinds import load_kinds  # noqa: E402
from batchplane.lang.load import load_pipeline, parse_overrides  # noqa: E402


def loaded(pipeline: str, params: Sequence[str]) -> Document:
    """The pipeline with these parameters, checked."""
    return load_pipeline(pipeline, parse_overrides(params), load_kinds(find_program()))


@contextmanager
def on_daemon(
    document: Document, name: str, control: ControlOptions | None = None
) -> Iterator[tuple[Daemon, Client]]:
    """Runs the pipeline inside. A daemon is a process of its own: it would outlive a script that
    ends without stopping it."""
    options = RunOptions(StartOptions(name), control=control or ControlOptions())
    with terminable():
        daemon = start_document(document, options, errors())
        try:
            with Client(daemon.socket, timeout_s=60) as client:
                yield daemon, client
        finally:
            stop_daemon(daemon)


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM is SystemExit inside; further ones do not disturb the end."""

    def end(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
