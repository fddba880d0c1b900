# SPDX-License-Identifier: BSD-3-Clause
"""test_admission.py - what `check` says about SLOs over a packet scheduler, before anything
runs."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest

from batchplane.admission.admission import Admitted, admission
from batchplane.admission.weights import fit_weights
from batchplane.base.problems import BadInput
from batchplane.commands.check import check_pipeline
from batchplane.daemon.process import find_program
from batchplane.lang.canonical import Document
from batchplane.lang.check import daemon_check
from batchplane.lang.load import find_pipeline, load_pipeline
from batchplane.routes import resolve
from batchplane.routes.resolve import probe_grouped, probe_routes


def _first(**params: str) -> Admitted:
    rows = admission(load_pipeline("shared_link", params), find_program())
    assert [row.flow for row in rows] == ["tenant_0"]
    return rows[0]


def test_the_budget_left_for_the_graph_is_reported() -> None:
    row = _first()
    assert row.is_kept
    assert row.share_bps == pytest.approx(1e9 * 8 / 33)
    # 3 sigma / phi and two longest packets for QFQ, plus the packet itself.
    assert row.bound_ns == pytest.approx(8 * (3 * 32 * 33 + 2 * 1500 + 200 * 33 / 8))
    assert re.search(r"tenant_0: SLO 200us = graph .* \+ link at most .*are left", row.line())


def test_a_flow_beyond_its_share_gets_the_weight_that_would_do() -> None:
    row = _first(weight="1")
    assert not row.is_kept
    assert "more than its share of the link" in row.line()
    found = re.search(r"flow 1: (\d+)", row.line())
    assert found is not None
    weight = int(found.group(1))
    assert _first(weight=str(weight)).is_kept
    less = _first(weight=str(weight - 1))
    assert not less.is_kept or less.bound_ns > 0.5 * (less.slo_ns - less.graph_ns)


def test_an_slo_that_no_weight_meets_is_reported() -> None:
    row = _first(slo="20us")
    assert not row.is_kept
    assert "no weights would do" in row.line()


def _tree(**first: int) -> Document:
    document = load_pipeline("shared_link", {"others": "6"})
    params = document.pipeline["modules"]["link"]["params"]
    params |= {"discipline": "tree", "flows": [{"flow": 1, **first}, {"flow": 2}]}
    return document


def test_a_minimum_rate_in_a_tree_bounds_the_wait() -> None:
    (row,) = admission(_tree(min_rate_bps=200_000_000), find_program())
    assert row.is_kept
    assert row.share_bps == pytest.approx(2e8)
    # A step of the minimum, and one packet of others.
    assert row.bound_ns == pytest.approx(1500 * 8 * (1 / 0.2 + 1))
    (row,) = admission(_tree(min_rate_bps=100_000_000), find_program())
    assert "raise its min_rate_bps" in row.line()
    (row,) = admission(_tree(), find_program())
    assert row.bound_ns is None
    assert row.told.startswith("siblings may go first: give it a minimum rate")


def test_several_links_on_a_path_share_the_slo() -> None:
    (alone,) = admission(load_pipeline("shared_link", {"others": "6"}), find_program())
    document = load_pipeline("shared_link", {"others": "6"})
    pipeline = document.pipeline
    pipeline["modules"]["second"] = copy.deepcopy(pipeline["modules"]["link"])
    for edge in pipeline["edges"]:
        if edge["from"] == "link":
            edge["from"] = "second"
    pipeline["edges"].append({"from": "link", "gate": 0, "to": "second"})
    for flow in pipeline["flows"]:
        flow["path"].insert(-1, "second")
    rows = admission(document, find_program())
    assert sorted(row.scheduler for row in rows) == ["link", "second"]
    for row in rows:
        assert row.bound_ns == row.other_links_ns == alone.bound_ns
        assert "other links at most" in row.line()
    # Enough for either of them, and not for both.
    for flow in pipeline["flows"]:
        if "delay_slo_ns" in flow:
            flow["delay_slo_ns"] = int(1.5 * (alone.bound_ns or 0) + alone.graph_ns)
    assert not any(row.is_kept for row in admission(document, find_program()))


def test_without_a_scheduler_nothing_is_reported() -> None:
    assert admission(load_pipeline("gateway"), find_program()) == []


# --- weights: auto -------------------------------------------------------------------------------


def _auto(**params: str) -> Document:
    document = load_pipeline("shared_link", params)
    document.pipeline["modules"]["link"]["params"]["weights"] = "auto"
    return document


def _weights(document: Document) -> list[int]:
    flows = document.pipeline["modules"]["link"]["params"]["flows"]
    return [flow.get("weight", 1) for flow in flows]


def test_the_least_weights_that_keep_all_slos_are_chosen() -> None:
    document = _auto(weight="200", others="6")
    told = fit_weights(document, find_program())
    weight = _weights(document)[0]
    assert told == [f"link: the least weights that keep all SLOs are flow 1: {weight}"]
    assert 1 < weight < 200
    assert _weights(document)[1:] == [1] * 6
    (row,) = admission(document, find_program())
    assert row.is_kept
    # A weight lower by one breaks the SLO or the share.
    (less,) = admission(
        load_pipeline("shared_link", {"weight": str(weight - 1), "others": "6"}), find_program()
    )
    bound_ns = less.bound_ns or 0.0
    assert less.share_bps < less.sends_bps or bound_ns > 0.5 * (less.slo_ns - less.graph_ns)


def test_given_weights_stay() -> None:
    document = load_pipeline("shared_link", {"weight": "3"})
    assert fit_weights(document, find_program()) == []
    assert _weights(document)[0] == 3


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"slo": "20us"}, "no weights keep all SLOs behind a link of 1.00 Gbit/s"),
        ({"discipline": "prio"}, "prio knows no weights"),
        ({"discipline": "tree"}, "tree knows no weights"),
    ],
)
def test_weights_that_cannot_be_chosen_are_refused(params: dict[str, str], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        fit_weights(_auto(**params), find_program())


def test_weights_need_traffic_that_is_known() -> None:
    document = _auto()
    document.pipeline["generators"][0]["params"]["flows"] = [
        {"name": "someone", "vlan": 9, "size_bytes": 100}
    ]
    with pytest.raises(BadInput, match="what flow 'tenant_0' sends is not known here"):
        fit_weights(document, find_program())


@pytest.mark.parametrize(
    ("name", "params"),
    [("shared_link", {}), ("mgw", {"real": "1", "shape": "1", "sessions": "40"})],
)
def test_one_answer_of_the_daemon_has_all_that_a_check_tells(
    name: str, params: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = find_program()
    document = load_pipeline(name, params)
    rows = admission(document, program)
    _, alone = daemon_check(document, program)
    assert rows and "routes" not in alone
    monkeypatch.setattr(resolve, "_ask", lambda *_: pytest.fail("asked again"))
    checked = check_pipeline(name, [f"{key}={value}" for key, value in params.items()])
    assert checked.is_good
    assert checked.admitted == rows
    assert checked.plan == alone["plan"]


def test_a_check_without_promises_walks_no_packet() -> None:
    for name in ("gateway", "simple"):
        _, answer = daemon_check(load_pipeline(name), find_program(), "--grouped")
        assert answer["ok"] and "routes" not in answer


# --- very many flows -----------------------------------------------------------------------------


def test_flows_with_the_same_route_are_one_row() -> None:
    params = {"real": "1", "shape": "1", "sessions": "40"}
    document = load_pipeline("mgw", params)
    grouped = probe_grouped(document, find_program())
    each = probe_routes(document, find_program())
    assert grouped.schedulers["shaper"].keys() == {"discipline", "bounds"}
    rows = grouped.routes["load"]
    assert len(rows) == 16  # four groups of users, two bearers, two directions
    told = {
        k: ([way["path"] for way in row["ways"]], row["ways"][0]["flow"], number)
        for row in rows
        for k, number in zip(row["flows"], row["scheduled"]["shaper"], strict=True)
    }
    assert told == {
        k: ([w["path"] for w in route["ways"]], route["ways"][0]["flow"], route["gates"]["shaper"])
        for k, route in enumerate(each.routes["load"])
    }
    by_flow = {row.flow: row for row in admission(document, find_program())}
    assert by_flow["dl_0_0"].bound_ns is None
    assert by_flow["dl_0_0"].told == "rate_bps is 0: say what the link carries"
    assert by_flow["dl_0_0"].sends_bps == pytest.approx(1e6 / 160 * 8 * 60)


def test_devices_do_not_keep_check_from_judging(tmp_path: Path) -> None:
    path = tmp_path / "with_a_device.yaml"
    plain = find_pipeline("shared_link").read_text()
    path.write_text(plain + "devices: {cpu: {kind: cores, threads: 1}}\n")
    assert check_pipeline(str(path), []).admitted
