# SPDX-License-Identifier: BSD-3-Clause
"""test_python_controller_words.py - invalid Python controllers on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Commands, running
from controlled import LOAD, STEADY, control_of, written


@pytest.fixture(scope="module")
def gateway(program: Path, shared_folder: Path) -> Iterator[Commands]:
    """One gateway for all of these tests: none of their requests succeeds."""
    with running(
        Commands(shared_folder), "gateway", "gateway", *LOAD, "--slo", "*=5ms"
    ) as commands:
        yield commands


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("control", "nowhere.py"), "there is no such file"),
        (("control", "{file}:Other"), "there is no 'Other'"),
        (("control", "{file}", "--limit", "soon"), "'soon' is not a time limit"),
        (("control", "{file}", "--period", "5s"), "not a control period"),
        (("set", "controller={file}"), "batchplane control"),
        (("start", "l2l3", "--controller", "{file}"), "batchplane control"),
    ],
)
def test_mistakes_change_nothing(
    gateway: Commands, folder: Path, words: tuple[str, ...], told: str
) -> None:
    file = written(folder, "steady.py", STEADY)
    done = gateway.run(*(word.format(file=file) for word in words))
    assert done.code == 2 and told in done.err, done.err
    assert len(done.lines) == 1, done.err
    assert control_of(gateway) == {"controller": "none"}
