# SPDX-License-Identifier: BSD-3-Clause
"""hosts6.py - hosts that speak IPv6 around pipelines/router6.yaml."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from commands import Commands, running
from lab import Lab, Namespace

A, B, OWN_A, OWN_B = "2001:db8:1::2", "2001:db8:2::2", "2001:db8:1::1", "2001:db8:2::1"


def turn_on(host: Namespace) -> None:
    """IPv6 with a link-local address, without duplicate address detection: nobody else is on the
    link."""
    settings = "/proc/sys/net/ipv6/conf/eth0"
    host.run("sh", "-c", f"echo 0 > {settings}/accept_dad; echo 0 > {settings}/disable_ipv6")


def give_address(host: Namespace, address: str, gateway: str) -> None:
    host.run("ip", "address", "add", f"{address}/64", "dev", "eth0", "nodad")
    host.run("ip", "-6", "route", "add", "default", "via", gateway)


def ping6(lab: Lab, host: str, *words: str) -> str:
    """Output of ping, whether it succeeds or not."""
    return lab.hosts[host].run("ping", "-6", "-n", *words, is_good=False)


@contextlib.contextmanager
def routing6(lab: Lab, folder: Path) -> Iterator[Commands]:
    """The router, and hosts with fixed addresses; host b is behind a link of 1400 bytes."""
    commands = Commands(folder, lab.router)
    with running(commands, "router6", "router6", "wan_mtu_bytes=1400"):
        for name, address, gateway in (("a", A, OWN_A), ("b", B, OWN_B)):
            turn_on(lab.hosts[name])
            give_address(lab.hosts[name], address, gateway)
        yield commands
