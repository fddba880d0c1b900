# SPDX-License-Identifier: BSD-3-Clause
"""Golden case of napt."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from golden import Case, Fate, case, ether, noise, truncated, wire
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPerror, IPOption_Timestamp, TCPerror, UDPerror
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from translation import (
    ERRORS,
    OTHER,
    ROUTER,
    SERVER,
    fault,
    quoted,
    renewed,
    renewed_first_fragment,
)


# --- stateful translation
class Translator:
    """One external address, mappings by (protocol, inside end), ports preserved; anybody may
    answer. The traffic never asks for a port that is taken, which would be chosen at random."""

    def __init__(self, external: str) -> None:
        self.external = external
        self.mapped: dict[tuple[int, str, int], int] = {}
        self.fragments: dict[tuple[str, str, int, int], tuple[str, str, int]] = {}

    def __call__(self, frame: bytes) -> Fate:
        wrong = fault(frame)
        if wrong:
            return ("drop", wrong)
        packet = Ether(frame)
        ip = packet[IP]
        key = (ip.src, ip.dst, ip.id, ip.proto)
        if ip.frag:
            if key not in self.fragments:
                return ("drop", "fragment_unknown")
            ip.src, ip.dst, gate = self.fragments[key]
            del ip.chksum
            return ("out", gate, bytes(packet))
        if ip.proto not in (1, 6, 17):
            return ("drop", "nat_protocol")
        room = ip.len - ip.ihl * 4
        if room < (18 if ip.proto == 6 else 8):
            return ("drop", "too_short")
        fate = self.translate(packet)
        if fate[0] == "out" and ip.flags.MF:
            self.fragments[key] = (ip.src, ip.dst, fate[1])
            return ("out", fate[1], bytes(renewed_first_fragment(Ether(frame), packet)))
        return fate

    def translate(self, packet: Packet) -> Fate:
        ip = packet[IP]
        if ip.proto == 1 and packet[ICMP].type in ERRORS:
            return self.error(packet)
        if ip.proto == 1 and packet[ICMP].type not in (0, 8, 13, 14, 15, 16, 17, 18):
            return ("drop", "nat_icmp")
        gate = 0
        if ip.dst == self.external:
            inside = self.inside_of(ip.proto, self.port(packet, "dport"))
            if inside is None:
                return ("drop", "no_mapping")
            gate = 1
            if IPv4Address(ip.src) not in IPv4Network("10.0.0.0/8"):
                self.set(packet, "dst", inside)
                return ("out", gate, bytes(renewed(packet)))
        if (
            self.is_reply(packet)
            and (ip.proto, ip.src, self.port(packet, "sport")) not in self.mapped
        ):
            return ("drop", "no_mapping")
        source = (ip.proto, ip.src, self.port(packet, "sport"))
        self.mapped.setdefault(source, source[2])
        self.set(packet, "src", (self.external, self.mapped[source]))
        if gate == 1:
            target = self.inside_of(ip.proto, self.port(packet, "dport"))
            assert target is not None
            self.set(packet, "dst", target)
        return ("out", gate, bytes(renewed(packet)))

    def inside_of(self, proto: int, port: int) -> tuple[str, int] | None:
        for (its_proto, address, inside_port), external_port in self.mapped.items():
            if its_proto == proto and external_port == port:
                return (address, inside_port)
        return None

    @staticmethod
    def is_reply(packet: Packet) -> bool:
        return ICMP in packet and packet[ICMP].type in (0, 14, 16, 18)

    @staticmethod
    def port(packet: Packet, name: str) -> int:
        layer = packet[IP].payload
        return int(layer.id if isinstance(layer, ICMP) else getattr(layer, name))

    @staticmethod
    def set(packet: Packet, end: str, value: tuple[str, int]) -> None:
        ip = packet[IP]
        setattr(ip, end, value[0])
        is_icmp = isinstance(ip.payload, ICMP)
        setattr(ip.payload, "id" if is_icmp else "sport" if end == "src" else "dport", value[1])

    def error(self, packet: Packet) -> Fate:
        ip = packet[IP]
        if IPerror not in packet:
            return ("drop", "too_short")
        quote = packet[IPerror]
        layer = quote.payload
        if not isinstance(layer, (UDPerror, TCPerror)):
            return ("drop", "no_mapping")
        if ip.dst == self.external:
            inside = self.inside_of(quote.proto, layer.sport)
            if quote.src != self.external or inside is None:
                return ("drop", "no_mapping")
            ip.dst, quote.src, layer.sport = inside[0], inside[0], inside[1]
            return ("out", 1, bytes(renewed(packet)))
        key = (quote.proto, quote.dst, layer.dport)
        if key not in self.mapped:
            return ("drop", "no_mapping")
        ip.src, quote.dst, layer.dport = self.external, self.external, self.mapped[key]
        return ("out", 0, bytes(renewed(packet)))


EXTERNAL = "203.0.113.1"


def napt_frames() -> list[bytes]:
    frames = []

    def add(packet: Packet) -> None:
        frames.append(wire(ether() / packet))

    for i in range(4):
        host = f"10.0.0.{i + 1}"
        out, back = IP(src=host, dst=SERVER, id=i), IP(src=SERVER, dst=EXTERNAL, id=90 + i)
        add(out / UDP(sport=2000 + i, dport=53) / Raw(b"question" * i))
        add(back / UDP(sport=53, dport=2000 + i) / Raw(b"answer" * i))
        add(out / TCP(sport=3000 + i, dport=443, flags="S"))
        add(back / TCP(sport=443, dport=3000 + i, flags="SA"))
        add(out / TCP(sport=3000 + i, dport=443, flags="A") / b"get")
        add(back / TCP(sport=443, dport=3000 + i, flags="PA") / b"page")
        add(out / ICMP(type=8, id=50 + i) / b"ping")
        add(back / ICMP(type=0, id=50 + i) / b"ping")
        options = [IPOption_Timestamp(flg=0, timestamp=7)]
        add(IP(src=host, dst=OTHER, options=options) / UDP(sport=2000 + i, dport=9) / b"options")
        add(IP(src=OTHER, dst=EXTERNAL) / UDP(sport=77, dport=2000 + i) / b"from a stranger")
        add(out / UDP(sport=2000 + i, dport=53, chksum=0) / b"no sum")
    for kind in (3, 11, 12):
        udp, tcp = UDP(sport=2001, dport=53) / b"abc", TCP(sport=3001, dport=443) / b"abc"
        for layer in (udp, tcp):
            sent = IP(src=EXTERNAL, dst=SERVER) / layer
            frames.append(quoted(sent, src=ROUTER, dst=EXTERNAL, type=kind))
        for layer in (UDP(sport=53, dport=2001) / b"abc", TCP(sport=443, dport=3001) / b"abc"):
            heard = IP(src=SERVER, dst="10.0.0.2") / layer
            frames.append(quoted(heard, src="10.0.0.2", dst=SERVER, type=kind))
        unknown = IP(src=EXTERNAL, dst=SERVER) / UDP(sport=9, dport=53) / b"abc"
        frames.append(quoted(unknown, src=ROUTER, dst=EXTERNAL, type=kind))
    add(IP(src="10.0.0.1", dst=EXTERNAL) / UDP(sport=2000, dport=2001) / b"hairpin")
    add(IP(src="10.0.0.2", dst=EXTERNAL) / UDP(sport=2001, dport=2000) / b"and back")
    add(IP(src="10.0.0.3", dst=EXTERNAL) / TCP(sport=3002, dport=3003, flags="S"))
    add(IP(src="10.0.0.3", dst=EXTERNAL) / UDP(sport=2002, dport=9999) / b"to nobody")
    add(IP(src=SERVER, dst=EXTERNAL) / UDP(sport=53, dport=9999) / b"to nobody")
    add(IP(src=SERVER, dst=EXTERNAL) / TCP(sport=53, dport=9999, flags="S"))
    add(IP(src="10.0.0.1", dst=SERVER) / ICMP(type=0, id=999))
    add(IP(src="10.0.0.1", dst=SERVER) / ICMP(type=5) / IP(src=SERVER, dst="10.0.0.1") / UDP())
    add(IP(src="10.0.0.1", dst=SERVER, proto=99) / Raw(b"x" * 30))
    for src, dst, sport in (("10.0.0.1", SERVER, 2000), (SERVER, EXTERNAL, 53)):
        whole = IP(src=src, dst=dst, id=700) / UDP(sport=sport, dport=2000 if sport == 53 else 53)
        body = bytes(IP(bytes(whole / Raw(b"f" * 72))).payload)
        ends = {"src": src, "dst": dst, "id": 700, "proto": 17}
        pieces = [IP(**ends, flags="MF", frag=at // 8) / Raw(body[at : at + 32]) for at in (0, 32)]
        pieces.append(IP(**ends, frag=8) / Raw(body[64:]))
        add(pieces[1])
        for piece in pieces:
            add(piece)
    return frames + truncated() + [frame for frame in noise(30, 5) if len(frame) < 34]


@case("napt")
def napt() -> Case:
    params = {"external": [EXTERNAL], "max_connections": 256}
    return Case("napt", params, napt_frames(), Translator(EXTERNAL), {"connected_gates": 2})
