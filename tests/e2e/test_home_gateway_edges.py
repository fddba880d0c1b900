# SPDX-License-Identifier: BSD-3-Clause
"""test_home_gateway_edges.py - pipelines/home_gateway.yaml with other MTUs, contacted from outside,
and changed during a connection."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from home_world import SERVICES, World, gateway_world

from batchplane.demo.demos import INTERNET, INTERNET6, OUTSIDE

pytestmark = pytest.mark.usefixtures("program", "can_have_labs")


@pytest.fixture
def world(folder: Path) -> Iterator[World]:
    """The default gateway."""
    with gateway_world(folder, 1500) as made:
        yield made


def test_jumbo_frames_pass_whole(folder: Path) -> None:
    with gateway_world(folder, 9000, "mtu_bytes=9000", "wan_mtu_bytes=9000") as world:
        for address, size_bytes in ((INTERNET, 8972), (INTERNET6, 8952), (INTERNET, 20000)):
            told = world.home(
                "ping", "-n", "-c", "3", "-i", "0.02", "-W", "3", "-s", str(size_bytes),
                *(["-M", "do"] if size_bytes < 9000 else []), address, is_good=False,
            )  # fmt: skip
            assert "3 received" in told, told


def test_the_path_mtu_is_found(folder: Path) -> None:
    """The WAN link has an MTU of 1300 bytes: hosts learn it through the NAT, and TCP gets
    through."""
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


def test_nobody_gets_in_from_outside(world: World) -> None:
    """A connection that no inside host has asked for."""
    assert world.commands is not None
    world.service("home", "echo", "7000")
    told = world.lab.hosts["internet"].run(
        "curl", "-sS", "--max-time", "2", f"telnet://{OUTSIDE}:7000", is_good=False
    )
    assert "timed out" in told or "refused" in told, told


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
