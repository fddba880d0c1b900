# SPDX-License-Identifier: BSD-3-Clause
"""test_session_usage.py - users' quotas under load, and the reports when sessions end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Commands
from waiting import wait_until

QUOTA = 1_000_000
MAX_PKT_BYTES = 100  # the generator's packets are short


@pytest.fixture
def gateway(batchplane: Commands) -> Iterator[Commands]:
    """Two users with packets in both directions."""
    batchplane.good("start", "mgw", "real=1", "bearers=1", "users=2", "rate_pps=200000")
    yield batchplane
    batchplane.stop("mgw")


def modify(gateway: Commands, folder: Path, urr: dict[str, Any]) -> dict[str, Any]:
    path = folder / "change.json"
    path.write_text(json.dumps([{"seid": 1, "urrs": [{"id": 1, **urr}]}]))
    answer: dict[str, Any] = gateway.json("set", "decap", "modify", "--file", str(path))
    return answer


def reports(gateway: Commands, seid: int = 1) -> list[dict[str, Any]]:
    told = gateway.json("set", "decap", "reports", f"seid={seid}", "limit=4096")["reports"]
    return [report for report in told if report["kind"] == "usage"]


def used_bytes(rows: list[dict[str, Any]]) -> int:
    return sum(row["up_bytes"] + row["down_bytes"] for row in rows)


def row(gateway: Commands) -> dict[str, Any]:
    table = gateway.json("show", "sessions", "seid=1")[0]
    session: dict[str, Any] = table["sessions"][0]
    return session


def test_traffic_stops_at_a_quota_and_resumes_with_a_new_one(
    gateway: Commands, tmp_path: Path
) -> None:
    # The quota comes with the session: packets that pass while a first grant is on its way to the
    # workers are not deducted from it.
    with gateway.client("mgw") as client:
        session = client.module("decap", "list", {"seid": 1, "rules": True})["sessions"][0][
            "session"
        ]
        session["urrs"] = [{"id": 1, "quota_bytes": QUOTA}]
        for pdr in session["pdrs"]:
            pdr["urrs"] = [1]
        client.module("decap", "delete", {"seid": 1})
        before = len(reports(gateway))
        client.module("decap", "add", session)
    for grant in (1, 2):
        wait_until(lambda n=before + grant: len(reports(gateway)) == n, "the quota is used up")
        report = reports(gateway)[-1]
        assert (report["trigger"], report["used_up"]) == ("quota", ["quota_bytes"])
        # Both directions together, exact to the packet.
        assert QUOTA - MAX_PKT_BYTES < used_bytes([report]) <= QUOTA, report
        urr = row(gateway)["urrs"][0]
        assert urr["is_used_up"] and urr["quota_left_bytes"] < MAX_PKT_BYTES
        first = row(gateway)
        wait_until(
            lambda was=first: row(gateway)["down_dropped_pkts"] > was["down_dropped_pkts"],
            "packets end",
        )
        assert row(gateway)["down_bytes"] == first["down_bytes"]
        modify(gateway, tmp_path, {"quota_bytes": QUOTA})
    assert "urr_quota" in gateway.good("show", "drops")
    shown = gateway.good("show", "sessions", "seid=1")
    assert "quota_left_bytes" in shown and "quota" in shown.split("latest reports")[1]


def test_usage_is_reported_when_a_session_ends(gateway: Commands, tmp_path: Path) -> None:
    """The sum of a usage rule's reports equals the packets that its detection rules let pass."""
    wait_until(lambda: row(gateway)["down_pkts"] > 1000, "traffic")
    modify(gateway, tmp_path, {"volume_bytes": 50_000, "time_ns": 1_000_000_000})
    wait_until(lambda: len(reports(gateway)) > 3, "reports")
    answer = gateway.json("set", "decap", "delete", "seid=1")
    assert (answer["count"], answer["sessions"]) == (1, 1)
    ended = answer["ended"][0]
    told = reports(gateway)
    last = told[-1]
    assert last["trigger"] == "termination" and last["number"] == ended["urrs"][0]["report"]
    assert used_bytes([last]) == used_bytes(ended["urrs"])
    assert [report["sequence"] for report in told] == list(range(len(told)))
    assert used_bytes(told) == sum(pdr["bytes"] for pdr in ended["pdrs"])
    # And as text, for the other session.
    text = gateway.good("set", "decap", "delete", "seid=2")
    assert "1 sessions ended" in text and "urr 1" in text and "pdr 2" in text
    assert [report["trigger"] for report in reports(gateway, 2)] == ["termination"]


@pytest.mark.parametrize("urr", [{}, {"volume_bytes": 10**15}], ids=["counted", "watched"])
def test_a_packet_is_counted_under_one_usage_rule_only(
    gateway: Commands, urr: dict[str, Any]
) -> None:
    """Detection rules change their usage rule under load: no packet is counted under both."""
    with gateway.client("mgw") as client:
        listed = client.module("decap", "list", {"seid": 1, "rules": True})
        session = listed["sessions"][0]["session"]
        client.module("decap", "delete", {"seid": 1})
        before = client.module("decap", "reports", {"limit": 1})["latest"]
        session["urrs"] = [{"id": 1, **urr}, {"id": 2, **urr}]
        for pdr in session["pdrs"]:
            pdr["urrs"] = [1]
        client.module("decap", "add", session)
        wait_until(lambda: row(gateway)["down_pkts"] > 0, "traffic")
        for i in range(100):
            pdrs = [{"id": pdr["id"], "urrs": [2 - i % 2]} for pdr in session["pdrs"]]
            client.module("decap", "modify", {"seid": 1, "pdrs": pdrs})
        ended = client.module("decap", "delete", {"seid": 1})["ended"][0]
        asked = {"seid": 1, "after": before, "limit": 4096}
        told = client.module("decap", "reports", asked)["reports"]
    assert {report["urr"] for report in told} == {1, 2}
    assert used_bytes(told) == sum(pdr["bytes"] for pdr in ended["pdrs"])
