# SPDX-License-Identifier: BSD-3-Clause
"""cases.py - runs many simulations in parallel processes, with one progress bar."""

from __future__ import annotations

import multiprocessing
import os
import queue
import statistics
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..base.plain_table import plain_table
from ..base.problems import RunFailed
from ..base.processes import safe_paths
from ..base.units import short_duration, short_rate
from ..control.file import is_controller_file, load_controller
from ..show.rates import buffer_list
from .prepare import Inputs
from .result import Result
from .simulation import Simulation

_REPORT_EVERY_S = 0.1
# The streams of one generator use consecutive seeds.
_SEED_STEP = 1_000_003


@dataclass(frozen=True)
class Case:
    """One run: a controller (a name, or a Python file) and a seed."""

    controller: str
    seed: int  # 1: the pipeline's own random numbers
    duration_ns: int | None
    period_ns: int
    settings: dict[str, Any] = field(default_factory=dict)
    record_packets: int = 0
    record_firings: int = 0


def with_seed(spec: dict[str, Any], seed: int) -> dict[str, Any]:
    """The simulation with other random numbers, for choices and noise as well as for traffic."""
    generators = []
    for entry in spec.get("generators", []):
        params = entry.get("params", {})
        moved = {**params, "seed": int(params.get("seed", 1)) + (seed - 1) * _SEED_STEP}
        generators.append({**entry, "params": moved})
    return {
        **spec,
        "generators": generators,
        "simulation": {**spec["simulation"], "seed": seed},
    }


def run_case(inputs: Inputs, case: Case, tell: Any = None) -> Result:
    """Runs one case in this process; calls `tell(share)` with its progress."""
    sim = Simulation(replace(inputs, spec=with_seed(inputs.spec, case.seed)))
    is_file = is_controller_file(case.controller)
    controller = load_controller(case.controller, sim.model) if is_file else case.controller
    result = sim.run(
        case.duration_ns,
        controller,
        case.period_ns,
        _seldom(tell) if tell is not None else None,
        settings=case.settings,
        record_packets=case.record_packets,
        record_firings=case.record_firings,
        is_drained=True,
    )
    result.controller = case.controller
    return result


def _seldom(tell: Any) -> Any:
    """Passes on progress at most ten times a second."""
    last_s = 0.0

    def pass_on(share: float) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if share >= 1.0 or now_s - last_s >= _REPORT_EVERY_S:
            last_s = now_s
            tell(share)

    return pass_on


def run_cases(
    inputs: Inputs, cases: Sequence[Case], jobs: int | None, errors: Console
) -> list[Result]:
    """Runs all cases, in their order; one bar on a terminal shows the total progress."""
    jobs = max(1, min(jobs or available_cores(), len(cases)))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        runs = f"{len(cases)} runs" if len(cases) > 1 else cases[0].controller
        task = bar.add_task(f"simulating {runs}", total=float(len(cases)))
        if jobs == 1:
            results = []
            for i, case in enumerate(cases):
                done = float(i)
                results.append(
                    run_case(
                        inputs,
                        case,
                        lambda share, done=done: bar.update(task, completed=done + share),
                    )
                )
            return results
        return _run_parallel(inputs, cases, jobs, lambda total: bar.update(task, completed=total))


def available_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


# The parent's queue, set in the processes that run cases.
_queue: Any = None


def _enter(shares: Any) -> None:
    global _queue
    _queue = shares


def _run_numbered(inputs: Inputs, case: Case, number: int) -> Result:
    return run_case(inputs, case, lambda share: _queue.put((number, share)))


@safe_paths()
def _run_parallel(inputs: Inputs, cases: Sequence[Case], jobs: int, show: Any) -> list[Result]:
    # Not fork: it would copy threads of the progress bar and of libraries while they hold locks.
    context = multiprocessing.get_context("spawn")
    shares: Any = context.Queue()
    done = [0.0] * len(cases)
    with ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_enter, initargs=(shares,)
    ) as pool:
        futures: list[Future[Result]] = [
            pool.submit(_run_numbered, inputs, case, i) for i, case in enumerate(cases)
        ]
        try:
            waiting = set(futures)
            while waiting:
                finished, waiting = wait(
                    waiting, timeout=_REPORT_EVERY_S, return_when=FIRST_EXCEPTION
                )
                for number, share in _drained(shares):
                    done[number] = share
                show(sum(done))
                for future in finished:
                    future.result()
        except BrokenProcessPool as error:
            raise RunFailed(
                "a simulation process ended", "possibly out of memory: try --jobs 1"
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _drained(shares: Any) -> Iterable[tuple[int, float]]:
    while True:
        try:
            yield shares.get_nowait()
        except queue.Empty:
            return


# --- comparison -----------------------------------------------------------------------------------


def comparison_rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """One row per controller: means over its seeds, and the spread of the rate."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(result.controller, []).append(result)
    return [_comparison_row(name, members) for name, members in groups.items()]


def _comparison_row(name: str, results: Sequence[Result]) -> dict[str, Any]:
    rates = [result.rate_pps for result in results]
    violated = [result.violated_ratio for result in results]
    sent = [ratio for ratio in violated if ratio is not None]
    worst = [_worst_flow(result) for result in results]
    return {
        "controller": name,
        "runs": len(results),
        "rate_pps": statistics.fmean(rates),
        "rate_sd_pps": statistics.stdev(rates) if len(rates) > 1 else None,
        "busy_ratio": statistics.fmean(
            max((w.get("busy_ratio") or 0 for w in result.last["runtime"]["workers"]), default=0)
            for result in results
        ),
        "batch_mean_pkts": statistics.fmean(_mean_batch(result) for result in results),
        "worst_flow": worst[0][0],
        "worst_p99_ns": max((ns for _, ns, _ in worst if ns is not None), default=None),
        "worst_slo_ns": worst[0][2],
        "violated_ratio": statistics.fmean(sent) if sent else None,
    }


def _mean_batch(result: Result) -> float:
    """Packets per batch, over the modules whose buffers a controller may set."""
    controlled = {
        str(entry["name"]) for entry in result.model["modules"] if entry.get("is_controlled")
    }
    buffers = {str(row["module"]) for row in buffer_list(result.last)}
    rows = result.modules
    chosen = rows.loc[[name for name in rows.index if name in (controlled or buffers)]]
    batches = float(chosen["batches"].sum())
    return float(chosen["pkts"].sum()) / batches if batches else 0.0


def _worst_flow(result: Result) -> tuple[str, float | None, float | None]:
    """The flow whose p99 comes closest to its SLO, or exceeds it most."""
    rows = [
        (str(name), float(row["delay_p99_ns"]), float(row["delay_slo_ns"]))
        for name, row in result.flows.iterrows()
        if row["delay_p99_ns"] == row["delay_p99_ns"]
        and row["delay_p99_ns"] is not None
        and row["delay_slo_ns"] is not None
        and row["delay_slo_ns"] == row["delay_slo_ns"]
    ]
    return max(rows, key=lambda row: row[1] / row[2], default=("", None, None))


def comparison_table(rows: Sequence[dict[str, Any]]) -> Table:
    table = plain_table(
        "<controller", "runs", "rate", "+-", "core", "batch", "<tightest flow", "p99", "SLO",
        "violated periods",
    )  # fmt: skip
    for row in rows:
        table.add_row(
            row["controller"],
            str(row["runs"]),
            short_rate(row["rate_pps"]),
            "-" if row["rate_sd_pps"] is None else short_rate(row["rate_sd_pps"]),
            f"{row['busy_ratio']:.0%}",
            f"{row['batch_mean_pkts']:.1f}",
            row["worst_flow"] or "-",
            short_duration(row["worst_p99_ns"]),
            short_duration(row["worst_slo_ns"]),
            "-" if row["violated_ratio"] is None else f"{row['violated_ratio']:.2%}",
        )
    return table
