#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_priors.py - measures every module kind on this machine and writes the built-in costs.

usage: PYTHONPATH=python .venv/bin/python tools/make_priors.py
They serve plans without a profile (`--costs prior`): one law a kind, no table.
"""

import json
from pathlib import Path
from typing import Any

from batchplane.costs.file import LOOP_KEYS
from batchplane.profile.measure import ProfileOptions, profile_kinds

TARGET = Path(__file__).resolve().parent.parent / "python" / "batchplane" / "costs" / "priors.json"


def rounded(value: float) -> float:
    """Three digits say all that a law from elsewhere can."""
    return float(f"{value:.3g}")


def as_priors(document: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a profile of all kinds."""
    modules = sorted(document["modules"], key=lambda module: str(module["kind"]))
    return {
        "version": document["version"],
        "label": "prior",
        "cpu": document["cpu"],
        "date": document["date"],
        "cycles_per_ns": rounded(document["cycles_per_ns"]),
        "batch_pkts": document["batch_pkts"],
        "modules": [
            {
                "kind": module["kind"],
                "cost_per_batch_ns": rounded(module["cost_per_batch_ns"]),
                "cost_per_pkt_ns": rounded(module["cost_per_pkt_ns"]),
            }
            for module in modules
            if module["kind"] != "cost"
        ],
        "loop": {key: rounded(document["loop"][key]) for key in LOOP_KEYS},
    }


def main() -> None:
    """Measures and writes."""
    priors = as_priors(profile_kinds(options=ProfileOptions(ms_per_module=300, passes=4)))
    TARGET.write_text(json.dumps(priors, indent=1) + "\n", encoding="utf-8")
    print(f"{TARGET}: {len(priors['modules'])} kinds")


if __name__ == "__main__":
    main()
