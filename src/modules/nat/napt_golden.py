# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of the address translators: scapy computes every checksum anew."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

from golden import Case, Fate, case, ether, noise, truncated, wire
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPerror, IPOption_Timestamp, TCPerror, UDPerror
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

SERVER = "8.8.8.8"
OTHER = "9.9.9.9"
ROUTER = "77.0.0.1"
ERRORS = (3, 4, 11, 12)


def fault(frame: bytes) -> str:
    """What is wrong with the IPv4 header at byte 14, or nothing."""
    ip = frame[14:]
    if len(ip) < 20:
        return "too_short"
    if ip[0] >> 4 != 4:
        return "bad_version"
    header = (ip[0] & 15) * 4
    if header < 20 or header > len(ip):
        return "bad_header_length"
    total = int.from_bytes(ip[2:4], "big")
    return "bad_total_length" if total < header or total > len(ip) else ""


def offset_of(ip: bytes) -> int:
    return int.from_bytes(ip[6:8], "big") & 0x1FFF


def is_cut_short(ip: bytes) -> bool:
    """Whether a packet that has its transport header ends before the checksum in it."""
    room = int.from_bytes(ip[2:4], "big") - (ip[0] & 15) * 4
    return offset_of(ip) == 0 and room < {6: 18, 17: 8, 1: 4}.get(ip[9], 0)


def renewed(packet: Packet) -> Packet:
    """With all checksums to be computed anew, those of a quoted packet as well."""
    layer: Packet | None = packet
    while layer:
        is_without = isinstance(layer, (UDP, UDPerror)) and layer.chksum == 0
        if hasattr(layer, "chksum") and not is_without:
            del layer.chksum
        layer = layer.payload if layer.payload else None
    return packet


def renewed_first_fragment(before: Packet, after: Packet) -> Packet:
    """The transport checksum covers fragments that are not there: corrected by RFC 1624."""

    def words(packet: Packet) -> list[int]:
        ends = IPv4Address(packet[IP].src).packed + IPv4Address(packet[IP].dst).packed
        ends += packet[UDP].sport.to_bytes(2, "big") + packet[UDP].dport.to_bytes(2, "big")
        return [int.from_bytes(ends[i : i + 2], "big") for i in range(0, len(ends), 2)]

    if before[UDP].chksum:
        total = 0xFFFF - before[UDP].chksum
        total += sum(0xFFFF - word for word in words(before)) + sum(words(after))
        while total > 0xFFFF:
            total = (total & 0xFFFF) + (total >> 16)
        after[UDP].chksum = 0xFFFF - total or 0xFFFF
    del after[IP].chksum
    return after


# --- static pairs


def exchanged(address: str, pairs: list[tuple[str, str]]) -> str:
    for before, after in pairs:
        network, target = IPv4Network(before), IPv4Network(after)
        if IPv4Address(address) in network:
            host = int(IPv4Address(address)) - int(network.network_address)
            return str(IPv4Address(int(target.network_address) + host))
    return address


def static_model(sources: list[tuple[str, str]], destinations: list[tuple[str, str]]) -> Any:
    def model(frame: bytes) -> Fate:
        wrong = fault(frame)
        if wrong:
            return ("drop", wrong)
        if is_cut_short(frame[14:]):
            return ("drop", "too_short")
        before = Ether(frame)
        after = Ether(frame)
        ip = after[IP]
        ip.src, ip.dst = exchanged(ip.src, sources), exchanged(ip.dst, destinations)
        if IPerror in after and after[ICMP].type in ERRORS:
            quote = after[IPerror]
            quote.src = exchanged(quote.src, destinations)
            quote.dst = exchanged(quote.dst, sources)
        if bytes(after) == bytes(before):
            return ("out", 0, frame)
        if offset_of(frame[14:]) or ip.flags.MF:
            del ip.chksum
            return ("out", 0, bytes(after))
        return ("out", 0, bytes(renewed(after)))

    return model


def quoted(packet: Packet, **error: Any) -> bytes:
    """An ICMP error about a packet, with all of it, so that scapy can do its sums."""
    return wire(
        ether() / IP(src=error["src"], dst=error["dst"]) / ICMP(type=error["type"]) / packet
    )


def static_frames() -> list[bytes]:
    frames = []
    for i in range(6):
        ends = {"src": f"10.0.{i % 3}.{i + 1}", "dst": f"20.0.{i % 2}.{i + 9}", "id": i}
        frames.append(wire(ether() / IP(**ends) / UDP(sport=i + 1, dport=53) / Raw(b"q" * i * 9)))
        frames.append(wire(ether() / IP(**ends) / TCP(sport=i + 1, dport=80, flags="PA") / b"data"))
        frames.append(wire(ether() / IP(**ends) / ICMP(id=i) / b"ping"))
        frames.append(wire(ether() / IP(**ends, proto=99) / Raw(b"x" * 30)))
        frames.append(wire(ether() / IP(**ends) / UDP(chksum=0) / b"no sum"))
        options = [IPOption_Timestamp(flg=0, timestamp=7)]
        frames.append(wire(ether() / IP(**ends, options=options) / UDP(dport=9) / b"options"))
        frames.append(wire(ether() / IP(**ends, frag=10, proto=17) / Raw(b"later part")))
    for kind in (3, 11, 12):
        for packet in (UDP(sport=5, dport=53) / b"abc", TCP(sport=5, dport=80) / b"abc"):
            heard = IP(src="20.0.0.9", dst="10.0.0.1") / packet
            frames.append(quoted(heard, src="10.0.0.1", dst="20.0.0.9", type=kind))
            frames.append(quoted(heard, src="1.2.3.4", dst="20.0.1.7", type=kind))
            sent = IP(src="20.0.0.9", dst="7.7.7.7") / packet
            frames.append(quoted(sent, src="7.7.7.7", dst="20.0.0.9", type=kind))
    return frames + truncated() + [frame for frame in noise(40, 3) if len(frame) < 34]


def static_case(variant: str, pairs: list[dict[str, str]]) -> Case:
    sources = [(p["inside"], p["outside"]) for p in pairs if p["direction"] != "destination"]
    targets = [(p["outside"], p["inside"]) for p in pairs if p["direction"] != "source"]
    del variant
    return Case("static_nat", {"pairs": pairs}, static_frames(), static_model(sources, targets))


@case("static_nat")
def static_nat() -> Case:
    return static_case(
        "", [{"inside": "10.0.0.0/24", "outside": "30.0.0.0/24", "direction": "source"}]
    )


@case("static_nat", "both")
def static_nat_both() -> Case:
    pairs = [
        {"inside": "10.0.0.0/24", "outside": "30.0.0.0/24", "direction": "source"},
        {"inside": "10.0.1.0/24", "outside": "20.0.1.0/24", "direction": "both"},
        {"inside": "192.168.0.0/25", "outside": "20.0.0.0/25", "direction": "destination"},
    ]
    return static_case("both", pairs)


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
