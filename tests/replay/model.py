# SPDX-License-Identifier: BSD-3-Clause
"""model.py - what a gateway must make of each recorded frame, by scapy and nothing of the daemon's.

The external port of a connection is the gateway's choice: the model reads it from the first packet
of the connection that it sees translated, and holds the gateway to it from then on. All checksums
are computed from the whole datagram, put together again where it came in fragments.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from scapy.layers.inet import ICMP, IP, TCP, UDP, IPerror
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

EXTERNAL = "203.0.113.1"
DENIED_TCP_PORT = 445
MACS = {
    "wan": ("02:00:00:00:02:02", "02:00:00:00:02:01"),
    "lan": ("02:00:00:00:01:02", "02:00:00:00:01:01"),
}
Flow = tuple[int, str, int, str, int]  # protocol, inside host and port, remote host and port
Datagram = tuple[str, str, int, int]  # source, destination, protocol, identification


class Mismatch(AssertionError):
    """The gateway did something else."""


@dataclass
class Model:
    """Expectations of frames, in their order."""

    ports: dict[Flow, int] = field(default_factory=dict)  # external
    drops: Counter[str] = field(default_factory=Counter)  # by the module that drops
    whole: dict[Datagram, bytes] = field(default_factory=dict)  # payloads of fragmented datagrams

    def learn_fragments(self, frames: Iterable[bytes]) -> None:
        """Looks ahead: the payload of every datagram that comes in pieces."""
        parts: dict[Datagram, dict[int, bytes]] = defaultdict(dict)
        for frame in frames:
            ether = Ether(frame)
            if IP in ether and (ether[IP].frag or ether[IP].flags.MF):
                parts[datagram_of(ether[IP])][ether[IP].frag * 8] = payload_of(ether[IP])
        for name, pieces in parts.items():
            payload = b""
            for at in sorted(pieces):
                assert at == len(payload), "the recording lacks a fragment"
                payload += pieces[at]
            self.whole[name] = payload

    def expect(self, frame: bytes, next_out: dict[str, bytes | None]) -> tuple[str, bytes] | None:
        """The side that the frame must leave by, and how; None: it must be dropped.

        `next_out` has the next frame that left by each side: where new ports are read.
        """
        ether = Ether(frame)
        if ether.type != 0x0800:
            self.drops["type"] += 1
            return None
        ip = ether[IP]
        layer = self._transport(ip)
        if isinstance(layer, TCP) and layer.dport == DENIED_TCP_PORT:
            self.drops["acl"] += 1
            return None
        if ip.ttl <= 1:
            self.drops["ttl"] += 1
            return None
        side = "lan" if ip.dst == EXTERNAL else "wan"
        done = self._inwards(ip, layer) if side == "lan" else self._outwards(ip, layer, next_out)
        if done is None:
            self.drops["nat"] += 1
            return None
        host_field, host, port_field, port = done
        dst, src = MACS[side]
        body = rebuilt(ip, layer, {host_field: host}, {port_field: port})
        piece = body[ip.frag * 8 :][: len(payload_of(ip))]
        head = ip.copy()
        head.remove_payload()
        setattr(head, host_field, host)
        head.ttl -= 1
        del head.chksum
        padding = frame[14 + ip.len :]
        return side, bytes(Ether(dst=dst, src=src, type=0x0800) / head / Raw(piece)) + padding

    def _transport(self, ip: IP) -> Packet:
        """TCP, UDP or ICMP of the whole datagram; its checksum must be right already."""
        payload = self.whole.get(datagram_of(ip), payload_of(ip))
        kind = {1: ICMP, 6: TCP, 17: UDP}[ip.proto]
        layer = kind(payload)
        if rebuilt(ip, layer, {}, {}) != payload:
            raise Mismatch("the recording has a wrong checksum")
        return layer

    def _outwards(
        self, ip: IP, layer: Packet, next_out: dict[str, bytes | None]
    ) -> tuple[str, str, str, int]:
        """Source and source port are exchanged for the external address and a port there."""
        near, far = ("id", "") if isinstance(layer, ICMP) else ("sport", "dport")
        far_port = getattr(layer, far) if far else 0
        flow = (ip.proto, ip.src, getattr(layer, near), ip.dst, far_port)
        if flow not in self.ports:
            seen = next_out["wan"]
            if seen is None:
                raise Mismatch(f"{flow} has not been translated")
            begin = 34 + (4 if isinstance(layer, ICMP) else 0)
            port = int.from_bytes(seen[begin : begin + 2], "big")
            self._claim(flow, port)
        return "src", EXTERNAL, near, self.ports[flow]

    def _claim(self, flow: Flow, port: int) -> None:
        """One mapping for an inside port whatever the remote end; one inside port for a mapping."""
        for known, taken in self.ports.items():
            is_same_inside = known[:3] == flow[:3]
            if known[0] == flow[0] and (taken == port) != is_same_inside:
                raise Mismatch(f"{flow} got port {port}, {known} has {taken}")
        self.ports[flow] = port

    def _inwards(self, ip: IP, layer: Packet) -> tuple[str, str, str, int] | None:
        """Back to who asked; errors by what they quote, which is mended in place."""
        if isinstance(layer, ICMP) and layer.type in (3, 11, 12):
            quoted = layer[IPerror]
            inner = quoted.payload
            flow = self._find(quoted.proto, inner.sport, quoted.dst, inner.dport)
            if flow is None:
                return None
            quoted.src = flow[1]
            inner.sport = flow[2]
            del quoted.chksum, inner.chksum
            return "dst", flow[1], "type", layer.type
        near, far = ("id", "") if isinstance(layer, ICMP) else ("dport", "sport")
        far_port = getattr(layer, far) if far else 0
        flow = self._find(ip.proto, getattr(layer, near), ip.src, far_port)
        return None if flow is None else ("dst", flow[1], near, flow[2])

    def _find(self, proto: int, port: int, remote: str, remote_port: int) -> Flow | None:
        for flow, taken in self.ports.items():
            if (flow[0], taken, *flow[3:]) == (proto, port, remote, remote_port):
                return flow
        return None


def datagram_of(ip: IP) -> Datagram:
    """What the fragments of a datagram have in common."""
    return ip.src, ip.dst, ip.proto, ip.id


def payload_of(ip: IP) -> bytes:
    """What the header carries, without the frame's padding."""
    return bytes(ip)[ip.ihl * 4 : ip.len]


def rebuilt(ip: IP, layer: Packet, ends: dict[str, str], ports: dict[str, int]) -> bytes:
    """The transport's bytes between changed ends, with a new checksum."""
    changed = layer.copy()
    for name, value in ports.items():
        setattr(changed, name, value)
    is_without_sum = isinstance(layer, UDP) and layer.chksum == 0
    if not is_without_sum:
        del changed.chksum
    whole = IP(src=ends.get("src", ip.src), dst=ends.get("dst", ip.dst), proto=ip.proto) / changed
    return bytes(whole)[20:]
