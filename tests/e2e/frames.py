# SPDX-License-Identifier: BSD-3-Clause
"""frames.py - frames that no kernel would send, from programs that run inside a lab on raw
sockets."""

from __future__ import annotations

from lab import Lab
from waiting import wait_until

# argv: tags as one hex string. Sends three numbered frames.
_SEND = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
tags = bytes.fromhex(sys.argv[1])
for i in range(3):
    s.send(bytes.fromhex("0200000000bb0200000000aa") + tags + b"\\x88\\xb5" + b"tagged %d" % i + bytes(60))
"""

# Prints each frame of the test's own EtherType as hex, its tag taken from the kernel's side data.
_CAPTURE = """
import socket, struct
ETH_P_ALL, SOL_PACKET, PACKET_AUXDATA, HAS_TAG, HAS_TPID = 3, 263, 8, 0x10, 0x40
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
s.bind(("eth0", ETH_P_ALL))
s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
print("listening", flush=True)
n = 0
while n < 3:
    frame, extra, flags, source = s.recvmsg(2048, 256)
    if b"tagged" not in frame:
        continue
    for level, kind, data in extra:
        if level == SOL_PACKET and kind == PACKET_AUXDATA:
            status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", data[:20])
            if status & HAS_TAG:
                tpid = tpid if status & HAS_TPID else 0x8100
                frame = frame[:12] + struct.pack("!HH", tpid, tci) + frame[12:]
    print(frame.hex(), flush=True)
    n += 1
"""

# argv: the router's MAC. 600 frames, each broken in one of several ways, from a fixed seed.
HOSTILE = """
import random, socket, struct, sys
random.seed(7)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
dst = bytes.fromhex(sys.argv[1].replace(":", ""))
src = b"\\x02\\0\\0\\0\\0\\x66"
def ip(total=46, ihl=5, version=4, ttl=64, checksum=None, a=b"\\x0a\\0\\x01\\x02", b=b"\\x0a\\0\\x02\\x02"):
    head = struct.pack("!BBHHHBBH", version << 4 | ihl, 0, total, 1, 0, ttl, 17, 0) + a + b
    total_sum = sum(struct.unpack("!10H", head))
    total_sum = (total_sum & 0xffff) + (total_sum >> 16)
    total_sum = (total_sum & 0xffff) + (total_sum >> 16)
    value = ~total_sum & 0xffff if checksum is None else checksum
    return head[:10] + struct.pack("!H", value) + head[12:] + bytes(26)
broken = [ip()[:7], ip(total=2000), ip(total=10), ip(ihl=4), ip(ihl=15), ip(version=6), ip(checksum=1),
          ip(a=b"\\x7f\\0\\0\\1"), ip(b=b"\\0\\0\\0\\0"), ip(a=b"\\xff\\xff\\xff\\xff")]
for i in range(500):
    s.send(dst + src + b"\\x08\\0" + broken[i % len(broken)])
for i in range(100):
    n = random.randrange(0, 60)
    s.send(dst + src + random.choice([b"\\x08\\6", b"\\x08\\0", b"\\x86\\xdd"]) + random.randbytes(n))
"""


def send_and_capture(lab: Lab, tags: list[int]) -> tuple[list[str], list[str]]:
    """Sends three frames with these tags (type and value as one number) from host a; returns host
    b's view."""
    text = "".join(f"{tag:08x}" for tag in tags)
    output = []
    capture = lab.hosts["b"].start("python3", "-S", "-u", "-c", _CAPTURE, stdout=-1, text=True)
    assert capture.stdout is not None
    assert capture.stdout.readline() == "listening\n"
    lab.hosts["a"].python(_SEND, text)
    wait_until(lambda: capture.poll() is not None, f"frames with tags {text} arrive", 20)
    output = capture.stdout.read().split()
    bodies = [b"tagged %d" % i + bytes(60) for i in range(3)]
    head = "0200000000bb0200000000aa" + text + "88b5"
    return [head + body.hex() for body in bodies], output
