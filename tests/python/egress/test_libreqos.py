# SPDX-License-Identifier: BSD-3-Clause
"""`batchplane libreqos`: turns an ISP's files into trees, addresses and a pipeline."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import run_command

NETWORK: dict[str, Any] = {
    "Site_1": {
        "downloadBandwidthMbps": 1000,
        "uploadBandwidthMbps": 500,
        "type": "site",
        "children": {
            "AP_A": {"downloadBandwidthMbps": 100, "uploadBandwidthMbps": 50, "id": 7},
            "POP": {
                "virtual": True,
                "downloadBandwidthMbps": 1,
                "uploadBandwidthMbps": 1,
                "children": {"AP_B": {"downloadBandwidthMbps": 2000, "uploadBandwidthMbps": 9.5}},
            },
        },
    },
    "Site_2": {"downloadBandwidthMbps": 500, "uploadBandwidthMbps": 500, "children": {}},
}
HEADER = (
    "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,"
    "Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment"
)
DEVICES = f"""#Lines that begin with a hash are comments
{HEADER},sqm
1,"12 Pine Street, Apt 2",1,D1,AP_A,,"100.64.0.1, 100.64.0.14",2001:db8:1::/56,62,10,155,20,,
# another
2,Elm,2,D2,AP_A,,100.64.0.2,,62,10,105,18,"a, comment",cake
2,Elm,3,D3,AP_A,,100.64.1.1/29,,1,1,1,1,,
3,Oak,4,D4,POP,,100.64.0.3,,0.1,0.1,0.2,0.5,,fq_codel/
4,Ash,5,D5,Nowhere,,100.64.0.4,,1,1,10,10,,/none
"""

Make = Callable[..., int]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Make:
    """Runs `batchplane libreqos` on these files, into tmp_path/out; returns the exit code."""

    def make_it(network: Any = None, devices: str = DEVICES, *words: str) -> int:
        text = network if isinstance(network, str) else json.dumps(network or NETWORK)
        (tmp_path / "network.json").write_text(text)
        (tmp_path / "ShapedDevices.csv").write_text(devices)
        files = (str(tmp_path / "network.json"), str(tmp_path / "ShapedDevices.csv"))
        rates = ("--download", "10G", "--upload", "1G")
        out = ("--out", str(tmp_path / "out"))
        return run_command(monkeypatch, "libreqos", *files, *out, *rates, *words)

    return make_it


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_trees_hold_places_and_circuits(make: Make, tmp_path: Path) -> None:
    assert make() == 0
    down = _rows(tmp_path / "out" / "download.csv")
    nodes = {row["node"]: (row["parent"], row["ceil_bps"]) for row in down if row["node"]}
    assert nodes == {
        "Site_1": ("", "1000000000"),
        "AP_A": ("Site_1", "100000000"),
        # Below a virtual node, and capped by its parent.
        "AP_B": ("Site_1", "1000000000"),
        "Site_2": ("", "500000000"),
    }
    flows = {row["flow"]: row for row in down if row["flow"]}
    assert [flows[k]["parent"] for k in "1234"] == ["AP_A", "AP_A", "Site_1", ""]
    assert (flows["1"]["min_rate_bps"], flows["1"]["ceil_bps"]) == ("62000000", "155000000")
    assert (flows["3"]["min_rate_bps"], flows["3"]["ceil_bps"]) == ("100000", "200000")
    assert {row["queue"] for row in down if row["flow"]} == {"fq_codel"}
    up = {row["flow"]: row for row in _rows(tmp_path / "out" / "upload.csv")}
    assert (up["2"]["min_rate_bps"], up["2"]["ceil_bps"]) == ("10000000", "18000000")
    assert [up[k]["queue"] for k in "1234"] == ["fq_codel"] * 3 + ["fifo"]
    marks = {row["prefix"]: row["mark"] for row in _rows(tmp_path / "out" / "prefixes.csv")}
    assert marks == {
        "100.64.0.1/32": "1",
        "100.64.0.14/32": "1",
        "2001:db8:1::/56": "1",
        "100.64.0.2/32": "2",
        "100.64.1.0/29": "2",
        "100.64.0.3/32": "3",
        "100.64.0.4/32": "4",
    }


def test_overbooked_minima_are_reported(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    assert make() == 0
    said = capsys.readouterr().err
    assert "download: minima of its circuits add up to 124 Mbit/s" in said
    assert "node 'AP_A' carries 100 (lower the minimum of 1, 2)" in said
    assert "ShapedDevices.csv:8: Parent Node: there is no node 'Nowhere'" in said
    assert "4 nodes, 4 circuits, 7 prefixes" in said


def test_the_pipeline_is_good(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make() == 0
    pipeline = tmp_path / "out" / "shaper.yaml"
    assert run_command(monkeypatch, "check", str(pipeline)) == 0
    text = pipeline.read_text()
    # The minima do not fit, so the pipeline tells the daemon that this is intended.
    assert text.count("overbook: true") == 2
    devices = DEVICES.replace("62,10,155", "1,1,155")
    assert make(None, devices) == 0
    assert pipeline.read_text().count("overbook: false") == 2
    assert run_command(monkeypatch, "check", str(pipeline)) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("62,10,155,20", "62,10,61,20", ":3: Download Min Mbps: the minimum is above the maximum"),
        ("62,10,155,20", "0.05,10,155,20", "'0.05' is no rate"),
        ("62,10,155,20", "x,10,155,20", "'x' is no rate"),
        ("100.64.0.3,", "100.64.0.2,", "100.64.0.2/32 is there twice (circuit '2' has it"),
        ("100.64.0.3,", "100.64.0.300,", ":7: IPv4: '100.64.0.300' is no address"),
        ("100.64.0.3,", "2001:db8::1,", "is no IPv4 address"),
        (",cake", ",fifo", "'fifo' is no queue discipline"),
        ("4,Ash", ",Ash", ":8: Circuit ID: the circuit has no ID"),
        ("4,Ash,5,D5,", "4,", ":8: 11 fields where the header has 14"),
        ("Parent Node", "Parent", ":2: column 'Parent Node' is missing"),
    ],
)
def test_bad_devices(
    make: Make, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str
) -> None:
    assert make(None, DEVICES.replace(old, new, 1)) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("{", "network.json:1: this is not valid JSON"),
        ("[]", "expected an object of nodes"),
        ({"A": 5}, "A: expected an object"),
        ({"A": {"downloadBandwidthMbps": -1}}, "A.downloadBandwidthMbps: -1 is no rate"),
        ({"A": {"downloadBandwidthMbps": True}}, "True is no rate"),
        ({"A": {"children": {"A": {}}}}, "the node 'A' is there twice"),
        ({"A,B": {}}, "'A,B' is no name of a node"),
    ],
)
def test_bad_networks(
    make: Make, capsys: pytest.CaptureFixture[str], network: Any, said: str
) -> None:
    assert make(network) == 2
    assert said in capsys.readouterr().err
