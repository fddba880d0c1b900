# SPDX-License-Identifier: BSD-3-Clause
"""esp_endpoint.py - the other end of an IPsec tunnel: ESP on one side, a TUN on the other.

usage: python esp_endpoint.py OWN PEER INSIDE SITE KEYS [--udp] [--suite NAME]

Makes tun0 with the address INSIDE, routes SITE into it, and prints "ready". KEYS is a file with the
lines of SA 1, which sends, and SA 2, which receives, as for esp_encrypt. The cryptography comes
from the package `cryptography`, the rest is written here; none of it is Batchplane code.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import hmac
import os
import selectors
import socket
import struct
import subprocess
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_ESP, _PORT = 50, 4500
_TUNSETIFF, _TUN_WITHOUT_HEADER = 0x400454CA, 0x1001
_OUT_SPI, _IN_SPI = 4098, 4097  # the reverse of the gateway's


class Sa:
    """One direction, with 64-bit sequence numbers."""

    def __init__(self, spi: int, suite: str, keys: list[bytes]) -> None:
        self.spi, self.is_gcm, self.keys = spi, suite.endswith("gcm"), keys
        self.sequence = 0

    def seal(self, inner: bytes) -> bytes:
        self.sequence += 1
        block = 4 if self.is_gcm else 16
        padding = bytes(range(1, -(len(inner) + 2) % block + 1))
        body = inner + padding + bytes([len(padding), 4 if inner[0] >> 4 == 4 else 41])
        header = struct.pack("!II", self.spi, self.sequence % 2**32)
        if self.is_gcm:
            iv = struct.pack("!Q", self.sequence)
            aad = struct.pack("!IQ", self.spi, self.sequence)
            sealed = AESGCM(self.keys[0][:-4]).encrypt(self.keys[0][-4:] + iv, body, aad)
            return header + iv + sealed
        iv = os.urandom(16)
        cipher = Cipher(algorithms.AES(self.keys[0]), modes.CBC(iv)).encryptor()
        front = header + iv + cipher.update(body)
        return front + self.icv(front, self.sequence)

    def icv(self, front: bytes, sequence: int) -> bytes:
        high = struct.pack("!I", sequence >> 32)
        return hmac.digest(self.keys[1], front + high, hashlib.sha256)[:16]

    def open(self, esp: bytes) -> bytes | None:
        """The payload, if it is authentic. Tests send few packets: sequence numbers stay below
        2^32."""
        spi, low = struct.unpack("!II", esp[:8])
        if spi != self.spi:
            return None
        if self.is_gcm:
            aad = struct.pack("!IQ", spi, low)
            try:
                nonce = self.keys[0][-4:] + esp[8:16]
                body = AESGCM(self.keys[0][:-4]).decrypt(nonce, esp[16:], aad)
            except InvalidTag:
                return None
        else:
            if not hmac.compare_digest(self.icv(esp[:-16], low), esp[-16:]):
                return None
            cipher = Cipher(algorithms.AES(self.keys[0]), modes.CBC(esp[8:24])).decryptor()
            body = cipher.update(esp[24:-16])
        return body[: len(body) - 2 - body[-2]]


def open_tun(inside: str, site: str) -> int:
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH", b"tun0", _TUN_WITHOUT_HEADER))
    for words in (
        f"address add {inside}/32 dev tun0",
        "link set tun0 mtu 1400 up",
        f"route replace {site} dev tun0",
    ):
        subprocess.run(["ip", *words.split()], check=True)
    return tun


def serve(tun: int, net: socket.socket, peer: str, sas: tuple[Sa, Sa], is_udp: bool) -> None:
    """Carries packets both ways until it is killed."""
    out, into = sas
    chooser = selectors.DefaultSelector()
    chooser.register(tun, selectors.EVENT_READ)
    chooser.register(net, selectors.EVENT_READ)
    while True:
        for key, _events in chooser.select():
            if key.fd == tun:
                inner = os.read(tun, 2048)
                if inner[0] >> 4 == 4:
                    net.sendto(out.seal(inner), (peer, _PORT if is_udp else 0))
                continue
            packet = net.recv(4096)
            esp = packet if is_udp else packet[(packet[0] & 15) * 4 :]
            opened = into.open(esp)
            if opened is not None:
                os.write(tun, opened)


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("own", "peer", "inside", "site", "keys"):
        parser.add_argument(name)
    parser.add_argument("--udp", action="store_true")
    parser.add_argument("--suite", default="aes-256-gcm")
    words = parser.parse_args()
    keys = {}
    for line in Path(words.keys).read_text().splitlines():
        number, *texts = line.split()
        keys[int(number)] = [bytes.fromhex(text) for text in texts]
    if words.udp:
        net = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        net.bind((words.own, _PORT))
    else:
        net = socket.socket(socket.AF_INET, socket.SOCK_RAW, _ESP)
        net.bind((words.own, 0))
    tun = open_tun(words.inside, words.site)
    sas = (Sa(_OUT_SPI, words.suite, keys[1]), Sa(_IN_SPI, words.suite, keys[2]))
    print("ready", flush=True)
    serve(tun, net, words.peer, sas, words.udp)


if __name__ == "__main__":
    main()
