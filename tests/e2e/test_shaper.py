# SPDX-License-Identifier: BSD-3-Clause
"""test_shaper.py - an ISP's LibreQoS files as a bridge: a customer's throughput through real
interfaces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Commands, running
from lab import Lab, ping, two_hosts, wait_listening
from waiting import wait_until

NETWORK = {"Site": {"downloadBandwidthMbps": 100, "uploadBandwidthMbps": 100}}
DEVICES = """Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,\
Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment
1,Alice,1,Laptop,Site,,100.64.0.2,,2,2,8,20,
2,Bob,2,Laptop,Site,,100.64.0.9,,2,2,8,20,
"""
SENT_BYTES = 1_000_000
RECEIVER = """
import socket
server = socket.create_server(("100.64.0.2", 5001))
other, _ = server.accept()
got = 0
while data := other.recv(65536):
    got += len(data)
print(got)
"""
SENDER = f"""
import socket, time
start = time.monotonic()
link = socket.create_connection(("100.64.0.2", 5001))
link.sendall(bytes({SENT_BYTES}))
link.shutdown(socket.SHUT_WR)
link.recv(1)
print(time.monotonic() - start)
"""


@pytest.fixture
def bridged(program: Path, can_have_labs: None) -> Iterator[Lab]:
    """Alice behind lan0 and a server behind wan0, in one network."""
    alice = ("alice", "lan0", "100.64.0.2/24", "100.64.0.254")
    server = ("server", "wan0", "100.64.0.254/24", "100.64.0.2")
    with two_hosts((alice, server)) as lab:
        yield lab


def _flow(commands: Commands, direction: str, flow: int) -> dict[str, Any]:
    shown = commands.json("show", "tables", direction)
    return next(each for each in shown["flows"] if each["flow"] == flow)


def test_a_customer_gets_its_rate_and_no_more(bridged: Lab, folder: Path) -> None:
    isp = folder / "isp"
    isp.mkdir()
    (isp / "network.json").write_text(json.dumps(NETWORK))
    (isp / "devices.csv").write_text(DEVICES)
    commands = Commands(folder, bridged.router)
    out = folder / "out"
    files = (str(isp / "network.json"), str(isp / "devices.csv"), "--out", str(out))
    rates = ("--download", "100M", "--upload", "100M")
    commands.good("libreqos", *files, *rates, "--access", "lan0", "--core", "wan0")
    with running(commands, "shaper", str(out / "shaper.yaml")):
        # ARP belongs to nobody, pings to Alice, in both directions.
        assert " 0% packet loss" in ping(bridged, "server", "-c", "3", "100.64.0.2")
        for direction in ("download", "upload"):
            wait_until(
                lambda way=direction: _flow(commands, way, 1)["released_pkts"] >= 3,
                "pings are counted",
            )
            assert _flow(commands, direction, 0)["released_pkts"] >= 1
            assert _flow(commands, direction, 2)["released_pkts"] == 0
        receiver = bridged.hosts["alice"].start("python3", "-c", RECEIVER)
        wait_listening(bridged.hosts["alice"], 5001)
        took_s = float(bridged.hosts["server"].python(SENDER))
        receiver.wait(10)
        # 8 Mbit/s on the wire, except for the initial burst.
        assert took_s >= (SENT_BYTES - 10_000) * 8 / 8e6, took_s
        assert _flow(commands, "download", 1)["released_bytes"] >= SENT_BYTES
        # A new rate at run time.
        words = ("flow=1", "parent=Site", "ceil_bps=16000000", "queue=fq_codel")
        commands.good("set", "download", "replace", *words)
        assert _flow(commands, "download", 1)["ceil_bps"] == 16_000_000
        receiver = bridged.hosts["alice"].start("python3", "-c", RECEIVER)
        wait_listening(bridged.hosts["alice"], 5001)
        took_s = float(bridged.hosts["server"].python(SENDER))
        receiver.wait(10)
        assert took_s >= (SENT_BYTES - 10_000) * 8 / 16e6, took_s
