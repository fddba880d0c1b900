# SPDX-License-Identifier: BSD-3-Clause
"""test_home_gateway.py - a home behind pipelines/home_gateway.yaml, and behind the kernel's own NAT.

Every scenario runs through both: users must see the same.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from home_world import SERVICES, World, gateway_world
from lab import iperf3, wait_listening

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


@pytest.fixture(scope="module", params=["batchplane", "kernel"])
def world(
    request: pytest.FixtureRequest, program: Path, can_have_labs: None, shared_folder: Path
) -> Iterator[World]:
    """One of each for all of these tests, which only send traffic through it."""
    if request.param == "batchplane":
        with gateway_world(shared_folder, 1500) as made:
            yield made
        return
    if shutil.which("nft") is None:
        pytest.skip("NOT RUN: nft is not installed (make install-packages)")
    lab = home_hosts()
    try:
        told = lab.router.run("sh", "-ec", _KERNEL_NAT, is_good=False)
        if "masquerade" not in lab.router.run("nft", "list", "ruleset", is_good=False):
            pytest.skip(f"NOT RUN: this kernel has no NAT to compare with: {told.strip()}")
        yield World(lab, None)
    finally:
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
    """Long pings pass as fragments; the gateway's own addresses answer unfragmented ones."""
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


# Twenty times, each from a new port.
_ASK = """
import socket, struct, sys
for i in range(20):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(5)
        question = struct.pack("!HHHHHH", i, 0x100, 1, 0, 0, 0)
        question += b"\\x05files\\x07example\\x00\\x00\\x01\\x00\\x01"
        s.sendto(question, (sys.argv[1], 53))
        answer = s.recv(1500)
        print(struct.unpack("!H", answer[:2])[0], socket.inet_ntoa(answer[-4:]))
"""


def test_names_are_looked_up(world: World) -> None:
    world.service("internet", "dns", "53", f"files.example={INTERNET}")
    told = world.home("python3", "-S", "-c", _ASK, INTERNET)
    assert told.splitlines() == [f"{i} {INTERNET}" for i in range(20)]


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
    client = world.lab.hosts["home"]
    for words in (("-n", "20M"), ("-n", "20M", "-R"), ("-u", "-b", "20M", "-l", "1200", "-t", "1")):
        told = iperf3(client, INTERNET, *words)
        # The first two end after an amount of data, the third after a time.
        is_udp = "-u" in words
        min_bytes = 0 if is_udp else 1_000_000
        assert told["sum" if is_udp else "sum_received"]["bytes"] > min_bytes, words
