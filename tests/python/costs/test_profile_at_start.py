# SPDX-License-Identifier: BSD-3-Clause
"""test_profile_at_start.py - when a pipeline is measured before it starts, and the messages about
it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from batchplane.base.problems import RunFailed
from batchplane.costs.cache import cached_costs, keep_costs
from batchplane.costs.file import VERSION
from batchplane.costs.keys import cpu_name
from batchplane.profile import at_start as startup_profile
from batchplane.profile.at_start import ensure_profile, needs_costs

PIPELINE: dict[str, Any] = {
    "name": "small",
    "modules": {"a": {"kind": "ttl", "params": {}}, "b": {"kind": "sink", "params": {}}},
}
COSTS: dict[str, Any] = {
    "version": VERSION,
    "label": "measured",
    "cpu": cpu_name(),
    "modules": [{"kind": "ttl", "cost_per_batch_ns": 7, "cost_per_pkt_ns": 2}],
}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Records which pipelines would be measured, without measuring them."""
    names: list[str] = []

    def profile(pipeline: Any, progress: Callable[[int, int], None], **_more: Any) -> Any:
        names.append(pipeline["name"])
        progress(1, 2)
        return COSTS

    monkeypatch.setattr(startup_profile, "profile_pipeline", profile)
    return names


def said(env: dict[str, str]) -> list[str]:
    """The messages of `ensure_profile`."""
    console = Console(file=io.StringIO(), width=300)
    ensure_profile(PIPELINE, console, env=env)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_a_pipeline_is_measured_once(tmp_path: Path, measured: list[str]) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    first, last = said(env)
    assert first == ("no profile yet: profiling 2 module types (skip with --no-profile)")
    assert last.startswith("profiled in 0.") and str(tmp_path) in last
    kept = cached_costs(PIPELINE, env)
    assert kept is not None and kept.entries[0].law.cost_per_batch_ns == 7
    assert said(env) == [] and measured == ["small"]


def test_an_unusable_profile_is_reported_and_made_again(
    tmp_path: Path, measured: list[str]
) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    keep_costs(PIPELINE, {**COSTS, "daemon": "0.0.1"}, env)
    assert said(env)[0].startswith("the saved profile is from another version (0.0.1): prof")
    assert said(env) == [] and measured == ["small"]


def doubtful(law_ns: float) -> dict[str, Any]:
    points = [{"measured_ns_per_pkt": 100.0, "law_ns_per_pkt": ns} for ns in (100.0, law_ns)]
    return {**COSTS, "check": {"points": points}}


def test_costs_that_do_not_add_up_are_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    # Two busy moments, two that are busier still, and a quiet one that need not be measured again.
    coming = [doubtful(ns) for ns in (160.0, 60.0, 170.0, 180.0, 110.0)]
    monkeypatch.setattr(startup_profile, "profile_pipeline", lambda *_, **__: coming.pop(0))
    assert "up to 40% off" in said(env)[-1] and len(coming) == 3
    assert cached_costs(PIPELINE, env) is not None, "until then it is in use"
    again = "the saved profile is up to 40% off what the whole pipeline takes: prof"
    first, last = said(env)
    assert first.startswith(again) and "up to 40% off" in last, "the kept one was better"
    first, last = said(env)
    assert first.startswith(again) and last.startswith("profiled in") and not coming
    assert said(env) == []


def test_what_cannot_be_is_told_and_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rejected = doubtful(100.0)
    rejected["check"]["n_rejected"] = 1
    better = {**doubtful(100.0), "doubts": ["a poll: -23.1 ns, which cannot be: 0 is used", "more"]}
    coming = [rejected, better]
    monkeypatch.setattr(startup_profile, "profile_pipeline", lambda *_, **__: coming.pop(0))
    last = said({"XDG_CACHE_HOME": str(tmp_path)})[-1]
    assert last == (
        "in doubt: a poll: -23.1 ns, which cannot be: 0 is used, and 1 more: 'doubts' in that file"
    )
    assert not coming


def test_what_cannot_be_measured_does_not_stop_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: Any, **_more: Any) -> Any:
        raise RunFailed("the profiler ended with code 1")

    monkeypatch.setattr(startup_profile, "profile_pipeline", refuse)
    lines = said({"XDG_CACHE_HOME": str(tmp_path)})
    assert lines[1] == "profiling failed, using built-in costs: the profiler ended with code 1"


def test_only_controllers_that_use_costs_need_them() -> None:
    for name in ("optimal", "full", "full+age", "feasdir", "onoff", "mine.py"):
        assert needs_costs(name)
    for other in (None, "none", "null", "max", "fixed(8)"):
        assert not needs_costs(other)
