# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of ESP; scapy and the library `cryptography` encrypt and authenticate."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from golden import Case, Fate, all_sorts, case, ether, wire
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.ipsec import ESP, SecurityAssociation, _ESPPlain
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from transports import place_of, transports

# Name, scapy's names of the algorithms, bytes of the cipher's key with its salt and of the other.
SUITES: list[tuple[str, str, str | None, int, int]] = [
    ("aes-128-gcm", "AES-GCM", None, 20, 0),
    ("aes-192-gcm", "AES-GCM", None, 28, 0),
    ("aes-256-gcm", "AES-GCM", None, 36, 0),
    ("chacha20-poly1305", "CHACHA20-POLY1305", None, 36, 0),
    ("aes-128-cbc-sha1", "AES-CBC", "HMAC-SHA1-96", 16, 20),
    ("aes-256-cbc-sha1", "AES-CBC", "HMAC-SHA1-96", 32, 20),
    ("aes-128-cbc-sha256", "AES-CBC", "SHA2-256-128", 16, 32),
    ("aes-256-cbc-sha256", "AES-CBC", "SHA2-256-128", 32, 32),
]
HALF = 1 << 32
NO_MAC = "00:00:00:00:00:00"


def key_of_tests(number: int, salt: int, n_bytes: int) -> bytes:
    """What `test_keys: true` makes of an SA's id."""
    x, key = number << 8 | salt, bytearray()
    for _ in range(n_bytes):
        x = (x * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        key.append(x >> 56)
    return bytes(key)


class Tunnel:
    """One end of an SA, the sending one."""

    def __init__(self, sa: dict[str, Any], sequence: int = 1) -> None:
        self.sa = sa
        self.sequence = sa.get("first_sequence", sequence)
        _, cipher, auth, n_key, n_auth = next(s for s in SUITES if s[0] == sa["suite"])
        self.key = key_of_tests(sa["id"], 0, n_key)
        self.algorithms = SecurityAssociation(
            ESP,
            spi=sa["spi"],
            crypt_algo=cipher,
            crypt_key=self.key,
            auth_algo=auth,
            auth_key=key_of_tests(sa["id"], 1, n_auth) or None,
        )

    def iv(self, sequence: int) -> bytes:
        number = sequence.to_bytes(8, "big")
        if "cbc" not in self.sa["suite"]:
            return number
        block = Cipher(algorithms.AES(self.key), modes.ECB()).encryptor()
        return block.update(number + bytes(8))

    def esp(self, inner: bytes, sequence: int | None = None, **lies: Any) -> bytes:
        """ESP header to ICV around a packet, of the next number unless one is given."""
        if sequence is None:
            sequence, self.sequence = self.sequence, self.sequence + 1
        own = self.algorithms
        plain = _ESPPlain(
            spi=self.sa["spi"], seq=sequence % HALF, iv=lies.get("iv", self.iv(sequence))
        )
        plain.data = inner
        plain.nh = lies.get("next_header", 4 if inner[0] >> 4 == 4 else 41)
        plain = own.crypt_algo.pad(plain)
        if "padding" in lies:
            plain.padding = lies["padding"](plain.padding)
        if "padlen" in lies:
            plain.padlen = lies["padlen"]
        high = {"esn_en": self.sa.get("esn", False), "esn": sequence // HALF}
        sealed = own.crypt_algo.encrypt(own, plain, own.crypt_key, own.crypt_icv_size, **high)
        own.auth_algo.sign(sealed, own.auth_key, **high)
        return bytes(sealed)


def outer_of(sa: dict[str, Any], inner: bytes, esp: bytes, ip_id: int) -> bytes:
    """The frame that carries it, as this router sends it."""
    is_v4 = inner[0] >> 4 == 4
    tos = inner[1] if is_v4 else int.from_bytes(inner[:2], "big") >> 4 & 255
    ends = {"src": sa["local"], "dst": sa["remote"]}
    macs = {"src": sa.get("src_mac", NO_MAC), "dst": sa.get("dst_mac", NO_MAC)}
    udp = UDP(sport=4500, dport=4500) if sa.get("udp") else None
    if ":" in sa["remote"]:
        ip = IPv6(**ends, tc=tos, hlim=64, nh=17 if udp else 50)
        return bytes(Ether(**macs, type=0x86DD) / ip / (udp / Raw(esp) if udp else Raw(esp)))
    is_df = is_v4 and inner[6] & 0x40
    ip4 = IP(**ends, tos=tos, ttl=64, id=0 if is_df else ip_id, proto=17 if udp else 50)
    ip4.flags = "DF" if is_df else 0
    if udp:
        udp.chksum = 0
    return bytes(Ether(**macs, type=0x800) / ip4 / (udp / Raw(esp) if udp else Raw(esp)))


def sas_of(more: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """One SA of each suite, with what else is asked for by its place."""
    return [
        {
            "id": i + 1,
            "spi": 0x1000 + i,
            "suite": SUITES[i][0],
            "local": "192.0.2.1",
            "remote": f"192.0.2.{i + 9}",
            **more.get(i, {}),
        }
        for i in range(len(SUITES))
    ]


def some_packets() -> list[bytes]:
    """Frames of every length modulo 16, of both versions, some that may not be fragmented."""
    ends: dict[str, Any] = {"src": "10.0.0.1", "dst": "10.9.0.2"}
    frames = [
        wire(ether() / IP(**ends, id=n, tos=n % 256, flags="DF" if n % 3 == 0 else 0)
             / UDP(sport=n, dport=9) / Raw(bytes(range(n))))
        for n in range(40)
    ]  # fmt: skip
    frames += [
        wire(ether() / IPv6(src="fd00::1", dst="fd00::2", tc=n * 11) / TCP() / Raw(b"6" * n))
        for n in range(20)
    ]
    frames.append(wire(ether() / IP(**ends) / UDP() / Raw(b"x" * 1400)))
    return frames


def model_of_encrypt(sas: list[dict[str, Any]]) -> Any:
    tunnels = {sa["id"]: Tunnel(sa) for sa in sas}
    last = {sa["id"]: 2**64 - 1 if sa.get("esn") else 2**32 - 1 for sa in sas}
    n_without_df = 0

    def model(frame: bytes, meta: dict[str, Any]) -> Fate:
        nonlocal n_without_df
        tunnel = tunnels.get(meta["tunnel_id"])
        if tunnel is None:
            return ("drop", "unknown_sa")
        room = frame[14:]
        if len(room) < 20:
            return ("drop", "too_short")
        version = room[0] >> 4
        if version not in (4, 6):
            return ("drop", "not_ip")
        if version == 6 and len(room) < 40:
            return ("drop", "too_short")
        told = (
            int.from_bytes(room[2:4], "big")
            if version == 4
            else 40 + int.from_bytes(room[4:6], "big")
        )
        if not 20 <= told <= len(room):
            return ("drop", "bad_total_length")
        if tunnel.sequence > last[tunnel.sa["id"]]:
            return ("drop", "sequence_exhausted")
        inner = room[:told]
        if ":" not in tunnel.sa["remote"] and not (version == 4 and inner[6] & 0x40):
            n_without_df += 1
        return ("out", 0, outer_of(tunnel.sa, inner, tunnel.esp(inner), n_without_df))

    return model


def case_of_encrypt(more: dict[int, dict[str, Any]]) -> Case:
    sas = sas_of(more)
    frames = some_packets() + all_sorts(71)
    ids = cycle([*range(1, len(SUITES) + 1), 99])
    metas = [{"tunnel_id": next(ids)} for _ in frames]
    params = {"sas": sas, "test_keys": True}
    return Case("esp_encrypt", params, frames, model_of_encrypt(sas), {}, metas)


@case("esp_encrypt")
def esp_encrypt() -> Case:
    macs = {"dst_mac": "02:00:00:00:00:0d", "src_mac": "02:00:00:00:00:0c"}
    v6 = {"local": "2001:db8::1", "remote": "2001:db8::9"}
    return case_of_encrypt(
        {1: {"udp": True}, 2: v6, 3: {"udp": True, **v6}, 4: macs, 5: {"udp": True}, 6: v6}
    )


@case("esp_encrypt", variant="esn")
def esp_encrypt_esn() -> Case:
    esn = {"esn": True}
    return case_of_encrypt(
        {
            0: {**esn, "first_sequence": HALF - 2},
            1: {"first_sequence": HALF - 2},
            2: esn,
            3: {**esn, "first_sequence": 7 * HALF - 3},
            4: {**esn, "first_sequence": HALF - 1},
            5: {"first_sequence": HALF - 1},
            6: {**esn, "first_sequence": 5 * HALF + 77},
        }
    )


MACS = Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02")
INNER = bytes(IP(src="10.1.0.1", dst="10.2.0.2", tos=2) / UDP() / Raw(b"inside!"))
INNER6 = bytes(IPv6(src="fd00::1", dst="fd00::2") / UDP() / Raw(b"inside six"))


def flip(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def taken_out(inner: bytes) -> Fate:
    is_v4 = inner[0] >> 4 == 4
    head = bytes(MACS)[:12] + (b"\x08\x00" if is_v4 else b"\x86\xdd")
    return ("out", 0 if is_v4 else 2, head + inner)


class Peer:
    """The other end: what it sends, and what is to become of it."""

    def __init__(self, sa: dict[str, Any]) -> None:
        self.sa = sa
        self.tunnel = Tunnel(sa)
        self.pairs: list[tuple[bytes, Fate]] = []

    def frame(self, esp: bytes, tos: int = 0, udp: bool = False, src: str = "") -> bytes:
        load = UDP(sport=4500, dport=4500, chksum=0) / Raw(esp) if udp else Raw(esp)
        src = src or self.sa["remote"]
        if ":" in src:
            outer: Any = IPv6(src=src, dst=self.sa["local"], tc=tos, nh=17 if udp else 50)
        else:
            outer = IP(src=src, dst=self.sa["local"], tos=tos, proto=17 if udp else 50)
        return wire(MACS / outer / load)

    def good(self, sequence: int, inner: bytes = INNER, **how: Any) -> None:
        esp = self.tunnel.esp(inner, sequence)
        self.pairs.append((self.frame(esp, **how), taken_out(inner)))

    def bad(self, reason: str, sequence: int, inner: bytes = INNER, tos: int = 0,
            spoil: Callable[[bytes], bytes] = bytes, **lies: Any) -> None:  # fmt: skip
        esp = spoil(self.tunnel.esp(inner, sequence, **lies))
        self.pairs.append((self.frame(esp, tos), ("drop", reason)))

    def send_all(self) -> None:
        self.good(1)
        self.bad("replayed", 1)
        self.good(3, INNER6, udp=True)
        self.good(2)  # late, and within the window
        self.good(90)
        self.bad("replayed", 10)  # older than the window of 64
        other_number = (93).to_bytes(4, "big")
        self.bad("bad_icv", 91, spoil=lambda esp: flip(esp, len(esp) - 1))
        self.bad("bad_icv", 91, spoil=lambda esp: flip(esp, 30))
        self.bad("bad_icv", 91, spoil=lambda esp: esp[:4] + other_number + esp[8:])
        self.good(91)  # forged ones took nothing from it
        self.bad("unknown_spi", 93, spoil=lambda esp: b"\0\0\1\0" + esp[4:])
        self.bad("bad_esp", 93, spoil=lambda esp: esp[:20])
        self.bad("bad_esp", 93, spoil=lambda esp: esp[:-1])
        self.bad("bad_padding", 94, padding=lambda padding: b"\7" * len(padding))
        self.bad("bad_padding", 95, padlen=255)
        self.bad("dummy_packet", 96, b"nothing!", next_header=59)
        self.bad("bad_inner", 97, b"transport mode", next_header=17)
        self.bad("bad_inner", 98, INNER6, next_header=4)
        self.bad("bad_inner", 99, INNER[:-1])
        hidden = self.tunnel.esp(INNER + b"to hide the length", 100)
        self.pairs.append((self.frame(hidden), taken_out(INNER)))
        raised = IP(INNER)
        raised.tos, raised.chksum = 3, None
        congested = self.frame(self.tunnel.esp(INNER, 101), tos=3)
        self.pairs.append((congested, taken_out(bytes(raised))))
        self.bad("ecn_mismatch", 102, INNER[:1] + b"\0" + INNER[2:], tos=3)
        if ":" in self.sa["remote"]:
            return
        if self.sa["is_bound"]:
            away = self.frame(self.tunnel.esp(INNER, 103), src="198.51.100.1")
            self.pairs.append((away, ("drop", "unknown_remote")))
        else:
            self.good(103, src="198.51.100.1")


def other_frames() -> list[tuple[bytes, Fate]]:
    """What is no ESP, or no good one."""
    ends = {"src": "192.0.2.9", "dst": "192.0.2.1"}
    pairs: list[tuple[bytes, Fate]] = []
    for load in (b"\xff", bytes(40)):  # a keepalive, and what IKE sends
        frame = wire(MACS / IP(**ends) / UDP(sport=4500, dport=4500) / Raw(load))
        pairs.append((frame, ("out", 1, frame)))
    pairs.append((wire(MACS / IP(**ends, proto=50) / Raw(b"1234567")), ("drop", "bad_esp")))
    for frame in transports() + all_sorts(72):
        kind = place_of(frame)[0]
        is_read = kind in ("whole", "fragment", "other", "bad_version")
        pairs.append((frame, ("out", 1, frame) if is_read else ("drop", kind)))
    return pairs


def case_of_decrypt(half: int, more: dict[int, dict[str, Any]]) -> Case:
    """Of half the suites: a batch takes 256 packets."""
    sas = sas_of(more)[half * 4 : half * 4 + 4]
    for i, sa in enumerate(sas):
        sa["is_bound"] = i % 2 == 0
    pairs: list[tuple[bytes, Fate]] = []
    for sa in sas:
        peer = Peer(sa)
        peer.send_all()
        pairs += peer.pairs
    pairs = (pairs + other_frames())[:256]
    fates = iter([fate for _, fate in pairs])
    keys = ("id", "spi", "suite", "esn")
    own = [
        {k: v for k, v in sa.items() if k in keys or (k == "remote" and sa["is_bound"])}
        for sa in sas
    ]
    params = {"sas": own, "test_keys": True, "replay_window_pkts": 64}
    setting = {"connected_gates": 3}
    return Case("esp_decrypt", params, [f for f, _ in pairs], lambda _: next(fates), setting)


@case("esp_decrypt")
def esp_decrypt() -> Case:
    return case_of_decrypt(0, {2: {"local": "2001:db8::1", "remote": "2001:db8::9"}})


@case("esp_decrypt", variant="cbc")
def esp_decrypt_cbc() -> Case:
    return case_of_decrypt(1, {})


@case("esp_decrypt", variant="esn")
def esp_decrypt_esn() -> Case:
    esn = {"esn": True}
    return case_of_decrypt(0, dict.fromkeys(range(4), esn))


@case("esp_decrypt", variant="cbc_esn")
def esp_decrypt_cbc_esn() -> Case:
    esn = {"esn": True}
    return case_of_decrypt(1, dict.fromkeys(range(4, 8), esn))
