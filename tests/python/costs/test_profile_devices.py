# SPDX-License-Identifier: BSD-3-Clause
"""test_profile_devices.py - laws from the times of a known device, profile files, and who may use
them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from built import needs_daemon
from command_line import run_command
from rich.console import Console

from batchplane.base.problems import BadInput
from batchplane.costs.batch_law import BatchLaw
from batchplane.costs.devices import (
    device_profile_from,
    device_profile_path,
    keep_device_profile,
    kept_device_profile,
    load_device_profile,
)
from batchplane.costs.keys import params_key
from batchplane.profile.device_fit import Point, fit_and_judge, fit_law, fitted_values
from batchplane.profile.device_measure import (
    DeviceOptions,
    Found,
    profile_devices,
    setup_pipeline,
    with_length,
)
from batchplane.profile.device_report import render_devices

TRUTH = {
    "inline": BatchLaw(50.0, 80.0, 0.5),
    "cores": BatchLaw(700.0, 90.0, 0.5),
    "opencl0": BatchLaw(30_000.0, 20.0, 0.1),
}
FEED = BatchLaw(40.0, 12.0, 0.0)
LINE = {"kind": "dpi", "on": "cores", **FEED.as_json(), "feed": FEED.as_json()}
FOUND = Found(
    [
        {"name": "inline", "kind": "inline"},
        {"name": "cores", "kind": "cores"},
        {"name": "opencl0", "kind": "opencl", "platform": "P", "device": "D", "driver": "1"},
    ]
)


def fake(pipeline: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a daemon whose devices obey TRUTH, and slow each other by 1.5 and 1.2."""
    length = pipeline["generators"][0]["params"]["size_bytes"]
    points = [
        {
            "module": module, "on": on, "batch_pkts": n, "pkt_bytes": float(length),
            "batch_ns": law.at(n, length), "feed_ns": FEED.at(n, length), "dropped_pkts": 0,
            "wall_ns": law.at(n, length),
        }
        for n in request["batch_pkts"]
        for module in request["modules"]
        for on, law in TRUTH.items()
        if not (module.startswith("esp") and on == "opencl0")
    ]  # fmt: skip
    pairs = []
    if request["pair_batch_pkts"]:
        one, other = {"module": "dpi", "on": "inline"}, {"module": "digest", "on": "opencl0"}
        pairs = [{"one": one, "other": other, "one_factor": 1.5, "other_factor": 1.2}]
    refused = [{"module": "esp_encrypt", "on": "opencl0", "reason": "it has no kernel"}]
    power = []
    if request["power_ms"]:
        power = [
            {"module": "", "on": "opencl0", "watts": 90.0},
            {"module": "dpi", "on": "opencl0", "watts": 210.0},
        ]
    return {"points": points, "pairs": pairs, "refused": refused, "power": power}


def measured(**watts: dict[str, float]) -> dict[str, Any]:
    """The document of the fake daemon."""
    return profile_devices(None, (), DeviceOptions(), watts, FOUND, fake)


@pytest.mark.parametrize("length_ns", [0.0, 70.0])
def test_a_law_is_found_again(length_ns: float) -> None:
    truth = BatchLaw(600.0, 30.0, 0.25, length_ns)
    assert truth.at(2, 100) == 600 + 100 * length_ns + 2 * (30 + 25)
    points = [Point(n, b, truth.at(n, b)) for n in (1, 16, 256) for b in (64, 512, 1472)]
    law = fit_law(points)
    for key in ("batch_ns", "pkt_ns", "byte_ns", "length_ns"):
        assert getattr(law, key) == pytest.approx(getattr(truth, key), rel=1e-6, abs=1e-6)
    assert BatchLaw.given(law.as_json()) == law


def test_no_part_of_a_law_is_negative() -> None:
    # Longer packets take less time: the best law that is not negative has byte_ns = 0.
    points = [Point(n, b, 100 + 50 * n - 0.02 * n * b) for n in (1, 16, 256) for b in (64, 1472)]
    law = fit_law(points)
    assert law.byte_ns == 0 and law.pkt_ns > 0 and law.batch_ns >= 0


def test_errors_are_of_points_that_were_left_out() -> None:
    truth = BatchLaw(600.0, 30.0, 0.25)
    sizes, lengths = (1, 4, 16, 64, 256), (64, 576, 1472)
    kept_sizes, kept_lengths = fitted_values(sizes), fitted_values(lengths)
    assert kept_sizes == {1, 16, 256} and kept_lengths == {64, 1472}
    # All points that are left out take a quarter longer than the law of the others.
    points = [
        Point(n, b, truth.at(n, b) * (1 if n in kept_sizes and b in kept_lengths else 1.25))
        for n in sizes
        for b in lengths
    ]
    fit = fit_and_judge(points)
    assert fit.n_left_out == len(points) - 6
    assert fit.median_error == pytest.approx(0.2) and fit.p95_error == pytest.approx(0.2)
    assert fit.law.pkt_ns == pytest.approx(30)
    assert fit.law.at(4, 576) == pytest.approx(1.25 * truth.at(4, 576), abs=0.1), "all are kept"


def test_a_measurement_becomes_laws_of_each_module_on_each_device() -> None:
    document = measured()
    laws = {(row["module"], row["on"]): row for row in document["laws"]}
    assert len(laws) == 5 * 2 + 3, "all on the worker and on a thread, and kernels"
    for (_, on), row in laws.items():
        assert row["batch_ns"] == pytest.approx(TRUTH[on].batch_ns, rel=1e-6)
        assert row["byte_ns"] == pytest.approx(TRUTH[on].byte_ns, rel=1e-6)
        assert row["feed"]["pkt_ns"] == pytest.approx(FEED.pkt_ns)
        assert row["p95_error"] == pytest.approx(0, abs=1e-9) and row["left_out"] > 10
    assert document["refused"][0]["reason"] == "it has no kernel"
    factors = {
        (r["kind"], r["on"], r["beside"], r["on_other"]): r["factor"] for r in document["beside"]
    }
    assert factors == {
        ("dpi", "inline", "digest", "opencl0"): 1.5,
        ("digest", "opencl0", "dpi", "inline"): 1.2,
    }


def test_every_generator_sends_the_length_that_is_measured() -> None:
    pipeline = {
        "generators": [{"name": "g", "params": {"imix": True, "flows": [{"size_bytes": 64}, {}]}}]
    }
    changed = with_length(pipeline, 700)["generators"][0]["params"]
    assert changed == {"size_bytes": 700, "flows": [{}, {}]}
    assert pipeline["generators"][0]["params"]["imix"], "what was given is as it was"


def test_the_table_tells_errors_watts_and_what_is_missing() -> None:
    document = measured(cores={"idle_w": 5, "active_w": 30})
    document["without_opencl"] = "no library"
    console = Console(file=io.StringIO(), width=200)
    render_devices(document, console)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert "cores: a thread of its own; 5 to 30 W, declared: modelled" in text
    assert "no OpenCL: no library" in text
    assert "esp_encrypt not on opencl0: it has no kernel" in text
    assert "p95 off" in text and "0%" in text and "1.50" in text
    assert "are not used" not in text
    assert "measured: 90 W idle, 210 W with dpi" in text
    # 816 ns per packet of 1472 bytes on the worker; on the device 169 ns in batches of 16384, 636
    # ns in batches of 64.
    assert "1024 pkts, up to 4.0x" in text and "64 pkts, up to 4.8x" in text, text
    document["beside"].append({**document["beside"][0], "factor": 88.7})
    render_devices(document, console)
    assert "1 above 5 are not used: others held this machine up" in console.file.getvalue()


def test_a_file_comes_back(tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    assert kept_device_profile(None, env).reason == ""
    path = keep_device_profile(measured(), None, env)
    assert path.parent.name == "costs"
    profile = kept_device_profile({"modules": {}}, env).profile
    assert profile is not None, "that of the set-ups serves where a pipeline has none of its own"
    module = setup_pipeline()["modules"]["dpi"]
    found = profile.law("dpi", module["params"], "cores")
    assert found is not None and found[1]
    assert found[0].law.pkt_ns == pytest.approx(90)
    assert found[0].law.at(4, 60) == pytest.approx(TRUTH["cores"].at(4, 60), rel=1e-3)
    assert found[0].params_key == params_key("dpi", module["params"])
    assert not (profile.law("dpi", {"rules": []}, "cores") or (None, True))[1]
    assert profile.device_for("opencl", {"platform": "P", "device": ""}) == "opencl0"
    assert profile.device_for("opencl", {"platform": "Q"}) == ""


def test_a_gpu_is_found_by_a_part_of_its_name_or_by_its_number() -> None:
    rows = [
        {"name": f"cuda{i}", "kind": "cuda", "device": "NVIDIA H200", "number": i} for i in (0, 1)
    ]
    profile = device_profile_from({**measured(), "devices": rows, "laws": []})
    asked = ("", "H200", "0", "1", "2", "200")
    found = [profile.device_for("cuda", {"device": device}) for device in asked]
    assert found == ["cuda0", "cuda0", "cuda0", "cuda1", "", ""]


def test_profiles_of_other_machines_are_refused_in_one_line(tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    for change, reason in (
        ({"cpu": "Z80"}, "is from another machine (Z80)"),
        ({"daemon": "0.0.0"}, "is from another version (0.0.0)"),
    ):
        path = keep_device_profile({**measured(), **change}, None, env)
        kept = kept_device_profile(None, env)
        assert kept.profile is None and kept.reason == reason
        assert load_device_profile(path).laws, "given by name it is taken"
    device_profile_path(None, env=env).unlink()
    other = device_profile_path(None, "Z80", env)
    other.write_text(json.dumps(measured()))
    assert kept_device_profile(None, env).reason == "is from another machine or version"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 7}, "its format is 7"),
        ({"laws": [{"kind": "dpi", "on": "gpu"}]}, "there is no device 'gpu'"),
        ({"laws": [{"kind": "dpi", "on": "cores", "batch_ns": -1}]}, "a law has batch_ns"),
        ({"laws": [{**LINE, "table": {}}]}, "not a whole profile"),
    ],
)
def test_mistakes_in_a_file_are_reported(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        device_profile_from({**measured(), **change}, "devices.json")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--watts", "cores=5:30"], "give --devices"),
        (["--devices", "--watts", "cores=30:5"], "does not say what a device draws"),
        (["--devices", "ttl"], "'ttl' can run on no device"),
    ],
)
def test_wrong_arguments_end_in_one_line(
    words: list[str],
    message: str,
    environment: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run_command(monkeypatch, "profile", *words) == 2
    told = capsys.readouterr().err
    assert message in told and len(told.strip().splitlines()) == 1


def test_without_a_daemon_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    assert run_command(monkeypatch, "profile", "--devices") == 2
    told = capsys.readouterr().err
    assert "is not a program" in told and len(told.strip().splitlines()) == 1


@needs_daemon
def test_the_daemon_measures_the_devices_here(tmp_path: Path) -> None:
    from batchplane.profile.device_measure import find_devices, measure_with_daemon

    options = DeviceOptions((64, 576), (1, 8), 0.5, 8, 576)
    found = Found(find_devices().devices[:2])
    document = profile_devices(None, (), options, {}, found, measure_with_daemon(options))
    laws = {(row["module"], row["on"]) for row in document["laws"]}
    assert {on for _, on in laws} == {"inline", "cores"} and len(laws) == 10
    assert all(point["dropped_pkts"] == 0 for point in document["points"])
    assert all(point["batch_ns"] > 0 and point["jobs"] >= 5 for point in document["points"])
    lengths = {p["length"]: p["pkt_bytes"] for p in document["points"] if p["module"] == "dpi"}
    assert lengths == {64: 60.0, 576: 572.0}, "frames, without their check sequence"
    path = tmp_path / "devices.json"
    path.write_text(json.dumps(document))
    assert len(load_device_profile(path).laws) == 10
