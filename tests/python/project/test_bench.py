# SPDX-License-Identifier: BSD-3-Clause
"""test_bench.py - fits, verdicts, merging and the table of the benchmark scripts."""

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TREE = Path(__file__).resolve().parents[3]


def load_script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TREE / "bench" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


case_rows = load_script("case_rows")
case_daemon = load_script("case_daemon")
figures = load_script("figures")
run = load_script("run")
violations = load_script("violations")
sessions = load_script("sessions")
beside_fixed = load_script("beside_fixed")
age_limits = load_script("age_limits")
real_ports = load_script("real_ports")
router_twin = load_script("router_twin")
stage_batches = load_script("stage_batches")
Interval = figures.Interval


def figure(label: str, value: float, unit: str = "ns per packet", **more: Any) -> dict[str, Any]:
    return {
        "label": label,
        "unit": unit,
        "value": value,
        "low": value * 0.9,
        "high": value * 1.1,
        **more,
    }


def result(*all_figures: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"version": 1, "cpu": "some CPU", "figures": list(all_figures), **more}


def test_age_limits_are_compared_with_none_of_the_same_round() -> None:
    assert age_limits.limit_words(["a", "b"], "42000ns") == [
        "a.age_limit=42000ns",
        "b.age_limit=42000ns",
    ]
    rounds = [
        {None: {"rate_pps": speed, "p95_ns": 50.0}, 0.7: {"rate_pps": 0.9 * speed, "p95_ns": 40.0}}
        for speed in (1.0, 2.0, 1.5)
    ]
    row = age_limits.row_of(0.7, rounds)
    assert row["rate_ratio"] == pytest.approx(0.9)
    assert row["p95_ratio"] == pytest.approx(0.8)
    shown = age_limits.show({"case": "gateway(64)", "trigger_pkts": 20, "p95_ns": 5e4, **row})
    assert shown.split()[-3:] == ["0.70", "0.900", "0.80"]


def test_the_interval_holds_the_median_and_ignores_a_stall() -> None:
    values = [1.0 + 0.001 * i for i in range(40)] + [50.0]
    interval = figures.median_interval(values)
    assert interval.low <= interval.value <= interval.high
    assert interval.high < 1.05
    assert figures.median_interval(values) == interval


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.03, 1.08, "slower"),
        (1.01, 1.08, "same"),  # may be no more than 1 %
        (0.99, 1.01, "same"),
        (0.90, 0.99, "same"),
        (0.90, 0.97, "faster"),
        (0.50, 2.00, "same"),
    ],
)
def test_verdict_of_a_change(low: float, high: float, verdict: str) -> None:
    assert figures.change_verdict(Interval((low + high) / 2, low, high)) == verdict


@pytest.mark.parametrize(
    ("limit", "is_at_most", "verdict"),
    [
        (12.0, True, "good"),
        (10.5, True, "open"),
        (8.0, True, "missed"),
        (8.0, False, "good"),
        (10.5, False, "open"),
        (12.0, False, "missed"),
        (11.0, True, "good"),  # the bound itself is allowed
    ],
)
def test_verdict_against_a_target(limit: float, is_at_most: bool, verdict: str) -> None:
    assert figures.target_verdict(Interval(10.0, 9.0, 11.0), limit, is_at_most) == verdict


def test_merging_counts_verdicts_and_keeps_every_result() -> None:
    hop = result(figure("a", 1, verdict="good"), figure("b", 2, verdict="missed"))
    tables = result(figure("c", 3, verdict="good"), figure("d", 4))
    merged = figures.merge({"hop": hop, "tables": tables}, {"commit": "abc"})
    assert merged["verdicts"] == {"good": 2, "missed": 1}
    assert merged["cpu"] == "some CPU"
    assert merged["commit"] == "abc"
    assert merged["benchmarks"] == {"hop": hop, "tables": tables}


def test_merging_refuses_another_version_and_shows_other_cpus() -> None:
    old = {**result(), "version": 0}
    with pytest.raises(ValueError, match="hop wrote version 0, not 1"):
        figures.merge({"hop": old}, {})
    merged = figures.merge({"a": result(), "b": {**result(), "cpu": "another"}}, {})
    assert merged["cpu"] == ["another", "some CPU"]


def test_the_hop_becomes_part_of_the_cost_table() -> None:
    law = {"cost_per_batch_ns": 1.3, "cost_per_pkt_ns": 0.2}
    hop = result(figure("hop to a null module at batch 32", 0.25), cost=law)
    modules = result(cost_table={"version": 1, "modules": []})
    assert figures.cost_table(modules, hop)["engine_hop"] == law
    assert "engine_hop" not in figures.cost_table(modules, None)
    assert "engine_hop" not in figures.cost_table(modules, result())
    assert "engine_hop" not in modules["cost_table"]


def test_comparison_pairs_the_rounds() -> None:
    # The machine gets slower from round to round, for both sides; the new tree takes 10 % more.
    rounds = []
    for i in range(12):
        speed = 1 + 0.1 * i
        old = result(figure("x", 10 * speed), figure("y", 4 * speed), figure("gone", 1))
        new = result(figure("x", 11 * speed), figure("y", 4 * speed), figure("added", 1))
        rounds.append((old, new))
    rows = {
        label: (ratio.value, verdict) for label, ratio, verdict in figures.compare_rounds(rounds)
    }
    assert rows["x"] == (pytest.approx(1.1), "slower")
    assert rows["y"] == (pytest.approx(1.0), "same")
    assert set(rows) == {"x", "y"}


def test_only_times_are_compared() -> None:
    mixed = result(
        figure("time", 5),
        figure("rate", 9, unit="Mpps"),
        figure("m: cost per batch", 3, unit="ns"),
    )
    assert figures.times_of(mixed) == {"time": 5}


def test_the_table_shows_targets_and_lines_up() -> None:
    rows = [
        figures.figure_row(
            "hop", figure("short", 0.25, target=0.5, is_at_most=True, verdict="good")
        ),
        figures.figure_row("l2l3", figure("a much longer label", 123.4)),
    ]
    lines = figures.table(rows)
    assert "<= 0.5" in lines[2] and lines[2].endswith("good")
    assert "0.250" in lines[2] and "[0.225, 0.275]" in lines[2]
    assert lines[3].index("a much") == lines[2].index("short")
    assert "<=" not in lines[3]


def test_an_unknown_benchmark_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert [b.name for b in run.chosen("tables,hop")] == ["hop", "tables"]
    assert run.chosen("") == run.BENCHMARKS
    with pytest.raises(SystemExit, match="there is no benchmark 'hops'; choose from l2l3, "):
        run.chosen("hops")


def test_every_benchmark_program_is_run() -> None:
    sources = {
        p.stem for folder in ("micro", "macro") for p in (TREE / "bench" / folder).glob("*.cc")
    }
    assert {b.name for b in run.BENCHMARKS} == sources


def test_a_missing_program_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run_one(run.BENCHMARKS[0], tmp_path, tmp_path, True) is None
    assert "bench_l2l3 is missing" in capsys.readouterr().out


def promise(flow: str, periods: int, violated: int, stalled: int) -> dict[str, Any]:
    return {
        "flow": flow, "slo_ns": 40_000, "periods": periods, "violated_periods": violated,
        "stalled_periods": stalled, "excess_ratio": 0.04 if violated > stalled else None,
        "late_ratio": 0.01,
    }  # fmt: skip


def test_violated_periods_with_and_without_stalls() -> None:
    rows = [promise("a", 2000, 30, 20), promise("b", 2000, 12, 0), {"flow": "none", "slo_ns": 0}]
    flows = violations.counted(rows)
    assert [flow["flow"] for flow in flows] == ["a", "b"]
    assert flows[0]["violated_ratio"] == 0.015
    assert flows[0]["unstalled_ratio"] == pytest.approx(10 / 1980)
    assert violations.worst(flows)["flow"] == "b", "by what no stall excuses"


def test_the_verdict_on_violations() -> None:
    row = {"case": "gateway(16)", "controller": "optimal", "slo_ns": 40_000, "rate_pps": 9e6,
           "held_up_ratio": 0.03}  # fmt: skip
    good = violations.show({**row, "flows": violations.counted([promise("a", 2000, 30, 20)])})
    bad = violations.show({**row, "flows": violations.counted([promise("a", 2000, 31, 20)])})
    assert "0.51%" in good and "0.56%" in bad
    few = violations.show({**row, "flows": violations.counted([promise("a", 2000, 9, 0)])})
    assert few.endswith("reached") and bad.endswith("missed") and "4.0%" in bad


def runtime(now_ns: int, sent: int, gaps_ns: int, idle_ns: int) -> dict[str, Any]:
    worker = {"gaps": {"sum_ns": gaps_ns}, "regimes_ns": {"idle": idle_ns}}
    return {"now_ns": now_ns, "balance": {"sent_pkts": sent}, "workers": [worker]}


def test_a_stretch_leaves_out_what_the_machine_took() -> None:
    first = runtime(1_000, 10, 50, 100)
    assert sessions.stretch(first, runtime(11_000, 60, 1_050, 2_100)) == (180, 140)
    assert sessions.stretch(first, runtime(11_000, 10, 50, 100)) is None, "nothing was sent"
    assert sessions.stretch(first, runtime(11_000, 60, 20_000, 100)) is None, "all of it was taken"


def test_many_users_are_told_beside_few() -> None:
    found = {
        (n, name): sessions.summary([(ns - 1, ns - 3), (ns, ns - 2), (ns + 9, ns)])
        for n, ns in ((8, 100.0), (1000, 149.0), (100_000, 160.0))
        for name in sessions.CONTROLLERS
    }
    assert found[8, "null"] == {"ns_per_pkt": 100, "busy_ns_per_pkt": 98, "stretches": 3}
    told = sessions.lines(found, [8, 1000, 100_000])
    assert len(told) == 3 * len(sessions.CONTROLLERS)
    assert told[0].split() == ["null", "8", "100.0", "1.00", "98.0", "1.00"]
    assert told[1].endswith("reached") and " 1.49 " in told[1]
    assert told[2].endswith("missed") and " 1.60 " in told[2]


@pytest.mark.parametrize("text", ["8", "8,many", "0,8", "8,2000000"])
def test_users_are_at_least_two_numbers(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        sessions.users_of(text)
    assert sessions.users_of("100000,8") == [8, 100_000]


@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_smoke_run_fails_where_a_program_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exit_code: int
) -> None:
    program = tmp_path / "bench" / "bench_hop"
    program.parent.mkdir()
    document = json.dumps(result(figure("one hop", 3.0)))
    program.write_text(f"#!/bin/sh\n[ $1 = --json ] && echo '{document}' >$2\nexit {exit_code}\n")
    program.chmod(0o755)
    command = [
        "run.py",
        "--smoke",
        "--only",
        "hop",
        "--build",
        str(tmp_path),
        "--out",
        str(tmp_path),
    ]
    monkeypatch.setattr(sys, "argv", command)
    assert run.main() == exit_code


def test_a_smoke_run_asks_for_the_fewest_trials() -> None:
    options = run.options_of(run.BENCHMARKS[0], "smoke")
    assert options == ["--trials", "3", "--batches", "5"]


class FakeBed:
    """Controllers of known rates; the share of periods that are late grows beyond trigger 16."""

    def __init__(self) -> None:
        self.name = ""

    def use(self, controller: str, _slo_ns: float) -> None:
        self.name = controller

    def measure(self, _slo_ns: float, _seconds: float) -> dict[str, float]:
        if self.name == "optimal":
            return {"rate_pps": 19e6, "violated": 0, "periods": 100}
        k = int(self.name[len("fixed(") : -1])
        return {"rate_pps": (10 + k / 2) * 1e6, "violated": max(0, k - 16), "periods": 100}


def test_the_best_fixed_triggers_are_those_that_are_seldom_late() -> None:
    options = argparse.Namespace(controller="optimal", rounds=2, seconds=1)
    fixed = {k: 1000.0 * k for k in beside_fixed.TRIGGERS}
    row = beside_fixed.one_slo(FakeBed(), 20_000, fixed, options)
    assert row["best"] == "fixed(16)", "20 fits, but is late in 4 % of the periods"
    assert row["ratio"] == pytest.approx(19 / 18) and row["violated"] == 0
    assert "fixed(16)" in beside_fixed.show({"case": "gateway(16)", **row})
    options.rounds = 1
    never = beside_fixed.one_slo(FakeBed(), 40_000, {32: 32_000.0}, options)
    assert never["best"] == "fixed(32)" and never["best_violated"] == pytest.approx(0.16)


def test_a_case_that_is_not_there_ends_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    assert case_rows.wanted_cases(parser, [], {"a": 1, "b": 2}) == {"a": 1, "b": 2}
    assert case_rows.wanted_cases(parser, ["b"], {"a": 1, "b": 2}) == ["b"]
    with pytest.raises(SystemExit) as ended:
        case_rows.wanted_cases(parser, ["b", "c"], {"a": 1, "b": 2})
    assert ended.value.code == 2 and "no case 'c': one of a, b" in capsys.readouterr().err


def test_rows_are_written_where_a_file_is_wanted(tmp_path: Path) -> None:
    case_rows.write_rows(None, [{"a": 1}])
    case_rows.write_rows(tmp_path / "out" / "rows.json", [{"a": 1}])
    assert json.loads((tmp_path / "out" / "rows.json").read_text()) == [{"a": 1}]


def test_no_script_has_the_name_of_a_module_of_the_tests() -> None:
    """Which one is imported would depend on the order of the tests."""

    def modules_in(folder: Path) -> set[str]:
        return {path.stem for path in folder.glob("*.py")}

    assert not modules_in(TREE / "bench") & modules_in(TREE / "tests" / "python")


def test_round_trips_are_read_from_what_ping_prints() -> None:
    told = (
        "64 bytes from 10.0.2.2: icmp_seq=1 ttl=63 time=0.113 ms\n"
        "64 bytes from 10.0.2.2: icmp_seq=2 ttl=63 time=1.50 ms\n"
        "2 packets transmitted, 2 received, 0% packet loss, time 5ms\n"
    )
    assert real_ports.round_trips_us(told) == pytest.approx([113, 1500])


def test_moves_are_decisions_that_change_a_trigger() -> None:
    def decision(now_ns: int, *from_to: tuple[int, int]) -> dict[str, Any]:
        return {
            "now_ns": now_ns,
            "changes": [{"from_pkts": low, "to_pkts": high} for low, high in from_to],
        }

    told = [decision(5, (0, 8)), decision(20, (8, 8), (0, 4)), decision(30, (4, 4))]
    assert real_ports.moves(told) == {5, 20}


def test_threads_beside_the_worker_are_all_but_the_busiest() -> None:
    before = {"1": 5.0, "2": 1.0}
    assert real_ports.beside_worker_s(before, {"1": 7.0, "2": 1.5, "3": 0.25}) == 0.75
    assert real_ports.beside_worker_s({}, {}) == 0
    times_s = real_ports.thread_times_s(os.getpid())
    assert str(os.getpid()) in times_s
    assert sum(times_s.values()) > 0


def test_turns_on_real_ports_add_up() -> None:
    keys = (
        "rate_pps", "p95_ns", "moves_per_s", "beside_ratio", "predicted_ratio", "ping_p95_us",
        "answered_ratio",
    )  # fmt: skip
    turns = [
        {**dict.fromkeys(keys, value), "violated": violated, "stalled": 10, "periods": 90}
        for value, violated in ((1.0, 0), (9.0, 9), (2.0, 0))
    ]
    row = real_ports.summed(turns)
    assert row["rate_pps"] == 2.0
    assert row["violated_ratio"] == pytest.approx(9 / 270)
    assert row["stalled_ratio"] == pytest.approx(0.1)
    nothing = real_ports.summed([{**turns[0], "periods": 0, "stalled": 0}])
    assert nothing["violated_ratio"] == nothing["stalled_ratio"] == 0


def test_a_packets_time_is_the_workers_busy_time_over_what_came() -> None:
    runtimes = iter(
        {"workers": [{"regimes_ns": {"busy": busy_ns}}], "balance": {"in_pkts": pkts}}
        for busy_ns, pkts in ((1e6, 500), (4e6, 3500))
    )
    client = argparse.Namespace(show=lambda _: next(runtimes))
    rate_pps, pkt_ns = router_twin.measured(client, 0.001)
    assert pkt_ns == 1000 and 0 < rate_pps <= 3000 / 0.001


@pytest.mark.parametrize("n_signals", [1, 2])
def test_a_script_that_is_terminated_leaves_no_daemon(
    monkeypatch: pytest.MonkeyPatch, n_signals: int
) -> None:
    done: list[str] = []
    before = signal.getsignal(signal.SIGTERM)

    def stop(_daemon: object) -> None:
        for _ in range(n_signals - 1):
            signal.raise_signal(signal.SIGTERM)
        done.append("stopped")

    daemon = argparse.Namespace(socket="a socket")
    monkeypatch.setattr(case_daemon, "start_document", lambda *_: daemon)
    monkeypatch.setattr(case_daemon, "stop_daemon", stop)
    monkeypatch.setattr(case_daemon, "Client", lambda *_, **__: nullcontext("a client"))
    with pytest.raises(SystemExit) as end, case_daemon.on_daemon("a document", "mine") as running:
        assert running == (daemon, "a client")
        signal.raise_signal(signal.SIGTERM)
        done.append("went on")
    assert end.value.code == 128 + signal.SIGTERM
    assert done == ["stopped"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_daemon_without_its_namespaces_is_ended_by_its_state_file(tmp_path: Path) -> None:
    state = tmp_path / "router.json"
    real_ports.end_daemon(state)  # there is none
    process = subprocess.Popen(["sleep", "1000"])
    state.write_text(json.dumps({"pid": process.pid}))
    real_ports.end_daemon(state)
    assert process.wait(60) == -signal.SIGTERM
    real_ports.end_daemon(state)  # nor any more


def test_a_point_is_missed_where_settings_that_stay_keep_the_slo() -> None:
    def point(violated: tuple[float, ...], best_violated: float) -> Any:
        return stage_batches.Point("hold", 1000, "150us", violated, "8 30us", best_violated)

    assert point((0.0, 0.05), 0.0).is_missed
    assert not point((0.0, 0.0), 0.0).is_missed
    assert not point((1.0, 1.0), 0.05).is_missed


@pytest.mark.parametrize(("text", "ns"), [("150us", 150e3), ("1.5ms", 1.5e6)])
def test_slos_are_times(text: str, ns: float) -> None:
    assert stage_batches.ns_of(text) == ns


def test_an_slo_without_a_unit_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert stage_batches.main(["150"]) == 2
    assert "150us" in capsys.readouterr().out
