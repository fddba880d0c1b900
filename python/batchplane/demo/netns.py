# SPDX-License-Identifier: BSD-3-Clause
"""netns.py - hosts in network namespaces around a router's namespace, for demos and tests."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Runs a command in its own namespaces, without root.
UNSHARE = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--kill-child"]
TOOLS = ("ip", "ethtool", "nsenter", "unshare")


def missing_for_hosts(tools: Sequence[str] = ()) -> str | None:
    """The reason why hosts with these tools cannot be created here, or None."""
    for tool in (*TOOLS, *tools):
        if shutil.which(tool) is None:
            return f"{tool} is not installed (make install-packages)"
    tried = subprocess.run([*UNSHARE, "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        return f"network namespaces are not permitted here: {tried.stderr.strip()}"
    return None


class CommandFailed(AssertionError):
    """A command failed that had to succeed."""


class Namespace:
    """A network namespace, kept open by a sleeping process."""

    def __init__(self, launch: Sequence[str]) -> None:
        # The holder prints a line once it is inside; before that its namespaces are still ours.
        self._holder = subprocess.Popen(
            [*launch, "sh", "-c", "echo in; exec sleep infinity"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "in\n":
            raise RuntimeError(f"no namespace: {' '.join(launch)}")
        self.pid = self._inside()
        self._started: list[subprocess.Popen[Any]] = []

    def _inside(self) -> int:
        """The process inside the namespace; with --kill-child it is a child of the one we
        started."""
        children = Path(f"/proc/{self._holder.pid}/task/{self._holder.pid}/children").read_text()
        return int(children.split()[0]) if children.split() else self._holder.pid

    def enter(self) -> list[str]:
        """The command prefix that runs a command in this namespace."""
        target = f"--target={self.pid}"
        return ["nsenter", target, "--user", "--net", "--mount", "--preserve-credentials", "--"]

    def run(self, *command: str, is_good: bool = True, timeout_s: float = 60) -> str:
        """Runs a command to its end and returns its output. Raises CommandFailed if it fails."""
        done = subprocess.run(
            [*self.enter(), *command],
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        if is_good and done.returncode != 0:
            raise CommandFailed(
                f"{' '.join(command)}: {done.returncode}: {done.stdout}{done.stderr}"
            )
        return done.stdout + ("" if is_good else done.stderr)

    def script(self, *lines: str) -> str:
        """Runs shell commands here up to the first failure; one nsenter is faster than many."""
        return self.run("sh", "-ec", "\n".join(lines))

    def start(self, *command: str, **options: Any) -> subprocess.Popen[Any]:
        """Starts a command that ends with the namespace at the latest."""
        options.setdefault("stdout", subprocess.DEVNULL)
        options.setdefault("stderr", subprocess.DEVNULL)
        process = subprocess.Popen([*self.enter(), *command], stdin=subprocess.DEVNULL, **options)
        self._started.append(process)
        return process

    def python(self, code: str, *words: str, timeout_s: float = 60) -> str:
        """Runs Python code here, without packages."""
        return self.run("python3", "-S", "-c", code, *words, timeout_s=timeout_s)

    def close(self) -> None:
        """Ends all commands started here, and the namespace."""
        for process in [*self._started, self._holder]:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def _up(device: str) -> tuple[str, str]:
    """Commands; without offloads, as the daemon needs whole checksums and segments on the wire."""
    off = f"ethtool -K {device} tx off tso off gso off gro off"
    return off, f"ip link set {device} up"


class Hosts:
    """A router's namespace with hosts around it, each on its own veth pair.

    All of it is in a user namespace: it needs no root, and it ends with its processes.
    """

    def __init__(self, has_ipv6: bool = False, router: Namespace | None = None) -> None:
        self._has_ipv6 = has_ipv6
        self.router = Namespace(UNSHARE) if router is None else router
        self.hosts: dict[str, Namespace] = {}
        # /sys shows the interfaces of the namespace that mounted it.
        self.router.run("mount", "-t", "sysfs", "sysfs", "/sys", is_good=False)
        # The router's own kernel must not answer in either IP version: the daemon does.
        self._disable_ipv6(self.router)

    def add_host(
        self, name: str, router_end: str, address: str, gateway: str, mtu_bytes: int = 1500
    ) -> Namespace:
        """A host on the router's `router_end`, which gets no address: the daemon has it."""
        host = Namespace([*self.router.enter(), "unshare", "--net", "--mount"])
        self.hosts[name] = host
        if not self._has_ipv6:
            self._disable_ipv6(host)
        ends = f"mtu {mtu_bytes} type veth peer name eth0 netns {host.pid} mtu {mtu_bytes}"
        self.router.script(f"ip link add dev {router_end} {ends}", *_up(router_end))
        host.script(
            *_up("eth0"),
            "ip link set lo up",
            f"ip address add {address} dev eth0",
            f"ip route add default via {gateway}",
        )
        return host

    def add_switch(self, device: str, ends: Sequence[str]) -> None:
        """Bridges the hosts' ends in the router; `device` then reaches all of them."""
        self.router.script(
            f"ip link add {device} type bridge",
            *(f"ip link set {end} master {device}" for end in ends),
            f"ip link set {device} up",
        )

    def join_router(self, device: str) -> Hosts:
        """Another router in the same user namespace; `device` connects the two, on both sides.

        Close it first.
        """
        other = Hosts(
            self._has_ipv6, Namespace([*self.router.enter(), "unshare", "--net", "--mount"])
        )
        pair = f"type veth peer name {device} netns {other.router.pid}"
        self.router.script(f"ip link add dev {device} {pair}", *_up(device))
        other.router.script(*_up(device))
        return other

    def _disable_ipv6(self, space: Namespace) -> None:
        space.run(
            "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6", is_good=False
        )

    def close(self) -> None:
        """Ends every process and namespace."""
        for host in self.hosts.values():
            host.close()
        self.router.close()


def clean_environment(**more: str) -> dict[str, str]:
    """Our environment without the setting that could lead commands to somebody else's daemons."""
    kept = {key: value for key, value in os.environ.items() if key != "XDG_RUNTIME_DIR"}
    return {**kept, **more}
