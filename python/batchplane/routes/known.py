# SPDX-License-Identifier: BSD-3-Clause
"""known.py - recorded routes that no declared flow describes, for use without the daemon program.

In some pipelines generated tables and hashes spread the flows over gates in a way that only the
real modules know. known.json has their choices for the pipelines of the project, by the content
that determines them: tools/make_known_routes.py writes it.
"""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..lang.canonical import Document

FILE = Path(__file__).with_name("known.json")
_DIGITS = string.digits + string.ascii_letters  # one for each different route
# Keys of a traffic flow that change when it is sent, but not its route.
_NO_MATTER = ("weight", "rate_pps", "flow")
_OF_GENERATORS = ("size_bytes", "imix")

Gates = dict[str, int | str]


def known_gates(document: Document) -> dict[str, list[Gates]]:
    """{generator: [gates of each traffic flow in order]}; empty if they are not known."""
    found = _entries().get(key_of(document))
    if found is None:
        return {}
    return {
        source: [ways["gates"][_DIGITS.index(digit)] for digit in ways["of"]]
        for source, ways in found["routes"].items()
    }


def known_params(name: str) -> str:
    """The parameters with which this pipeline's routes are known, in words; empty if none."""
    entries = [entry for entry in _entries().values() if entry["pipeline"] == name]
    return ", or ".join(
        " ".join(f"{key}={value}" for key, value in entry["params"].items()) or "all as it has them"
        for entry in entries
    )


def packed(pipeline: str, params: Mapping[str, str], routes: Mapping[str, list[Any]]) -> Any:
    """An entry of the file: each different route once, and one digit for each traffic flow."""
    entry: dict[str, Any] = {}
    for source, found in routes.items():
        gates: list[Gates] = []
        for route in found:
            if route["gates"] not in gates:
                gates.append(route["gates"])
        if len(gates) > len(_DIGITS):
            raise ValueError(f"{pipeline}: more than {len(_DIGITS)} ways behind '{source}'")
        of = "".join(_DIGITS[gates.index(route["gates"])] for route in found)
        entry[source] = {"gates": gates, "of": of}
    return {"pipeline": pipeline, "params": dict(params), "routes": entry}


def key_of(document: Document) -> str:
    """A hash of everything that determines routes. The document is read without module kinds."""
    pipeline = document.pipeline
    deciding = {
        "modules": {
            name: [module["kind"], module.get("params", {})]
            for name, module in pipeline.get("modules", {}).items()
        },
        "edges": [[edge["from"], edge["gate"], edge["to"]] for edge in pipeline.get("edges", [])],
        "interfaces": pipeline.get("interfaces", []),
        "generators": [_deciding(entry) for entry in pipeline.get("generators", [])],
    }
    return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:16]


def _deciding(generator: dict[str, Any]) -> list[Any]:
    params = generator.get("params", {})
    flows = [
        {key: value for key, value in flow.items() if key not in _NO_MATTER}
        for flow in params.get("flows") or []
    ]
    sizes = {key: params[key] for key in _OF_GENERATORS if key in params}
    return [generator["name"], generator["port"], flows, sizes]


@lru_cache(maxsize=1)
def _entries() -> dict[str, Any]:
    entries: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return entries
