# SPDX-License-Identifier: BSD-3-Clause
"""test_home_gateway.py - a home behind pipelines/home_gateway.yaml, and behind the kernel's own NAT.

Every scenario runs through both: what a user sees must be the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from commands import Commands
from lab import Lab, wait_listening

from batchplane.demo.demos import (
    HOME,
    INSIDE,
    INSIDE6,
    INTERNET,
    INTERNET6,
    OUTSIDE,
    OUTSIDE6,
    home_hosts,
)

SERVICES = str(Path(__file__).with_name("services.py"))
DOWNLOAD_MB = 1024 if os.environ.get("BATCHPLANE_LONG") == "1" else 64

_KERNEL_NAT = f"""
ip address add {INSIDE}/24 dev lan0
ip address add {OUTSIDE}/24 dev wan0
echo 0 > /proc/sys/net/ipv6/conf/lan0/disable_ipv6
echo 0 > /proc/sys/net/ipv6/conf/wan0/disable_ipv6
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
ip -6 address add {INSIDE6}/64 dev lan0 nodad
ip -6 address add {OUTSIDE6}/64 dev wan0 nodad
nft add table ip nat
nft 'add chain ip nat post {{ type nat hook postrouting priority 100 ; }}'
nft add rule ip nat post oifname wan0 masquerade
"""


@dataclass
class World:
    """Home and internet with something between them."""

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
    """The gateway with other parameters than usual."""
    lab = home_hosts(mtu_bytes)
    commands = Commands(folder, lab.router)
    try:
        commands.good("start", "home_gateway", "lan=lan0", "wan=wan0", *params)
        yield World(lab, commands)
        commands.stop("home_gateway")
    finally:
        commands.kill_all()
        lab.close()


@pytest.fixture(params=["batchplane", "kernel"])
def world(
    request: pytest.FixtureRequest, program: Path, can_have_labs: None, folder: Path
) -> Iterator[World]:
    lab = home_hosts()
    commands = None
    try:
        if request.param == "kernel":
            if shutil.which("nft") is None:
                pytest.skip("NOT RUN: nft is not installed (make install-packages)")
            told = lab.router.run("sh", "-ec", _KERNEL_NAT, is_good=False)
            if "masquerade" not in lab.router.run("nft", "list", "ruleset", is_good=False):
                pytest.skip(f"NOT RUN: this kernel has no NAT to compare with: {told.strip()}")
        else:
            commands = Commands(folder, lab.router)
            commands.good("start", "home_gateway", "lan=lan0", "wan=wan0")
        yield World(lab, commands)
        if commands is not None:
            commands.stop("home_gateway")
    finally:
        if commands is not None:
            commands.kill_all()
        lab.close()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_download_arrives_byte_for_byte(world: World, folder: Path) -> None:
    original, copy, log = folder / "file", folder / "copy", folder / "log"
    original.write_bytes(os.urandom(1 << 20) * DOWNLOAD_MB)
    with log.open("w") as words:
        world.lab.hosts["internet"].start(
            "python3", "-m", "http.server", "8080", "--directory", str(folder), stderr=words
        )
    wait_listening(world.lab.hosts["internet"], 8080)
    url = f"http://{INTERNET}:8080/file"
    world.home("curl", "-sS", "--max-time", "300", "-o", str(copy), url, timeout_s=310)
    assert digest(original) == digest(copy)
    assert OUTSIDE in log.read_text() and HOME not in log.read_text()


def test_200_connections_at_once(world: World) -> None:
    world.service("internet", "echo", "7000")
    told = world.home("python3", "-S", SERVICES, "connect", INTERNET, "7000", "200", "65536")
    assert "200 of 200" in told, told


def test_pings_of_any_size(world: World) -> None:
    """Long ones go through in fragments; the gateway's own addresses answer what comes whole."""
    for address, sizes_bytes in (
        (INTERNET, (0, 1, 56, 1472, 1473, 8972)),
        (INTERNET6, (0, 1, 56, 1452, 1453, 8952)),
        (INSIDE, (0, 56, 1472)),
        (INSIDE6, (0, 56, 1452)),
        (OUTSIDE, (56,)),
        (OUTSIDE6, (56,)),
    ):
        for size_bytes in sizes_bytes:
            told = world.home(
                "ping", "-n", "-c", "3", "-i", "0.02", "-W", "3", "-s", str(size_bytes), address,
                is_good=False,
            )  # fmt: skip
            assert "3 received" in told, told


def test_traceroute_names_the_gateway(world: World) -> None:
    for family, own, other in (("-4", INSIDE, INTERNET), ("-6", INSIDE6, INTERNET6)):
        told = world.home("traceroute", family, "-n", "-q", "1", "-w", "5", other)
        hops = re.findall(r"^ *(\d+) +(\S+)", told, re.MULTILINE)
        assert hops == [("1", own), ("2", other)], told


def test_names_are_looked_up(world: World) -> None:
    world.service("internet", "dns", "53", f"files.example={INTERNET}")
    for i in range(20):
        told = world.home(
            "python3", "-S", "-c",
            "import socket, struct, sys\n"
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            "s.settimeout(5)\n"
            f"q = struct.pack('!HHHHHH', {i}, 0x100, 1, 0, 0, 0)\n"
            "q += b'\\x05files\\x07example\\x00\\x00\\x01\\x00\\x01'\n"
            f"s.sendto(q, ('{INTERNET}', 53))\n"
            "a = s.recv(1500)\n"
            "print(struct.unpack('!H', a[:2])[0], socket.inet_ntoa(a[-4:]))",
        )  # fmt: skip
        assert told.split() == [str(i), INTERNET]


def test_ftp_in_passive_mode(world: World, folder: Path) -> None:
    original, copy = folder / "file", folder / "copy"
    original.write_bytes(os.urandom(300_000))
    world.service("internet", "ftp", "2121", str(original))
    world.home("python3", "-S", SERVICES, "fetch", INTERNET, "2121", str(copy))
    assert digest(original) == digest(copy)


def test_iperf_both_ways(world: World) -> None:
    internet = world.lab.hosts["internet"]
    internet.start("iperf3", "-s", "-p", "5201")
    wait_listening(internet, 5201)
    client = ("iperf3", "-c", INTERNET, "-p", "5201", "-J")
    for words in (("-n", "20M"), ("-n", "20M", "-R"), ("-u", "-b", "20M", "-l", "1200", "-t", "1")):
        told = json.loads(world.home(*client, *words))
        # The first two end after an amount, the third after a time.
        is_udp = "-u" in words
        least_bytes = 0 if is_udp else 1_000_000
        assert told["end"]["sum" if is_udp else "sum_received"]["bytes"] > least_bytes, words


@pytest.mark.usefixtures("program", "can_have_labs")
def test_jumbo_frames_pass_whole(folder: Path) -> None:
    with gateway_world(folder, 9000, "mtu_bytes=9000", "wan_mtu_bytes=9000") as world:
        for address, size_bytes in ((INTERNET, 8972), (INTERNET6, 8952), (INTERNET, 20000)):
            told = world.home(
                "ping", "-n", "-c", "3", "-i", "0.02", "-W", "3", "-s", str(size_bytes),
                *(["-M", "do"] if size_bytes < 9000 else []), address, is_good=False,
            )  # fmt: skip
            assert "3 received" in told, told


@pytest.mark.usefixtures("program", "can_have_labs")
def test_the_path_mtu_is_found(folder: Path) -> None:
    """The way out takes 1300 bytes: hosts learn it through the translation, and TCP gets through."""
    with gateway_world(folder, 1500, "wan_mtu_bytes=1300") as world:
        for address, option, fits_bytes in ((INTERNET, "do", 1272), (INTERNET6, "do", 1252)):
            told = world.home(
                "ping", "-n", "-c", "1", "-W", "5", "-M", option, "-s", "1400", address,
                is_good=False,
            )  # fmt: skip
            assert re.search(r"mtu ?= ?1300", told), told
            told = world.home(
                "ping", "-n", "-c", "1", "-W", "5", "-M", option, "-s", str(fits_bytes), address,
                is_good=False,
            )  # fmt: skip
            assert "1 received" in told, told
        world.service("internet", "echo", "7000")
        told = world.home("python3", "-S", SERVICES, "connect", INTERNET, "7000", "4", "100000")
        assert "4 of 4" in told, told


@pytest.mark.parametrize("world", ["batchplane"], indirect=True)
def test_nobody_gets_in_from_outside(world: World) -> None:
    """A connection that nobody inside has asked for."""
    assert world.commands is not None
    world.service("home", "echo", "7000")
    told = world.lab.hosts["internet"].run(
        "curl", "-sS", "--max-time", "2", f"telnet://{OUTSIDE}:7000", is_good=False
    )
    assert "timed out" in told or "refused" in told, told


@pytest.mark.parametrize("world", ["batchplane"], indirect=True)
def test_connections_outlive_a_table_swap_and_an_apply(world: World, folder: Path) -> None:
    assert world.commands is not None
    world.service("internet", "echo", "7000")
    talk = subprocess.Popen(
        [*world.lab.hosts["home"].enter(), sys.executable, "-S", SERVICES, "hold", INTERNET, "7000"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
    )  # fmt: skip
    assert talk.stdin is not None and talk.stdout is not None

    def say(word: str) -> None:
        assert talk.stdin is not None and talk.stdout is not None
        talk.stdin.write(word + "\n")
        assert talk.stdout.readline().strip() == word

    try:
        say("before")
        (folder / "tables").mkdir()
        table = folder / "tables" / "routes.json"
        table.write_text(json.dumps([{"prefix": "0.0.0.0/0", "via": INTERNET}]))
        world.commands.good("set", "lookup", "replace", "--file", str(table))
        say("after the swap")
        world.commands.good("apply", "home_gateway", "lan=lan0", "wan=wan0", "trigger=4")
        say("after the apply")
    finally:
        talk.kill()
        talk.communicate()
