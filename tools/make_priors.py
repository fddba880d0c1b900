#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_priors.py - measures every module kind on this machine and writes the built-in costs.

usage: PYTHONPATH=python .venv/bin/python tools/make_priors.py [--missing]
They serve plans without a profile (`--costs prior`): one law a kind, no table. With --missing, only
the kinds that the file does not have yet are measured, and their entries say on what machine. Ports
of the kernel are kinds of their own; they take network namespaces.
"""

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

from batchplane.costs.file import LOOP_KEYS
from batchplane.costs.keys import cpu_name
from batchplane.profile.measure import ProfileOptions, profile_kinds
from batchplane.profile.ports import profile_ports
from batchplane.profile.setups import measured_in, setups

TARGET = Path(__file__).resolve().parent.parent / "python" / "batchplane" / "costs" / "priors.json"


def rounded(value: float) -> float:
    """Three digits say all that a law from elsewhere can."""
    return float(f"{value:.3g}")


def as_prior(module: dict[str, Any]) -> dict[str, Any]:
    """What is kept of one."""
    costs = {key: rounded(module[key]) for key in ("cost_per_batch_ns", "cost_per_pkt_ns")}
    of_port = {"port_kind": module["port_kind"]} if "port_kind" in module else {}
    return {"kind": module["kind"], **of_port, **costs}


def with_ports(priors: dict[str, Any], options: ProfileOptions) -> dict[str, Any]:
    """What is there, and ports if they are not."""
    if any("port_kind" in module for module in priors["modules"]):
        return priors
    note = f"measured on {cpu_name()}, {date.today().isoformat()}"
    for module in profile_ports(options=options):
        priors["modules"].append({**as_prior(module), "note": note})
    priors["modules"].sort(key=lambda module: str(module["kind"]))
    return priors


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
        "modules": [as_prior(module) for module in modules if module["kind"] != "cost"],
        "loop": {key: rounded(document["loop"][key]) for key in LOOP_KEYS},
    }


def with_missing(priors: dict[str, Any], options: ProfileOptions) -> dict[str, Any]:
    """What is there, and the kinds that are not."""
    known = {module["kind"] for module in priors["modules"]}
    kinds = {kind for pipeline in setups() for kind in measured_in(pipeline)} - known - {"cost"}
    if kinds:
        added = as_priors(profile_kinds(sorted(kinds), options))
        note = f"measured on {added['cpu']}, {added['date'][:10]}"
        priors["modules"] += [{**module, "note": note} for module in added["modules"]]
        priors["modules"].sort(key=lambda module: str(module["kind"]))
    return priors


def main() -> None:
    """Measures and writes."""
    options = ProfileOptions(ms_per_module=300, passes=4)
    if sys.argv[1:] == ["--missing"]:
        priors = with_missing(json.loads(TARGET.read_text(encoding="utf-8")), options)
    else:
        priors = as_priors(profile_kinds(options=options))
    priors = with_ports(priors, options)
    TARGET.write_text(json.dumps(priors, indent=1) + "\n", encoding="utf-8")
    print(f"{TARGET}: {len(priors['modules'])} kinds")


if __name__ == "__main__":
    main()
