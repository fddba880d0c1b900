# SPDX-License-Identifier: BSD-3-Clause
"""test_session_input.py - invalid sessions: each is rejected with its line and key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Commands, running

from batchplane.lang.session_schema import session_schema


@pytest.fixture(scope="module")
def gateway(program: Path, shared_folder: Path) -> Iterator[Commands]:
    """One gateway for all of these tests: none of their requests succeeds."""
    with running(
        Commands(shared_folder), "mgw", "mgw", "real=1", "bearers=1", "users=2", "rate_pps=200000"
    ) as commands:
        yield commands


@pytest.mark.parametrize(
    ("urr", "wanted"),
    [
        ({"quota_bytes": -1}, "quota_bytes: expected an integer"),
        ({"up_quota_bytes": "1 GB"}, "up_quota_bytes: expected an integer"),
        ({"quota_ns": 1.5}, "quota_ns: expected an integer"),
        ({"quota": 1}, "unknown key 'quota'"),
    ],
)
def test_a_bad_quota_is_refused_by_line_and_key(
    gateway: Commands, tmp_path: Path, urr: dict[str, Any], wanted: str
) -> None:
    bad = tmp_path / "bad.jsonl"
    session = {
        "seid": 9,
        "pdrs": [{"id": 1, "source": "access", "teid": 9, "far": 1, "urrs": [1]}],
        "fars": [{"id": 1}],
        "urrs": [{"id": 1, **urr}],
    }
    bad.write_text(f"# users\n{json.dumps(session)}\n")
    told = gateway.run("set", "decap", "add", "--file", str(bad))
    assert told.code == 2, told
    assert f"{bad}:2" in told.err and "urrs[0]" in told.err and wanted in told.err, told.err
    assert len(told.lines) == 1, told.err


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ('[\n{"seid": 9,,}]', "bad.json:2: this is not valid JSON"),
        ('[{"seid": NaN}]', "bad.json: this is not valid JSON: NaN is not a number"),
        (b"[\xff]", "bad.json: this is not valid JSON"),
    ],
    ids=["syntax", "NaN", "bytes"],
)
def test_a_file_that_is_no_json_is_named(
    gateway: Commands, tmp_path: Path, text: str | bytes, wanted: str
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(text if isinstance(text, bytes) else text.encode())
    told = gateway.run("set", "decap", "add", "--file", str(bad))
    assert told.code == 2 and wanted in told.err and len(told.lines) == 1, told


def test_only_true_removes_a_rule(gateway: Commands, tmp_path: Path) -> None:
    change = tmp_path / "change.json"
    change.write_text(json.dumps([{"seid": 1, "urrs": [{"id": 1, "remove": False}]}]))
    told = gateway.run("set", "decap", "modify", "--file", str(change))
    assert told.code == 2 and '"remove" can only be true' in told.err, told
    assert gateway.json("show", "sessions", "seid=1")[0]["sessions"][0]["urrs"][0]["id"] == 1


def test_the_schema_has_the_keys_that_the_daemon_knows(gateway: Commands, tmp_path: Path) -> None:
    schema = session_schema()
    pdr = {"id": 1, "source": "access", "teid": 9, "far": 1}
    path = tmp_path / "odd.jsonl"
    for kind, rule in (
        ("pdrs", "PdrModel"),
        ("fars", "FarModel"),
        ("qers", "QerModel"),
        ("urrs", "UrrModel"),
        ("bar", "BarModel"),
        ("", ""),
    ):
        session: dict[str, Any] = {"seid": 9, "pdrs": [pdr], "fars": [{"id": 1}]}
        odd = {"id": 1, "odd": 1}
        session |= {kind: odd if kind == "bar" else [odd]} if kind else odd
        path.write_text(json.dumps(session))
        told = gateway.run("set", "decap", "add", "--file", str(path)).err
        known = told.split("known are ")[1].split("\n")[0].strip(") ").split(", ")
        properties = schema["$defs"][rule]["properties"] if rule else schema["properties"]
        assert set(known) == set(properties), (kind, told)
