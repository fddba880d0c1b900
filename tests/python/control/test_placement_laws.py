# SPDX-License-Identifier: BSD-3-Clause
"""test_placement_laws.py - the initial laws of a daemon that places modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batchplane.base.version import __version__
from batchplane.control.placement import passed_over, with_laws
from batchplane.costs.cache import keep_costs
from batchplane.costs.devices import DEVICES_VERSION, keep_device_profile
from batchplane.costs.file import VERSION
from batchplane.costs.keys import cpu_name, params_key


def pipeline(**placement: Any) -> dict[str, Any]:
    return {
        "name": "laws_of_a_test",
        "modules": {
            "in": {"kind": "source", "params": {}},
            "ttl": {"kind": "ttl", "params": {}, "device": {"on": ["inline"]}},
            "own": {"kind": "made_up", "params": {}, "device": {"on": ["inline"]}},
        },
        "placement": {"policy": "power", **placement},
    }


def test_kinds_with_a_device_get_the_law_of_their_costs() -> None:
    laws = with_laws(pipeline())["placement"]["laws"]
    assert set(laws) == {"ttl"}, "nobody has measured the other, and the source has no device"
    assert laws["ttl"]["batch_ns"] > 0
    assert laws["ttl"]["pkt_ns"] > 0


def test_given_laws_stay() -> None:
    given = {"ttl": {"batch_ns": 1.0, "pkt_ns": 2.0}}
    assert with_laws(pipeline(laws=given))["placement"]["laws"] == given


def test_without_placement_nothing_is_added() -> None:
    plain = pipeline()
    del plain["placement"]
    assert with_laws(plain) == plain


def profile_of(params: dict[str, Any], daemon: str = __version__) -> dict[str, Any]:
    law = {"kind": "ttl", "params_key": params_key("ttl", params), "feed": LAW, **LAW}
    return {
        "version": DEVICES_VERSION, "cpu": cpu_name(), "daemon": daemon,
        "devices": [{"name": "inline", "kind": "inline"}, {"name": "threads", "kind": "cores"}],
        "laws": [{**law, "on": "inline"}, {**law, "on": "threads", "batch_ns": 900.0}],
    }  # fmt: skip


LAW = {"batch_ns": 11.0, "pkt_ns": 22.0, "byte_ns": 0.5}


def test_a_device_profile_takes_precedence_over_guesses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with_devices = {**pipeline(), "devices": {"cpu": {"kind": "cores", "params": {}}}}
    keep_device_profile(profile_of({}), None)
    laws = with_laws(with_devices)["placement"]["laws"]
    assert laws == {"ttl": LAW, "ttl@cpu": {**LAW, "batch_ns": 900.0}}
    keep_device_profile(profile_of({}, "0.0.0"), None)
    assert set(with_laws(with_devices)["placement"]["laws"]) == {"ttl"}, "of another version"


def test_a_device_with_memory_of_its_own_is_known_by_its_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    gpu = {"kind": "cuda", "params": {"device": "H200"}}
    with_gpu = {**pipeline(), "devices": {"gpu": gpu}}
    table = {"batch_pkts": [1, 256], "pkt_bytes": [60], "ns": [[900.0], [1800.0]]}

    def measured(params: dict[str, Any]) -> dict[str, Any]:
        document = profile_of(params)
        row = {"name": "cuda0", "kind": "cuda", "device": "NVIDIA H200", "number": 0}
        row["measured"] = {
            "off_w": 130.0,
            "idle_w": 124.0,
            "active_w": {"dpi": 139.0, "ttl": 188.0},
        }
        document["devices"].append(row)
        document["laws"].append({**document["laws"][0], "on": "cuda0", "table": table})
        return document

    keep_device_profile(measured({}), None)
    laws = with_laws(with_gpu)["placement"]["laws"]
    assert laws["ttl@gpu"]["table"] == table
    told = with_laws(with_gpu)
    watts = {"off_w": 124.0, "idle_w": 124.0, "active_w": 188.0}
    assert told["devices"]["gpu"]["params"] == {**gpu["params"], **watts}
    assert "watts of gpu from the profile" in told["placement"]["laws_origin"]
    own = {**gpu, "params": {"device": "H200", "active_w": 300.0}}
    assert with_laws({**with_gpu, "devices": {"gpu": own}})["devices"]["gpu"] == own
    keep_device_profile(measured({"mend_checksum": False}), None)
    assert "ttl@gpu" not in with_laws(with_gpu)["placement"]["laws"], "the daemon measures it"


def pair(on: str, on_other: str, factor: float) -> dict[str, Any]:
    return {"kind": "ttl", "on": on, "beside": "made_up", "on_other": on_other, "factor": factor}


def test_measured_slowdowns_go_to_the_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    devices = {
        "cpu": {"kind": "cores", "params": {}},
        "gpu": {"kind": "simulated", "params": {}},
    }
    with_devices = {**pipeline(), "devices": devices}
    beside = [
        pair("threads", "threads", 1.5), pair("inline", "threads", 0.98),
        pair("threads", "inline", 4.5), pair("inline", "inline", 40.0), {**pair("inline", "inline", 2.0), "beside": "nat"},
    ]  # fmt: skip
    keep_device_profile({**profile_of({}), "date": "2026-01-02", "beside": beside}, None)
    placement = with_laws(with_devices)["placement"]
    assert placement["slowdown"] == [pair("cpu", "cpu", 1.5), pair("cpu", "inline", 4.5)]
    assert "ttl, 2 slow-downs from the profile of devices of 2026-01-02" in placement["laws_origin"]
    assert "made_up from a guess" in placement["laws_origin"]
    own = [pair("inline", "inline", 3.0)]
    given = {**with_devices, "placement": {"policy": "power", "slowdown": own}}
    assert with_laws(given)["placement"]["slowdown"] == own


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cpu": "Z80"}, "is from another machine (Z80)"),
        ({"daemon": "0.0.0"}, "is from another version (0.0.0)"),
        ({"laws": 5}, "cannot be used: this is not a whole profile of devices"),
    ],
)
def test_an_unusable_profile_is_reported(
    change: dict[str, Any], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert passed_over(pipeline()) is None, "nobody has measured"
    path = keep_device_profile({**profile_of({}), **change}, pipeline())
    problem = passed_over(pipeline())
    assert problem is not None
    assert problem.line().startswith(
        f"{path}: the saved profile of devices {reason}: it is not used"
    )
    assert "batchplane profile --devices" in problem.fix
    origin = with_laws(pipeline())["placement"]["laws_origin"]
    assert origin == "ttl from built-in costs; made_up from a guess"
    instead = keep_device_profile(profile_of({}), None)
    problem = passed_over(pipeline())
    assert problem is not None and f"{instead} serves instead" in problem.message
    plain = pipeline()
    del plain["placement"]
    assert passed_over(plain) is None, "nobody asks for it"


def test_costs_of_the_pipeline_take_precedence_over_other_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    entries = [
        {"name": name, "kind": kind, "cost_per_batch_ns": 5.0, "cost_per_pkt_ns": 6.0}
        for name, kind in (("in", "source"), ("ttl", "ttl"), ("own", "made_up"))
    ]
    costs = {"version": VERSION, "label": "measured", "cpu": cpu_name(), "modules": entries}
    keep_costs(pipeline(), costs)
    keep_device_profile(profile_of({"mend_checksum": False}), None)
    assert with_laws(pipeline())["placement"]["laws"]["ttl"] == {"batch_ns": 5.0, "pkt_ns": 6.0}
    keep_device_profile(profile_of({}), None)
    assert with_laws(pipeline())["placement"]["laws"]["ttl"] == LAW
