# SPDX-License-Identifier: BSD-3-Clause
"""cost_cache.py - profiles kept between runs: one file per pipeline, CPU and version."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .cost_file import VERSION
from .cost_keys import cpu_name, pipeline_key
from .costs import CostsFile, load_costs
from .problems import BadInput


def cache_folder(env: Mapping[str, str] = os.environ) -> Path:
    """$XDG_CACHE_HOME/batchplane/costs, or the same under ~/.cache."""
    given = env.get("XDG_CACHE_HOME", "")
    # The standard says that a path that is not absolute is to be ignored.
    base = Path(given) if given.startswith("/") else Path(env.get("HOME", "~")) / ".cache"
    return base.expanduser() / "batchplane" / "costs"


def cache_path(
    pipeline: Mapping[str, Any], cpu: str = "", env: Mapping[str, str] = os.environ
) -> Path:
    """Where the costs of a canonical pipeline on a CPU (default: this one) are kept."""
    machine = hashlib.sha256((cpu or cpu_name()).encode()).hexdigest()[:8]
    return cache_folder(env) / f"{pipeline_key(pipeline)}-{machine}-v{VERSION}.json"


def cached_costs(
    pipeline: Mapping[str, Any], env: Mapping[str, str] = os.environ
) -> CostsFile | None:
    """The costs kept for a pipeline; None when there are none, or none that can be used."""
    path = cache_path(pipeline, env=env)
    try:
        costs = load_costs(path)
    except BadInput:
        return None
    return costs if costs.cpu == cpu_name() else None


def keep_costs(
    pipeline: Mapping[str, Any], document: Mapping[str, Any], env: Mapping[str, str] = os.environ
) -> Path:
    """Keeps a costs document; readers see the old file or the new one, never a part."""
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
