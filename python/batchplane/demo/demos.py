# SPDX-License-Identifier: BSD-3-Clause
"""demos.py - the demos' pipelines between Linux hosts: set up, shown at work, cleaned up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from .bng import bng
from .ipsec import ipsec
from .netns import Hosts
from .stage import Gateway, download, showing, started, step

HOME, INSIDE = "192.168.1.10", "192.168.1.1"
INTERNET, OUTSIDE = "203.0.113.9", "203.0.113.1"
HOME6, INSIDE6 = "2001:db8:1::10", "2001:db8:1::1"
INTERNET6, OUTSIDE6 = "2001:db8:2::9", "2001:db8:2::1"
TOOLS = ("ping", "curl")
_FILE_MB = 64

_PICTURE = f"""\
  home                      home_gateway                     internet
  {HOME:<15} --lan-- {INSIDE} | {OUTSIDE} --wan-- {INTERNET}
  {HOME6:<15}  --lan-- {INSIDE6} | {OUTSIDE6} --wan-- {INTERNET6}"""


def home_gateway(out: Console) -> None:
    """A home behind a NAT gateway, and a server in the internet that it downloads from.

    Raises RunFailed if namespaces cannot be created, or if the demo fails.
    """
    words = ("home_gateway", "lan=lan0", "wan=wan0")
    with (
        showing(out, TOOLS) as folder,
        contextlib.closing(home_hosts()) as hosts,
        started(hosts.router, folder, *words) as gateway,
    ):
        out.print(Text(_PICTURE, "bold"))
        _show_at_work(out, hosts, gateway, folder)


def home_hosts(mtu_bytes: int = 1500) -> Hosts:
    """`home` on lan0 and `internet` on wan0, with both IP versions; close() it."""
    hosts = Hosts(has_ipv6=True)
    try:
        for name, device, address, router, address6, router6 in (
            ("home", "lan0", HOME, INSIDE, HOME6, INSIDE6),
            ("internet", "wan0", INTERNET, OUTSIDE, INTERNET6, OUTSIDE6),
        ):
            host = hosts.add_host(name, device, f"{address}/24", router, mtu_bytes)
            host.run("ip", "-6", "address", "add", f"{address6}/64", "dev", "eth0", "nodad")
            host.run("ip", "-6", "route", "add", "default", "via", router6, "dev", "eth0")
    except BaseException:
        hosts.close()
        raise
    return hosts


def _show_at_work(out: Console, hosts: Hosts, gateway: Gateway, folder: Path) -> None:
    home = hosts.hosts["home"]
    for title, command in (
        ("ping through the gateway", ("ping", "-n", "-c", "3", "-i", "0.2", INTERNET)),
        ("ping over IPv6", ("ping", "-n", "-c", "3", "-i", "0.2", INTERNET6)),
    ):
        step(out, title, command)
        out.print(home.run(*command).strip().splitlines()[-2])
    server = (hosts.hosts["internet"], INTERNET)
    seen = download(out, home, server, folder, _FILE_MB)
    out.print(f"; the server saw {seen} instead of {HOME}")
    for title, words in (
        ("NAT translations", ("show", "nat")),
        ("packets the gateway dropped", ("show", "drops")),
    ):
        step(out, title, ("batchplane", *words))
        out.print(gateway.say(*words).rstrip(), markup=False)


DEMOS: dict[str, Callable[[Console], None]] = {
    "home-gateway": home_gateway,
    "ipsec": ipsec,
    "bng": bng,
}
