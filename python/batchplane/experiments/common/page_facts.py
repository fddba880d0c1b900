# SPDX-License-Identifier: BSD-3-Clause
"""page_facts.py - the machine, versions and time of a page of results."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ...base.version import __version__
from ...costs.keys import cpu_name
from ...sim.cases import available_cores

_PACKAGES = ("numpy", "pandas", "matplotlib")


@dataclass(frozen=True)
class Made:
    """How the results were made."""

    seconds: float
    runs: int
    kept_runs: int  # from earlier commands
    warnings: tuple[str, ...] = ()


def facts_of(made: Made) -> list[tuple[str, str]]:
    """Names and values, for people."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    minutes, seconds = divmod(round(made.seconds), 60)
    versions = [f"batchplane {__version__}{_commit()}", f"Python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return [
        ("made", f"{now}, in {minutes} min {seconds} s: {made.runs} runs, "
         f"{made.kept_runs} kept from before"),
        ("machine", f"{cpu_name()}, {available_cores()} cores{_memory()}"),
        ("system", f"{platform.system()} {platform.release()}"),
        ("versions", ", ".join(versions)),
    ]  # fmt: skip


def _memory(meminfo: Path = Path("/proc/meminfo")) -> str:
    try:
        found = re.search(r"MemTotal:\s+(\d+) kB", meminfo.read_text(encoding="utf-8"))
    except OSError:
        return ""
    return f", {int(found[1]) / (1 << 20):.1f} GiB" if found else ""


def _commit() -> str:
    """The commit of a source tree; empty for installed packages."""
    root = Path(__file__).resolve().parents[4]
    if not (root / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=root, capture_output=True, text=True, timeout=10, check=True,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return f" ({done.stdout.strip()})"
