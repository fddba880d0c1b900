# SPDX-License-Identifier: BSD-3-Clause
"""ipsec.py - two sites with a tunnel between their gateways, and what the wire shows."""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from .netns import Hosts, Namespace
from .stage import Gateway, download, showing, started, step

TOOLS = ("ping", "curl")
_FILE_MB = 32
_KEY_BYTES = 36  # of AES-256-GCM, with its salt

_PICTURE = """\
  berlin            gateway A                        gateway B            paris
  10.1.0.10  --lan-- 10.1.0.1 | 192.0.2.1 ==ESP== 192.0.2.2 | 10.2.0.1 --lan--  10.2.0.10"""


@dataclass(frozen=True)
class _Site:
    """One end of the tunnel."""

    name: str
    network: str
    wan: str
    out_spi: int

    @property
    def host(self) -> str:
        return f"{self.network}.10"


_BERLIN = _Site("berlin", "10.1.0", "192.0.2.1", 4097)
_PARIS = _Site("paris", "10.2.0", "192.0.2.2", 4098)


def ipsec(out: Console) -> None:
    """A download between two sites, encrypted on the way.

    Raises RunFailed if namespaces cannot be created, or if the demo fails.
    """
    with showing(out, TOOLS) as folder, contextlib.ExitStack() as stack:
        berlin = stack.enter_context(contextlib.closing(Hosts()))
        berlin.add_host("berlin", "lan0", "10.1.0.10/24", "10.1.0.1")
        paris = stack.enter_context(contextlib.closing(berlin.join_router("wan0")))
        paris.add_host("paris", "lan0", "10.2.0.10/24", "10.2.0.1")
        keys = [secrets.token_hex(_KEY_BYTES) for _direction in range(2)]
        gateways = [
            stack.enter_context(_running(*words, folder))
            for words in (
                (berlin.router, _BERLIN, _PARIS, keys, 0),
                (paris.router, _PARIS, _BERLIN, keys[::-1], 1),
            )
        ]
        out.print(Text(_PICTURE, "bold"))
        hosts = (berlin.hosts["berlin"], paris.hosts["paris"])
        _show_at_work(out, hosts, gateways[0], folder)


def _running(
    space: Namespace, own: _Site, other: _Site, keys: list[str], core: int, folder: Path
) -> contextlib.AbstractContextManager[Gateway]:
    run_folder = folder / own.name
    run_folder.mkdir()
    key_file = run_folder / "keys"
    key_file.touch(mode=0o600)
    key_file.write_text(f"1 {keys[0]}\n2 {keys[1]}\n")
    cores = sorted(os.sched_getaffinity(0))
    return started(
        space,
        run_folder,
        "vpn_gateway",
        f"--cores={cores[core % len(cores)]}",
        f"lan_address={own.network}.1/24",
        f"wan_address={own.wan}/24",
        f"local={own.wan}",
        f"remote={other.wan}",
        f"other_site={other.network}.0/24",
        f"out_spi={own.out_spi}",
        f"in_spi={other.out_spi}",
        f"keys={key_file}",
    )


def _show_at_work(
    out: Console, hosts: tuple[Namespace, Namespace], gateway: Gateway, folder: Path
) -> None:
    berlin, paris = hosts
    ping = ("ping", "-n", "-c", "3", "-i", "0.2", _PARIS.host)
    step(out, "ping through the tunnel", ping)
    out.print(berlin.run(*ping).strip().splitlines()[-2])
    seen = download(out, berlin, (paris, _PARIS.host), folder, _FILE_MB)
    out.print(f"; the server saw {seen}")
    too_long = ("ping", "-n", "-c", "1", "-W", "5", "-M", "do", "-s", "1400", _PARIS.host)
    step(out, "what does not fit into the tunnel", too_long)
    told = berlin.run(*too_long, is_good=False)
    out.print(next((line for line in told.splitlines() if "mtu" in line), told), markup=False)
    for title, words in (
        ("tunnels of gateway A", ("set", "encrypt", "list")),
        ("packets it dropped", ("show", "drops")),
    ):
        step(out, title, ("batchplane", *words))
        out.print(gateway.say(*words).rstrip(), markup=False)
