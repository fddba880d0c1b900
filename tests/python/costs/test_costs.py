# SPDX-License-Identifier: BSD-3-Clause
"""test_costs.py - costs files: which entry a module gets, and every possible mistake in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from batchplane.base.problems import BadInput
from batchplane.costs import costs
from batchplane.costs import keys as cost_keys
from batchplane.costs.cache import cache_folder, cache_path, cached_costs, keep_costs, kept_costs
from batchplane.costs.costs import (
    COMPUTED,
    EPYC,
    EXACT,
    PAPER,
    PRIOR,
    SAME_KIND,
    SAME_NAME,
    SAME_PARAMS,
    WIDE,
    costs_from,
    load_costs,
    resolve,
)
from batchplane.costs.file import LOOP_KEYS, VERSION
from batchplane.costs.keys import cpu_name, groups_of, params_key, pipeline_key
from batchplane.lang.kinds import Kinds
from batchplane.lang.load import load_pipeline

PIPELINES = Path(__file__).resolve().parents[3] / "pipelines"

CPU = "Some CPU (family 6 model 1)"
OUT_ON_WIRE = ("port_out", "af_packet")


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "cpu_name", lambda: CPU)
    monkeypatch.setattr("batchplane.costs.cache.cpu_name", lambda: CPU)


def entry(name: str, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "cost_per_batch_ns": 10.0,
        "cost_per_pkt_ns": 2.0,
        "params_key": params_key(kind, {}),
        **more,
    }


def document(*modules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "version": 2,
        "label": "measured",
        "cpu": CPU,
        "date": "2026-01-02T03:04:05Z",
        "cycles_per_ns": 2.5,
        "batch_pkts": 32,
        "modules": list(modules),
        "loop": dict.fromkeys(LOOP_KEYS, 1.0),
        **more,
    }


def pipeline(**modules: Any) -> dict[str, Any]:
    """Module name -> kind, or (kind, params)."""
    pairs = {
        name: (given, {}) if isinstance(given, str) else given for name, given in modules.items()
    }
    return {
        "version": 1,
        "name": "demo",
        "modules": {name: {"kind": kind, "params": p} for name, (kind, p) in pairs.items()},
        "edges": [],
    }


def errors_of(data: Any) -> list[str]:
    with pytest.raises(BadInput) as failed:
        costs_from(data, "costs.json")
    return failed.value.lines()


def test_a_poll_that_is_cheaper_than_its_parts_by_no_more_than_noise_costs_as_much() -> None:
    loop = {**dict.fromkeys(LOOP_KEYS, 1.0), "poll_per_pkt_ns": 3.4, "egress_per_pkt_ns": 3.5}
    assert costs_from(document(loop=loop)).loop["poll_per_pkt_ns"] == 3.5


# --- the cost of a module ------------------------------------------------------------------------


def test_the_module_itself_with_its_table() -> None:
    file = costs_from(document(entry("ttl_0", "ttl", table_ns=[11.0, 15.0])))
    found = resolve(pipeline(ttl_0="ttl"), file)
    cost = found.modules["ttl_0"]
    assert (found.sources["ttl_0"], cost.at(1), cost.at(2)) == (EXACT, 11.0, 15.0)
    assert cost.at(1.5) == 13.0
    assert cost.at(10) == 15.0 + 8 * 2.0, "beyond the table it goes on as the line rises"
    assert found.label == "measured"
    assert found.warnings == ()
    assert found.loop["firing_ns"] == 1.0


def test_members_share_a_measurement() -> None:
    file = costs_from(document(entry("a", "ttl", members=["a", "b"])))
    assert resolve(pipeline(b="ttl"), file).sources["b"] == EXACT


def test_same_parameters_before_same_name_before_same_kind() -> None:
    small, large = {"synthetic": {"count": 10}}, {"synthetic": {"count": 1000}}
    file = costs_from(
        document(
            entry("acl_0", "acl", params_key=params_key("acl", small)),
            entry("acl_1", "acl", cost_per_pkt_ns=9.0, params_key=params_key("acl", large)),
        )
    )
    found = resolve(pipeline(acl_0=("acl", large), acl_1=("acl", {}), other=("acl", {})), file)
    assert found.sources["acl_0"] == SAME_PARAMS
    assert found.modules["acl_0"].cost_per_pkt_ns == 9.0
    assert found.sources["acl_1"] == SAME_NAME
    assert found.sources["other"] == SAME_KIND
    assert "acl_1, other" in found.warnings[0].line()


def test_of_several_of_a_kind_the_middle_one() -> None:
    entries = [
        entry(f"m{c}", "acl", cost_per_pkt_ns=c, params_key=str(c)) for c in (50.0, 1.0, 4.0)
    ]
    found = resolve(pipeline(x="acl"), costs_from(document(*entries)))
    assert found.modules["x"].cost_per_pkt_ns == 4.0


def test_a_name_of_another_kind_is_no_match() -> None:
    file = costs_from(document(entry("x", "ttl")))
    with pytest.raises(BadInput, match="no cost for module 'x'"):
        resolve(pipeline(x="acl"), file)


def test_cost_modules_are_computed() -> None:
    params = {"cost_per_batch_cycles": 1000, "cost_per_pkt_ns": 3, "cost_per_pkt_cycles": 5}
    found = resolve(pipeline(leaf=("cost", params)), costs_from(document()))
    cost = found.modules["leaf"]
    assert (cost.cost_per_batch_ns, cost.cost_per_pkt_ns) == (400.0, 5.0)
    assert found.sources["leaf"] == COMPUTED


def test_missing_costs_name_every_module_and_the_command() -> None:
    with pytest.raises(BadInput) as failed:
        resolve(pipeline(a="acl", b="napt"), costs_from(document()), "my.yaml")
    lines = failed.value.lines()
    assert len(lines) == 2
    assert "module 'a' (kind acl)" in lines[0]
    assert "batchplane profile --pipeline my.yaml --out costs.json" in lines[0]


def test_given_costs_need_only_a_kind() -> None:
    file = costs_from(
        {"version": 2, "modules": [{"kind": "ttl", "cost_per_batch_ns": 5, "cost_per_pkt_ns": 1}]}
    )
    found = resolve(pipeline(t="ttl"), file)
    assert (found.label, found.modules["t"].at(4)) == ("given", 9.0)
    assert found.loop["empty_poll_ns"] > 0, "the engine's own costs come from the built-in ones"


def test_another_machine_is_reported() -> None:
    found = resolve(pipeline(t="ttl"), costs_from(document(entry("t", "ttl"), cpu="Old CPU")))
    assert "another machine: Old CPU" in found.warnings[0].line()
    assert found.warnings[0].is_warning


def test_what_is_resolved_can_be_written() -> None:
    found = resolve(pipeline(t="ttl"), costs_from(document(entry("t", "ttl", table_ns=[1.0]))))
    written = json.loads(json.dumps(found.as_json()))
    assert written["modules"]["t"]["table_ns"] == [1.0]
    assert set(written["loop"]) == set(LOOP_KEYS)


# --- what is wrong with a file -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {"cost_per_batch_ns": -1.0},
            "modules[0] (t).cost_per_batch_ns: a cost of -1 ns is negative",
        ),
        ({"cost_per_pkt_ns": 2e9}, "more than a second"),
        ({"cost_per_pkt_ns": float("nan")}, "expected a time in ns, not nan"),
        ({"cost_per_pkt_ns": float("inf")}, "more than a second"),
        ({"cost_per_pkt_ns": "3"}, "expected a time in ns, not '3'"),
        ({"cost_per_pkt_ns": None}, "expected a time in ns, not None"),
        ({"cost_per_pkt_ns": True}, "expected a time in ns, not True"),
        ({"table_ns": []}, "expected a list of times"),
        ({"table_ns": [1.0, -2.0]}, "table_ns[1]: a cost of -2 ns is negative"),
        ({"kind": 3}, "modules[0]: expected kind"),
        ({"members": "t"}, "expected names of modules"),
    ],
)
def test_bad_entries(change: dict[str, Any], expected: str) -> None:
    [line] = errors_of(document({**entry("t", "ttl"), **change}))
    assert line.startswith("costs.json: ")
    assert expected in line


def test_every_mistake_at_once() -> None:
    bad = entry("t", "ttl", cost_per_batch_ns=-1, cost_per_pkt_ns=-1)
    assert len(errors_of(document(bad, bad, label="guess"))) == 5


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"version": 1}, "a costs file of version 1; this program reads 2"),
        ({"version": None}, "version None"),
        ({"label": "guess"}, "unknown label 'guess'"),
        ({"cycles_per_ns": 0}, "expected cycles per ns"),
        ({"cycles_per_ns": float("nan")}, "expected cycles per ns"),
        ({"loop": {"firing_ns": 1.0}}, "missing: clock_read_ns"),
        ({"loop": []}, "expected the engine's own costs"),
        ({"loop": {**dict.fromkeys(LOOP_KEYS, 1.0), "warp_ns": 1}}, "loop.warp_ns: unknown cost"),
        ({"loop": dict.fromkeys(LOOP_KEYS, -1.0)}, "is negative"),
        (
            {"loop": {**dict.fromkeys(LOOP_KEYS, 1.0), "egress_per_pkt_ns": 3.0}},
            "loop.poll_per_pkt_ns: 1 ns, less than egress_per_pkt_ns, a part of it: 3 ns",
        ),
        ({"modules": {}}, "this is not a costs file"),
    ],
)
def test_bad_heads(change: dict[str, Any], expected: str) -> None:
    assert expected in errors_of({**document(), **change})[0]


def test_invalid_files(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such costs file.*batchplane profile"):
        load_costs(tmp_path / "none.json")
    broken = tmp_path / "broken.json"
    broken.write_text("{\n]")
    with pytest.raises(BadInput, match=r"broken.json:2: this is not a costs file"):
        load_costs(broken)
    assert "not a costs file" in errors_of([1])[0]


# --- the built-in costs --------------------------------------------------------------------------


def test_the_built_in_costs_cover_the_pipelines() -> None:
    prior = load_costs("prior")
    assert prior.label == "prior"
    assert set(prior.loop) == set(LOOP_KEYS)
    for kind in ("acl", "napt", "ipv4_lookup", "ttl", "sink", "port_in", "port_out", "neighbour"):
        found = resolve(pipeline(x=kind), prior)
        assert 0 < found.modules["x"].at(32) < 10_000
    assert "built-in" in found.warnings[0].line()


def test_built_in_tables_reach_larger_batches() -> None:
    given = {**pipeline(x="port_in", y="ttl"), "engine": {"batch_pkts": 64}}
    for law in resolve(given, load_costs(PRIOR)).modules.values():
        assert law.table_ns is not None and len(law.table_ns) == 64
        assert law.at(64) > law.at(32)


# Modules that the pipelines of `wide` do not have.
NOT_IN_WIDE = {"bng.yaml", "devices.yaml", "ids.yaml", "ipsec_gateway.yaml", "vpn_gateway.yaml"}


@pytest.mark.parametrize("name", [PRIOR, EPYC, PAPER, WIDE])
@pytest.mark.parametrize(
    "file", sorted(path.name for path in PIPELINES.iterdir() if path.is_file())
)
def test_every_pipeline_has_its_built_in_costs(file: str, name: str) -> None:
    if file in NOT_IN_WIDE and name == WIDE:
        pytest.skip("there are no wide costs of such modules")
    document = load_pipeline(str(PIPELINES / file), {}, Kinds())
    assert set(resolve(document.pipeline, load_costs(name)).modules) == set(
        document.pipeline["modules"]
    )


def test_the_papers_costs_say_where_they_come_from() -> None:
    document = json.loads((Path(costs.__file__).parent / "paper.json").read_text())
    kinds = [entry["kind"] for entry in document["modules"]]
    assert len(kinds) == len(set(kinds)) and document["notes"]
    small = {entry["kind"] for entry in document["modules"] if "as ttl" in entry.get("note", "")}
    assert "queue" in small


# --- what determines a cost ----------------------------------------------------------------------


def test_names_and_addresses_do_not_count() -> None:
    one = {"src": "02:00:00:00:00:01", "prefix": "10.0.0.0/24", "to": "2001:db8::1", "port": "a"}
    two = {"src": "02:00:00:00:00:ff", "prefix": "20.0.7.0/24", "to": "2001:db8::2", "port": "b"}
    assert params_key("x", one) == params_key("x", two)
    assert params_key("x", one) != params_key("y", one)
    assert params_key("x", one) != params_key("x", {**one, "prefix": "10.0.0.0/16"})
    assert params_key("x", {"rules": [one, two]}) != params_key("x", {"rules": [one]})
    assert params_key("x", {"mode": "full"}) != params_key("x", {"mode": "check"})


def test_alike_modules_are_one_group() -> None:
    modules = pipeline(
        a=("mac_rewrite", {"src": "02:00:00:00:00:01"}),
        b="ttl",
        c=("mac_rewrite", {"src": "02:00:00:00:00:02"}),
    )["modules"]
    assert groups_of(modules) == [["a", "c"], ["b"]]


def test_buffers_and_promises_do_not_change_the_key_of_a_pipeline() -> None:
    one = pipeline(a="ttl", b="sink")
    two = json.loads(json.dumps(one))
    two["modules"]["a"]["trigger_pkts"] = 8
    two["flows"] = [{"name": "f", "path": ["a", "b"], "delay_slo_ns": 1}]
    two["source_map"] = {"a": "x:1"}
    assert pipeline_key(one) == pipeline_key(two)
    two["modules"]["a"]["params"]["mend_checksum"] = False
    assert pipeline_key(one) != pipeline_key(two)
    assert pipeline_key(one) != pipeline_key({**one, "engine": {"batch_pkts": 64}})


def test_the_cpu_is_named_with_family_and_model(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("cpu family\t: 6\nmodel\t\t: 143\nmodel name\t: Big CPU\n\nmodel name: other\n")
    assert cost_keys.cpu_name(path) == "Big CPU (family 6 model 143)"
    assert cost_keys.cpu_name(tmp_path / "none") == "unknown"
    assert cpu_name()


# --- kept profiles -------------------------------------------------------------------------------


def test_profiles_are_kept_by_pipeline(tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    mine, other = pipeline(a="ttl"), pipeline(a="acl")
    assert cached_costs(mine, env) is None
    path = keep_costs(mine, document(entry("a", "ttl")), env)
    assert path.parent == tmp_path / "batchplane" / "costs"
    kept = cached_costs(mine, env)
    assert kept is not None and kept.entries[0].kind == "ttl"
    assert cached_costs(other, env) is None
    assert [file.name for file in path.parent.iterdir()] == [path.name], "no temporary file is left"


def test_unusable_profiles_count_as_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    mine = pipeline(a="ttl")
    keep_costs(mine, document(entry("a", "ttl"), version=9), env)
    assert cached_costs(mine, env) is None
    keep_costs(mine, document(entry("a", "ttl"), cpu="Old CPU"), env)
    assert cached_costs(mine, env) is None
    keep_costs(mine, document(entry("a", "ttl")), env)
    monkeypatch.setattr("batchplane.costs.cache.cpu_name", lambda: "Other CPU")
    assert cached_costs(mine, env) is None
    assert cache_path(mine, CPU, env) != cache_path(mine, "Other CPU", env)


def test_the_reason_for_an_unusable_profile_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    mine = pipeline(a="ttl")
    assert kept_costs(mine, env).reason == ""
    path = keep_costs(mine, {**document(entry("a", "ttl")), "daemon": "0.0.9"}, env)
    assert kept_costs(mine, env).reason == "is from another version (0.0.9)"
    path.write_text("{")
    assert kept_costs(mine, env).reason == "cannot be read"
    keep_costs(mine, document(entry("a", "ttl"), cpu="Old CPU"), env)
    assert kept_costs(mine, env).reason == "is from another machine (Old CPU)"
    keep_costs(mine, document(entry("a", "ttl")), env)
    assert kept_costs(mine, env).costs is not None and kept_costs(mine, env).reason == ""
    monkeypatch.setattr("batchplane.costs.cache.cpu_name", lambda: "Other CPU")
    assert kept_costs(mine, env).reason == f"is from another machine ({CPU})"
    path.rename(path.with_name(path.name.replace(f"-v{VERSION}.", "-v0.")))
    assert kept_costs(mine, env).reason == "is from another version"


def test_the_folder_follows_the_standard(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert cache_folder(home) == tmp_path / ".cache" / "batchplane" / "costs"
    assert cache_folder({**home, "XDG_CACHE_HOME": "relative"}) == cache_folder(home)


def test_ports_cost_what_their_kind_does() -> None:
    """The file's own entries come first, then built-in ones; rings keep the module's own cost."""
    ports = {"lan": {"kind": "af_packet"}, "link": {"kind": "ring"}, "nic": {"kind": "dpdk"}}
    modules = {name: {"kind": "port_out", "params": {"port": name}} for name in ports}
    given = {"ports": ports, "modules": modules}
    plain = entry("out", "port_out")
    own = entry("on lan", "port_out", port_kind="af_packet", cost_per_pkt_ns=777.0)

    def per_pkt(found: costs.Costs) -> list[float]:
        return [found.modules[name].cost_per_pkt_ns for name in ports]

    found = resolve(given, costs_from(document(plain, own)))
    assert per_pkt(found) == [777.0, 2.0, 2.0]
    assert found.ports == "af_packet measured; dpdk not known, so as rings in memory"
    found = resolve(given, costs_from(document(plain)))
    (prior,) = [e.law for e in load_costs(PRIOR).entries if (e.kind, e.port_kind) == OUT_ON_WIRE]
    assert prior.cost_per_pkt_ns > 100, "a call of the kernel's"
    assert per_pkt(found) == [prior.cost_per_pkt_ns, 2.0, 2.0]
    assert found.ports.startswith("af_packet prior; ")
    # Costs that somebody wrote by hand are used as given.
    found = resolve(given, costs_from(document(plain, label="given")))
    assert per_pkt(found) == [2.0, 2.0, 2.0]
    assert found.ports == "af_packet as given; dpdk as given"
