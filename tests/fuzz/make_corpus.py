# SPDX-License-Identifier: BSD-3-Clause
"""make_corpus.py - writes the fuzzers' seeds: frames, pipelines, requests and capture files.

usage: python tests/fuzz/make_corpus.py        (deterministic; inputs that fuzzing found stay)
"""

from __future__ import annotations

import json
import logging
import struct
from pathlib import Path
from typing import Any

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.contrib.gtp import GTP_U_Header, GTPHeader, GTPPDUSessionContainer  # noqa: E402
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption  # noqa: E402
from scapy.layers.inet6 import (  # noqa: E402
    ICMPv6EchoRequest,
    ICMPv6ND_NA,
    ICMPv6ND_NS,
    ICMPv6ND_RS,
    ICMPv6NDOptDstLLAddr,
    ICMPv6NDOptSrcLLAddr,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
)
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether  # noqa: E402
from scapy.layers.vxlan import VXLAN  # noqa: E402
from scapy.packet import Packet, Raw  # noqa: E402

CORPUS = Path(__file__).parent / "corpus"
ROUTER, HOST = "02:00:00:00:00:01", "02:00:00:00:00:0a"
LAN, WAN, OWN, BAD = "10.0.1.2", "10.0.2.2", "10.0.1.1", "10.9.1.1"


def ether(**fields: object) -> Packet:
    """A header from a host to the router."""
    return Ether(dst=ROUTER, src=HOST, **fields)


def ip_error(inner: Packet) -> Packet:
    """An ICMP error about `inner`, which must not be answered with another one."""
    return IP(src=WAN, dst=LAN) / ICMP(type=3, code=1) / inner


def frames() -> dict[str, Packet]:
    """One frame for each kind of packet that some module treats in its own way."""
    udp = IP(src=LAN, dst=WAN) / UDP(sport=1000, dport=53) / Raw(b"x" * 18)
    return {
        "udp": ether() / udp,
        "tcp": ether() / IP(src=LAN, dst=BAD) / TCP(sport=1, dport=80, flags="S"),
        "long": ether() / IP(src=LAN, dst=WAN, flags="DF") / UDP() / Raw(bytes(1600)),
        "ttl_ends": ether() / IP(src=LAN, dst=WAN, ttl=1) / UDP() / Raw(bytes(18)),
        "echo": ether() / IP(src=LAN, dst=OWN) / ICMP(id=7, seq=1) / Raw(bytes(32)),
        "echo_options": ether()
        / IP(src=LAN, dst=OWN, options=[IPOption(b"\x07\x07\x04\0\0\0\0\0")])
        / ICMP(),
        "error": ether() / ip_error(udp),
        "fragment": ether() / IP(src=LAN, dst=WAN, flags="MF", frag=64) / Raw(bytes(64)),
        "options": ether() / IP(src=LAN, dst=WAN, options=[IPOption(b"\x94\x04\0\0")]) / UDP(),
        "martian": ether() / IP(src="127.0.0.1", dst=WAN) / UDP(),
        "broadcast": Ether(dst="ff:ff:ff:ff:ff:ff", src=HOST)
        / IP(src=LAN, dst="10.0.1.255")
        / UDP(),
        "multicast": Ether(dst="01:00:5e:00:00:05", src=HOST)
        / IP(src=LAN, dst="224.0.0.5")
        / UDP(),
        "bad_checksum": ether() / IP(src=LAN, dst=WAN, chksum=0x1234) / UDP(),
        "bad_length": ether() / IP(src=LAN, dst=WAN, len=2000) / UDP(),
        "bad_header": ether() / IP(src=LAN, dst=WAN, ihl=15) / UDP(),
        "version_6": ether(type=0x0800) / IPv6(src="fe80::1", dst="fe80::2") / UDP(),
        "vlan": ether() / Dot1Q(vlan=7) / udp,
        "qinq": ether() / Dot1AD(vlan=7) / Dot1Q(vlan=8) / udp,
        "ipv6": ether() / IPv6(src="fe80::1", dst="ff02::1") / UDP(),
        "arp_request": Ether(dst="ff:ff:ff:ff:ff:ff", src=HOST)
        / ARP(op=1, hwsrc=HOST, psrc=LAN, pdst=OWN),
        "arp_reply": ether() / ARP(op=2, hwsrc=HOST, psrc=LAN, hwdst=ROUTER, pdst=OWN),
        "arp_own": ether() / ARP(op=1, hwsrc=HOST, psrc=OWN, pdst=OWN),
        "lldp": Ether(dst="01:80:c2:00:00:0e", src=HOST, type=0x88CC) / Raw(bytes(46)),
        "runt": Raw(b"\x02\x00\x00"),
        "empty": Raw(b""),
    }


def ipv6_frames() -> dict[str, Packet]:
    """The same for the IPv6 modules."""
    lan, wan, own = "2001:db8:1::2", "2001:db8:2::2", "2001:db8:1::1"
    udp = IPv6(src=lan, dst=wan) / UDP(sport=1000, dport=53) / Raw(b"x" * 18)
    source, target = ICMPv6NDOptSrcLLAddr(lladdr=HOST), ICMPv6NDOptDstLLAddr(lladdr=HOST)
    group = "ff02::1:ff00:1"
    return {
        "v6_udp": ether() / udp,
        "v6_group": ether() / IPv6(src=lan, dst="2a00::1") / UDP(),
        "v6_dropped": ether() / IPv6(src=lan, dst="2b00::1") / UDP(),
        "v6_long": ether() / IPv6(src=lan, dst=wan) / UDP() / Raw(bytes(1600)),
        "v6_ends": ether() / IPv6(src=lan, dst=wan, hlim=1) / UDP() / Raw(bytes(18)),
        "v6_echo": ether() / IPv6(src=lan, dst=own) / ICMPv6EchoRequest(id=7) / Raw(bytes(32)),
        "v6_echo_all": ether() / IPv6(src="fe80::2", dst="ff02::1") / ICMPv6EchoRequest(),
        "v6_options": ether()
        / IPv6(src=lan, dst=wan)
        / IPv6ExtHdrHopByHop()
        / IPv6ExtHdrDestOpt()
        / IPv6ExtHdrFragment(m=1)
        / UDP(),
        "v6_fragment": ether() / IPv6(src=lan, dst=wan) / IPv6ExtHdrFragment(offset=9) / Raw(b"x"),
        "v6_link": ether() / IPv6(src="fe80::2", dst=wan) / UDP(),
        "v6_asks": ether() / IPv6(src=lan, dst=group) / ICMPv6ND_NS(tgt=own) / source,
        "v6_probe": ether() / IPv6(src="::", dst=group) / ICMPv6ND_NS(tgt=own),
        "v6_tells": ether() / IPv6(src=lan, dst=own) / ICMPv6ND_NA(tgt=lan, S=1) / target,
        "v6_router": ether() / IPv6(src="fe80::2", dst="ff02::2") / ICMPv6ND_RS() / source,
    }


def nat_frames() -> list[Packet]:
    """A connection through a translator, its answer, an error about it, a hairpin, fragments."""
    remote, external = "9.9.9.9", "10.0.2.7"
    out = UDP(sport=1000, dport=53) / Raw(b"x" * 32)
    sent = IP(src=external, dst=remote) / UDP(sport=1000, dport=53) / Raw(b"x" * 32)
    whole = bytes(IP(bytes(IP(src=LAN, dst=remote) / out)).payload)
    ends = {"src": LAN, "dst": remote, "id": 7, "proto": 17}
    return [
        ether() / IP(src=LAN, dst=remote) / out,
        ether() / IP(src=remote, dst=external) / UDP(sport=53, dport=1000) / Raw(b"y" * 18),
        ether() / IP(src=WAN, dst=external) / ICMP(type=3, code=4) / sent,
        ether() / IP(src="10.0.1.3", dst=external) / UDP(sport=1001, dport=1000) / Raw(b"z" * 18),
        ether() / IP(**ends, flags="MF") / Raw(whole[:24]),
        ether() / IP(**ends, frag=3) / Raw(whole[24:]),
        ether() / IP(src=LAN, dst=remote) / TCP(sport=1002, dport=80, flags="S"),
        ether() / IP(src=LAN, dst=remote) / ICMP(id=7, seq=1) / Raw(bytes(32)),
    ]


def packed(step: int, knows: int, number: int, *all_frames: bytes) -> bytes:
    """The format of frames.h."""
    head = struct.pack("!BBH", step, knows, number)
    return head + b"".join(struct.pack("!H", len(frame)) + frame for frame in all_frames)


def packet_inputs() -> dict[str, bytes]:
    """Each frame by itself, all in batches, and batches that come with edits of tables."""
    raw = {name: bytes(frame) for name, frame in frames().items()}
    inputs = {name: packed(17, 0x08, i, frame) for i, (name, frame) in enumerate(raw.items())}
    every = list(raw.values())
    six = {name: bytes(frame) for name, frame in ipv6_frames().items()}
    inputs |= {name: packed(17, 0x00, i, frame) for i, (name, frame) in enumerate(six.items())}
    inputs["v6_all"] = packed(22, 0x01, 1, *list(six.values())[:8])
    inputs["v6_rest"] = packed(22, 0x01, 4, *list(six.values())[8:])
    for i in range(0, len(every), 8):
        inputs[f"batch_{i // 8}"] = packed(20, 0x00, 1, *every[i : i + 8])
        inputs[f"known_{i // 8}"] = packed(20, 0x05, 3, *every[i : i + 8])
    for edit in range(1, 8):
        inputs[f"edit_{edit}"] = packed(
            24, edit << 4 | 1, 8 + edit, raw["udp"], raw["tcp"], raw["arp_reply"]
        )
    inputs["nat"] = packed(12, 0x00, 2, *[bytes(frame) for frame in nat_frames()])
    inputs["same_flow"] = packed(12, 0x00, 2, *[raw["udp"]] * 8)
    inputs["time_passes"] = packed(35, 0x00, 2, raw["udp"], raw["ttl_ends"])
    inputs |= tunnel_inputs()
    return inputs


def tunnel_inputs() -> dict[str, bytes]:
    """Packets with headers around others, and IPv6 with headers between."""
    inner = ether() / IP(src=LAN, dst=WAN, tos=1) / UDP(sport=5, dport=6) / Raw(bytes(20))
    outer = ether() / IP(src=WAN, dst=OWN, tos=3) / UDP(sport=50000, dport=4789)
    gtpu = ether() / IP(src=WAN, dst=OWN) / UDP(sport=2152, dport=2152)
    user = IP(src=WAN, dst=LAN) / UDP(sport=5, dport=6) / Raw(bytes(20))
    extensions = IPv6ExtHdrHopByHop() / IPv6ExtHdrDestOpt() / IPv6ExtHdrFragment(id=1)
    all_of_them = {
        "vxlan": outer / VXLAN(flags=8, vni=77) / inner,
        "vxlan_vlan": outer / VXLAN(flags=8, vni=77) / ether() / Dot1Q(vlan=5) / Raw(bytes(46)),
        "gtpu": gtpu / GTP_U_Header(teid=77) / user,
        "gtpu_qfi": gtpu / GTP_U_Header(teid=78) / GTPPDUSessionContainer(type=1, QFI=5) / user,
        "gtpu_unknown": gtpu / GTP_U_Header(teid=99) / user,
        "gtpu_echo": gtpu / GTPHeader(gtp_type=1, S=1, seq=7),
        "three_tags": ether() / Dot1AD(vlan=7) / Dot1Q(vlan=9) / Dot1Q(vlan=5) / Raw(bytes(46)),
        "ipv6_extensions": ether() / IPv6(src="fe80::1", dst="fe80::2") / extensions / TCP(),
    }
    inputs = {name: packed(17, 0x08, 1, bytes(frame)) for name, frame in all_of_them.items()}
    for rule in range(8):
        inputs[f"session_rule_{rule}"] = packed(17, 0x89, rule, bytes(gtpu / Raw(bytes(40))))
    return inputs


def small_pipeline() -> dict[str, Any]:
    """A chain with a buffer, a flow and all settings of the engine."""
    return {
        "version": 1,
        "name": "small",
        "engine": {
            "batch_pkts": 32,
            "pool_pkts": 0,
            "idle": "hold",
            "stranding_limit_ns": 1000000,
            "seed": 7,
        },
        "workers": [{"name": "w0", "core": 0}],
        "modules": {
            "in": {
                "kind": "source",
                "params": {"burst_pkts": 8, "flows": [{"dst_ip": "10.1.0.1"}]},
            },
            "ttl": {"kind": "ttl", "trigger_pkts": 8, "age_limit_ns": 50000},
            "out": {"kind": "sink"},
        },
        "edges": [{"from": "in", "gate": 0, "to": "ttl"}, {"from": "ttl", "to": "out"}],
        "flows": [{"name": "f", "path": ["in", "ttl", "out"], "delay_slo_ns": 1000000}],
        "source_map": {"modules.ttl": "small.yaml:4"},
    }


def router_pipeline() -> dict[str, Any]:
    """Ports, interfaces, tables, two tasks and a generator."""
    return {
        "version": 1,
        "name": "router",
        "ports": {
            "p0": {"kind": "ring", "params": {"size_pkts": 64}},
            "p1": {"kind": "null", "params": {}},
        },
        "interfaces": [
            {
                "name": "lan",
                "port": "p0",
                "mac": ROUTER,
                "mtu_bytes": 1500,
                "addresses": ["10.0.1.1/24"],
            },
            {"name": "wan", "port": "p1", "addresses": ["10.0.2.1/24", "10.0.3.1/30"]},
        ],
        "modules": {
            "in": {"kind": "port_in", "params": {"port": "p0", "interface": "lan"}},
            "lookup": {
                "kind": "ipv4_lookup",
                "params": {
                    "table": "main",
                    "interfaces": True,
                    "next_hops": [
                        {"id": 1, "via": WAN},
                        {"id": 2, "group": [{"next_hop": 1, "weight": 2}]},
                    ],
                    "routes": [
                        {"prefix": "0.0.0.0/0", "via": WAN},
                        {"prefix": "10.9.0.0/16", "next_hop": 2},
                    ],
                },
            },
            "neighbour": {"kind": "neighbour", "params": {"table": "main"}},
            "out": {"kind": "port_out", "params": {"port": "p1"}},
            "late": {"kind": "queue", "params": {"size_pkts": 16}},
            "lost": {"kind": "drop"},
        },
        "edges": [
            {"from": "in", "to": "lookup"},
            {"from": "lookup", "gate": "forward", "to": "neighbour"},
            {"from": "lookup", "gate": "drop", "to": "late"},
            {"from": "late", "to": "lost"},
            {"from": "neighbour", "gate": 1, "to": "out"},
        ],
        "generators": [{"name": "g0", "port": "p0", "params": {"rate_pps": 1000}}],
    }


def pipelines() -> dict[str, bytes]:
    """Small pipelines that use every part of the format."""
    cycle = small_pipeline()
    cycle["edges"].append({"from": "ttl", "gate": "drop", "to": "ttl"})
    all_of_them = {
        "small": small_pipeline(),
        "router": router_pipeline(),
        "cycle": cycle,
        "least": {"version": 1, "modules": {}},
    }
    return {name: json.dumps(value).encode() for name, value in all_of_them.items()}


def requests() -> dict[str, bytes]:
    """Conversations: each line a request."""

    def line(number: int, cmd: str, /, **args: object) -> str:
        return json.dumps({"v": 1, "id": number, "cmd": cmd, "args": args})

    route = {"prefix": "10.5.0.0/16", "via": "10.0.1.2"}
    shows = [
        "runtime",
        "buffers",
        "flows",
        "drops",
        "ports",
        "tables",
        "graph",
        "generators",
        "all",
    ]
    small = small_pipeline()
    talks = {
        "hello": [line(1, "hello"), line(2, "save")],
        "show": [line(i, "show", what=what) for i, what in enumerate(shows)],
        "set": [
            line(1, "set", what="trigger", module="ttl", trigger_pkts=8),
            line(2, "set", what="age_limit", module="ttl", age_limit_ns=1000),
            line(
                3,
                "set",
                what="many",
                sets=[
                    {"what": "idle", "mode": "hold"},
                    {"what": "slo", "flow": "f", "delay_slo_ns": 5},
                ],
            ),
        ],
        "program": [
            line(1, "set", what="controller", name="remote", label="x.py", answer_limit_ns=10**6),
            line(2, "show", what="model"),
            line(3, "period", after=0),
            line(4, "decide", number=1, changes=[{"module": "ttl", "trigger_pkts": 8}]),
            line(5, "decide", number=1, fault="ValueError: oh"),
            line(6, "show", what="control"),
        ],
        "routes": [
            line(1, "module", module="lookup", verb="add", args=route),
            line(2, "module", module="lookup", verb="list", args={"limit": 3}),
            line(3, "module", module="lookup", verb="lookup", args={"address": "10.5.1.1"}),
            line(4, "module", module="lookup", verb="delete", args={"prefix": "10.5.0.0/16"}),
            line(
                5,
                "module",
                module="neighbour",
                verb="add",
                args={"interface": "lan", "address": LAN, "mac": HOST},
            ),
            line(6, "module", module="match", verb="add", args={"values": ["0x0800"], "gate": 0}),
        ],
        "bulk": [
            line(1, "bulk", phase="begin", module="lookup", verb="add"),
            line(2, "bulk", phase="append", token="1", items=[route]),
            line(3, "bulk", phase="commit", token="1"),
            line(4, "bulk", phase="abort", token="1"),
        ],
        "apply": [line(1, "apply", pipeline=small, dry_run=True), line(2, "check", pipeline=small)],
        "trace": [line(1, "trace", count=1, filter="udp port 53", timeout_ns=1)],
        "mixed": [
            "nonsense",
            "",
            "{}",
            line(1, "halt"),
            '{"v": 2, "cmd": "hello"}',
            "[" * 70,
            line(2, "hello"),
        ],
    }
    return {name: ("\n".join(lines) + "\n").encode() for name, lines in talks.items()}


def captures() -> dict[str, bytes]:
    """pcap in both byte orders and units, and pcapng with the blocks that readers meet."""
    some = [
        bytes(frame)
        for name, frame in frames().items()
        if name in ("udp", "echo", "vlan", "arp_request")
    ]

    def pcap(order: str, magic: int) -> bytes:
        head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, 1)
        return head + b"".join(
            struct.pack(f"{order}IIII", 1, i * 10, len(frame), len(frame)) + frame
            for i, frame in enumerate(some)
        )

    def block(order: str, kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return (
            struct.pack(f"{order}II", kind, len(body) + 12)
            + body
            + struct.pack(f"{order}I", len(body) + 12)
        )

    def pcapng(order: str) -> bytes:
        section = block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))
        resolution = struct.pack(f"{order}HHB3xHH", 9, 1, 9, 0, 0)
        interface = block(order, 1, struct.pack(f"{order}HHI", 1, 0, 0) + resolution)
        packets = b"".join(
            block(
                order,
                6,
                struct.pack(f"{order}IIIII", 0, 0, 1000 * i, len(frame), len(frame)) + frame,
            )
            for i, frame in enumerate(some)
        )
        simple = block(order, 3, struct.pack(f"{order}I", len(some[0])) + some[0])
        return section + interface + packets + simple + block(order, 0x0BAD, b"unknown!")

    return {
        "micro.pcap": pcap("<", 0xA1B2C3D4),
        "nano_swapped.pcap": pcap(">", 0xA1B23C4D),
        "little.pcapng": pcapng("<"),
        "big.pcapng": pcapng(">"),
        "none.pcap": pcap("<", 0xA1B2C3D4)[:24],
        "two_sections.pcapng": pcapng("<") + pcapng(">"),
    }


def main() -> None:
    """Writes the seeds; what else is there, such as inputs that once failed, stays."""
    inputs = packet_inputs()
    everything = {
        "modules": inputs,
        "router": inputs,
        "pipeline": pipelines(),
        "control": requests(),
        "pcap": captures(),
    }
    for target, seeds in everything.items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            (folder / name).write_bytes(data)
    print(f"{sum(len(seeds) for seeds in everything.values())} seeds in {CORPUS}")


if __name__ == "__main__":
    main()
