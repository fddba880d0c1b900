# SPDX-License-Identifier: BSD-3-Clause
"""test_bad_gateway_input.py - mistakes in rules and tables of gateway modules: `check` reports each
with its position and a fix, and ends with exit code 2.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Commands, Done

PIPELINE = """
name: small
modules:
  in: {{kind: source}}
  m: {{kind: {module}}}
  out: {{kind: sink}}
connect:
  - in -> m -> out
"""

FILTER = "@10.0.{}.{}/32 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF"

# name: (the module, words that the message must have)
BROKEN = {
    "acl_no_action": ("acl, rules: [{src: 10.0.0.0/8}]", ["rules[0]", "action"]),
    "acl_no_such_action": (
        "acl, rules: [{src: 10.0.0.0/8, action: pass}]",
        ["rules[0]", "pass", "permit"],
    ),
    "acl_no_such_field": (
        "acl, rules: [{src: 10.0.0.0/8, action: deny}, {source: 10.0.0.0/8, action: deny}]",
        ["rules[1]", "source", "src"],
    ),
    "acl_ports_upside_down": (
        'acl, rules: [{dst_ports: "90-80", proto: tcp, action: deny}]',
        ["rules[0]", "90", "80"],
    ),
    "acl_port_too_large": (
        "acl, rules: [{dst_ports: 70000, proto: tcp, action: deny}]",
        ["rules[0]", "port 70000", "0 to 65535"],
    ),
    "acl_host_bits": ("acl, rules: [{src: 10.0.0.1/8, action: deny}]", ["rules[0]", "10.0.0.0/8"]),
    "acl_both_families": (
        'acl, rules: [{src: 10.0.0.0/8, dst: "2001:db8::/32", action: deny}]',
        ["rules[0]"],
    ),
    "acl_same_rule_twice": (
        "acl, rules: [{src: 10.0.0.0/8, action: deny}, {src: 10.0.0.0/8, action: permit}]",
        ["rule 1", "rule 0"],
    ),
    "acl_too_many": ("acl, synthetic: {style: random, count: 10001}", ["synthetic", "10000"]),
    "nat_no_external": ("napt, external: []", ["external"]),
    "nat_external_missing": ("napt", ["external"]),
    "nat_prefix_sizes": (
        "static_nat, pairs: [{inside: 10.0.0.0/24, outside: 20.0.0.0/25}]",
        ["pairs[0]"],
    ),
    "nat_host_bits": (
        "static_nat, pairs: [{inside: 10.0.0.1/24, outside: 20.0.0.0/24}]",
        ["pairs[0]"],
    ),
    "same_vid_twice": (
        "vlan_split, rules: [{vid: 7, gate: 0}, {vid: 7, gate: 0, vrf: 2}]",
        ["rules[1]", "same VLAN"],
    ),
    "vid_too_large": ("vlan_split, rules: [{vid: 4095, gate: 0}]", ["rules[0].vid", "4094"]),
    "vlan_no_such_field": ("vlan_split, rules: [{vid: 7, gat: 0}]", ["rules[0]", "gat"]),
    "vrf_twice": ("vrf_lookup, vrfs: [{vrf: 1}, {vrf: 1}]", ["vrfs[1]", "VRF 1"]),
    "vrf_no_such_field": ("vrf_lookup, vrfs: [{vrf: 1, rutes: []}]", ["vrfs[0]", "rutes"]),
    "vrf_host_bits": (
        "vrf_lookup, vrfs: [{vrf: 1, routes: [{prefix: 10.0.0.1/8, gate: 0}]}]",
        ["vrfs[0]", "10.0.0.0/8"],
    ),
    "policer_peak_below": (
        "policer, mode: trtcm, cir_bps: 1000000, pir_bps: 1000",
        ["pir_bps", "1000000"],
    ),
    "balancer_no_prime": ("load_balancer, table_slots: 65536", ["table_slots", "prime"]),
    "balancer_backend_twice": (
        "load_balancer, services: [{name: s, address: 192.0.2.1, backends: "
        "[{name: a, gate: 0}, {name: a, gate: 0}]}]",
        ["backends[1]", "'a'"],
    ),
    "tunnel_vni": (
        "vxlan_encap, tunnels: [{id: 1, vni: 16777216, local: 10.0.0.1, remote: 10.0.0.2}]",
        ["tunnels[0]", "vni"],
    ),
}


def check(commands: Commands, folder: Path, module: str) -> Done:
    file = folder / "x.yaml"
    file.write_text(PIPELINE.format(module=module))
    return commands.run("check", str(file))


@pytest.mark.parametrize("name", BROKEN)
def test_mistakes_are_reported_with_their_position(
    batchplane: Commands, folder: Path, name: str
) -> None:
    module, wanted = BROKEN[name]
    done = check(batchplane, folder, module)
    told = done.out + done.err
    assert done.code == 2, told
    for word in ["x.yaml:5", *wanted]:
        assert word in told, f"{word!r} is not in: {told}"
    assert "Traceback" not in told and "bug in batchplane" not in told


def filter_lines() -> list[str]:
    return [FILTER.format(i // 250, i % 250) for i in range(10_000)]


def test_ten_thousand_filters_are_good(batchplane: Commands, folder: Path) -> None:
    filters = folder / "filters.txt"
    filters.write_text("\n".join(filter_lines()) + "\n")
    assert check(batchplane, folder, f"acl, rules_file: {filters}").code == 0


@pytest.mark.parametrize(
    ("bad", "wanted"),
    [
        ("@10.0.0.0/33 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF", "10.0.0.0/33"),
        ("@10.0.0.1/8 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF", "10.0.0.0/8"),
        ("@10.0.0.0/8 0.0.0.0/0 0 : 65535 90 : 80 0x06/0xFF", "90"),
        ("10.0.0.0/8 0.0.0.0/0 0 : 65535 80 : 80 0x06/0xFF", "@"),
        ("@10.0.0.0/8 0.0.0.0/0 0 : 65535", "range"),
    ],
)
def test_one_bad_filter_in_ten_thousand_is_named(
    batchplane: Commands, folder: Path, bad: str, wanted: str
) -> None:
    lines = filter_lines()
    filters = folder / "filters.txt"
    lines[7654] = bad
    filters.write_text("\n".join(lines) + "\n")
    done = check(batchplane, folder, f"acl, rules_file: {filters}")
    told = done.out + done.err
    assert done.code == 2, told
    assert "filters.txt:7655" in told and wanted in told, told
    assert len(told.strip().splitlines()) < 4, told
