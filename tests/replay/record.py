# SPDX-License-Identifier: BSD-3-Clause
"""record.py - records what a home and the internet send to a gateway, for the replay tests.

    python tests/replay/record.py      writes tests/replay/<traffic>.<lan|wan>.pcap anew

The hosts are namespaces with the kernel's own stack; pipelines/home_gateway.yaml is between them.
Recorded is what arrives at each side of the gateway, stamped by the kernel, not what it sends.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parents[1] / "python")]

from commands import Commands  # noqa: E402
from home_world import SERVICES, World  # noqa: E402
from lab import Lab, wait_listening  # noqa: E402

from batchplane.demo.demos import INTERNET, INTERNET6, OUTSIDE, home_hosts  # noqa: E402

UDP_PORT = 9999
_RECORDER = r"""
import select, socket, struct, sys
SO_TIMESTAMPNS = 35
sockets = []
for device in ("lan", "wan"):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    s.bind((device + "0", 3))
    out = open(f"{sys.argv[1]}.{device}.pcap", "wb")
    out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
    sockets.append((s, out))
print("ready", flush=True)
while True:
    ready, _, _ = select.select([sys.stdin] + [s for s, _ in sockets], [], [])
    for s, out in sockets:
        while True:
            try:
                frame, extra, _, address = s.recvmsg(65535, 64, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            if address[2] == socket.PACKET_OUTGOING:
                continue
            seconds, ns = struct.unpack("qq", extra[0][2])
            out.write(struct.pack("<IIII", seconds, ns, len(frame), len(frame)) + frame)
    if sys.stdin in ready:
        break
for _, out in sockets:
    out.close()
"""
_UDP_ECHO = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", {UDP_PORT}))
while True:
    data, client = s.recvfrom(65535)
    s.sendto(data, client)
"""
_UDP_ASK = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.connect((sys.argv[1], int(sys.argv[2])))
for size in map(int, sys.argv[3:]):
    try:
        s.send(bytes(i * 7 % 251 for i in range(size)))
        s.recv(65535)
    except OSError:
        pass
"""
_DNS_ASK = """
import socket, struct, sys
for i, name in enumerate(("files", "nobody", "files")):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(3)
    q = struct.pack("!HHHHHH", i, 0x100, 1, 0, 0, 0) + bytes([len(name)]) + name.encode()
    s.sendto(q + b"\\x07example\\0\\0\\1\\0\\1", (sys.argv[1], 53))
    s.recv(1500)
"""


@contextlib.contextmanager
def recorded(world: World, name: str) -> Iterator[None]:
    """Records both sides for a while."""
    recorder = subprocess.Popen(
        [*world.lab.router.enter(), "python3", "-S", "-c", _RECORDER, str(HERE / name)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert recorder.stdout is not None and recorder.stdin is not None
    assert recorder.stdout.readline() == "ready\n"
    yield
    time.sleep(0.3)  # the last answers
    recorder.stdin.close()
    recorder.wait(10)
    recorder.stdout.close()


def pings(world: World) -> None:
    """Whole ones, fragments, and one whose TTL ends at the gateway."""
    for address, sizes in ((INTERNET, (0, 56, 1472, 1473, 3200)), (INTERNET6, (0, 56, 1453))):
        for size in sizes:
            world.home("ping", "-n", "-c", "2", "-i", "0.02", "-W", "3", "-s", str(size), address)
    world.home("ping", "-n", "-c", "1", "-t", "1", "-W", "1", INTERNET, is_good=False)


def datagrams(world: World) -> None:
    """Echoed ones, long ones in fragments, and some that nobody wants: ICMP errors come back."""
    world.lab.hosts["internet"].start("python3", "-S", "-c", _UDP_ECHO)
    wait_listening(world.lab.hosts["internet"], UDP_PORT, "udp")
    sizes = ("0", "1", "1472", "1473", "4000")
    world.home("python3", "-S", "-c", _UDP_ASK, INTERNET, str(UDP_PORT), *sizes)
    world.home("python3", "-S", "-c", _UDP_ASK, INTERNET, "9", "5", "30")


def web(world: World, folder: Path) -> None:
    """Three downloads, one of them of nothing; what the rules deny; what nobody asked for."""
    (folder / "page").write_bytes(os.urandom(9000))
    internet = world.lab.hosts["internet"]
    internet.start("python3", "-m", "http.server", "8080", "--directory", str(folder))
    wait_listening(internet, 8080)
    for page in ("page", "none", "page"):
        world.home("curl", "-sS", "-o", "/dev/null", f"http://{INTERNET}:8080/{page}")
    world.home("curl", "-sS", "--max-time", "1", f"http://{INTERNET}:445/", is_good=False)
    internet.run("curl", "-sS", "--max-time", "1", f"http://{OUTSIDE}:7000/", is_good=False)


def file_transfer(world: World, folder: Path) -> None:
    """FTP in passive mode: a connection for words, another for the file."""
    (folder / "file").write_bytes(os.urandom(9000))
    world.service("internet", "ftp", "2121", str(folder / "file"))
    target = str(folder / "copy")
    world.home("python3", "-S", SERVICES, "fetch", INTERNET, "2121", target)


def names(world: World) -> None:
    """A name that is known, one that is not."""
    world.service("internet", "dns", "53", f"files.example={INTERNET}")
    world.home("python3", "-S", "-c", _DNS_ASK, INTERNET)


def main() -> None:
    """Records everything."""
    with tempfile.TemporaryDirectory(prefix="bpr") as name:
        folder = Path(name)
        lab: Lab = home_hosts()
        commands = Commands(folder, lab.router)
        world = World(lab, commands)
        try:
            commands.good("start", "home_gateway", "lan=lan0", "wan=wan0")
            with recorded(world, "ping"):
                pings(world)
            with recorded(world, "udp"):
                datagrams(world)
            with recorded(world, "http"):
                web(world, folder)
            with recorded(world, "ftp"):
                file_transfer(world, folder)
            with recorded(world, "dns"):
                names(world)
            commands.stop("home_gateway")
        finally:
            commands.kill_all()
            lab.close()


if __name__ == "__main__":
    main()
