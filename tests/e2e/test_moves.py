# SPDX-License-Identifier: BSD-3-Clause
"""test_moves.py - parts of a gateway move between workers during a download."""

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
from commands import assert_balanced
from home_world import World, gateway_world
from lab import wait_listening

from batchplane.demo.demos import INTERNET

PARTS = ("acl_lan", "check_lan", "nat", "lookup_wan", "ttl_wan", "check_wan", "fit_wan", "is_ours")
WORKERS = ("main", "spare_0")
MOVES_PER_S = 10


@pytest.fixture
def world(program: Path, can_have_labs: None, tmp_path: Path) -> Iterator[World]:
    """A gateway with an idle worker."""
    with gateway_world(tmp_path, 1500, "spare=1") as made:
        yield made


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Slow enough that there is time for moves.
@pytest.mark.parametrize(
    ("size_mb", "speed"),
    [
        pytest.param(20, "8M", id="20MB"),
        pytest.param(1024, "64M", id="1GB", marks=pytest.mark.long),
    ],
)
def test_a_download_arrives_while_parts_move(
    world: World, tmp_path: Path, size_mb: int, speed: str
) -> None:
    original, copy = tmp_path / "file", tmp_path / "copy"
    original.write_bytes(os.urandom(1 << 20) * size_mb)
    internet, home = world.lab.hosts["internet"], world.lab.hosts["home"]
    internet.start(
        "python3", "-m", "http.server", "8080", "--directory", str(tmp_path),
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    wait_listening(internet, 8080)
    url = f"http://{INTERNET}:8080/file"
    words = ("--limit-rate", speed, "--max-time", "300", "-o", str(copy), url)
    curl = home.start("curl", "-sS", *words)
    commands = world.commands
    assert commands is not None
    rng = random.Random(3)
    moved = moved_meanwhile = 0
    on = dict.fromkeys(PARTS, 0)
    with commands.client("home_gateway") as client:
        for i in itertools.count():
            is_over = curl.poll() is not None
            if is_over and i >= 30:
                break
            part = rng.choice(PARTS)
            on[part] = 1 - on[part]
            has_moved = len(client.move({part: WORKERS[on[part]]})["moved"]) > 0
            moved += has_moved
            moved_meanwhile += has_moved and not is_over
            time.sleep(0 if is_over else 1 / MOVES_PER_S)
        drops = client.show("drops")
        assert_balanced(client.show("runtime")["balance"])
    assert curl.returncode == 0
    assert digest(original) == digest(copy)
    assert moved >= 10 and moved_meanwhile >= 3, (moved, moved_meanwhile)
    reasons = {row["reason"] for row in drops if row["pkts"]}
    assert not reasons & {"queue_full", "removed_by_apply"}, drops


def test_a_move_is_reported_saved_and_shown(world: World) -> None:
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
