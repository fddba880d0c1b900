# SPDX-License-Identifier: BSD-3-Clause
"""check_literals.py - finds numbers and names that must come from a declaration: header offsets,
kinds.

Tests and cases next to modules may use byte offsets: they are written against the standard, not
against the views.
"""

import re
from collections.abc import Iterator
from pathlib import Path

# Folders under src/ that read and write packets.
READ_PACKETS = ("core", "modules", "ports", "traffic", "profile", "app")
NOT_CHECKED = re.compile(r"_test(_\w+)?\.|_cases\.|_test_util\.")

_HEADER = r"(?:eth|frame|arp|ip|ip4|ip6|udp|tcp|icmp|icmp6|l3|l4|gtpu|vxlan|inner|outer)"
BARE_OFFSETS = (
    # A load or store at a numeric offset.
    re.compile(r"\b(?:load|store)(?:8|16|32|64)(?:_raw)?\([^;]*?\+ *\d+\b(?! *\*)"),
    # A byte of a header by its number, or data at a numeric offset from one.
    re.compile(rf"\b{_HEADER}(?:\.data\(\))? *(?:\[\d+\]|\+ \d)"),
    re.compile(r"\b(?:pkt|packet)(?:->|\.)data\(\)(?:\[\d+\]| \+ \d)"),
    # The field numbers, which only tests may use.
    re.compile(r"\bnet::kIp6?(?!v)[A-Z]\w+"),
)

# Folders that know kinds of modules and ports only by their declarations, not by name.
KNOW_NO_KINDS = ("base", "exec", "slo", "core", "spec", "telemetry", "sim", "profile", "app")
NAMED_KINDS = (
    re.compile(r"\bkind\b *(?:[=!]=|=) *\"\w+\""),
    re.compile(r"\bfind_(?:module|port)_kind\(\"\w+\"\)"),
    re.compile(r"\bmodule_spec\(\"\w+\", \"\w+\""),
)
MAY_NAME_KINDS = {
    "src/core/module/dead_end.cc": "a kind of the engine's own",
    "src/profile/loop_costs.cc": "makes the small pipelines by which the engine itself is timed",
    "src/profile/loop_rig.cc": "the same",
    "src/spec/parts.cc": "puts queues between tasks",
    # Pipelines can be simulated without the program that declares the kinds.
    "src/sim/device.cc": "the kind of device whose threads work side by side",
    "src/sim/graph.cc": "the kinds that move packets in another way than through",
    "src/sim/spec_source.cc": "the kind that makes packets",
}


def code_of(line: str) -> str:
    """The line without its comment."""
    return line.split("//", 1)[0]


def lines_with(
    root: Path, folders: tuple[str, ...], patterns: tuple[re.Pattern[str], ...]
) -> Iterator[tuple[str, int]]:
    """File and number of each line below src/ that matches a pattern, except in tests."""
    for folder in folders:
        for path in sorted((root / "src" / folder).rglob("*")):
            if path.suffix not in {".h", ".cc", ".inl"} or NOT_CHECKED.search(path.name):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if any(pattern.search(code_of(line)) for pattern in patterns):
                    yield path.relative_to(root).as_posix(), number


def bare_offsets(root: Path) -> Iterator[str]:
    """Lines that access a header by a number instead of a field of a view."""
    for file, number in lines_with(root, READ_PACKETS, BARE_OFFSETS):
        yield f"{file}:{number}: a bare offset: take a field of base/net_headers.h"


def named_kinds(root: Path) -> Iterator[str]:
    """Lines that test for a kind by name instead of by its declaration."""
    for file, number in lines_with(root, KNOW_NO_KINDS, NAMED_KINDS):
        if file not in MAY_NAME_KINDS:
            yield f"{file}:{number}: a kind by its name: ask what it declares (core/module/kind.h)"
