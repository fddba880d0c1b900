# SPDX-License-Identifier: BSD-3-Clause
"""test_trace_make.py - generated captures have the requested statistics; stats and cut of any
capture."""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_command
from hypothesis import given, settings
from hypothesis import strategies as st

from batchplane.base.problems import BadInput
from batchplane.traces import write as trace_write
from batchplane.traces.cut import Group, count_destinations, cut, group_of, routes_text
from batchplane.traces.make import TraceMaker, new_train_share
from batchplane.traces.model import (
    TraceModel,
    checked,
    destination_addresses,
    draw_durations_s,
    draw_packet_bytes,
    draw_session_packets,
    mean_packet_bytes,
    mean_session_packets,
    pareto_mean,
    tail_index,
    zipf_shares,
)
from batchplane.traces.pcap_file import read_packets, write_pcap
from batchplane.traces.stats import TraceStats, tail_index_of, trace_stats, zipf_of
from batchplane.traces.trace import read_trace
from batchplane.traces.write import write_trace

MODEL = TraceModel(packets=200_000)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "t.pcap"
    write_trace(path, MODEL)
    return path


@pytest.fixture(scope="module")
def stats(capture: Path) -> TraceStats:
    return trace_stats(capture)


# --- the distributions ----------------------------------------------------------------------------


def test_sessions_have_the_mean_and_the_tail() -> None:
    alpha = tail_index(64.0, 18_000.0, 0.8e9)
    assert pareto_mean(alpha, 64.0, 0.8e9) == pytest.approx(18_000, rel=1e-6)
    assert 0.5 < alpha < 1  # a few sessions carry most
    packets = draw_session_packets(MODEL, np.random.default_rng(5), 3_000_000)
    # The sample mean of such a distribution varies wildly, but not if it is cut at a thousand
    # packets.
    short = np.minimum(packets, 1000)
    law = sum(
        ((64 / max(k * mean_packet_bytes(), 64)) ** alpha - (64 / 0.8e9) ** alpha)
        / (1 - (64 / 0.8e9) ** alpha)
        for k in range(1000)
    )
    assert short.mean() == pytest.approx(law, rel=0.02)
    assert mean_session_packets(MODEL) == pytest.approx(packets.mean(), rel=0.2)
    assert tail_index_of(packets) == pytest.approx(alpha, rel=0.05)


def test_durations_have_the_mean_and_the_most() -> None:
    seconds = draw_durations_s(MODEL, np.random.default_rng(5), 500_000)
    assert seconds.mean() == pytest.approx(5.4, rel=0.01)
    assert seconds.min() >= 0 and 50 < seconds.max() <= 60


def test_packets_have_three_kinds_of_sizes() -> None:
    sizes = draw_packet_bytes(np.random.default_rng(5), 200_000)
    assert (sizes.min(), sizes.max()) == (64, 1518)
    assert sizes.mean() == pytest.approx(mean_packet_bytes(), rel=0.01)
    assert (sizes == 64).mean() == pytest.approx(0.45, abs=0.01)
    assert (sizes == 1518).mean() == pytest.approx(0.40, abs=0.01)


def test_destinations_are_different_and_outside_of_reserved_space() -> None:
    for n in (1, 3, 1000, 65_536):
        addresses = destination_addresses(n, np.random.default_rng(1))
        assert len(np.unique(addresses)) == len(addresses) == n
        first = addresses >> 24
        assert first.min() >= 11 and first.max() <= 223 and 127 not in first
    # Addresses share prefixes: there are fewer networks than addresses.
    assert len(np.unique(destination_addresses(65_536, np.random.default_rng(1)) >> 8)) < 30_000


def test_zipf_is_found_again() -> None:
    rng = np.random.default_rng(3)
    drawn = rng.choice(20_000, size=400_000, p=zipf_shares(20_000, 0.9))
    assert zipf_of(np.bincount(drawn)) == pytest.approx(0.9, abs=0.07)
    assert zipf_of(np.array([5, 5])) is None
    assert tail_index_of(np.array([40, 50])) is None


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 40), min_size=30, max_size=300),
    st.floats(1.02, 2.0),
    st.integers(0, 1 << 30),
)
def test_trains_have_the_mean_run(counts: list[int], burstiness: float, seed: int) -> None:
    array = np.array(counts)
    p = new_train_share(array, burstiness)
    assert 0 <= p <= 1
    rng = np.random.default_rng(seed)
    runs = []
    for _ in range(30):
        session = np.repeat(np.arange(len(array)), array)
        starts = np.r_[True, session[1:] != session[:-1]] | (rng.random(len(session)) < p)
        train = np.cumsum(starts) - 1
        mixed = session[np.argsort(rng.random(train[-1] + 1)[train], kind="stable")]
        runs.append(1 + (mixed[1:] != mixed[:-1]).sum())
    if 0 < p < 1:
        assert len(session) / np.mean(runs) == pytest.approx(burstiness, rel=0.05)


# --- the capture ----------------------------------------------------------------------------------


def test_a_made_capture_is_as_wanted(stats: TraceStats) -> None:
    assert stats.packets == 200_000
    assert stats.duration_s == pytest.approx(0.2, rel=0.01)
    assert stats.rate_pps == pytest.approx(1e6, rel=0.01)
    assert stats.burstiness == pytest.approx(1.13, rel=0.01)
    assert stats.size_mean_bytes == pytest.approx(mean_packet_bytes(), rel=0.02)
    assert stats.size_64_share == pytest.approx(0.45, abs=0.02)
    assert stats.size_full_share == pytest.approx(0.40, abs=0.02)
    assert stats.flow_median_pkts <= 2 and stats.flow_top_share > 0.5
    assert 0.5 < (stats.flow_tail_index or 0) < 1.2
    assert stats.zipf == pytest.approx(0.9, abs=0.15)


@pytest.mark.parametrize("burstiness", [1.1, 1.5, 4.0])
def test_burstiness_follows_the_model(burstiness: float) -> None:
    model = TraceModel(packets=100_000, burstiness=burstiness, session_mean_s=0.2, session_max_s=2)
    session = np.concatenate([chunk.session for chunk in TraceMaker(model)])
    runs = 1 + (session[1:] != session[:-1]).sum()
    assert len(session) / runs == pytest.approx(burstiness, rel=0.02)


def test_sessions_come_and_go_in_the_steady_state() -> None:
    # Short sessions, so that whole lives lie within the trace.
    model = TraceModel(packets=600_000, session_mean_s=0.02, session_max_s=0.2, seed=4)
    chunks = list(TraceMaker(model))
    session = np.concatenate([chunk.session for chunk in chunks])
    alive = [len(np.unique(chunk.session)) for chunk in chunks[:-1]]
    assert max(alive) < 1.25 * min(alive)
    packets = np.bincount(session)
    inner = packets[2000:-2000]
    assert np.minimum(inner[inner > 0], 200).mean() == pytest.approx(
        np.minimum(draw_session_packets(model, np.random.default_rng(1), 500_000), 200).mean(),
        rel=0.05,
    )


def test_one_seed_one_capture(capture: Path, tmp_path: Path) -> None:
    write_trace(tmp_path / "again.pcap", MODEL)
    assert (tmp_path / "again.pcap").read_bytes() == capture.read_bytes()
    write_trace(tmp_path / "other.pcap", replace(MODEL, packets=1000, seed=2))
    assert (tmp_path / "other.pcap").read_bytes() != capture.read_bytes()[:76_024]


def test_frames_are_what_others_understand(capture: Path) -> None:
    from scapy.layers import inet  # type: ignore[import-untyped]
    from scapy.layers.l2 import Ether  # type: ignore[import-untyped]

    ports = set()
    for packet in read_packets(capture):
        if packet.number > 300:
            break
        frame = Ether(packet.frame)
        again = frame.copy()
        del again["IP"].chksum
        assert Ether(bytes(again))["IP"].chksum == frame["IP"].chksum
        assert frame["IP"].len == packet.len_bytes - 14 and frame.dst == MODEL.dst_mac
        layer = frame[inet.TCP] if frame["IP"].proto == 6 else frame[inet.UDP]
        ports.add(layer.dport)
        if layer.name == "UDP":
            assert layer.len == packet.len_bytes - 34
    assert len(ports) > 4
    assert read_trace(capture).size_bytes.max() == 1518


def test_memory_does_not_grow_with_the_length() -> None:
    maker = iter(TraceMaker(replace(MODEL, packets=10**11, session_mean_s=0.02, session_max_s=0.2)))
    sizes = [len(next(maker).time_ns) for _ in range(12)]
    assert max(sizes) < 2 * (1 << 16)


def test_a_disk_that_fills_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    n_chunks = 0

    def full(*_: Any) -> Any:
        nonlocal n_chunks
        n_chunks += 1
        if n_chunks > 1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return np.zeros((1, 76), np.uint8)

    monkeypatch.setattr(trace_write, "records", full)
    with pytest.raises(BadInput, match=r"t\.pcap: cannot be written: No space left"):
        write_trace(tmp_path / "t.pcap", MODEL)
    assert list(tmp_path.iterdir()) == []


def test_mistakes_in_a_model_are_reported_together() -> None:
    with pytest.raises(BadInput) as error:
        checked(TraceModel(packets=0, burstiness=float("nan"), session_mean_bytes=10))
    assert len(error.value.problems) == 3


# --- stats and cut --------------------------------------------------------------------------------


def frame(dst: str, sport: int = 1) -> bytes:
    head = bytes.fromhex("0200000000020200000000010800") + b"\x45" + bytes(8) + b"\x11\0\0"
    addresses = bytes([10, 0, 0, 1, *map(int, dst.split("."))])
    return (head + addresses + sport.to_bytes(2, "big") + b"\0\x50").ljust(60, b"\0")


def test_stats_of_a_small_capture(tmp_path: Path) -> None:
    path = tmp_path / "t.pcap"
    order = [("20.0.0.1", 1)] * 3 + [("20.0.0.2", 1)] + [("20.0.0.1", 1)] * 2
    write_pcap(path, [(10**9 * i, frame(*each)) for i, each in enumerate(order)])
    found = trace_stats(path)
    assert (found.packets, found.flows, found.destinations) == (6, 2, 2)
    assert (found.duration_s, found.rate_pps, found.size_64_share) == (5.0, 1.0, 1.0)
    assert found.burstiness == 2.0 and found.flow_max_pkts == 5
    assert found.destination_top_share == pytest.approx(5 / 6)
    assert found.zipf is None and found.flow_tail_index is None


def test_captures_that_cannot_be_used_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.pcap"
    packets = [(2 * 10**9, frame("20.0.0.1")), (10**9, frame("20.0.0.2"))]
    write_pcap(path, packets)
    with pytest.raises(BadInput, match=r"packet 2 is 1000000000 ns older .*reordercap"):
        trace_stats(path)
    assert sum(count_destinations(path).values()) == 2  # the order does not matter there
    whole = path.read_bytes()
    for n_bytes, message in (
        (0, "empty"), (24, "contains no"), (30, "middle of packet 1"),
        (len(whole) - 1, "middle of packet 2"),
    ):  # fmt: skip
        path.write_bytes(whole[:n_bytes])
        for reader in (trace_stats, count_destinations):
            with pytest.raises(BadInput, match=message) as error:
                reader(path)
            assert len(error.value.lines()) == 1 and error.value.exit_code == 2


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.one_of(st.integers(0, (1 << 32) - 1), st.integers(0, 255)), st.integers(1, 1000),
        min_size=1, max_size=60,
    ),
    st.integers(1, 20),
)  # fmt: skip
def test_groups_hold_all_destinations(counts: dict[int, int], n_groups: int) -> None:
    groups = cut(counts, n_groups)
    assert 1 <= len(groups) <= n_groups
    assert len({group.prefix for group in groups}) == len(groups)
    found: Counter[int] = Counter()
    for address, group in zip(counts, group_of(counts, groups), strict=True):
        assert group >= 0
        found[group] += counts[address]
    assert [found[i] for i in range(len(groups))] == [group.packets for group in groups]
    # At most two subtrees of no more than the share were folded into one, or one address has more.
    mean = sum(counts.values()) / n_groups
    biggest = max(group.packets for group in groups)
    assert biggest <= max(2 * mean * (1 + 1e-9) + max(counts.values()), max(counts.values()))


def test_even_destinations_are_cut_evenly() -> None:
    counts = {i << 16: 1 for i in range(4096)}
    for n in (2, 16, 64):
        groups = cut(counts, n)
        assert {group.packets for group in groups} == {4096 // n}
    heavy = {**counts, 5 << 16: 4096}
    groups = cut(heavy, 8)
    assert (
        Group("0.5.0.0/32", 4096) in [Group(g.prefix, g.packets) for g in groups]
        or max(g.packets for g in groups) < 4096 + 600
    )
    assert len(groups) == 8


def test_a_made_capture_is_cut_near_evenly(capture: Path) -> None:
    counts = count_destinations(capture)
    total = sum(counts.values())
    groups = cut(counts, 16)
    assert len(groups) == 16 and sum(group.packets for group in groups) == total
    light = [g.packets for g in groups if not g.prefix.endswith("/32")]
    assert max(light) <= 2 * total / 16
    assert sorted(light)[len(light) // 2] > 0.5 * total / 16
    lines = routes_text(groups, "t.pcap").splitlines()
    assert lines[0].startswith("# 16 groups") and len(lines) == 17
    assert lines[1].split("#")[0].split() == [groups[0].prefix, "0"]


# --- the command ----------------------------------------------------------------------------------


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    return run_command(monkeypatch, "pcap", *words)


def test_the_command_makes_describes_and_cuts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, routes = str(tmp_path / "t.pcap"), tmp_path / "routes.txt"
    assert command(monkeypatch, "make", path, "-n", "20k", "--rate", "2M") == 0
    capsys.readouterr()
    assert command(monkeypatch, "stats", path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["packets"] == 20_000
    assert command(monkeypatch, "stats", path) == 0
    assert "consecutive packets of a flow" in capsys.readouterr().out
    assert command(monkeypatch, "cut", path, "-n", "8", "--routes", str(routes), "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 8 == len(routes.read_text().splitlines()) - 1
    assert rows[0]["prefix"] == routes.read_text().splitlines()[1].split()[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("make", "OUT", "-n", "many"), "--packets: 'many' is not a number"),
        (("make", "OUT", "--session-time", "5"), "--session-time: '5' is not a duration"),
        (("make", "OUT", "--burstiness", "0.5"), "burstiness: 0.5 is not in 1 to 1000"),
        (("make", "OUT", "--dst-mac", "nonsense"), "'nonsense' is not a MAC address"),
        (("stats", "NONE"), "cannot be read: No such file"),
        (("cut", "NONE", "-n", "4"), "cannot be read: No such file"),
    ],
)
def test_mistakes_are_one_line(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"OUT": str(tmp_path / "o.pcap"), "NONE": str(tmp_path / "none.pcap")}
    assert command(monkeypatch, *(places.get(word, word) for word in words)) == 2
    told = capsys.readouterr().err
    assert message in told and len(told.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
