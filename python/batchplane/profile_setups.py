# SPDX-License-Identifier: BSD-3-Clause
"""profile_setups.py - small pipelines in which each module kind is measured when none is given.

Tables are as large as in the papers' own profiles: 1000 rules of an exact match, 15,000 prefixes,
700 rules of an access list, 10 address pairs, 8 gates.
"""

from __future__ import annotations

from typing import Any

from .pipeline import Pipeline

_FLOWS = 16
_GATES = 8
_ROUTER = "02:77:0b:00:00:01"
_IPV6_FRAME = (
    "0277" + "0b000001" + "020000000909" + "86dd"  # Ethernet
    "60000000" + "0008" + "11" + "{hop_limit:02x}"  # payload of 8 bytes, UDP
    "20010db8000100000000000000000010" + "20010db80002{flow:04x}0000000000000001"
    "2710" + "07d0" + "0008" + "ffff"
)


def setups() -> list[dict[str, Any]]:
    """Canonical pipelines; each kind of interest stands in one of them."""
    return [_tables(), _edits(), _tunnels(), _mobile(), _hosts(), _hosts6(), _ends()]


class _Chain:
    """Modules one behind the other: the gates of each that count lead to the next."""

    def __init__(self, name: str, flows: list[dict[str, Any]], port: bool = True):
        self.pipeline = Pipeline(name)
        if port:
            self.pipeline.port("link", "ring", size_pkts=256)
            self.pipeline.generator("load", "link", saturate=True, flows=flows)
            self.last = self.pipeline.module("in", "port_in", port="link")
        else:
            self.last = self.pipeline.module("in", "source", flows=flows)
        self.gates: tuple[int | str, ...] = (0,)

    def then(self, kind: str, leaving: tuple[int | str, ...] = (0,), /, **params: Any) -> _Chain:
        module = self.pipeline.module(kind, kind, **params)
        for gate in self.gates:
            self.pipeline.connect(self.last[gate], module)
        self.last, self.gates = module, leaving
        return self

    def end(self) -> dict[str, Any]:
        if self.gates:
            self.then("sink", ())
        document = self.pipeline.to_json()
        del document["source_map"]
        return document


def _flows(**more: Any) -> list[dict[str, Any]]:
    flow = {
        "count": _FLOWS,
        "src_ip": "10.0.0.1",
        "src_ip_step": 1,
        "dst_ip": "20.0.0.1",
        "dst_ip_step": 256,
        "dst_mac": _ROUTER,
        **more,
    }
    return [flow]


def _answer_drops(chain: _Chain, kind: str, table: str) -> None:
    """What the last module of the chain drops goes to `kind`, which answers every one."""
    errors = chain.pipeline.module(
        kind, kind, table=table, errors_per_s=10_000_000, burst=1_000_000
    )
    chain.pipeline.connect(chain.last["drop"], errors)
    chain.pipeline.connect(errors, chain.pipeline.module("errors_out", "sink"))


def _all(count: int) -> tuple[int | str, ...]:
    return tuple(range(count))


def _tables() -> dict[str, Any]:
    chain = _Chain("profile_tables", _flows())
    chain.then("ether_type", rules=[{"ether_type": "ipv4", "gate": 0}])
    macs = [{"mac": _ROUTER, "gate": 0}]
    macs += [{"mac": f"02:00:00:00:{i >> 8:02x}:{i & 255:02x}", "gate": 0} for i in range(999)]
    chain.then("l2_table", entries=macs)
    # Those of the flows first, then others that no packet meets.
    values = [[17, f"10.0.0.{1 + i}", f"20.0.{i}.1"] for i in range(_FLOWS)]
    values += [[6, f"10.0.{i >> 8}.{i & 255}", f"20.0.{i & 255}.1"] for i in range(1000 - _FLOWS)]
    chain.then(
        "exact_match",
        _all(_GATES),
        fields=[
            {"offset": 23, "size_bytes": 1},
            {"offset": 26, "size_bytes": 4},
            {"offset": 30, "size_bytes": 4},
        ],
        rules=[{"values": value, "gate": i % _GATES} for i, value in enumerate(values)],
    )
    chain.then("acl", synthetic={"style": "random", "count": 700}, default_action="permit")
    routes = [{"prefix": f"20.0.{i}.0/24", "gate": i % _GATES} for i in range(256)]
    chain.then(
        "ipv4_lookup", _all(_GATES), routes=routes, synthetic={"count": 15000, "gates": _GATES}
    )
    chain.then("vrf_lookup", _all(_GATES), vrfs=[{"vrf": 0, "routes": routes}])
    chain.then("split", _all(_GATES), mode="random", gates=_GATES)
    chain.then("merge")
    return chain.end()


def _edits() -> dict[str, Any]:
    chain = _Chain("profile_edits", _flows(), port=False)
    chain.then("ipv4_check").then("null").then("counter").then("meter")
    chain.then("policer", cir_bps=10_000_000_000, red_action="permit")
    chain.then("dscp", to="ef").then("dscp_split", rules=[{"dscp": "ef", "gate": 0}])
    chain.then("set_meta", vrf=0, mark=7)
    pairs = [{"inside": "10.0.0.0/24", "outside": "30.0.0.0/24"}]
    pairs += [{"inside": f"10.1.{i}.0/24", "outside": f"30.1.{i}.0/24"} for i in range(9)]
    chain.then("static_nat", pairs=pairs)
    field = {"base": "l2", "offset": 6, "size_bytes": 6, "value": "02:00:00:00:00:ee"}
    chain.then("rewrite", fields=[field], mend_checksums=False)
    chain.then("ttl").then("mac_rewrite", src=_ROUTER, dst="02:dd:dd:aa:00:01")
    chain.then("checksum").then("l4_checksum", mode="update", fill_zero_udp=True)
    chain.then("vlan_push", vid=100)
    chain.then("vlan_split", rules=[{"vid": 100, "gate": 0}]).then("vlan_pop")
    chain.then("reassembly")
    chain.then("cost", cost_per_batch_cycles=10_000)
    chain.then("pcap_tap", path="/dev/null")
    return chain.end()


def _tunnels() -> dict[str, Any]:
    chain = _Chain("profile_tunnels", _flows())
    chain.then("set_meta", tunnel_id=7)
    tunnels = [
        {"id": i, "vni": 1000 + i, "remote": f"192.0.2.{i + 1}", "local": "10.0.0.1"}
        for i in range(16)
    ]
    chain.then("vxlan_encap", tunnels=tunnels)
    vnis = [{"vni": 1000 + i, "gate": 0} for i in range(16)]
    return chain.then("vxlan_decap", vnis=vnis, other_gate=1).end()


def _mobile() -> dict[str, Any]:
    chain = _Chain("profile_mobile", _flows(dst_ip="10.45.0.1", dst_ip_step=1))
    synthetic = {"count": 1000, "groups": _GATES, "mbr_bps": 100_000_000_000}
    chain.then("session_downlink", synthetic=synthetic)
    chain.then("session_split", _all(_GATES), by="group").then("session_enforce")
    chain.then("gtpu_encap", local="192.0.2.9")
    # The other end, where whatever comes out of a tunnel is taken.
    ends = [
        {
            "seid": i,
            "pdrs": [{"id": 1, "source": "access", "teid": i, "far": 1}],
            "fars": [{"id": 1}],
        }
        for i in range(1, 1001)
    ]
    chain.then("gtpu_decap", ("inner", "reply", "other", "signalling"), table="ends", sessions=ends)
    chain.then("set_meta", mark=1)
    return chain.then("mark_split", _all(_GATES)).end()


def _hosts() -> dict[str, Any]:
    # Every fourth packet ends here: what reports it sees packets too.
    flows = _flows(src_ip="10.0.0.10", weight=3) + _flows(src_ip="10.0.0.10", ttl=1)
    chain = _Chain("profile_hosts", flows)
    pipeline = chain.pipeline
    pipeline.interface("near", "link", mac=_ROUTER, addresses=["10.0.0.1/24"])
    pipeline.port("far_link", "ring")
    pipeline.interface("far", "far_link", mac="02:77:0b:00:00:02", addresses=["10.9.0.1/24"])
    chain.then("icmp_echo", ("other",))
    chain.then("napt", ("outside",), external=["198.18.0.1"], max_connections=4096)
    routes = [{"prefix": "0.0.0.0/0", "via": "10.9.0.9"}]
    chain.then("ipv4_lookup", ("forward",), table="main", interfaces=True, routes=routes)
    chain.then("ttl")
    _answer_drops(chain, "icmp_error", "main")
    chain.then("fragment", table="main")
    neighbours = [{"interface": "far", "address": "10.9.0.9", "mac": "02:00:00:00:09:09"}]
    chain.then("neighbour", (0, 1), table="main", neighbours=neighbours)
    return chain.end()


def _hosts6() -> dict[str, Any]:
    flows = [
        {"raw_hex": _IPV6_FRAME.format(flow=i, hop_limit=1 if i % 4 == 3 else 64)}
        for i in range(_FLOWS)
    ]
    chain = _Chain("profile_hosts6", flows)
    pipeline = chain.pipeline
    pipeline.interface("near", "link", mac=_ROUTER, addresses=["2001:db8:1::1/64"])
    pipeline.port("far_link", "ring")
    pipeline.interface("far", "far_link", mac="02:77:0b:00:00:02", addresses=["2001:db8:9::1/64"])
    chain.then("ipv6_check")
    chain.then("icmp6_echo", ("other",))
    routes = [{"prefix": "::/0", "via": "2001:db8:9::9"}]
    chain.then("ipv6_lookup", ("forward",), table="main6", interfaces=True, routes=routes)
    chain.then("hop_limit")
    _answer_drops(chain, "icmp6_error", "main6")
    neighbours = [{"interface": "far", "address": "2001:db8:9::9", "mac": "02:00:00:00:09:09"}]
    return chain.then("neighbour6", (0, 1), table="main6", neighbours=neighbours).end()


def _ends() -> dict[str, Any]:
    chain = _Chain("profile_ends", _flows())
    chain.then("mirror", ("forward",), sample_one_in=1)
    pipeline = chain.pipeline
    pipeline.connect(chain.last["copy"], pipeline.module("drop", "drop"))
    services = [
        {
            "name": f"s{i}",
            "address": f"20.0.{i}.1",
            "proto": "udp",
            "backends": [{"name": f"b{b}", "gate": b} for b in range(_GATES)],
        }
        for i in range(_FLOWS)
    ]
    chain.then("load_balancer", _all(_GATES), services=services)
    chain.then("queue").then("split", (0, 1), gates=2)
    last = chain.last
    pipeline.port("away", "ring", size_pkts=256)
    pipeline.connect(last[0], pipeline.module("port_out", "port_out", port="away"))
    pipeline.connect(last[1], pipeline.module("sink", "sink"))
    chain.gates = ()
    return chain.end()
