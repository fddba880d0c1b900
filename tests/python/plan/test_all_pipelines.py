# SPDX-License-Identifier: BSD-3-Clause
"""test_all_pipelines.py - every pipeline of the tree plans and simulates unchanged, also with real
ports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from built import needs_daemon_and_extension
from rich.console import Console

from batchplane.base.problems import BadInput
from batchplane.commands.plan import PlanOptions, make_report
from batchplane.commands.simulate import SimulateOptions, simulate

PIPELINES = Path(__file__).parents[3] / "pipelines"
# Test keys instead of a key file.
PARAMS = {"vpn_gateway": ["test_keys=true"]}
ON_REAL_PORTS = {"bng", "home_gateway", "mobile_gateway", "router", "router6", "vpn_gateway"}

pytestmark = needs_daemon_and_extension


@pytest.fixture(autouse=True)
def nothing_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def name_of(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", sorted(PIPELINES.glob("*.yaml")), ids=name_of)
def test_plans_and_simulates(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With default arguments: traffic reaches the end of flows, and every packet is accounted
    for."""
    params = PARAMS.get(path.stem, [])
    report = make_report(path.stem, params, PlanOptions())
    assert report.plan["rate_pps"] > 0
    assert all(row["share"] > 0 for row in report.plan["flows"]), "packets come to every flow"
    quiet = Console(quiet=True)
    options = SimulateOptions(duration="2ms", as_json=True)
    assert simulate(path.stem, params, options, quiet, quiet) == 0
    balance = json.loads(capsys.readouterr().out)["report"]["balance"]
    assert balance["is_exact"] and balance["sent_pkts"] > 0
    told = "the pipeline has no generator" in " ".join(report.warnings)
    assert told == (path.stem in ON_REAL_PORTS)
    assert ("; ports: af_packet prior" in report.origin) == (path.stem in ON_REAL_PORTS)


def test_missing_keys_are_told() -> None:
    with pytest.raises(BadInput, match="key"):
        make_report("vpn_gateway", [], PlanOptions())
