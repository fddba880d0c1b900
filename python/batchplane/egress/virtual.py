# SPDX-License-Identifier: BSD-3-Clause
"""virtual.py - an arbiter in virtual time with rounds that take time; clients at full rate."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..base.problems import BadInput, Problem
from ..native.loader import load_native
from .replay import Arrivals, Flows


@dataclass(frozen=True)
class Passage:
    """The result of each arrival, in order of arrival."""

    is_sent: list[bool]
    release_ns: list[int]  # by the scheduler
    done_ns: list[int]  # by the bus behind it


def run_virtual(
    discipline: str, flows: Flows, clients: list[int], arrivals: Arrivals, **settings: int
) -> Passage:
    """Carries arrivals through mailboxes, rounds that take time, and a bus. Raises BadInput.

    `clients`: the mailbox for each flow's packets. `settings`: those of VirtualSpec in
    src/egress/arbiter/virtual_arbiter.h, times in ns.
    """
    native = load_native()
    try:
        return Passage(
            *native.egress_virtual(
                discipline,
                [flows.weight, flows.lmax_bytes, flows.limit_pkts],
                clients,
                [arrivals.ns, arrivals.flow, arrivals.len_bytes],
                settings,
            )
        )
    except native.ConfigError as error:
        raise BadInput([Problem(str(text)) for text in error.args]) from error


@dataclass(frozen=True)
class FlatOut:
    """Clients that never pause, and the path between them and the sink."""

    way: str = "arbiter"  # lock: one lock around the scheduler; alone: nothing
    discipline: str = "qfq"
    flows: int = 32
    clients: int = 1
    at_once: int = 32
    dispatchers: int = 0
    dispatch_pkts: int = 32
    copies: bool = False


def flat_out_mpps(what: FlatOut, run_ms: int) -> float:
    """Measured throughput in Mpps: an arbiter has the last core, the clients all others."""
    cores = sorted(os.sched_getaffinity(0))
    others = (cores[:-1] or cores) if what.way == "arbiter" else cores
    rate: float = load_native().egress_flat_out(
        what.way, what.discipline, what.flows, what.clients, what.at_once, what.dispatchers,
        what.dispatch_pkts, what.copies, run_ms * 1_000_000, cores[-1], others,
    )  # fmt: skip
    return rate
