# SPDX-License-Identifier: BSD-3-Clause
"""store.py - runs cases in parallel processes with one bar, and keeps each result at once."""

from __future__ import annotations

import json
import multiprocessing
import signal
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from ...base.problems import BatchplaneError, RunFailed
from ...base.processes import safe_paths
from ...base.whole_file import write_whole
from ...sim.cases import available_cores
from ...sim.prepare import Inputs
from .case import Case, digest, inputs_of
from .daemon_run import run_on_daemon
from .measure import run_case

Json = dict[str, Any]


class Store:
    """Results by the hash of their inputs, one JSON file each."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.reused = 0
        self.made = 0
        self.broken: list[Path] = []  # damaged files; their results are made again

    def path(self, key: str) -> Path:
        """The file for a hash."""
        return self.folder / f"{key}.json"

    def find(self, key: str) -> Json | None:
        """The kept result; a damaged file counts as none and is reported."""
        path = self.path(key)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError):
            self.broken.append(path)
            return None
        try:
            result = json.loads(text)["result"]
        except (ValueError, KeyError, TypeError):
            result = None
        if not isinstance(result, dict) or not result:
            self.broken.append(path)
            return None
        return result

    def keep(self, key: str, case: Case, result: Json, cpu_s: float = 0.0) -> None:
        """Writes the file completely or not at all. Raises BadInput, for example if the disk is
        full."""
        what = {"case": asdict(case), "cpu_s": round(cpu_s, 3), "result": result}
        text = json.dumps(what, indent=1, default=str)
        write_whole(self.path(key), text + "\n", "finished runs are kept; --out DIR elsewhere")


def make_bar(errors: Console) -> Progress:
    """The single progress bar for all experiments of a command."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=not errors.is_terminal,
    )


class Runner:
    """Runs lists of cases; kept results are used again."""

    def __init__(self, store: Store, jobs: int | None, bar: Progress):
        self.store = store
        self._jobs = jobs or available_cores()
        self._bar = bar
        self._task = bar.add_task("experiments", total=0)
        self._total = 0
        self.disturbed: list[str] = []  # disturbed by other programs: shown, but not kept

    def describe(self, text: str) -> None:
        """Sets the text in front of the bar."""
        self._bar.update(self._task, description=text)

    def run(self, cases: Sequence[Case], is_measured: bool = False) -> dict[str, Json]:
        """The results by the cases' keys, in their order."""
        return self.run_groups([cases], is_measured)[0]

    def run_groups(
        self, groups: Sequence[Sequence[Case]], is_measured: bool = False
    ) -> list[dict[str, Json]]:
        """Runs lists of several experiments together, so that no process waits for the last of
        one."""
        # Two steps each: read the case (expand its pipeline, look for a kept result), then run it.
        self._total += 2 * sum(map(len, groups))
        self._bar.update(self._task, total=self._total)
        results: dict[str, Json] = {}  # by hash, so that equal cases run once
        missing: dict[str, tuple[str, Case, Inputs]] = {}
        keys: list[list[tuple[str, str]]] = []
        for cases in groups:
            keys.append([])
            for case in cases:
                inputs = inputs_of(case)
                key = digest(case, inputs, is_measured)
                self._bar.advance(self._task)
                keys[-1].append((case.key, key))
                found = self.store.find(key) if key not in missing else None
                if found is not None:
                    results[key] = found
                    self.store.reused += 1
                    self._bar.advance(self._task)
                elif key in missing:
                    self._bar.advance(self._task)
                else:
                    missing[key] = (key, case, inputs)
        for key, case, result, cpu_s in self._made(list(missing.values()), is_measured):
            if result.get("is_disturbed"):
                self.disturbed.append(case.key)
            else:
                self.store.keep(key, case, result, cpu_s)
                self.store.made += 1
            results[key] = result
            self._bar.advance(self._task)
        return [{name: results[key] for name, key in group} for group in keys]

    def _made(self, missing: list[tuple[str, Case, Inputs]], is_measured: bool) -> Any:
        if is_measured:  # one after the other: each has the machine to itself
            for key, case, inputs in missing:
                yield key, case, run_on_daemon(inputs, case), 0.0
            return
        jobs = min(self._jobs, len(missing))
        if jobs > 1:
            yield from _run_parallel(missing, jobs)
            return
        for key, case, inputs in missing:
            yield key, case, *_timed(inputs, case)


def _enter() -> None:
    # Ctrl-C reaches the whole process group, but only the parent may end its children.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _timed(inputs: Inputs, case: Case) -> tuple[Json, float]:
    """The result, and its CPU time in seconds."""
    start_s = time.process_time()
    result = run_case(inputs, case)
    return result, time.process_time() - start_s


def _run_one(inputs: Inputs, case: Case) -> tuple[Json, float] | list[str]:
    """The result, or the error's lines, since exceptions may not survive pickling."""
    try:
        return _timed(inputs, case)
    except BatchplaneError as error:
        return error.lines()


def _run_parallel(missing: list[tuple[str, Case, Inputs]], jobs: int) -> Any:
    # Not fork: it would copy threads of the progress bar and of libraries while they hold locks.
    context = multiprocessing.get_context("spawn")
    with (
        safe_paths(),
        ProcessPoolExecutor(jobs, mp_context=context, initializer=_enter) as pool,
    ):
        try:
            futures: dict[Future[tuple[Json, float] | list[str]], tuple[str, Case]] = {
                pool.submit(_run_one, inputs, case): (key, case) for key, case, inputs in missing
            }
            waiting = set(futures)
            while waiting:
                # Wakes up regularly, so that Ctrl-C is noticed.
                finished, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in finished:
                    key, case = futures[future]
                    result = future.result()
                    if isinstance(result, list):
                        raise RunFailed(f"{case.key}: {'; '.join(result)}")
                    yield key, case, *result
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in multiprocessing.active_children():
                child.terminate()
            if isinstance(error, BrokenProcessPool):
                raise RunFailed(
                    "a process of the simulation ended", "perhaps for lack of memory: try --jobs 1"
                ) from error
            raise
