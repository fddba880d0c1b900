# SPDX-License-Identifier: BSD-3-Clause
"""`batchplane egress`: files in, files out, and schedulers compared with an ideal computed here."""

from __future__ import annotations

import csv
import random
from collections import defaultdict, deque
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from command_line import run_command

Packet = tuple[int, str, int]
FLOWS = "flow,weight,lmax_bytes\ngold,8,1500\nsilver,1,1500\nbronze,1,1500\n"


def _write(folder: Path, flows: str, arrivals: list[Packet]) -> tuple[Path, Path]:
    flows_file, arrivals_file = folder / "flows.csv", folder / "arrivals.csv"
    flows_file.write_text(flows)
    rows = "".join(f"{ns},{flow},{size}\n" for ns, flow, size in arrivals)
    arrivals_file.write_text("ns,flow,bytes\n" + rows)
    return flows_file, arrivals_file


Run = Callable[..., tuple[int, list[Packet]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs `batchplane egress` on these flows and arrivals; returns exit code and departures."""

    def run_it(flows: str, arrivals: list[Packet], *words: str) -> tuple[int, list[Packet]]:
        files = _write(tmp_path, flows, arrivals)
        out = tmp_path / "out.csv"
        code = run_command(monkeypatch, "egress", *map(str, files), "--out", str(out), *words)
        if code != 0:
            return code, []
        with out.open() as file:
            rows = [
                (int(row["release_ns"]), row["flow"], int(row["bytes"]))
                for row in csv.DictReader(file)
            ]
        return code, rows

    return run_it


def _arrivals(seed: int, n: int) -> list[Packet]:
    """More than the link carries, in bursts."""
    rng = random.Random(seed)
    ns, rows = 0, []
    for _ in range(n):
        ns += rng.choice((0, 0, 0, 300, 2000))
        rows.append((ns, rng.choice(("gold", "silver", "bronze")), rng.randint(64, 1500)))
    return rows


DISCIPLINES = ("fifo", "prio", "drr", "wf2q_plus", "qfq", "qfq_plus")


@pytest.mark.parametrize("discipline", DISCIPLINES)
def test_the_link_is_never_idle_nor_faster_and_flows_keep_their_order(
    run: Run, discipline: str
) -> None:
    arrivals = _arrivals(7, 2000)
    _, rows = run(FLOWS, arrivals, "--discipline", discipline, "--rate", "8G")
    assert len(rows) == len(arrivals)
    waiting = defaultdict(deque)
    for ns, flow, size in arrivals:
        waiting[flow].append((ns, size))
    # One byte per nanosecond: work-conserving, whatever the order.
    in_time = sorted(ns for ns, _, _ in arrivals)
    free_ns = 0
    for k, (release_ns, flow, size) in enumerate(rows):
        came_ns, came_size = waiting[flow].popleft()
        assert size == came_size
        assert release_ns >= came_ns
        assert release_ns == max(free_ns, in_time[k])
        free_ns = release_ns + size


@pytest.mark.parametrize(
    ("discipline", "most_pkts"), [("wf2q_plus", 2), ("qfq", 4), ("qfq_plus", 5)]
)
def test_backlogged_flows_have_their_shares(run: Run, discipline: str, most_pkts: int) -> None:
    rng = random.Random(3)
    sizes = {
        flow: [rng.randint(64, 1500) for _ in range(4000)] for flow in ("gold", "silver", "bronze")
    }
    arrivals = [(0, flow, size) for flow, all_sizes in sizes.items() for size in all_sizes]
    _, rows = run(FLOWS, arrivals, "--discipline", discipline, "--rate", "1G")
    left = {flow: len(all_sizes) for flow, all_sizes in sizes.items()}
    weight = {"gold": Fraction(8, 10), "silver": Fraction(1, 10), "bronze": Fraction(1, 10)}
    sent: dict[str, int] = defaultdict(int)
    total = 0
    for _, flow, size in rows:
        total += size
        sent[flow] += size
        left[flow] -= 1
        if not all(left.values()):
            break
        for name, share in weight.items():
            assert abs(sent[name] - share * total) <= most_pkts * 1500
    assert total > 1_000_000


def test_fifo_is_the_order_of_arrival(run: Run) -> None:
    arrivals = _arrivals(1, 500)
    _, rows = run(FLOWS, arrivals, "--discipline", "fifo", "--rate", "1G")
    assert [row[1:] for row in rows] == [row[1:] for row in arrivals]


def test_limits_refuse_what_does_not_fit(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    flows = "flow,weight,lmax_bytes,limit_pkts\na,1,100,2\n"
    arrivals = [(0, "a", 100)] * 4 + [(0, "a", 101)]
    _, rows = run(flows, arrivals, "--discipline", "qfq", "--rate", "1G", "--json")
    assert len(rows) == 2
    assert '"refused_pkts": 3' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flows", "arrivals", "words", "told"),
    [
        (FLOWS, [], ["--discipline", "sfq", "--rate", "1G"], "unknown discipline 'sfq'"),
        (FLOWS, [], ["--discipline", "qfq", "--rate", "fast"], "'fast' is no rate"),
        (FLOWS, [], ["--discipline", "qfq", "--rate", "0"], "'0' is no rate"),
        ("flow,weight\n", [], ["--discipline", "qfq", "--rate", "1G"], "'lmax_bytes' is missing"),
        (FLOWS + "gold,1,64\n", [], ["--discipline", "qfq", "--rate", "1G"], "there twice"),
        (FLOWS + "tin,0,64\n", [], ["--discipline", "qfq", "--rate", "1G"], "flows.csv:5: weight"),
        (FLOWS, [(0, "gould", 64)], ["--discipline", "qfq", "--rate", "1G"], "mean 'gold'"),
        (FLOWS, [(5, "gold", 64), (4, "gold", 64)], ["--discipline", "qfq", "--rate", "1G"], "4 is before 5"),
        (FLOWS, [(0, "gold", 0)], ["--discipline", "qfq", "--rate", "1G"], "bytes: 0 is out of range"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(
    run: Run,
    capsys: pytest.CaptureFixture[str],
    flows: str,
    arrivals: list[Packet],
    words: list[str],
    told: str,
) -> None:
    code, _ = run(flows, arrivals, *words)
    assert code == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert told in lines[0]
