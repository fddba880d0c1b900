# SPDX-License-Identifier: BSD-3-Clause
"""test_devices.py - modules on devices in a daemon: live changes, placement, an apply, a stop."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from commands import Commands
from waiting import wait_until

from batchplane.base.version import __version__
from batchplane.costs.devices import keep_device_profile
from batchplane.costs.keys import cpu_name

LOAD = ("rate_pps=20000", "words=20")


@pytest.fixture(name="devices")
def _devices(batchplane: Commands) -> Commands:
    done = batchplane.run("start", "devices", *LOAD)
    assert done.code == 0, done.err
    return batchplane


def stage(devices: Commands, module: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = devices.json("show", "devices")
    found: dict[str, Any] = next(row["stage"] for row in rows if row["module"] == module)
    return found


def done_on(devices: Commands, module: str, device: str) -> int:
    places = stage(devices, module)["devices"]
    return int(next(place["done_pkts"] for place in places if place["name"] == device))


def test_a_module_goes_to_another_device_and_back(devices: Commands) -> None:
    wait_until(lambda: done_on(devices, "dpi", "gpu") > 0, "the simulated device works")
    for device in ("cpu", "inline"):
        done = devices.run("set", "dpi", "device", f"on={device}", "batch_pkts=16")
        assert done.code == 0, done.err
        wait_until(lambda on=device: done_on(devices, "dpi", on) > 0, f"{device} works")
    done = devices.run("set", "dpi", "device", "on=gpuu")
    assert done.code == 2 and "did you mean 'gpu'?" in done.err, done.err
    saved = devices.run("save")
    assert "on: [inline, gpu, cpu]" in saved.out, saved.out
    balance = devices.json("stop")[0]["report"]["balance"]
    assert balance["is_exact"] is True
    assert balance["held_pkts"] == 0


def test_a_policy_decides_and_can_be_changed(batchplane: Commands) -> None:
    done = batchplane.run("start", "devices", *LOAD, "placement=power")
    assert done.code == 0, done.err

    def decided() -> dict[str, Any]:
        shown: dict[str, Any] = batchplane.json("show", "placement")
        return shown if "plan" in shown else {}

    wait_until(lambda: bool(decided()), "a plan is there")
    assert set(decided()["plan"]) == {"classify", "digest", "dpi"}
    done = batchplane.run("set", "placement.dpi.policy=latency")
    assert done.code == 0, done.err
    wait_until(lambda: decided()["apps"]["dpi"]["policy"] == "latency", "the policy is taken")
    done = batchplane.run("set", "placement.out.policy=latency")
    assert done.code == 2 and "'out' has no device" in done.err, done.err
    assert "policy: latency" in batchplane.run("save").out
    done = batchplane.run("apply", "devices", *LOAD, "placement=throughput", "dpi_on=cpu")
    assert done.code == 0, done.err
    wait_until(
        lambda: decided().get("choice", {}).get("policy") == "throughput", "the new policy is there"
    )
    assert batchplane.json("stop")[0]["report"]["balance"]["is_exact"] is True


def keep_profile(folder: Path, monkeypatch: pytest.MonkeyPatch, **change: Any) -> Path:
    """Keeps a device profile where the command line under test looks for it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    law = {"kind": "dpi", "batch_ns": 900.0, "pkt_ns": 60.0, "byte_ns": 0.5}
    rows = [{**law, "params_key": "", "on": on, "feed": law} for on in ("inline", "threads")]
    pair = {"kind": "dpi", "on": "threads", "beside": "digest", "on_other": "threads"}
    document = {
        "version": 2, "cpu": cpu_name(), "date": "2026-01-02T03:04:05Z", "daemon": __version__,
        "devices": [{"name": "inline", "kind": "inline"}, {"name": "threads", "kind": "cores"}],
        "laws": rows, "beside": [{**pair, "factor": 1.5}], **change,
    }  # fmt: skip
    return keep_device_profile(document)


def test_placement_starts_from_measured_laws_or_says_why_not(
    batchplane: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("devices", *LOAD, "placement=power")
    batchplane.environment["XDG_CACHE_HOME"] = str(tmp_path)
    path = keep_profile(tmp_path, monkeypatch, cpu="Z80")
    line = f"warning: {path}: the saved profile of devices is from another machine (Z80)"
    assert line in batchplane.run("check", *words).out
    done = batchplane.run("start", *words)
    assert done.code == 0, done.err
    assert [told for told in done.lines if told.startswith("warning")] == [
        f"{line}: it is not used (batchplane profile --devices measures again)"
    ]
    choice = batchplane.json("show", "placement")["choice"]
    assert choice["laws_origin"] == "dpi, digest, classify from built-in costs"
    assert "slowdown" not in choice
    keep_profile(tmp_path, monkeypatch)
    done = batchplane.run("apply", *words)
    assert done.code == 0 and "warning" not in done.err, done.err
    choice = batchplane.json("show", "placement")["choice"]
    pair = {"kind": "dpi", "on": "cpu", "beside": "digest", "on_other": "cpu", "factor": 1.5}
    assert choice["slowdown"] == [pair]
    told = f"dpi, 1 slow-down from the profile of devices of 2026-01-02T03:04:05Z ({path})"
    assert told in batchplane.run("show", "placement").out.replace("\n", " ")
    saved = batchplane.run("save").out
    assert "slowdown:" in saved and "laws_origin" not in saved
    (tmp_path / "saved.yaml").write_text(saved)
    done = batchplane.run("check", str(tmp_path / "saved.yaml"))
    assert done.code == 0, done.out + done.err
    batchplane.run("stop")


def with_opencl(tmp_path: Path, device: str) -> str:
    text = (Path(__file__).parents[2] / "pipelines" / "devices.yaml").read_text()
    text = text.replace("\ndevices:\n", f"\ndevices:\n  card: {device}\n")
    text, n_modules = re.subn(r"on: \['\$\{\w+_on\}', inline, \w+\]", "on: [card, inline]", text)
    assert n_modules == 3
    pipeline = tmp_path / "opencl.yaml"
    pipeline.write_text(text)
    return str(pipeline)


def test_opencl_computes_and_takes_edits(batchplane: Commands, tmp_path: Path) -> None:
    found = {finding["topic"]: finding for finding in batchplane.json("doctor")}
    if not found["opencl"]["is_ok"]:
        pytest.skip("this machine has no OpenCL device: " + found["opencl"]["message"])
    done = batchplane.run("start", with_opencl(tmp_path, "{kind: opencl}"), *LOAD)
    assert done.code == 0, done.err
    for module in ("digest", "dpi", "classify"):
        wait_until(lambda of=module: done_on(batchplane, of, "card") > 0, f"{module} works there")
    done = batchplane.run("set", "dpi", "add", "id=900001", "content=a word that came later")
    assert done.code == 0, done.err
    before = done_on(batchplane, "dpi", "card")
    wait_until(lambda: done_on(batchplane, "dpi", "card") > before, "the edited rules work there")
    card = next(row for row in stage(batchplane, "dpi")["devices"] if row["name"] == "card")
    assert card["is_up"] is True and card["fault"] == "", card
    balance = batchplane.json("stop")[0]["report"]["balance"]
    assert balance["is_exact"] is True
    assert balance["held_pkts"] == 0


def test_expressions_stay_on_processors(batchplane: Commands, tmp_path: Path) -> None:
    pipeline = Path(with_opencl(tmp_path, "{kind: opencl}"))
    text = pipeline.read_text()
    pipeline.write_text(text.replace("    kind: dpi\n", "    kind: dpi\n    engine: hyperscan\n"))
    found = {finding["topic"]: finding for finding in batchplane.json("doctor")}
    if not found["opencl"]["is_ok"]:
        pytest.skip("this machine has no OpenCL device: " + found["opencl"]["message"])
    done = batchplane.run("start", str(pipeline), *LOAD)
    assert done.code == 2, done.err
    assert "hyperscan runs on processors alone" in done.err, done.err
    assert "dpi.engine" in done.err, done.err


def test_an_opencl_device_that_is_not_there(batchplane: Commands, tmp_path: Path) -> None:
    pipeline = with_opencl(tmp_path, "{kind: opencl, platform: No Such Maker}")
    done = batchplane.run("start", pipeline, *LOAD)
    assert done.code == 2 and "OpenCL" in done.err and "devices.card" in done.err, done.err
    assert "no device 'card'" not in done.err  # one mistake is reported once


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("dpi_on=gppu", "did you mean 'gpu'?"),
        ("placement=fast", "does not fit here"),
        ("gpu_batch=99999", "out of range"),
    ],
)
def test_invalid_devices_are_reported(batchplane: Commands, override: str, message: str) -> None:
    done = batchplane.run("check", "devices", override)
    assert done.code == 2
    assert message in done.out + done.err, done.out + done.err


def test_a_simulation_runs_what_the_daemon_does(batchplane: Commands) -> None:
    done = batchplane.run("simulate", "devices", "--costs", "prior", "--duration", "0.05")
    assert done.code == 0, done.err
    assert "dpi/done" in done.out, done.out
    assert "W, modelled" in done.out, done.out
