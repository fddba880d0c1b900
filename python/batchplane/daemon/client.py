# SPDX-License-Identifier: BSD-3-Clause
"""client.py - talks to a running daemon over its socket: one request, one answer, one line each."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ..base.problems import BadInput, BatchplaneError, Problem, RunFailed

VERSION = 1
MAX_LINE_BYTES = 1 << 20
_CHUNK_BYTES = 512 * 1024


class DaemonError(BatchplaneError):
    """The daemon refused a request; contains every error that it reported."""

    def __init__(self, cmd: str, problems: list[Problem]):
        self.cmd = cmd
        self.problems = problems or [Problem("refused without a reason")]
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        return [problem.line() for problem in self.problems]


class ConnectionLost(RunFailed):
    """The daemon is not running, or closed the connection."""


class AnswerTimeout(RunFailed):
    """The daemon did not answer in time."""


class Client:
    """One connection to a daemon; a context manager. Not for use by several threads at once."""

    def __init__(
        self, path: Path, timeout_s: float = 5.0, now: Callable[[], float] = time.monotonic
    ):
        self._path = path
        self._timeout_s = timeout_s
        self._now = now
        self._last_id = 0
        self._received = bytearray()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(str(path))
        except PermissionError as error:
            self._socket.close()
            raise ConnectionLost(
                f"{path} belongs to another user", "run as that user or as root"
            ) from error
        except OSError as error:
            self._socket.close()
            raise ConnectionLost(
                f"no daemon answers at {path}: {error.strerror or error}", "batchplane list"
            ) from error

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; the daemon keeps running."""
        self._socket.close()

    def request(self, cmd: str, timeout_s: float | None = None, **args: Any) -> Any:
        """Sends one request and returns its result.

        Raises DaemonError if it is refused, AnswerTimeout, or ConnectionLost.
        """
        self._last_id += 1
        line = (
            json.dumps(
                {"v": VERSION, "id": self._last_id, "cmd": cmd, "args": args}, separators=(",", ":")
            ).encode()
            + b"\n"
        )
        if len(line) > MAX_LINE_BYTES:
            raise RunFailed(
                f"the request '{cmd}' is {len(line)} bytes, more than {MAX_LINE_BYTES}",
                "send tables with --file",
            )
        deadline = self._now() + (timeout_s or self._timeout_s)
        try:
            self._socket.settimeout(max(deadline - self._now(), 0.001))
            # If the daemon closes during a request, it has sent the reason before: read that.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._socket.sendall(line)
            answer = self._answer(deadline)
        except TimeoutError as error:
            raise AnswerTimeout(
                f"the daemon did not answer '{cmd}' within {timeout_s or self._timeout_s:g} s",
                f"check its log: {self._path.with_suffix('.log')}",
            ) from error
        except OSError as error:
            raise ConnectionLost(
                f"the daemon went away during '{cmd}': {error.strerror or error}",
                f"check its log: {self._path.with_suffix('.log')}",
            ) from error
        if not answer.get("ok"):
            # Loaded here, as it imports the whole language package.
            from ..lang.check import daemon_problem

            raise DaemonError(cmd, [daemon_problem(error) for error in answer.get("errors", [])])
        return answer.get("result")

    def _answer(self, deadline: float) -> dict[str, Any]:
        """The answer to the last request; late answers to earlier ones are skipped."""
        while True:
            answer = self._parsed(self._line(deadline))
            if answer.get("id") == self._last_id:
                return answer
            if not isinstance(answer.get("id"), int):
                return answer  # the daemon could not parse the request

    def _line(self, deadline: float) -> bytes:
        while (end := self._received.find(b"\n")) < 0:
            remaining_s = deadline - self._now()
            if remaining_s <= 0:
                raise TimeoutError
            self._socket.settimeout(remaining_s)
            received = self._socket.recv(1 << 16)
            if not received:
                raise ConnectionLost(
                    "the daemon closed the connection",
                    f"check its log: {self._path.with_suffix('.log')}",
                )
            self._received += received
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    @staticmethod
    def _parsed(line: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise RunFailed(
                "the daemon's answer is not valid JSON",
                "daemon and command line have different versions: make build",
            ) from error
        if not isinstance(answer, dict):
            raise RunFailed("the daemon answered something unexpected")
        return answer

    # --- commands -------------------------------------------------------------------------------

    def hello(self) -> dict[str, Any]:
        """Version, name, uptime and facts. Raises RunFailed for another protocol version."""
        result: dict[str, Any] = self.request("hello")
        if result.get("version") != VERSION:
            raise RunFailed(
                f"the daemon speaks version {result.get('version')} of the protocol, not {VERSION}",
                "build both from one commit: make build",
            )
        return result

    def show(self, what: str, **args: Any) -> Any:
        """An answer of `show`: runtime, buffers, flows, drops, ports, tables, graph, slo, all,
        ..."""
        return self.request("show", what=what, **args)

    def set(self, sets: list[dict[str, Any]]) -> None:
        """Applies all changes in one step, or none."""
        if len(sets) == 1:
            self.request("set", **sets[0])
        else:
            self.request("set", what="many", sets=sets)

    def module(self, module: str, verb: str, args: dict[str, Any] | None = None) -> Any:
        """Sends a module's own command, such as a table edit."""
        return self.request("module", module=module, verb=verb, args=args or {})

    def bulk(self, module: str, verb: str, items: Iterable[Any]) -> int:
        """Sends a large table in pieces, which take effect together at the end. Returns the
        count."""
        return int(self.bulk_told(module, verb, items)["count"])

    def bulk_told(self, module: str, verb: str, items: Iterable[Any]) -> dict[str, Any]:
        """Like bulk(), but returns the count and, under `answer`, the module's answer."""
        token = self.request("bulk", phase="begin", module=module, verb=verb)["token"]
        try:
            for piece in _pieces(items):
                self.request("bulk", phase="append", token=token, items=piece)
        except BatchplaneError:
            self.request("bulk", phase="abort", token=token)
            raise
        told: dict[str, Any] = self.request("bulk", timeout_s=60, phase="commit", token=token)
        return told

    def bulk_file(self, module: str, verb: str, path: Path) -> int:
        """Makes the daemon read a table from a file. Returns the count."""
        return int(self.bulk_file_told(module, verb, path)["count"])

    def bulk_file_told(self, module: str, verb: str, path: Path) -> dict[str, Any]:
        """Like bulk_file(), but returns the count and, under `answer`, the module's answer."""
        told: dict[str, Any] = self.request(
            "bulk", timeout_s=60, phase="file", module=module, verb=verb, path=str(path.resolve())
        )
        return told

    def apply(self, pipeline: dict[str, Any], dry_run: bool = False) -> dict[str, Any]:
        """Switches the running pipeline to this one, in one step or not at all."""
        result: dict[str, Any] = self.request(
            "apply", timeout_s=60, pipeline=pipeline, dry_run=dry_run
        )
        return result

    def move(self, parts: Mapping[str, str]) -> dict[str, Any]:
        """Moves modules, each with the modules that only it feeds, to workers; all or none."""
        rows = [{"module": module, "worker": worker} for module, worker in parts.items()]
        result: dict[str, Any] = self.request("move", timeout_s=60, parts=rows)
        return result

    def save(self) -> dict[str, Any]:
        """The running pipeline as canonical JSON, live changes included."""
        result: dict[str, Any] = self.request("save")
        return result

    def trace(
        self, count: int, filter_text: str = "", timeout_ns: int = 2_000_000_000
    ) -> list[dict[str, Any]]:
        """Traces up to `count` packets that match a tcpdump expression."""
        result = self.request(
            "trace",
            timeout_s=timeout_ns / 1e9 + 3,
            count=count,
            filter=filter_text,
            timeout_ns=timeout_ns,
        )
        packets: list[dict[str, Any]] = result["packets"]
        return packets

    def stop(self) -> dict[str, Any]:
        """Stops the daemon and returns its final report."""
        result = self.request("stop", timeout_s=20)
        report: dict[str, Any] = (result or {}).get("report") or {}
        return report


def _pieces(items: Iterable[Any]) -> Iterable[list[Any]]:
    piece: list[Any] = []
    size_bytes = 0
    for item in items:
        length = len(json.dumps(item)) + 1
        if piece and size_bytes + length > _CHUNK_BYTES:
            yield piece
            piece, size_bytes = [], 0
        piece.append(item)
        size_bytes += length
    if piece:
        yield piece


@contextlib.contextmanager
def told_as_input() -> Iterator[None]:
    """Turns the daemon's refusals into BadInput: names and ranges are the user's mistakes."""
    try:
        yield
    except DaemonError as error:
        raise BadInput(error.problems) from error
