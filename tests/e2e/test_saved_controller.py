# SPDX-License-Identifier: BSD-3-Clause
"""test_saved_controller.py - a pipeline saved with a running controller starts with it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import Commands
from waiting import wait_until

LOAD = ("nexthops=4", "fib_size=100", "acl_size=10", "rate_pps=200000")

ONE = """\
name: one
controller: best
modules: {in: {kind: source}, out: {kind: sink}}
connect: [in -> out]
"""


def control_of(commands: Commands) -> dict[str, Any]:
    with commands.client("gateway") as client:
        answer: dict[str, Any] = client.show("control")
    return answer


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_what_is_saved_with_a_controller_on_starts_with_it(
    batchplane: Commands, tmp_path: Path, suffix: str
) -> None:
    batchplane.good("start", "gateway", *LOAD, "--controller", "optimal", "--costs", "prior")
    batchplane.good(
        "set", "controller=full", "controller.period=5ms", "controller.tolerance=0.2",
        "controller.costs=prior", "*.slo=3ms",
    )  # fmt: skip
    saved = tmp_path / f"saved.{suffix}"
    batchplane.good("save", str(saved))
    batchplane.stop("gateway")
    batchplane.good("check", str(saved))
    batchplane.good("start", str(saved))
    told = control_of(batchplane)
    assert (told["controller"], told["period_ns"], told["tolerance"]) == ("full", 5_000_000, 0.2)
    assert told["costs"].startswith("prior"), told
    assert {row["slo_ns"] for row in batchplane.json("show", "slo")} == {3_000_000}
    wait_until(lambda: control_of(batchplane)["steps"] > 5, "it decides")
    batchplane.stop("gateway")
    # Another controller on the command line replaces it.
    batchplane.good("start", str(saved), "--controller", "max", "--period", "20ms")
    told = control_of(batchplane)
    assert (told["controller"], told["period_ns"]) == ("max", 20_000_000)
    batchplane.good("set", "controller=none")
    without = tmp_path / f"without.{suffix}"
    batchplane.good("save", str(without))
    assert "controller" not in without.read_text()
    answer = batchplane.good("apply", str(saved))
    assert "~ controller: none -> full" in answer, answer
    assert control_of(batchplane)["controller"] == "full"
    batchplane.stop("gateway")


def test_an_invalid_controller_is_reported_with_its_line(
    batchplane: Commands, folder: Path
) -> None:
    file = folder / "one.yaml"
    file.write_text(ONE)
    for command in ("check", "start"):
        done = batchplane.run(command, str(file))
        told = [line for line in (done.out + done.err).splitlines() if "error: " in line]
        assert done.code == 2 and len(told) == 1, done
        assert f"{file}:2: controller: no controller 'best' (one of null, " in told[0]
    assert batchplane.pids() == []
