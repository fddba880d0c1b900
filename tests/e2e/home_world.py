# SPDX-License-Identifier: BSD-3-Clause
"""home_world.py - a home, the internet, and a gateway between them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from commands import Commands, running
from lab import Lab, wait_listening

from batchplane.demo.demos import home_hosts

SERVICES = str(Path(__file__).with_name("services.py"))


@dataclass
class World:
    """Home and internet with a gateway between them."""

    lab: Lab
    commands: Commands | None  # None: the kernel

    def home(self, *command: str, is_good: bool = True, timeout_s: float = 120) -> str:
        return self.lab.hosts["home"].run(*command, is_good=is_good, timeout_s=timeout_s)

    def service(self, host: str, *words: str) -> subprocess.Popen[str]:
        port = int(words[1])
        process = self.lab.hosts[host].start("python3", "-S", SERVICES, *words)
        wait_listening(self.lab.hosts[host], port, "udp" if words[0] == "dns" else "tcp")
        return process


@contextlib.contextmanager
def gateway_world(folder: Path, mtu_bytes: int, *params: str) -> Iterator[World]:
    """pipelines/home_gateway.yaml between them; at the end all packets must be accounted for."""
    lab = home_hosts(mtu_bytes)
    commands = Commands(folder, lab.router)
    try:
        words = ("home_gateway", "lan=lan0", "wan=wan0", *params)
        with running(commands, "home_gateway", *words):
            yield World(lab, commands)
    finally:
        lab.close()
