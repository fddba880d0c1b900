# SPDX-License-Identifier: BSD-3-Clause
"""test_replay.py - recorded traffic of a home through the daemon, frame by frame against a model."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from model import MACS, Model
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether
from scapy.utils import PcapWriter, RawPcapReader

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "e2e"))
from commands import Commands  # noqa: E402
from waiting import wait_until  # noqa: E402

from batchplane.daemon.process import find_program  # noqa: E402

TRAFFIC = ("dns", "ftp", "http", "ping", "udp")


def frames_in(path: Path) -> list[tuple[int, bytes]]:
    """Time stamps in nanoseconds, and frames."""
    with RawPcapReader(str(path)) as reader:
        unit = 1 if reader.nano else 1000
        return [(about.sec * 10**9 + about.usec * unit, bytes(data)) for data, about in reader]


def recorded(names: tuple[str, ...]) -> list[bytes]:
    """What arrived on both sides, in its order."""
    frames = []
    for name in names:
        both = [f for side in ("lan", "wan") for f in frames_in(HERE / f"{name}.{side}.pcap")]
        frames += [data for _, data in sorted(both, key=lambda frame: frame[0])]
    return frames


def write(path: Path, frames: list[bytes]) -> None:
    with PcapWriter(str(path), linktype=1) as writer:
        writer.write_header(None)
        for frame in frames:
            writer.write_packet(frame, sec=0, usec=0)


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    find_program()
    made = Commands(tmp_path)
    yield made
    made.kill_all()


@dataclass
class Replayed:
    """What left by each side, and how many frames each module dropped."""

    left: dict[str, list[bytes]]
    drops: Counter[str]


def is_exhausted(ports: list[dict[str, Any]]) -> bool:
    return bool(next(port for port in ports if port["name"] == "wire")["is_exhausted"])


def replay(commands: Commands, frames: list[bytes], *settings: str) -> Replayed:
    """Sends every frame in."""
    folder = commands.folder
    write(folder / "in.pcap", frames)
    files = {side: folder / f"{side}.pcap" for side in MACS}
    commands.good(
        "start", str(HERE / "napt.yaml"), f"read={folder / 'in.pcap'}",
        *[f"write_{side}={path}" for side, path in files.items()], *settings,
    )  # fmt: skip
    with commands.client("napt") as client:
        wait_until(lambda: is_exhausted(client.show("ports")), "the recording is at its end")
    report = commands.stop("napt")
    assert report["balance"]["in_pkts"] == len(frames)
    drops: Counter[str] = Counter()
    for drop in report["drops"]:
        drops[drop["module"]] += drop["pkts"]
    left = {side: [data for _, data in frames_in(path)] for side, path in files.items()}
    return Replayed(left, drops)


def compare(frames: list[bytes], replayed: Replayed) -> Model:
    model, left = Model(), replayed.left
    model.learn_fragments(frames)
    at = dict.fromkeys(left, 0)
    for i, frame in enumerate(frames):
        following = {s: got[at[s]] if at[s] < len(got) else None for s, got in left.items()}
        expected = model.expect(frame, following)
        if expected is None:
            continue
        side, wanted = expected
        got = following[side]
        assert got == wanted, (
            f"frame {i}, {Ether(frame).summary()}: {side} sent\n{got and got.hex()}, not\n"
            f"{wanted.hex()}"
        )
        at[side] += 1
    assert {side: len(got) for side, got in left.items()} == at, "more left than the model sends"
    assert replayed.drops == model.drops
    return model


@pytest.mark.parametrize("name", TRAFFIC)
def test_every_frame_leaves_as_the_model_says(commands: Commands, name: str) -> None:
    frames = recorded((name,))
    model = compare(frames, replay(commands, frames))
    assert model.ports, "the recording has no connections"


@pytest.mark.parametrize(("batch_pkts", "trigger"), [(1, 0), (32, 0), (32, 7), (256, 64)])
def test_all_traffic_in_batches_of_any_size(
    commands: Commands, batch_pkts: int, trigger: int
) -> None:
    frames = recorded(TRAFFIC)
    settings = (f"batch_pkts={batch_pkts}", f"trigger={trigger}")
    model = compare(frames, replay(commands, frames, *settings))
    assert set(model.drops) == {"type", "acl", "ttl", "nat"}
    assert {flow[0] for flow in model.ports} == {1, 6, 17}
    assert sum(1 for frame in frames if IP in Ether(frame) and Ether(frame)[IP].frag) > 10
