#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""build_progress.py - shows ninja's progress: a bar on a terminal, otherwise a line every few
seconds.

usage: NINJA_STATUS="$(build_progress.py --status)" ninja ... | build_progress.py
The output of compilers passes through unchanged.
"""

from __future__ import annotations

import os
import re
import select
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

STATUS = "@%f/%t@ "
_STATUS_LINE = re.compile(r"@(\d+)/(\d+)@ ")
LINE_EVERY_S = 5.0
_BAR_EVERY_S = 0.5
_BAR_CHARS = 30


@dataclass
class Progress:
    """The number of finished files, and the start time."""

    done: int = 0
    total: int = 0
    started_s: float = 0.0

    def text(self, now_s: float) -> str:
        """Files done, elapsed time, and the time left at the same pace."""
        took_s = now_s - self.started_s
        text = f"{self.done} of {self.total} files, {clock(took_s)}"
        if 0 < self.done < self.total:
            left_s = took_s * (self.total - self.done) / self.done
            text += f", about {clock(left_s)} left"
        return text

    def bar(self, now_s: float) -> str:
        """The text with a bar in front."""
        filled = _BAR_CHARS * self.done // max(self.total, 1)
        return f"[{'#' * filled}{'.' * (_BAR_CHARS - filled)}] {self.text(now_s)}"


def clock(seconds: float) -> str:
    """1:05 for 65 s."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"


class Display:
    """Turns ninja's lines and the passing of time into output."""

    def __init__(self, is_terminal: bool, now_s: float) -> None:
        self._is_terminal = is_terminal
        self._progress = Progress(started_s=now_s)
        self._shown_s = now_s

    def line(self, line: str) -> str:
        """The output for a line of ninja's."""
        if match := _STATUS_LINE.match(line):
            self._progress.done, self._progress.total = int(match[1]), int(match[2])
            return ""
        if line.startswith(("ninja: no work to do", "ninja: Entering directory")):
            return ""
        return ("\r\x1b[K" if self._is_terminal else "") + line + "\n"

    def tick(self, now_s: float) -> str:
        """The progress to show now, if it is due."""
        every_s = _BAR_EVERY_S if self._is_terminal else LINE_EVERY_S
        if self._progress.total == 0 or now_s - self._shown_s < every_s:
            return ""
        self._shown_s = now_s
        if self._is_terminal:
            return f"\r\x1b[Kbuild: {self._progress.bar(now_s)}"
        return f"build: {self._progress.text(now_s)}\n"

    def end(self, now_s: float) -> str:
        """The last line; empty if nothing was built."""
        if self._progress.done == 0:
            return ""
        head = "\r\x1b[K" if self._is_terminal else ""
        return f"{head}build: {self._progress.text(now_s)}\n"


def lines_and_ticks(fd: int) -> Iterator[str | None]:
    """Whole lines as they come; None after half a second without one."""
    rest = b""
    while True:
        if not select.select([fd], [], [], _BAR_EVERY_S)[0]:
            yield None
            continue
        data = os.read(fd, 65536)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
    if rest:
        yield rest.decode(errors="replace")


def main() -> int:
    """Entry point."""
    if sys.argv[1:] == ["--status"]:
        print(STATUS)
        return 0
    display = Display(sys.stdout.isatty(), time.monotonic())
    for line in lines_and_ticks(sys.stdin.fileno()):
        text = display.line(line) if line is not None else ""
        sys.stdout.write(text + display.tick(time.monotonic()))
        sys.stdout.flush()
    sys.stdout.write(display.end(time.monotonic()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
