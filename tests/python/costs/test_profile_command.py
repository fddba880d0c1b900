# SPDX-License-Identifier: BSD-3-Clause
"""test_profile_command.py - what `profile` repeats and says, without measuring."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from batchplane.commands import profile as command
from batchplane.commands.profile import ProfileRequest, profile

_DOUBT = "a poll, per batch: -23.1 ns, which cannot be: 0 is used"


def document(law_ns: float, doubts: tuple[str, ...] = ()) -> dict[str, Any]:
    module = {
        "name": "a", "kind": "ttl", "cost_per_batch_ns": 7.0, "cost_per_batch_95_ns": [6.0, 8.0],
        "cost_per_pkt_ns": 2.0, "cost_per_pkt_95_ns": [1.9, 2.1], "r_squared": 0.5,
        "small_error_ratio": 0.02, "left_out_error_ratio": 0.01, "batchiness": 0.3,
        "table_ns": [7.0 + 2.0 * n for n in range(1, 33)],
    }  # fmt: skip
    point = {
        "from_other_core": False, "trigger_pkts": 0, "pkts_per_loop": 32.0,
        "measured_ns_per_pkt": 100.0, "alone_ns_per_pkt": 90.0, "law_ns_per_pkt": law_ns,
    }  # fmt: skip
    check = {"batch_factor": 1.0, "pkt_factor": 1.0, "n_rejected": 0, "points": [point]}
    return {
        "cpu": "cpu", "date": "now", "batch_pkts": 32, "modules": [module], "check": check,
        "doubts": list(doubts),
    }  # fmt: skip


def said(monkeypatch: pytest.MonkeyPatch, *coming: dict[str, Any]) -> tuple[str, str, Any]:
    """What is printed, what goes to errors, and the document."""
    left = list(coming)
    monkeypatch.setattr(command, "profile_pipeline", lambda *_: left.pop(0))
    out, errors = (Console(file=io.StringIO(), width=200) for _ in range(2))
    taken = profile(ProfileRequest(pipeline="l2l3"), out, errors)
    assert not left
    texts = [console.file.getvalue() for console in (out, errors)]  # type: ignore[attr-defined]
    return texts[0], texts[1], taken


def test_what_adds_up_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    text, errors, taken = said(monkeypatch, document(108.0))
    assert text.count("\nsure: within 8% of what the whole pipeline takes") == 1
    assert errors == "" and "in doubt" not in text
    assert taken["judgement"]["is_sure"]


def test_what_does_not_is_measured_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    text, errors, taken = said(monkeypatch, document(150.0), document(140.0, (_DOUBT,)))
    assert errors.startswith("measuring a second time: NOT SURE: within 50%")
    assert "\nNOT SURE: within 40% of what the whole pipeline takes" in text
    assert f"\nin doubt\n{_DOUBT}\n" in text
    assert not taken["judgement"]["is_sure"]


def test_warnings_are_those_of_the_measurement_that_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warnings = iter([[], ["ports of kind af_packet: NOT MEASURED"]])
    monkeypatch.setattr(command, "with_ports", lambda *_: next(warnings))
    _, errors, taken = said(monkeypatch, document(140.0), document(150.0))
    assert "NOT MEASURED" not in errors
    assert "missing" not in taken
