#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_priors.py - measures the built-in costs on this machine, in pipelines under load.

usage: PYTHONPATH=python .venv/bin/python tools/make_priors.py [--missing] [--name NAME]
Takes about a minute. Plans and simulations without a profile use these costs (`--costs prior`);
those of another machine have another name (`--name epyc`: `--costs epyc`). A module alone has all
caches to itself, so only kinds that are in none of the pipelines are measured in small setups. With
--missing, only kinds that are not in the file yet are measured, and their entries name the machine.
Kernel ports have their own entries and need network namespaces. Leave the machine idle meanwhile.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from datetime import date
from typing import Any

from batchplane.costs.costs import BUILT_IN, EPYC, PRIOR
from batchplane.costs.file import LOOP_KEYS
from batchplane.costs.keys import cpu_name
from batchplane.daemon.process import find_program
from batchplane.lang.kinds import load_kinds
from batchplane.lang.load import load_pipeline, parse_overrides
from batchplane.profile.measure import ProfileOptions, profile_kinds, profile_pipeline
from batchplane.profile.ports import profile_ports
from batchplane.profile.setups import measured_in, setups

FAMILIES = (
    "l2l3 nexthops=16",
    "gateway nexthops=16",
    "vrf vrfs=2 nexthops=4",
    "mgw bearers=2 users=4",
    "robot_control n=16",
    "load_balancer",
    "edge_router",
    "ids",
    "ipsec_gateway",
    "subscribers",
)
MEASURED_HERE = (PRIOR, EPYC)
NOT_KEPT = {"cost"}  # its costs are its parameters


def rounded(value: float) -> float:
    """Three digits are as precise as costs for another machine can be."""
    return float(f"{value:.3g}")


def entry_of(module: dict[str, Any], **more: str) -> dict[str, Any]:
    """The entry for a measured module: its law, and the parameters for which it holds."""
    kept = {
        "kind": module["kind"],
        "cost_per_batch_ns": rounded(module["cost_per_batch_ns"]),
        "cost_per_pkt_ns": rounded(module["cost_per_pkt_ns"]),
        "table_ns": [rounded(ns) for ns in module["table_ns"]],
        **more,
    }
    return kept | {
        key: module[key] for key in ("table_pkts", "params_key", "port_kind") if key in module
    }


def middle(documents: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each kind and parameters: the one of median cost at full batches."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for document in documents:
        for module in document["modules"]:
            if module["kind"] not in NOT_KEPT:
                key = (module["kind"], module.get("params_key", ""))
                found.setdefault(key, []).append(module)
    entries = []
    for key in sorted(found):
        same = sorted(found[key], key=lambda module: float(module["table_ns"][-1]))
        entries.append(entry_of(same[len(same) // 2]))
    return entries


def as_priors(families: Sequence[dict[str, Any]], alone: dict[str, Any]) -> dict[str, Any]:
    """The file's content, from profiles of pipelines and of kinds that are in none of them."""
    first = families[0]
    in_some = {module["kind"] for document in families for module in document["modules"]}
    rest = [module for module in alone["modules"] if module["kind"] not in in_some]
    return {
        "version": first["version"],
        "label": "prior",
        "cpu": first["cpu"],
        "date": first["date"],
        "cycles_per_ns": rounded(first["cycles_per_ns"]),
        "batch_pkts": first["batch_pkts"],
        "modules": middle([*families, {"modules": rest}]),
        "loop": {
            key: rounded(statistics.median(document["loop"][key] for document in families))
            for key in LOOP_KEYS
        },
    }


def with_ports(priors: dict[str, Any], options: ProfileOptions) -> dict[str, Any]:
    """Adds ports, unless the file has them."""
    if any("port_kind" in module for module in priors["modules"]):
        return priors
    note = f"measured on {cpu_name()}, {date.today().isoformat()}"
    priors["modules"] += [entry_of(module, note=note) for module in profile_ports(options=options)]
    return sorted_by_kind(priors)


def sorted_by_kind(priors: dict[str, Any]) -> dict[str, Any]:
    """Sorts the entries as in the file."""
    priors["modules"].sort(key=lambda module: str(module["kind"]))
    return priors


def kinds_beyond(known: set[str]) -> list[str]:
    """Kinds that have their own small setup and are not known yet."""
    return sorted(
        {kind for pipeline in setups() for kind in measured_in(pipeline)} - known - NOT_KEPT
    )


def with_missing(priors: dict[str, Any], options: ProfileOptions) -> dict[str, Any]:
    """Adds the kinds that the file lacks."""
    kinds = kinds_beyond({module["kind"] for module in priors["modules"]})
    if kinds:
        added = profile_kinds(kinds, options)
        note = f"measured on {added['cpu']}, {added['date'][:10]}"
        priors["modules"] += [entry_of(module, note=note) for module in added["modules"]]
    return sorted_by_kind(priors)


def measured(options: ProfileOptions) -> dict[str, Any]:
    """Measures every family of pipelines, and the other kinds by themselves."""
    families = []
    kinds = load_kinds(find_program())
    for family in FAMILIES:
        name, *words = family.split()
        loaded = load_pipeline(name, parse_overrides(words), kinds)
        families.append(profile_pipeline(loaded.pipeline, options=options))
        print(f"{family}: {len(families[-1]['modules'])} kinds of modules", flush=True)
    known = {module["kind"] for document in families for module in document["modules"]}
    return as_priors(families, profile_kinds(kinds_beyond(known), options))


def main() -> None:
    """Measures, and writes the file."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--name", choices=MEASURED_HERE, default=PRIOR)
    given = parser.parse_args()
    target = BUILT_IN[given.name]
    options = ProfileOptions(ms_per_module=300, passes=4)
    if given.missing:
        priors = with_missing(json.loads(target.read_text(encoding="utf-8")), options)
    else:
        priors = measured(options)
    priors = with_ports(priors, options)
    lines = ",\n  ".join(json.dumps(module) for module in priors.pop("modules"))
    head = json.dumps(priors, indent=1).removesuffix("\n}")
    target.write_text(f'{head},\n "modules": [\n  {lines}\n ]\n}}\n', encoding="utf-8")
    print(f"{target}: {lines.count(chr(10)) + 1} entries")


if __name__ == "__main__":
    main()
