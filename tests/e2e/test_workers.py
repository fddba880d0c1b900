# SPDX-License-Identifier: BSD-3-Clause
"""test_workers.py - two workers that hand packets to each other: every snapshot balances, packets
come in once, and apply reports what moved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Commands, assert_balanced

# in -> front -> q -> back -> out, cut at the queue.
CUT = """\
name: cut
workers: [{{name: w0}}, {{name: w1}}]
modules:
  in: {{kind: source, burst_pkts: 16, worker: {front}}}
  front: {{kind: counter}}
  q: {{kind: queue, size_pkts: 512, worker: {back}}}
  back: {{kind: counter}}
  out: {{kind: sink}}
connect: [in -> front -> q -> back -> out]
flows: [{{name: all, path: [in, front, q, back, out]}}]
"""


def cut(folder: Path, name: str, front: str, back: str) -> str:
    file = folder / f"{name}.yaml"
    file.write_text(CUT.format(front=front, back=back))
    return str(file)


def test_apply_tells_which_modules_moved(batchplane: Commands, folder: Path) -> None:
    batchplane.good("start", cut(folder, "cut", "w0", "w1"))
    told = batchplane.good("apply", cut(folder, "swapped", "w1", "w0")).splitlines()
    assert told == [
        "> 2 moved from w1 to w0 with their state: back, out",
        "> 3 moved from w0 to w1 with their state: front, in, q",
        "0 kept with their state",
        "applied",
    ]
    workers = {row["name"]: row["worker"] for row in batchplane.json("show", "runtime")["modules"]}
    assert (workers["front"], workers["back"]) == ("w1", "w0")
    assert_balanced(batchplane.stop("cut")["balance"])


def test_every_snapshot_balances_while_workers_hand_packets_on(
    batchplane: Commands, folder: Path
) -> None:
    batchplane.good("start", cut(folder, "cut", "w0", "w1"))
    with batchplane.client("cut") as client:
        for _ in range(300):
            balance = client.show("runtime")["balance"]
            assert_balanced(balance)
            assert balance["ahead_pkts"] == balance["in_flight_pkts"] == 0
    assert_balanced(batchplane.stop("cut")["balance"])


def test_a_report_counts_packets_of_a_queue_once(batchplane: Commands, folder: Path) -> None:
    done = batchplane.run("run", cut(folder, "cut", "w0", "w1"), "-d", "0.5", "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    went_pps = data["out_pps"] + data["dropped_pps"]
    # Counting twice would be a factor of two; packets in flight at either end are far fewer.
    assert 0.6 < data["in_pps"] / went_pps < 1.6, data


# in -> front on one worker, a part on the other.
PART = """\
name: part
workers: [{name: w0}, {name: w1}]
modules:
  in: {kind: source, burst_pkts: 16}
  front: {kind: counter}
  back: {kind: counter, worker: w1}
  out: {kind: sink}
connect: [in -> front -> back -> out]
"""


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_limits_of_a_parts_queue_are_saved(
    batchplane: Commands, tmp_path: Path, suffix: str
) -> None:
    def ring() -> tuple[int, int]:
        (row,) = batchplane.json("show", "cores")["rings"]
        return row["credit_pkts"], row["poll_pkts"]

    file, saved = tmp_path / "part.yaml", tmp_path / f"saved.{suffix}"
    file.write_text(PART)
    batchplane.good("start", str(file))
    assert ring() == (64, 32)
    assert "in_queue" not in batchplane.good("save")
    batchplane.good("set", "back/in", "set", "credit_pkts=48")
    batchplane.good("set", "back/in.poll_pkts=8")
    batchplane.good("save", str(saved))
    batchplane.good("apply", str(saved))
    assert ring() == (48, 8)
    batchplane.stop("part")
    batchplane.good("start", str(saved))
    assert ring() == (48, 8)
    assert_balanced(batchplane.stop("part")["balance"])


def test_budgets_are_divided_over_workers(batchplane: Commands, folder: Path) -> None:
    file = cut(folder, "cut", "w0", "w1")
    batchplane.good("start", file, "--controller", "primal(fixstep)", "--slo", "all=1ms")
    with batchplane.client("cut") as client:
        flow = client.request("explain", name="all")["flows"][0]
        assert [leg["ends_at"] for leg in flow["legs"]] == ["q", "out"]
        assert sum(leg["budget_ns"] for leg in flow["legs"]) == 1_000_000
    batchplane.good("set", "q", "set", "credit_pkts=64")
    told = batchplane.json("show", "cores")
    assert [(r["ring"], r["from"], r["to"], r["credit_pkts"]) for r in told["rings"]] == [
        ("q", "w0", "w1", 64)
    ]
    batchplane.good("set", "q.poll_pkts=8")
    assert [ring["poll_pkts"] for ring in batchplane.json("show", "cores")["rings"]] == [8]
    assert "poll_pkts: 8" in batchplane.good("save")
    refused = batchplane.run("set", "q.poll_pkts=33")
    assert refused.code == 2 and "1 to engine.batch_pkts, 32" in refused.err
    batchplane.good("set", "controller=none")
    assert_balanced(batchplane.stop("cut")["balance"])
