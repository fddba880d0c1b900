# SPDX-License-Identifier: BSD-3-Clause
"""services.py - servers and clients that tests run inside hosts: echo, FTP (passive), DNS.

python3 services.py echo PORT | ftp PORT FILE | dns PORT NAME=ADDRESS   servers, until killed
python3 services.py connect ADDRESS PORT COUNT BYTES     COUNT connections at once, echoed whole
python3 services.py hold ADDRESS PORT                    one connection; echoes a line per line
                                                         of standard input
python3 services.py fetch ADDRESS PORT FILE              passive FTP
"""

from __future__ import annotations

import asyncio
import contextlib
import ftplib
import os
import socket
import struct
import sys
from pathlib import Path


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


async def _serve(handler: object, port: int) -> None:
    server = await asyncio.start_server(handler, None, port, backlog=512)  # type: ignore[arg-type]
    await server.serve_forever()


async def _connect_once(address: str, port: int, n_bytes: int) -> bool:
    reader, writer = await asyncio.open_connection(address, port)
    sent = os.urandom(n_bytes)

    async def send() -> None:
        writer.write(sent)
        await writer.drain()

    got, _ = await asyncio.gather(reader.readexactly(n_bytes), send())
    writer.close()
    await writer.wait_closed()
    return got == sent


async def _connect(address: str, port: int, count: int, n_bytes: int) -> None:
    results = await asyncio.gather(*[_connect_once(address, port, n_bytes) for _ in range(count)])
    print(f"{sum(results)} of {count} connections echoed {n_bytes} bytes")


def _hold(address: str, port: int) -> None:
    with socket.create_connection((address, port), timeout=20) as connection:
        file = connection.makefile("rwb", buffering=0)
        for line in sys.stdin.buffer:
            file.write(line)
            print(file.readline().decode().rstrip(), flush=True)


class _Ftp:
    """As much of RFC 959 and 2428 as a passive download needs."""

    def __init__(self, path: Path) -> None:
        self._content = path.read_bytes()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
        listener: asyncio.Server | None = None
        own = writer.get_extra_info("sockname")[0]

        def say(text: str) -> None:
            writer.write(f"{text}\r\n".encode())

        say("220 ready")
        while line := (await reader.readline()).decode().strip():
            word = line.split()[0].upper()
            if word in ("EPSV", "PASV"):
                listener = await asyncio.start_server(lambda _, w: data.put_nowait(w), own, 0)
                port = listener.sockets[0].getsockname()[1]
                numbers = f"{own.replace('.', ',')},{port >> 8},{port & 255}"
                say(f"229 ok (|||{port}|)" if word == "EPSV" else f"227 ok ({numbers})")
            elif word == "RETR":
                say("150 here it comes")
                out = await data.get()
                out.write(self._content)
                await out.drain()
                out.close()
                say("226 done")
                if listener is not None:
                    listener.close()
            elif word == "QUIT":
                say("221 bye")
                break
            else:
                say("331 go on" if word == "USER" else "230 ok" if word == "PASS" else "200 ok")
        writer.close()


def _fetch(address: str, port: int, file: str) -> None:
    with ftplib.FTP() as ftp, open(file, "wb") as out:
        ftp.connect(address, port, timeout=20)
        ftp.login()
        ftp.retrbinary("RETR file", out.write)
        ftp.quit()


def _dns(port: int, name: str, address: str) -> None:
    """Answers A questions for one name; anything else does not exist."""
    wanted = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("", port))
        while True:
            question, client = server.recvfrom(1500)
            end = question.index(b"\0", 12) + 5
            is_ours = question[12 : end - 4] == wanted and question[end - 4 : end - 2] == b"\0\1"
            header = question[:2] + struct.pack(
                "!HHHHH", 0x8180 if is_ours else 0x8183, 1, int(is_ours), 0, 0
            )
            answer = b"\xc0\x0c\0\1\0\1" + struct.pack("!IH", 60, 4) + socket.inet_aton(address)
            server.sendto(header + question[12:end] + (answer if is_ours else b""), client)


def main(words: list[str]) -> None:
    """Runs the service that the first word names."""
    match words:
        case ["echo", port]:
            asyncio.run(_serve(_echo, int(port)))
        case ["ftp", port, file]:
            asyncio.run(_serve(_Ftp(Path(file)), int(port)))
        case ["dns", port, binding]:
            _dns(int(port), *binding.split("="))
        case ["connect", address, port, count, n_bytes]:
            asyncio.run(_connect(address, int(port), int(count), int(n_bytes)))
        case ["hold", address, port]:
            _hold(address, int(port))
        case ["fetch", address, port, file]:
            _fetch(address, int(port), file)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
