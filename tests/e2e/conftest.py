# SPDX-License-Identifier: BSD-3-Clause
"""conftest.py - run folders, the built daemon, and labs of network namespaces."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Commands, running
from lab import Lab, missing, two_hosts
from load import LOAD

from batchplane.base.problems import RunFailed
from batchplane.daemon.process import find_program


@pytest.fixture(scope="session")
def program() -> Path:
    """The real daemon."""
    try:
        return find_program()
    except RunFailed as error:
        pytest.fail(f"NOT RUN: {error.message} ({error.fix})")


@pytest.fixture(scope="session")
def can_have_labs() -> None:
    """Skips if namespaces cannot be created, and says so."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A run folder with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="bpe") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def shared_folder() -> Iterator[Path]:
    """A run folder for a daemon that all tests of a file share and leave unchanged."""
    with tempfile.TemporaryDirectory(prefix="bpe") as name:
        yield Path(name)


@pytest.fixture
def batchplane(program: Path, folder: Path) -> Iterator[Commands]:
    """The command line; kills daemons that a test leaves, and fails the test."""
    commands = Commands(folder)
    yield commands
    left = commands.pids()
    commands.kill_all()
    assert not left, "the test left a daemon running"


@pytest.fixture
def lab(program: Path, can_have_labs: None) -> Iterator[Lab]:
    """Two hosts and the namespace between them, with no router in it yet."""
    with two_hosts() as made:
        yield made


@pytest.fixture(scope="module")
def shared_lab(program: Path, can_have_labs: None) -> Iterator[Lab]:
    """The same lab for all tests of a file that only send traffic through it."""
    with two_hosts() as made:
        yield made


@pytest.fixture
def router(lab: Lab, folder: Path) -> Iterator[Commands]:
    """pipelines/router.yaml between the two hosts."""
    with running(Commands(folder, lab.router), "router", "router") as commands:
        yield commands


@pytest.fixture(scope="module")
def shared_router(shared_lab: Lab, shared_folder: Path) -> Iterator[Commands]:
    """The router of all tests of a file that only send traffic through it."""
    with running(Commands(shared_folder, shared_lab.router), "router", "router") as commands:
        yield commands


@pytest.fixture
def loaded(batchplane: Commands) -> Iterator[Commands]:
    """A daemon called l2l3 under generated load; stopped at the end with every packet accounted for."""
    batchplane.good("start", "l2l3", *LOAD)
    yield batchplane
    if batchplane.pids():
        batchplane.stop("l2l3")
