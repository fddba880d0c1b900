# SPDX-License-Identifier: BSD-3-Clause
"""kernel.py - the kernel's own packet schedulers under senders that never pause, over veth."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...demo.netns import UNSHARE, Namespace, missing_for_hosts

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST_PORT = 9000
# The far end receives frames and drops them: they are for another host's MAC.
_PAIR = (
    "ip link add load0 type veth peer name load1",
    "ip addr add 198.18.0.1/24 dev load0",
    "ip link set load0 up",
    "ip link set load1 up",
    "ip neigh add 198.18.0.2 lladdr 02:00:00:00:00:99 dev load0",
)
_SEND = (
    "import json, sys; from batchplane.native.loader import load_native; "
    "print(json.dumps(load_native().udp_flood('198.18.0.2', json.loads(sys.argv[1]), "
    "int(sys.argv[2]))))"
)


def missing() -> str | None:
    """The reason why this cannot be measured here, or None."""
    return missing_for_hosts(("tc",))


@contextmanager
def veth_pair() -> Iterator[Namespace]:
    """A namespace with a pair of interfaces whose far end drops everything."""
    space = Namespace(UNSHARE)
    try:
        space.script(*_PAIR)
        yield space
    finally:
        space.close()


def use(space: Namespace, scheduler: str, rates: list[int]) -> None:
    """Sets up `none`, `pfifo` or `htb`, with a class for each port at these rates in Gbit/s."""
    space.run("tc", "qdisc", "del", "dev", "load0", "root", is_good=False)
    if scheduler == "pfifo":
        space.script("tc qdisc add dev load0 root pfifo limit 1000")
    if scheduler != "htb":
        return
    lines = [
        "tc qdisc add dev load0 root handle 1: htb default 10",
        "tc class add dev load0 parent 1: classid 1:1 htb rate 100gbit quantum 60000",
    ]
    for k, rate in enumerate(rates):
        lines += [
            f"tc class add dev load0 parent 1:1 classid 1:{10 + k} htb rate {rate}gbit "
            f"ceil 100gbit quantum 60000",
            f"tc filter add dev load0 parent 1: protocol ip u32 match ip dport "
            f"{FIRST_PORT + k} 0xffff flowid 1:{10 + k}",
        ]
    space.script(*lines)


def flood(space: Namespace, senders: int, run_ms: int) -> list[int]:
    """The number of datagrams that the kernel accepted from each sender, one thread each."""
    ports = json.dumps([FIRST_PORT + k for k in range(senders)])
    text = space.run(sys.executable, "-c", _SEND, ports, str(run_ms * 1_000_000))
    return [int(pkts) for pkts in json.loads(text)]


def sent_pkts(space: Namespace) -> int:
    """The interface's counter of all sent packets."""
    (link,) = json.loads(space.run("ip", "-s", "-j", "link", "show", "load0"))
    return int(link["stats64"]["tx"]["packets"])
