# SPDX-License-Identifier: BSD-3-Clause
"""gtpu_endpoint.py - a user behind a base station: GTP-U over UDP on one side, a TUN on the other.

usage: python3 -S gtpu_endpoint.py OWN GATEWAY USER UPLINK_TEID DOWNLINK_TEID [--qfi N]
       python3 -S gtpu_endpoint.py OWN GATEWAY --echo SEQUENCE | --unknown TEID

The first form makes tun0 with the user's address and prints "ready"; it needs no package. The
second sends one message, prints the answer within 3 s as hexadecimal digits, and ends.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import socket
import struct
import subprocess
import sys

PORT = 2152
G_PDU, ECHO, ECHO_RESPONSE = 255, 1, 2
_TUNSETIFF, _TUN_WITHOUT_HEADER = 0x400454CA, 0x1001


def header(kind: int, teid: int, rest: bytes, flags: int = 0x30) -> bytes:
    """A GTP-U message of version 1; `rest` follows the first 8 bytes."""
    return struct.pack("!BBHI", flags, kind, len(rest), teid) + rest


def payload_of(message: bytes) -> bytes:
    """The payload after options and extension headers."""
    if not message[0] & 7:
        return message[8:]
    at, kind = 12, message[11] if message[0] & 4 else 0
    while kind:
        at += 4 * message[at]
        kind = message[at - 1]
    return message[at:]


def open_tun(address: str) -> int:
    """tun0 with the user's address; all traffic beyond the base station's network goes there."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, _TUNSETIFF, struct.pack("16sH", b"tun0", _TUN_WITHOUT_HEADER))
    for words in (
        f"address add {address}/32 dev tun0",
        "link set tun0 mtu 1400 up",
        "route replace default dev tun0",
    ):
        subprocess.run(["ip", *words.split()], check=True)
    return tun


def serve(tun: int, udp: socket.socket, gateway: str, teids: tuple[int, int], qfi: int) -> None:
    """Carries packets both ways until it is killed."""
    container = struct.pack("!HBBBBBB", 0, 0, 0x85, 1, 0x10, qfi & 63, 0)
    chooser = selectors.DefaultSelector()
    chooser.register(tun, selectors.EVENT_READ)
    chooser.register(udp, selectors.EVENT_READ)
    while True:
        for key, _ in chooser.select():
            if key.fd == tun:
                packet = os.read(tun, 2000)
                if packet[0] >> 4 != 4:
                    continue
                flags, options = (0x34, container) if qfi >= 0 else (0x30, b"")
                message = header(G_PDU, teids[0], options + packet, flags)
                udp.sendto(message, (gateway, PORT))
                continue
            message, sender = udp.recvfrom(65536)
            if message[1] == ECHO:
                answer = message[8:10] + b"\0\0\x0e\0"
                udp.sendto(header(ECHO_RESPONSE, 0, answer, 0x32), sender)
            elif message[1] == G_PDU and struct.unpack("!I", message[4:8])[0] == teids[1]:
                os.write(tun, payload_of(message))
            else:
                print(message.hex(), flush=True)


def main() -> int:
    """Serves a user, or sends one request."""
    own, gateway = sys.argv[1:3]
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    if sys.argv[3] in ("--echo", "--unknown"):
        # The daemon answers requests to their source port, and sends errors to the well-known port.
        number = int(sys.argv[4])
        is_echo = sys.argv[3] == "--echo"
        udp.bind((own, 0 if is_echo else PORT))
        udp.settimeout(3)
        sequence = struct.pack("!HBB", number, 0, 0)
        packet = bytes.fromhex("4500001400000000401100000a2d00026440000a")
        asked = header(ECHO, 0, sequence, 0x32) if is_echo else header(G_PDU, number, packet)
        udp.sendto(asked, (gateway, PORT))
        print(udp.recv(2000).hex())
        return 0
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    udp.bind((own, PORT))
    qfi = int(sys.argv[sys.argv.index("--qfi") + 1]) if "--qfi" in sys.argv else -1
    tun = open_tun(sys.argv[3])
    print("ready", flush=True)
    serve(tun, udp, gateway, (int(sys.argv[4]), int(sys.argv[5])), qfi)
    return 0


if __name__ == "__main__":
    sys.exit(main())
