# SPDX-License-Identifier: BSD-3-Clause
"""test_experiment_daemon.py - measured runs with made-up answers of a daemon: no daemon runs."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from built import needs_extension
from rich.console import Console

from batchplane.experiments.command import disturbed_line
from batchplane.experiments.common import daemon_run
from batchplane.experiments.common import store as store_module
from batchplane.experiments.common.case import Case
from batchplane.experiments.common.daemon_periods import PeriodWatch, kept_promises
from batchplane.experiments.common.store import Runner, Store, make_bar
from batchplane.sim.prepare import Inputs


def promise(flow: str, **more: Any) -> dict[str, Any]:
    return {
        "flow": flow, "slo_ns": 50_000, "delay_ns": 40_000, "delay_max_ns": 45_000,
        "quiet_periods": 0, "period_delay_mean_ns": None, "violated_periods": 0,
        "stalled_periods": 0, "excess_ratio": None, **more,
    }  # fmt: skip


def counts(periods: int, violated: int, quiet: int, both: int) -> dict[str, int]:
    return {
        "periods": periods, "violated_periods": violated, "quiet_periods": quiet,
        "violated_quiet_periods": both,
    }  # fmt: skip


def shown(any_flow: dict[str, int], *rows: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "control": {"any_flow": any_flow, "failed_steps": 0, "worker_ratio": 0.001, **more},
        "slo": list(rows),
        "buffers": {"buffers": [{"module": "acl_0", "held_pkts": 3}]},
        "runtime": {},
    }


# --- promises -------------------------------------------------------------------------------------


def test_what_happened_before_the_measured_periods_does_not_count() -> None:
    first = shown(counts(100, 50, 80, 40), promise("a", quiet_periods=80, period_delay_mean_ns=9e4))
    last = shown(
        counts(300, 70, 240, 48),
        promise("a", quiet_periods=240, period_delay_mean_ns=(80 * 9e4 + 160 * 3e4) / 240),
    )
    found = kept_promises(first, last)
    assert found["periods"] == 200
    assert found["violated_ratio"] == 8 / 160
    assert found["violated_all_ratio"] == 20 / 200
    assert found["stalled_ratio"] == pytest.approx(40 / 200)
    assert found["delay_mean_of_periods_ns"] == pytest.approx(3e4)


def test_excess_is_the_mean_over_late_periods_of_all_flows() -> None:
    first = shown(counts(0, 0, 0, 0), promise("a"), promise("b"))
    last = shown(
        counts(10, 4, 10, 4),
        promise("a", violated_periods=3, excess_ratio=0.1),
        promise("b", violated_periods=4, stalled_periods=3, excess_ratio=0.5),
    )
    found = kept_promises(first, last)
    assert found["excess_mean_ratio"] == pytest.approx((3 * 0.1 + 0.5) / 4)
    assert found["excess_max_ratio"] == pytest.approx(0.5)


def test_counters_that_were_reset_are_taken_whole() -> None:
    first = shown(counts(0, 0, 0, 0), promise("a", quiet_periods=90, period_delay_mean_ns=9e4))
    last = shown(counts(20, 0, 20, 0), promise("a", quiet_periods=20, period_delay_mean_ns=2e4))
    assert kept_promises(first, last)["delay_mean_of_periods_ns"] == pytest.approx(2e4)


def test_without_a_quiet_period_no_violations_are_reported() -> None:
    first, last = (shown(counts(n, n, 0, 0), promise("a")) for n in (0, 10))
    found = kept_promises(first, last)
    assert found["violated_ratio"] is None
    assert found["violated_all_ratio"] == 1.0
    assert found["stalled_ratio"] == 1.0
    assert found["delay_mean_of_periods_ns"] == 40_000


# --- over time ------------------------------------------------------------------------------------


class Stub:
    """Answers with one period after the other."""

    def __init__(self) -> None:
        self.period = 0

    def show(self, what: str, **_: Any) -> Any:
        n = self.period
        late = 1 if n >= 2 else 0
        return {
            "slo": [promise("a", delay_max_ns=(10, 30, 30, 90)[n], delay_ns=(9, 20, 21, 22)[n])],
            "control": {"any_flow": counts(n, late, n, late)},
            "generators": [{"sent_pkts": 1000 * n}, {"sent_pkts": 500 * n}],
        }[what]

    def request(self, cmd: str, timeout_s: float | None = None, **args: Any) -> Any:
        assert (cmd, args, timeout_s) == ("explain", {"name": "acl_0"}, None)
        return {"modules": [{"module": "acl_0", "trigger_pkts": 4 * self.period}]}


def test_a_watched_run_has_the_columns_of_a_simulated_one() -> None:
    stub = Stub()
    case = Case("k", "gateway", "full", watched_module="acl_0", watched_flow="a")
    watch = PeriodWatch(stub, case, lambda: float(stub.period))
    for period in (1, 2, 3):
        stub.period = period
        watch.read(period * 100)
    assert watch.series == {
        "time_ns": [100, 200, 300],
        "out_pps": [1500.0] * 3,
        "is_violated": [False, True, False],
        "worst_delay_ns": [30, 21, 90],  # only a new maximum is known
        "delay_ns": [20, 21, 22],
        "slo_ns": [50_000] * 3,
        "delay_max_ns": [30, 30, 90],
        "trigger_pkts": [4, 8, 12],
    }


# --- runs -----------------------------------------------------------------------------------------


def runtime(now_ns: int, sent: int, busy_ns: int, batches: int, pkts: int) -> dict[str, Any]:
    return {
        "now_ns": now_ns,
        "balance": {"sent_pkts": sent},
        "workers": [{"regimes_ns": {"busy": busy_ns, "idle": now_ns - busy_ns, "control": 0}}],
        "modules": [
            {"name": "in", "kind": "port_in", "batches": batches, "pkts": pkts},
            {"name": "acl_0", "kind": "acl", "batches": batches, "pkts": pkts},
            {"name": "acl_1", "kind": "acl", "batches": batches, "pkts": 3 * pkts},
            {"name": "unused", "kind": "acl", "batches": 0, "pkts": 0},
        ],
    }


def test_numbers_are_those_of_the_time_between() -> None:
    first = shown(counts(0, 0, 0, 0), promise("a"))
    times = {"median": 20_000, "p99": 40_000}
    last = shown(counts(10, 0, 10, 0), promise("a"), controller_ns=times, step_ns=None)
    first["runtime"] = runtime(1_000_000_000, 500, 900_000_000, 10, 100)
    last["runtime"] = runtime(3_000_000_000, 4_500, 2_800_000_000, 60, 900)
    first["flows"] = [{"name": "a", "pkts": 500, "delay_mean_ns": 100.0}]
    last["flows"] = [{"name": "a", "pkts": 4_500, "delay_mean_ns": 900.0}]
    found = daemon_run.summary(first, last, Case("k", "x", "max"), {"acl_0", "acl_1", "unused"})
    assert found["rate_pps"] == 2000.0
    assert found["busy_ratio"] == pytest.approx(0.95)
    assert found["batch_mean_pkts"] == pytest.approx((16 + 48) / 2)
    assert found["modules"] == 3
    assert (found["median_controller_ns"], found["p99_controller_ns"]) == (20_000, 40_000)
    assert found["median_step_ns"] is None
    assert found["held_pkts"] == 3
    assert found["flows"] == {"a": {"rate_pps": 2000.0, "delay_mean_ns": 1000.0}}


def test_the_controller_is_told_as_settings() -> None:
    case = Case("k", "x", "full", settings={"tolerance": 0.2}, period_ns=5_000_000)
    words = ["controller=full", "controller.period=5000000ns", "controller.tolerance=0.2"]
    assert daemon_run.control_words(case) == words


def test_disturbed_runs_are_repeated_and_the_best_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [{"busy_ratio": ratio, "stalled_ratio": 0.1} for ratio in (0.8, 0.7)]
    runs = iter([dict(answer) for answer in answers])
    monkeypatch.setattr(daemon_run, "_run_once", lambda *_: next(runs))
    inputs: Any = None
    case = Case("k", "x", "max", {"saturate": True})
    found = daemon_run.run_on_daemon(inputs, case)
    assert (found["busy_ratio"], found["attempts"], found["is_disturbed"]) == (0.8, 2, True)
    runs = iter([{"busy_ratio": 0.4, "stalled_ratio": 0.1}])
    calm = daemon_run.run_on_daemon(inputs, Case("k", "x", "max"))
    assert (calm["attempts"], calm["is_disturbed"]) == (1, False), "no full load, no full core"


def test_events_happen_at_their_times(monkeypatch: pytest.MonkeyPatch) -> None:
    now, asleep, done = [0.0], [], []
    monkeypatch.setattr(daemon_run.time, "monotonic", lambda: now[0])

    def sleep(seconds: float) -> None:
        asleep.append(round(seconds, 6))
        now[0] += seconds

    monkeypatch.setattr(daemon_run.time, "sleep", sleep)

    class Client:
        def set(self, sets: list[dict[str, Any]]) -> None:
            done.append((round(now[0], 6), sets[0]["what"]))

    action = daemon_run.Action(30_000_000, "here", "slo", ({"what": "slo"},))
    client: Any = Client()
    play = daemon_run._player(client, [action], 0.0)
    daemon_run._wait_until(0.02, play)
    daemon_run._wait_until(0.05, play)
    assert done == [(0.03, "slo")]
    assert asleep == [0.02, 0.01, 0.02]


@needs_extension
def test_measured_results_are_kept_apart_and_disturbed_ones_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: Path
) -> None:
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    made: list[str] = []
    disturbed = {"max"}

    def measured(_: Inputs, case: Case) -> dict[str, Any]:
        made.append(case.key)
        return {"rate_pps": 1.0, "is_disturbed": case.key in disturbed}

    params = {"leaves": 2, "saturate": True, "slo": "200us", "age_limit": "1000s"}
    cases = [Case(c, "tree", c, params, periods=2) for c in ("null", "max")]
    bar = make_bar(Console(file=io.StringIO()))
    simulated = Runner(Store(tmp_path), 1, bar).run(cases)
    monkeypatch.setattr(store_module, "run_on_daemon", measured)
    monkeypatch.setattr("batchplane.experiments.common.case.find_program", lambda: program)
    runner = Runner(Store(tmp_path), 1, bar)
    results = runner.run(cases, is_measured=True)
    assert {result["rate_pps"] for result in results.values()} == {1.0}
    assert runner.disturbed == ["max"]
    disturbed.clear()
    again = Runner(Store(tmp_path), 1, bar)
    assert again.run(cases, is_measured=True)["null"] == results["null"]
    assert made == ["null", "max", "max"]
    assert Runner(Store(tmp_path), 1, bar).run(cases) == simulated


def test_disturbed_runs_are_reported(tmp_path: Path) -> None:
    runner = Runner(Store(tmp_path), 1, make_bar(Console(file=io.StringIO())))
    runner.disturbed += ["a/1", "a/2", "b/1", "b/2"]
    line = disturbed_line(runner)
    assert line.startswith("other programs disturbed 4 runs (a/1, a/2, b/1, ..)")
    assert "run again next time" in line
