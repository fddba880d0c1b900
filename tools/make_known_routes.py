#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_known_routes.py - asks the daemon program for the routes that only its modules know.

usage: PYTHONPATH=python .venv/bin/python tools/make_known_routes.py
Writes python/batchplane/routes/known.json, for simulations where the program is not built. A test
compares the file with the program; run this again after changes of tables or hashes.
"""

import json
from pathlib import Path
from typing import Any

from batchplane.daemon.process import find_program
from batchplane.lang.load import load_pipeline
from batchplane.routes.known import FILE, key_of, packed
from batchplane.routes.resolve import probe_routes

# The usual parameters; other ones need the program.
VARIANTS: tuple[tuple[str, dict[str, str]], ...] = (
    ("edge_router", {}),
    ("edge_router", {"vrfs": "4"}),
    ("edge_router", {"nexthops": "8"}),
    ("edge_router", {"fib_size": "1000"}),
    ("edge_router", {"fib_size": "1000", "flows": "64"}),
    ("load_balancer", {}),
    ("load_balancer", {"servers": "2"}),
    ("load_balancer", {"servers": "8"}),
    ("load_balancer", {"servers": "16"}),
)


def entries() -> dict[str, Any]:
    """The file's content, from the current program."""
    program = find_program()
    made = {}
    for pipeline, params in VARIANTS:
        document = load_pipeline(pipeline, params)
        probe = probe_routes(document, program)
        if probe.warnings or probe.free:
            raise ValueError(f"{pipeline} {params}: more is to be said than gates")
        made[key_of(document)] = packed(pipeline, params, probe.routes)
    return made


def main() -> None:
    """Writes the file."""
    Path(FILE).write_text(json.dumps(entries(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{FILE}: {len(VARIANTS)} variants")


if __name__ == "__main__":
    main()
