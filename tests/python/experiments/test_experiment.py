# SPDX-License-Identifier: BSD-3-Clause
"""test_experiment.py - cases, kept results, interruption and the command, with the real
extension."""

from __future__ import annotations

import dataclasses
import io
import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import run_command
from rich.console import Console

from batchplane.base.interrupts import Interrupted
from batchplane.base.problems import RunFailed
from batchplane.cli.app import main
from batchplane.experiments import command as command_module
from batchplane.experiments import modes as modes_module
from batchplane.experiments.batchy.fig2 import EXPERIMENT as FIG2
from batchplane.experiments.batchy.fig2 import pipeline
from batchplane.experiments.batchy.four_by_eight import settled, step_rows, time_line
from batchplane.experiments.catalogue import EXPERIMENTS
from batchplane.experiments.command import ExperimentOptions, run_experiments
from batchplane.experiments.common import store as store_module
from batchplane.experiments.common.case import Case, digest, inputs_of
from batchplane.experiments.common.experiment import Setup
from batchplane.experiments.common.fidelity import block_name
from batchplane.experiments.common.files import outcome_folder
from batchplane.experiments.common.plans import run_plan
from batchplane.experiments.common.store import Runner, Store, make_bar
from batchplane.experiments.modes import choose_modes
from batchplane.native.loader import extension_path

pytestmark = pytest.mark.skipif(
    extension_path() is None,
    reason="NOT RUN: the extension is not built: tools/build.sh run native",
)


@pytest.fixture(autouse=True)
def no_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The toy pipelines need no daemon program."""
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))


def quiet() -> Console:
    return Console(file=io.StringIO(), width=240)


def tree(controller: str = "null", **more: Any) -> Case:
    """A random split over four leaves, saturated."""
    params = {"leaves": 4, "saturate": True, "slo": "200us", "age_limit": "1000s"}
    case = Case(
        controller, "tree", controller, params, sets=("idle=hold",), warmup_periods=2, periods=5
    )
    return dataclasses.replace(case, **more)


def runner(folder: Path, jobs: int = 1) -> Runner:
    return Runner(Store(folder), jobs, make_bar(quiet()))


def test_the_bar_counts_what_is_read_and_what_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[float, float | None]] = []
    bar = make_bar(quiet())
    counting = Runner(Store(tmp_path), 1, bar)

    def run_case(*_: Any) -> dict[str, Any]:
        seen.append((bar.tasks[0].completed, bar.tasks[0].total))
        return {"rate_pps": 1.0}

    monkeypatch.setattr(store_module, "run_case", run_case)
    cases = [tree("null"), tree("max"), tree("full")]
    counting.run(cases)
    # All cases are read before the first one runs.
    assert seen[0] == (3, 6)
    assert bar.tasks[0].completed == bar.tasks[0].total == 6
    # Kept results count at once.
    counting.run(cases)
    assert (bar.tasks[0].completed, bar.tasks[0].total) == (12, 12)
    assert len(seen) == 3


# --- results --------------------------------------------------------------------------------------


def test_a_case_measures_after_the_warm_up(tmp_path: Path) -> None:
    results = runner(tmp_path).run([tree("null"), tree("max")])
    null, most = results["null"], results["max"]
    assert null["periods"] == most["periods"] == 5
    assert null["modules"] == 5  # a split and four leaves; ends do not count
    assert most["batch_mean_pkts"] == pytest.approx(32.0)
    assert null["batch_mean_pkts"] < 16
    assert most["rate_pps"] > 1.3 * null["rate_pps"]


def test_violations_are_counted_by_late_packets(tmp_path: Path) -> None:
    promised = [
        tree("max", key=key, sets=("idle=hold", f"flow_*.slo={slo}"))
        for key, slo in (("loose", "100ms"), ("hopeless", "1us"))
    ]
    results = runner(tmp_path).run(promised)
    assert results["loose"]["violated_ratio"] == 0.0
    assert results["loose"]["excess_max_ratio"] == 0.0
    assert results["hopeless"]["violated_ratio"] == 1.0
    assert results["hopeless"]["late_pkts_ratio"] == 1.0
    assert results["hopeless"]["excess_mean_ratio"] > 1.0


def test_watched_series_follow_the_events(tmp_path: Path) -> None:
    case = tree(
        "fixed(8)",
        events=time_line(["flow_*.slo=200us", "flow_*.slo=90us"], 30_000_000),
        warmup_periods=0,
        periods=6,
        watched_module="leaf_0",
        watched_flow="flow_0",
    )
    series = runner(tmp_path).run([case])["fixed(8)"]["series"]
    # The SLO changes at the end of the third period, which keeps its full length.
    assert series["time_ns"] == [i * 10_000_000 for i in range(1, 7)]
    assert series["slo_ns"] == [200_000] * 2 + [90_000] * 4
    assert series["trigger_pkts"][1:] == [8] * 5
    assert min(series["out_pps"]) > 0


# --- kept results ---------------------------------------------------------------------------------


def test_finished_cases_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [tree("null"), tree("max")]
    first = runner(tmp_path).run(cases)

    def refuse(*_: Any) -> Any:
        raise AssertionError("run again")

    monkeypatch.setattr(store_module, "run_case", refuse)
    again = runner(tmp_path)
    assert again.run(cases) == first
    assert (again.store.made, again.store.reused) == (0, 2)


def test_everything_that_determines_a_result_changes_its_hash() -> None:
    case = tree()
    others = [
        tree(seed=2),
        tree(periods=6),
        tree(controller="max"),
        tree(settings={"tolerance": 0.2}),
        tree(costs="paper"),
        tree(engine={"batch_pkts": 16}),
        tree(trace={"kind": "bursts", "groups": 1, "burst": 2}),
        tree(params={**tree().params, "leaves": 5}),
        tree(sets=("idle=release",)),
    ]
    keys = {digest(each, inputs_of(each)) for each in (case, *others)}
    assert len(keys) == len(others) + 1
    assert digest(tree(), inputs_of(tree())) == digest(case, inputs_of(case))


def test_a_half_written_result_is_run_again(tmp_path: Path) -> None:
    first = runner(tmp_path)
    results = first.run([tree()])
    (kept,) = tmp_path.glob("*.json")
    kept.write_text(kept.read_text()[:100])
    second = runner(tmp_path)
    assert second.run([tree()]) == results
    assert (second.store.made, second.store.reused) == (1, 0)


def test_what_was_done_before_an_interruption_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, n_runs = store_module.run_case, 0

    def interrupted(inputs: Any, case: Case) -> dict[str, Any]:
        nonlocal n_runs
        n_runs += 1
        if n_runs > 3:
            raise Interrupted
        return real(inputs, case)

    options = ExperimentOptions(tmp_path, is_quick=True, jobs=1)
    monkeypatch.setattr(store_module, "run_case", interrupted)
    told = quiet()
    assert run_experiments(["fig2"], options, quiet(), told) == 130
    assert isinstance(told.file, io.StringIO)
    assert "interrupted: 3 runs are kept" in told.file.getvalue()
    assert not (tmp_path / "fig2").exists()
    monkeypatch.setattr(store_module, "run_case", real)
    assert run_experiments(["fig2"], options, quiet(), told) == 0
    assert "5 runs, 3 kept from before" in told.file.getvalue()


def test_a_second_interrupt_does_not_end_what_is_told_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_second = 0

    def outside(_number: int, _frame: Any) -> None:
        nonlocal n_second
        n_second += 1

    def interrupted(*_: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    told = quiet()
    say = told.print

    def say_interrupted(*words: Any, **options: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        say(*words, **options)

    monkeypatch.setattr(told, "print", say_interrupted)
    monkeypatch.setattr(command_module, "run_plans", interrupted)
    old = signal.signal(signal.SIGINT, outside)
    try:
        options = ExperimentOptions(tmp_path, is_quick=True, jobs=1)
        assert run_experiments(["fig2"], options, quiet(), told) == 130
    finally:
        signal.signal(signal.SIGINT, old)
    assert n_second == 1
    assert isinstance(told.file, io.StringIO)
    assert "interrupted: 0 runs are kept" in told.file.getvalue()


def test_processes_give_the_same_results_and_report_mistakes(tmp_path: Path) -> None:
    cases = [tree("null"), tree("fixed(8)"), tree("max")]
    assert runner(tmp_path / "two", 2).run(cases) == runner(tmp_path / "one", 1).run(cases)
    with pytest.raises(RunFailed, match=r"^wrong: .*no controller 'maximal'"):
        runner(tmp_path / "bad", 2).run([tree(), tree("maximal", key="wrong")])


# --- parts ----------------------------------------------------------------------------------------


def test_transients_are_left_out() -> None:
    series = {"time_ns": [i * 10 for i in range(1, 13)]}
    # Two steps of six periods: the first three of each are transients.
    assert settled(series, 60, 2, 10) == [3, 4, 5, 9, 10, 11]


def test_rows_of_steps() -> None:
    series = {
        "time_ns": [10, 20, 30, 40, 50, 60, 70, 80],
        "out_pps": [1.0] * 4 + [2.0] * 4,
        "trigger_pkts": [0, 0, 0, 4, 8, 8, 8, 16],
        "delay_ns": [5] * 8,
        "is_violated": [False, False, False, True, True, False, False, False],
        "worst_delay_ns": [1, 2, 3, 4, 9, 3, 2, 1],
    }
    first, second = step_rows({"full": series}, ["a", "b"], 40, 10, [7, 8])
    assert (first["trigger_pkts"], first["rate_pps"], first["worst_delay_ns"]) == (4.0, 1.0, 4)
    assert (first["violated_ratio"], first["violated_in_all_ratio"]) == (1.0, 0.25)
    assert (second["trigger_pkts"], second["rate_pps"], second["worst_delay_ns"]) == (16.0, 2.0, 9)
    assert (second["violated_ratio"], second["violated_in_all_ratio"]) == (0.0, 0.25)


def test_the_toy_split_is_the_papers(tmp_path: Path) -> None:
    outcome = run_plan(FIG2, Setup(is_quick=True), runner(tmp_path))
    assert [row["ways"] for row in outcome.rows] == [2, 4, 8, 16]
    assert outcome.rows[0]["unbuffered_units"] == pytest.approx(8.0)
    assert outcome.rows[0]["buffered_units"] == pytest.approx(6.0, rel=0.01)
    assert {verdict.verdict for verdict in outcome.verdicts} == {"same"}
    assert len(pipeline(4)["flows"]) == 4


# --- the command ----------------------------------------------------------------------------------


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    return run_command(monkeypatch, "experiment", *words)


def test_the_command_writes_data_figures_and_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, page = tmp_path / "out", tmp_path / "fidelity.md"
    page.write_text("# Fidelity\n\nBy hand.\n")
    words = ("fig2", "--quick", "--jobs", "1", "--out", str(out), "--write", str(page))
    assert command(monkeypatch, *words) == 0
    assert "k + k^2 units" in capsys.readouterr().out
    data = json.loads((out / "fig2" / "result.json").read_text())
    assert (data["label"], data["quick"], len(data["rows"])) == ("simulated", True, 4)
    assert (out / "fig2" / "fig2.csv").read_text().startswith("ways,")
    assert (out / "fig2" / "fig2.png").stat().st_size > 10_000
    assert (out / "fig2" / "fig2.svg").read_text().lstrip().startswith("<?xml")
    written = page.read_text()
    assert "By hand." in written and written.count("| fig2 |") == 8
    assert "batchplane experiment fig2 --simulated`" in written
    assert command(monkeypatch, *words, "--json") == 0
    assert page.read_text() == written
    answer = json.loads(capsys.readouterr().out)
    assert answer["experiments"][0]["verdicts"][0]["verdict"] == "same"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fig9",), "error: command line: NAME: there is no experiment 'fig9' (did you mean"),
        (("list", "fig2"), "there is no experiment 'list'"),
        (
            ("fig2", "--measured"),
            "--measured: fig2 cannot be measured, only simulated (--simulated",
        ),
        (("fairness", "--measured"), "--measured: fairness cannot be measured, only simulated"),
        (("rates", "--costs", "paper"), "rates is measured, and published costs are not this"),
        (("fig2", "--costs", "nowhere.json"), "nowhere.json: there is no such costs file"),
        (("fig2", "--write", "/no/such/page.md"), "there is no folder '/no/such'"),
    ],
)
def test_bad_arguments_are_reported_before_anything_runs(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert command(monkeypatch, *words, "--out", str(tmp_path / "out")) == 2
    told = capsys.readouterr().err
    assert message in told
    assert len(told.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_measuring_needs_a_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("fig9a", "--measured", "--out", str(tmp_path / "out"))
    assert command(monkeypatch, *words) == 1
    assert "is not a program (unset it, or build it: make build)" in capsys.readouterr().err


def test_a_file_is_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").write_text("")
    assert command(monkeypatch, "fig2", "--out", str(tmp_path / "out")) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_the_list_names_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["batchplane", "experiment", "list", "--json"])
    main_ends(monkeypatch)
    rows = json.loads(capsys.readouterr().out)
    runs = {row["name"]: row["runs"] for row in rows}
    assert list(runs) == [
        "fig1", "fig2", "fig3", "table1", "table2", "fig8a", "fig8b", "fig9a", "fig9b", "fig9c",
        "fig10", "fig11", "fairness", "multi_table1", "multi_fig5", "multi_fig6", "slo_curve", "stranding", "run_order", "batch_size", "rates",
        "pspat_algorithms", "pspat_latency", "pspat_shares", "pspat_throughput", "pspat_io",
        "pspat_overload", "pspat_bus", "egress_budget", "egress_aqm", "egress_tree", "pythia_devices", "pythia_interference", "pythia_fig5ab",
        "pythia_fig5cd", "pythia_burst", "pythia_device_loss", "pythia_small_packets", "pythia_energy",
    ]  # fmt: skip
    assert (runs["fig1"], runs["table2"]) == (["measured", "simulated"], ["simulated", "measured"])


EGRESS_MEASURED = {
    "pspat_algorithms", "pspat_throughput", "pspat_io", "egress_aqm", "egress_tree"
}  # fmt: skip


def test_all_runs_each_in_its_usual_way_and_leaves_out_what_cannot_run(
    program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modes_module, "has_pipeline", lambda _: True)
    every = list(EXPERIMENTS.values())
    chosen, left_out = choose_modes(every, ["all"], None, ["prior"], True)
    assert {e.name for e, setup in chosen if setup.is_measured} == set()
    assert [line.partition(" ")[0] for line in left_out] == [
        "fig1",
        "fig3",
        "rates",
        "pspat_algorithms",
        "pspat_throughput",
        "pspat_io",
        "egress_aqm",
        "egress_tree",
    ]
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(program))
    chosen, left_out = choose_modes(every, ["all"], None, ["prior"], True)
    assert ({e.name for e, s in chosen if s.is_measured}, left_out) == (
        {"fig1", "fig3", "rates", *EGRESS_MEASURED}, [],
    )  # fmt: skip
    assert len(chosen) == len(every)
    chosen, left_out = choose_modes(every, ["all"], None, ["paper"], True)
    assert len(chosen) == len(every) - 3 - len(EGRESS_MEASURED) and left_out == []
    chosen, _ = choose_modes(every, ["all"], True, ["prior"], True)
    assert {e.name for e, _ in chosen} == {
        "fig1", "fig3", "table1", "table2", "fig9a", "fig9b", "fig9c", "fig11", "slo_curve",
        "batch_size", "rates", *EGRESS_MEASURED,
    }  # fmt: skip
    chosen, _ = choose_modes(every, ["all"], False, ["prior"], True)
    assert not any(setup.is_measured for _, setup in chosen)
    assert {e.name for e in every} - {e.name for e, _ in chosen} == EGRESS_MEASURED


def test_several_costs_run_what_depends_on_them_with_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(modes_module, "has_pipeline", lambda _: True)
    every = list(EXPERIMENTS.values())
    chosen, _ = choose_modes(every, ["all"], False, ["paper", "prior"], True)
    costs_of: dict[str, list[str]] = {}
    for experiment, setup in chosen:
        costs_of.setdefault(experiment.name, []).append(setup.costs)
    assert costs_of["table2"] == costs_of["rates"] == ["paper", "prior"]
    assert costs_of["fig10"] == costs_of["pspat_latency"] == costs_of["multi_fig6"] == [""]
    assert block_name(Setup("")) == "prescribed costs"


def test_several_costs_measure_once(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes_module, "has_pipeline", lambda _: True)
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(program))
    every = list(EXPERIMENTS.values())
    chosen, _ = choose_modes(every, ["all"], None, ["prior", "epyc"], True)
    measured = [(e.name, setup.costs) for e, setup in chosen if setup.is_measured]
    assert sorted(measured) == sorted(
        (name, "prior") for name in ("fig1", "fig3", "rates", *EGRESS_MEASURED)
    )


def test_costs_are_told_apart_by_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fig2", "--simulated", "-o", str(tmp_path / "out"), "--jobs", "1", "--costs"]
    assert run_command(monkeypatch, "experiment", *words, "paper, ./prior.json,prior") == 2
    assert "there are two costs 'prior'" in capsys.readouterr().err


def test_one_command_writes_a_table_for_each_of_its_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    words = ["fig2", "--simulated", "--costs", "paper,prior", "-o", str(tmp_path / "out")]
    words += ["--jobs", "1", "--write", str(page)]
    assert run_command(monkeypatch, "experiment", *words) == 0
    text = page.read_text()
    first, _, second = text.partition("<!-- end costs paper -->")
    assert "`batchplane experiment fig2 --simulated --costs paper`" in first
    assert "<!-- begin costs prior -->" in second
    assert "`batchplane experiment fig2 --simulated`" in second
    results = sorted(path.parent for path in (tmp_path / "out").rglob("result.json"))
    assert results == [tmp_path / "out" / costs / "fig2" for costs in ("paper", "prior")]


def test_measured_and_simulated_results_lie_apart() -> None:
    place = outcome_folder(EXPERIMENTS["table2"], Setup(is_measured=True), Path("out"))
    assert place == Path("out/table2/measured")
    assert outcome_folder(EXPERIMENTS["table2"], Setup(), Path("out")) == Path("out/table2")
    assert outcome_folder(EXPERIMENTS["fig1"], Setup(is_measured=True), Path("out")).name == "fig1"
    assert block_name(Setup(is_measured=True)) == "measured"
    assert block_name(Setup("/tmp/mine.json")) == "costs mine.json"


def main_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
