# SPDX-License-Identifier: BSD-3-Clause
"""test_vpn_gateway.py - a site behind pipelines/vpn_gateway.yaml, and the other end of its tunnel.

The other end is esp_endpoint.py: some Python on a TUN device, with another library's cryptography.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from commands import Commands, running
from lab import Lab, wait_listening

from batchplane.profile.device_measure import OPENCL, find_devices

PIPELINE = Path(__file__).parents[2] / "pipelines" / "vpn_gateway.yaml"
ENDPOINT = str(Path(__file__).with_name("esp_endpoint.py"))
SITE, WAN, PEER, OTHER = "10.1.0.10", "192.0.2.1", "192.0.2.2", "10.2.0.2"
KEY_BYTES = {"aes-256-gcm": (36, 0), "aes-256-cbc-sha256": (32, 32)}
FILE_MB = 4


@dataclass
class World:
    """The site with its gateway, and the other end."""

    lab: Lab
    commands: Commands
    secret: str  # a part of a key, in hexadecimal
    is_on_device: bool

    def site(self, *command: str, is_good: bool = True) -> str:
        return self.lab.hosts["site"].run(*command, is_good=is_good, timeout_s=120)

    def drops(self) -> str:
        return self.commands.good("show", "drops")


def write_keys(folder: Path, suite: str) -> tuple[Path, Path, str]:
    """Key files of the gateway and of the other end, and a part of their content."""
    n_cipher, n_auth = KEY_BYTES[suite]
    texts = [
        " ".join(os.urandom(n).hex() for n in (n_cipher, n_auth) if n) for _direction in range(2)
    ]
    files = []
    for name, (first, second) in (("gateway", texts), ("other", texts[::-1])):
        file = folder / f"{name}.keys"
        file.touch(mode=0o600)
        file.write_text(f"1 {first}\n2 {second}\n")
        files.append(file)
    return files[0], files[1], texts[0][:16]


def write_on_device(pipeline: Path, to: Path) -> Path:
    """The pipeline with its cryptography on an OpenCL device."""
    document = yaml.safe_load(pipeline.read_text())
    document["devices"] = {"device": {"kind": "opencl", "check_one_in": 8}}
    for name in ("encrypt", "decrypt"):
        module = document["modules"][name]
        del module["trigger"], module["age_limit"]
        module["device"] = {"on": ["device", "inline"], "batch_pkts": 64, "age_limit": "1ms"}
    to.write_text(yaml.safe_dump(document, sort_keys=False))
    return to


@pytest.fixture(
    scope="module",
    params=[
        ("aes-256-gcm", False, False),
        ("aes-256-cbc-sha256", True, False),
        ("aes-256-gcm", True, True),
    ],
    ids=["gcm", "cbc-udp", "gcm-udp-opencl"],
)
def world(
    request: pytest.FixtureRequest, program: Path, can_have_labs: None, shared_folder: Path
) -> Iterator[World]:
    if not Path("/dev/net/tun").exists():
        pytest.skip("NOT RUN: this machine has no TUN devices")
    suite, is_udp, is_on_device = request.param
    pipeline = "vpn_gateway"
    if is_on_device:
        if not any(row["kind"] == OPENCL for row in find_devices().devices):
            pytest.skip("NOT RUN: this machine has no OpenCL device")
        pipeline = str(write_on_device(PIPELINE, shared_folder / "on_device.yaml"))
    own_keys, other_keys, secret = write_keys(shared_folder, suite)
    lab = Lab()
    try:
        lab.add_host("site", "lan0", f"{SITE}/24", "10.1.0.1")
        other = lab.add_host("other", "wan0", f"{PEER}/24", WAN)
        commands = Commands(shared_folder, lab.router)
        words = (f"keys={own_keys}", f"suite={suite}", f"udp={str(is_udp).lower()}")
        with running(commands, "vpn_gateway", pipeline, *words):
            endpoint = other.start(
                sys.executable, ENDPOINT, PEER, WAN, OTHER, "10.1.0.0/24", str(other_keys),
                "--suite", suite, *(["--udp"] if is_udp else []),
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            assert endpoint.stdout is not None
            assert endpoint.stdout.readline() == "ready\n"
            yield World(lab, commands, secret, is_on_device)
    finally:
        lab.close()


def test_pings_of_every_size_come_back(world: World) -> None:
    for size in (0, 1, 2, 3, 13, 14, 15, 16, 56, 1372):
        told = world.site("ping", "-n", "-c", "2", "-i", "0.05", "-s", str(size), OTHER)
        assert "2 received" in told


def test_a_download_arrives_byte_for_byte(world: World, folder: Path) -> None:
    original, copy = folder / "file", folder / "copy"
    original.write_bytes(os.urandom(FILE_MB << 20))
    other = world.lab.hosts["other"]
    server = ("-m", "http.server", "8080", "--bind", OTHER, "--directory", str(folder))
    other.start("python3", *server)
    wait_listening(other, 8080)
    world.site("curl", "-sS", "--max-time", "100", "-o", str(copy), f"http://{OTHER}:8080/file")
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (original, copy)]
    assert digests[0] == digests[1]


def test_the_device_that_is_asked_for_computes(world: World) -> None:
    test_pings_of_every_size_come_back(world)
    rows = world.commands.json("show", "devices")
    assert len(rows) == (2 if world.is_on_device else 0)
    for row in rows:
        assert row["stage"]["on"] == "device"
        device = row["stage"]["devices"][0]
        # Where the device does not get a core in time, the worker encrypts.
        assert device["fault"] == "" and device["done_pkts"] > 0, row


def test_senders_are_told_what_fits_into_the_tunnel(world: World) -> None:
    told = world.site(
        "ping", "-n", "-c", "1", "-W", "5", "-M", "do", "-s", "1373", OTHER, is_good=False
    )
    assert "mtu" in told.lower() and "1400" in told
    # Packets without DF are fragmented, and reassembled at the other end.
    assert "1 received" in world.site("ping", "-n", "-c", "1", "-M", "dont", "-s", "4000", OTHER)


def test_nothing_leaves_in_the_clear(world: World) -> None:
    told = world.site("ping", "-n", "-c", "2", "-i", "0.05", "-W", "1", PEER, is_good=False)
    assert "0 received" in told
    assert "deny" in world.drops() or "denied" in world.drops()


def test_forged_packets_are_counted(world: World) -> None:
    code = """
import os, socket, struct, sys
peer, is_udp = sys.argv[1], sys.argv[2] == "udp"
kind = (socket.SOCK_DGRAM, 0) if is_udp else (socket.SOCK_RAW, 50)
net = socket.socket(socket.AF_INET, *kind)
for sequence in range(10**6, 10**6 + 50):
    net.sendto(struct.pack("!II", 4098, sequence) + os.urandom(96), (peer, 4500 if is_udp else 0))
"""
    shown = json.loads(world.commands.good("set", "encrypt", "list", "--json"))
    is_udp = "udp" in json.dumps(shown)
    world.lab.hosts["other"].python(code, WAN, "udp" if is_udp else "esp")
    assert "bad_icv" in world.drops()
    test_pings_of_every_size_come_back(world)


def test_keys_are_never_disclosed(world: World) -> None:
    told = [
        world.commands.good(*words)
        for words in (
            ("set", "encrypt", "list", "--json"),
            ("set", "decrypt", "list", "--json"),
            ("show", "--json"),
            ("save",),
        )
    ]
    assert '"pkts"' in told[0]
    assert world.secret not in "".join(told)


def test_the_demo_joins_two_sites(program: Path, can_have_labs: None, folder: Path) -> None:
    told = Commands(folder).good("demo", "ipsec")
    assert "3 received" in told
    assert "byte-identical; the server saw 10.1.0.10" in told
    assert "mtu = 1400" in told
    assert told.endswith("cleaned up, nothing left running\n")
