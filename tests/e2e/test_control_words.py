# SPDX-License-Identifier: BSD-3-Clause
"""test_control_words.py - invalid controllers and SLOs on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Commands, running
from controlled import LOAD, control_of


@pytest.fixture(scope="module")
def gateway(program: Path, shared_folder: Path) -> Iterator[Commands]:
    """A gateway at full load for all of these tests: none of their requests succeeds."""
    commands = Commands(shared_folder)
    words = ("gateway", *LOAD, "--controller", "optimal", "--slo", "*=2ms")
    with running(commands, "gateway", *words):
        yield commands


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("set", "controller=optimall"),
            ("no controller 'optimall'", "feasdir", "fixed(k)", "none"),
        ),
        (("set", "controller=fixed(99)"), ("fixed(0) to fixed(32)",)),
        (("set", "controller=max", "controller.period=2h"), ("not a control period", "1ms to 1s")),
        (("set", "controller=max", "controller.tolerence=0.1"), ("did you mean 'tolerance'",)),
        (("set", "controller=max", "controller.costs=nowhere.json"), ("no such costs file",)),
        (("set", "controller.period=2ms"), ("no controller is given",)),
        (("set", "slo", "flow_0_9", "80us"), ("there is no flow 'flow_0_9'",)),
        (("set", "slo", "flow_0_1", "80"), ("'80' is not a duration",)),
        (("explain", "flow_0_11"), ("did you mean 'flow_0_1'",)),
    ],
)
def test_mistakes_change_nothing(
    gateway: Commands, words: tuple[str, ...], told: tuple[str, ...]
) -> None:
    done = gateway.run(*words)
    assert done.code == 2, done.err
    assert len(done.lines) == 1, done.err
    for text in told:
        assert text in done.err, done.err
    assert control_of(gateway)["controller"] == "optimal"
