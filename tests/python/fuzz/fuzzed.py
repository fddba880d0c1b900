# SPDX-License-Identifier: BSD-3-Clause
"""fuzzed.py - runs the command line on many changed files, in its own process, which is killed if a
file takes too much time or memory."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from batchplane.cli.app import main

# CPU time, so that other programs do not count. The slowest good file takes a second or two.
MAX_CPU_S = 60
_MAX_ADDRESSES = 16 << 30
_TOLD = 3000


@dataclass(frozen=True)
class Format:
    """A file format, and the command that reads it."""

    name: str
    seeds: Sequence[Path]  # good files
    change: Callable[[bytes, random.Random], bytes]
    words: Callable[[Path], Sequence[str]]  # the command for a file
    suffix: str | None = None  # None: the good file's
    place: Path | None = None  # folder of the changed file


def wrongs(format_: Format, count: int, folder: Path) -> list[str]:
    """The failures of the command with `count` changed files; their files stay in `folder`."""
    found: list[str] = []
    first = 0
    while first < count:
        lines = list(_in_a_child(format_, range(first, count), folder))
        done = [line for line in lines if "told" in line]
        found += [line["told"] for line in done if line["told"]]
        first += len(done)
        if first < count:
            found.append(f"{_name(format_, first)}: ended by {lines[-1]['end']}")
            first += 1
        if len(found) > 20:
            break
    return found


def _name(format_: Format, i: int) -> str:
    return f"{format_.name} {i}"


def changed_file(format_: Format, i: int, folder: Path) -> Path:
    """The i-th changed file, the same one in every run."""
    rng = random.Random(_name(format_, i))
    seed = format_.seeds[i % len(format_.seeds)]
    suffix = seed.suffix if format_.suffix is None else format_.suffix
    path = (format_.place or folder) / f"{format_.name}-{i}{suffix}"
    path.write_bytes(format_.change(seed.read_bytes(), rng))
    return path


def _in_a_child(format_: Format, numbers: range, folder: Path) -> Iterator[dict[str, str]]:
    """A line for each file; the last one says how the process ended."""
    report = folder / "report.jsonl"
    report.write_text("")
    child = os.fork()
    if child == 0:
        try:
            with report.open("w") as out:
                _run_all(format_, numbers, folder, out)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    for line in report.read_text().splitlines():
        yield json.loads(line)
    how = "its end" if os.WIFEXITED(status) else signal.Signals(os.WTERMSIG(status)).name
    yield {"end": how}


def _run_all(format_: Format, numbers: range, folder: Path, out: io.TextIOBase) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_ADDRESSES, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for i in numbers:
        used = resource.getrusage(resource.RUSAGE_SELF)
        limit_s = int(used.ru_utime + used.ru_stime) + MAX_CPU_S
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, resource.RLIM_INFINITY))
        path = changed_file(format_, i, folder)
        told = _run(format_.words(path))
        if told:
            told = f"{_name(format_, i)}: {told}"
        else:
            path.unlink()
        print(json.dumps({"told": told}), file=out, flush=True)


def _run(words: Sequence[str]) -> str:
    """Empty if the command ended properly."""
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["batchplane", *words]
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        return traceback.format_exc()[-_TOLD:]
    said = out.getvalue() + err.getvalue()
    if code in (0, 2) and "a bug in batchplane" not in said and "Traceback" not in said:
        return (
            ""
            if code == 0 or err.getvalue().strip() or out.getvalue().strip()
            else "it said nothing"
        )
    return f"exit code {code}: {err.getvalue()[-_TOLD:]}"
