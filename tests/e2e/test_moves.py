# SPDX-License-Identifier: BSD-3-Clause
"""test_moves.py - parts of a gateway change workers while somebody downloads through it."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from home_world import World, gateway_world
from lab import wait_listening

from batchplane.demo.demos import INTERNET

DOWNLOAD_MB = 1024 if os.environ.get("BATCHPLANE_LONG") == "1" else 48
PARTS = ("acl_lan", "check_lan", "nat", "lookup_wan", "ttl_wan", "check_wan", "fit_wan", "is_ours")
WORKERS = ("main", "spare_0")
MOVES_PER_S = 10


@pytest.fixture
def world(program: Path, can_have_labs: None, tmp_path: Path) -> Iterator[World]:
    """A gateway with a worker that has nothing to do."""
    with gateway_world(tmp_path, 1500, "spare=1") as made:
        yield made


def test_a_download_arrives_while_parts_move(world: World, tmp_path: Path) -> None:
    original, copy = tmp_path / "file", tmp_path / "copy"
    original.write_bytes(os.urandom(1 << 20) * DOWNLOAD_MB)
    internet, home = world.lab.hosts["internet"], world.lab.hosts["home"]
    internet.start(
        "python3", "-m", "http.server", "8080", "--directory", str(tmp_path),
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_listening(internet, 8080)
    url = f"http://{INTERNET}:8080/file"
    curl = home.start("curl", "-sS", "--max-time", "300", "-o", str(copy), url)
    commands = world.commands
    assert commands is not None
    rng = random.Random(3)
    moved = 0
    stops_ns = []
    with commands.client("home_gateway") as client:
        for i in itertools.count():
            if curl.poll() is not None and i >= 30:
                break
            answer = client.move({rng.choice(PARTS): rng.choice(WORKERS)})
            moved += len(answer["moved"]) > 0
            stops_ns.append(answer["stop_ns"])
            time.sleep(1 / MOVES_PER_S if curl.poll() is None else 0)
        drops = client.show("drops")
    assert curl.wait(timeout=310) == 0
    sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (original, copy)]
    assert sums[0] == sums[1]
    assert moved >= 10, moved
    reasons = {row["reason"] for row in drops if row["pkts"]}
    assert not reasons & {"queue_full", "removed_by_apply"}, drops


def test_what_is_said_of_a_move(world: World) -> None:
    commands = world.commands
    assert commands is not None
    done = commands.good("move", "nat", "spare_0")
    assert "moved from main to spare_0 with their state: " in done, done
    assert "main and spare_0 stood still for " in done
    assert commands.good("move", "nat", "spare_0").strip() == "it runs there already"
    saved = commands.good("save")
    assert "worker: spare_0" in saved
    assert "nat/in" not in saved
    assert "nat/in" in commands.good("show", "cores")
    for words, what in (
        (("nat", "spare_9"), "there is no worker 'spare_9' (did you mean 'spare_0'?)"),
        (("nta", "main"), "there is no module 'nta' (did you mean 'nat'?)"),
        (("nat",), "'nat' has no worker"),
    ):
        bad = commands.run("move", *words)
        assert bad.code == 2, bad
        assert what in bad.err
        assert len(bad.lines) == 1, bad.err
    commands.good("move", "nat", "main")
    assert "worker: spare_0" not in commands.good("save")
