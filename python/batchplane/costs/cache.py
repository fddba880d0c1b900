# SPDX-License-Identifier: BSD-3-Clause
"""cache.py - profiles kept between runs: one file per pipeline and CPU."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.problems import BadInput
from ..base.version import __version__
from .costs import CostsFile, load_costs
from .doubt import SURE, error_of
from .file import VERSION
from .keys import cpu_name, pipeline_key


def cache_folder(env: Mapping[str, str] = os.environ) -> Path:
    """$XDG_CACHE_HOME/batchplane/costs, or the same under ~/.cache."""
    given = env.get("XDG_CACHE_HOME", "")
    # The XDG specification says that relative paths are to be ignored.
    base = Path(given) if given.startswith("/") else Path(env.get("HOME", "~")) / ".cache"
    return base.expanduser() / "batchplane" / "costs"


def cache_path(
    pipeline: Mapping[str, Any], cpu: str = "", env: Mapping[str, str] = os.environ
) -> Path:
    """The file for the costs of a canonical pipeline on a CPU (default: this one)."""
    machine = hashlib.sha256((cpu or cpu_name()).encode()).hexdigest()[:8]
    return cache_folder(env) / f"{pipeline_key(pipeline)}-{machine}-v{VERSION}.json"


@dataclass(frozen=True)
class Kept:
    """The costs kept for a pipeline, or why they cannot be used; "" = never measured."""

    costs: CostsFile | None = None
    reason: str = ""  # also for costs that can be used, but are in doubt
    error: float = 0.0  # see error_of


def kept_costs(pipeline: Mapping[str, Any], env: Mapping[str, str] = os.environ) -> Kept:
    """The costs of a pipeline that this version measured on this machine."""
    path = cache_path(pipeline, env=env)
    if not path.is_file():
        return Kept(reason=_reason_of_others(path))
    try:
        costs = load_costs(path)
        document = json.loads(path.read_text(encoding="utf-8"))
        version, error = document.get("daemon", ""), error_of(document)
    except (BadInput, OSError, ValueError, TypeError, LookupError, AttributeError):
        return Kept(reason="cannot be read")
    if costs.cpu != cpu_name():
        return Kept(reason=f"is from another machine ({costs.cpu or 'unknown'})")
    if version != __version__:
        return Kept(reason=f"is from another version ({version or 'unknown'})")
    doubt = f"is up to {error:.0%} off what the whole pipeline takes" if error > SURE else ""
    return Kept(costs, doubt, error)


def _reason_of_others(path: Path) -> str:
    """Why the pipeline's other files do not count: another machine, or another format."""
    key = path.name.split("-")[0]
    others = [other for other in path.parent.glob(f"{key}-*.json") if other != path]
    for other in sorted(others):
        if not other.name.endswith(f"-v{VERSION}.json"):
            continue
        try:
            cpu = load_costs(other).cpu
        except BadInput:
            continue
        return f"is from another machine ({cpu or 'unknown'})"
    return "is from another version" if others else ""


def cached_costs(
    pipeline: Mapping[str, Any], env: Mapping[str, str] = os.environ
) -> CostsFile | None:
    """The costs kept for a pipeline; None if there are none, or none that can be used."""
    return kept_costs(pipeline, env).costs


def keep_costs(
    pipeline: Mapping[str, Any], document: Mapping[str, Any], env: Mapping[str, str] = os.environ
) -> Path:
    """Keeps a costs document; readers see the old file or the new one, never a part."""
    document = {"daemon": __version__, **document}
    path = cache_path(pipeline, env=env)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".costs")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path
