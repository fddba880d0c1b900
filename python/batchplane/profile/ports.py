# SPDX-License-Identifier: BSD-3-Clause
"""ports.py - measures the costs of kernel ports, on wires in their own network namespace.

`in` polls packets that `far` sends over a wire. `out` sends into another wire; the kernel at its
other end receives the packets within the sending call, as for another host, and drops them for lack
of a route. Neither includes the work of a network card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..base.problems import BatchplaneError
from ..costs.costs import IN_MEMORY
from ..lang.canonical import canonicalise
from ..lang.expand import Expanded
from .measure import ProfileOptions, measured_wired

AF_PACKET = "af_packet"
_UNSHARE = ["unshare", "--user", "--map-root-user", "--net", "--mount"]
# /sys shows the interfaces of the namespace that mounted it; without IPv6 the kernel sends nothing.
_QUIET = (
    "mount -t sysfs sysfs /sys 2>/dev/null || true",
    "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 2>/dev/null || true",
)
_END_MAC = "02:00:00:00:00:0e"
_WIRES = (
    "ip link add bp_near type veth peer name bp_far",
    "ip link add bp_away type veth peer name bp_end",
    f"ip link set bp_end address {_END_MAC}",
    *(f"ip link set {end} up" for end in ("bp_near", "bp_far", "bp_away", "bp_end")),
)
_PORTS = {
    "near": {"kind": AF_PACKET, "interface": "bp_near"},
    "far": {"kind": AF_PACKET, "interface": "bp_far"},
    "away": {"kind": AF_PACKET, "interface": "bp_away"},
}


def profile_ports(
    batch_pkts: int = 32,
    options: ProfileOptions | None = None,
    doubts: list[str] | None = None,
) -> list[dict[str, Any]]:
    """Entries of a costs file for ports of kind af_packet; `doubts` gets what cannot be. Raises
    RunFailed and BadInput."""
    modules = {
        "in": {"kind": "port_in", "port": "near"},
        "to_end": {"kind": "mac_rewrite", "src": "02:00:00:00:00:0a", "dst": _END_MAC},
        "out": {"kind": "port_out", "port": "away"},
    }
    data = {
        "name": "ports",
        "engine": {"batch_pkts": batch_pkts},
        "ports": _PORTS,
        "modules": modules,
        "connect": ["in -> to_end -> out"],
    }
    pipeline = canonicalise(Expanded("ports", data, {})).pipeline
    script = "\n".join([*_QUIET, *_WIRES, 'exec "$@"'])
    inside = [*_UNSHARE, "sh", "-ec", script, "sh"]
    document = measured_wired(pipeline, ["in", "out"], {"near": "far"}, inside, options)
    if doubts is not None:
        doubts += [f"ports of kind {AF_PACKET}: {doubt}" for doubt in document["doubts"]]
    return [
        {
            **module,
            "port_kind": AF_PACKET,
            "name": f"{module['kind']} on {AF_PACKET}",
            "members": [],
        }
        for module in document["modules"]
    ]


def with_ports(
    document: dict[str, Any], pipeline: Mapping[str, Any], options: ProfileOptions | None = None
) -> list[str]:
    """Adds the costs of a pipeline's ports to its costs document; returns what was not measured."""
    told = []
    kinds = {str(port["kind"]) for port in pipeline.get("ports", {}).values()} - IN_MEMORY
    for kind in sorted(kinds):
        why = "only ports of kind af_packet are"
        try:
            if kind == AF_PACKET:
                batch_pkts = int(document["batch_pkts"])
                entries = profile_ports(batch_pkts, options, document.setdefault("doubts", []))
                document["modules"] += entries
                continue
        except BatchplaneError as error:
            why = error.lines()[-1]
        told.append(
            f"ports of kind {kind}: NOT MEASURED, built-in costs do where there are any: {why}"
        )
    return told
