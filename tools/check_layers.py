#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_layers.py - which folder may include which: a table, checked against every #include and
import.

usage: check_layers.py [ROOT]     prints one line per violation; exit code 1 if there is one
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import check_literals
import python_layers

# Folder under src/ -> folders that it may include besides itself. Shared code goes down, not
# sideways: modules, ports and traffic never include each other.
MAY_INCLUDE: dict[str, set[str]] = {
    "base": set(),
    "exec": {"base"},
    "telemetry": {"base", "exec", "slo"},
    "spec": {"base", "exec"},
    "slo": {"base", "exec"},
    "egress": {"base"},
    "placement": {"base"},  # which applications run on which devices
    "offload": {"base", "exec", "spec", "core", "placement"},  # and devices that process batches
    "sim": {"base", "exec", "telemetry", "spec", "slo", "egress", "placement"},
    "core": {"base", "exec", "spec"},
    "modules": {"base", "exec", "egress", "spec", "core"},
    "ports": {"base", "exec", "spec", "core"},
    "traffic": {"base", "exec", "spec", "core"},
    "profile": {"base", "exec", "spec", "core", "ports", "traffic", "offload"},
    "app": {
        *("base", "exec", "telemetry", "spec", "slo"),
        *("core", "modules", "ports", "traffic", "profile", "offload", "placement"),
    },
}

# Subfolders ("rooms") of a folder -> other rooms that they may include. Files in the folder itself
# combine the rooms (tests over all of them, the list of controllers); no room includes them.
ROOMS: dict[str, dict[str, set[str]]] = {
    "modules": {
        "headers": set(),
        "common": {"headers"},
        "basic": {"headers", "common"},
        "l2": {"headers", "common"},
        "policy": {"headers", "common"},
        "classify": {"headers", "common", "policy"},
        "egress": {"headers", "common", "policy", "classify", "tunnel"},
        "acl": {"headers", "common"},
        "balance": {"headers", "common"},
        "tap": {"headers", "common"},
        "nat": {"headers", "common"},
        "route": {"headers", "common"},
        "icmp": {"headers", "common", "route"},
        "neighbour": {"headers", "common", "route", "icmp"},
        "ip": {"headers", "common", "route", "neighbour"},
        "session": {"headers", "common", "nat"},
        "tunnel": {"headers", "common", "icmp", "session"},
        "esp": {"headers", "common"},
        "inspect": {"headers", "common"},
    },
    "core": {
        "packet": set(),
        "module": {"packet"},
        "graph": {"packet", "module"},
        "engine": {"packet", "module", "graph"},
    },
    "egress": {
        "discipline": set(),
        "arbiter": {"discipline", "aqm", "tree"},
        "tree": {"discipline", "aqm"},
        "aqm": {"discipline"},
        "bound": {"discipline", "tree"},
    },
    "offload": {
        "kernel": set(),
        "cuda": {"kernel"},
        "opencl": {"kernel"},
    },
    "app": {
        "wire": set(),
        "control": {"wire"},
        "plan": {"wire"},
        "runtime": {"wire", "control", "plan"},
        "start": {"wire", "control", "plan", "runtime"},
    },
    "slo": {
        "model": set(),
        "solver": {"model"},
        "papers": {"model"},
        "estimate": {"model"},
        "optimal": {"model", "solver", "estimate"},
        "cores": {"model"},
    },
}

# System headers beyond C++'s and POSIX's own, by pattern, and the files that may name them.
RESTRICTED: list[tuple[str, str, str]] = [
    (
        r"rte_.*",
        r"core/packet/.*|core/engine/thread\.h|[a-z/]+/[a-z0-9_]*dpdk[a-z0-9_]*\.(h|cc)|app/.*",
        "DPDK belongs in core/packet, core/engine/thread.h, files with dpdk in their name, and app",
    ),
    (r"nlohmann/.*", r"app/.*", "JSON stays in app"),
    (r"CLI/.*", r"app/.*", "the command line stays in app"),
    (
        r"pcap.*",
        r"ports/.*|traffic/.*|app/.*|modules/tap/[a-z_]*pcap[a-z_]*\.(h|cc)",
        "libpcap belongs in ports, traffic, app and modules named after it",
    ),
    (
        r"intel-ipsec-mb\.h",
        r"modules/[a-z]+/[a-z0-9_]*ipsec_mb[a-z0-9_]*\.(h|cc)|.*_bench\.cc",
        "libIPSec_MB belongs in files named after it",
    ),
    (
        r"hs/.*",
        r"modules/inspect/dpi_hyperscan\.cc",
        "Hyperscan belongs in the file named after it",
    ),
    (
        r"sys/(socket|un)\.h",
        r"ports/.*|traffic/.*|app/.*|modules/tap/kernel_tap\.cc",
        "sockets belong in ports and app",
    ),
    (r"Python\.h|nanobind/.*", r"$^", "Python is met in python/batchplane/native only"),
    (r"gtest/.*|gmock/.*", r".*_test(_util)?\.(h|cc)", "GoogleTest is for tests"),
    (r"benchmark/.*", r".*_bench\.cc", "google-benchmark is for benchmarks"),
]
# Any other name must look like a C++ standard header (no dot), a C or POSIX one, or intrinsics.
STANDARD = re.compile(
    r"[a-z0-9_]+|(sys|net|netinet|arpa|linux|sanitizer)/[a-z0-9_]+\.h|[a-z0-9]+intrin\.h|cpuid\.h|"
    r"(pthread|sched|unistd|fcntl|poll|time|signal|errno|dirent|dlfcn|ifaddrs|pwd|spawn|string|"
    r"stdlib|stdio|math|limits|getopt|syslog|malloc|byteswap|endian|elf)\.h"
)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]')
REGISTERS = re.compile(r"\bRegister<")
IS_TEST = re.compile(r"_(test|bench|cases)\.cc$|_test_util\.(h|cc)$")


def includes_of(path: Path) -> Iterator[tuple[int, bool, str]]:
    """Yields line number, whether in angle brackets, and name of each include."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if match := INCLUDE.match(line):
            yield number, match[1] == "<", match[2]


def check_room(folder: str, room: str, name: str) -> str | None:
    """The violation in including `name` of the same folder from its `room`, or None."""
    rooms = ROOMS.get(folder)
    target = name.split("/")[1] if name.count("/") > 1 else ""
    if rooms is None or room in ("", target):
        return None
    names = ", ".join(sorted(rooms.get(room, set()))) or "none of the others"
    if target in rooms.get(room, set()):
        return None
    return f'"{name}": {folder}/{room} may include {names}; see ROOMS in tools/check_layers.py'


def check_room_table() -> Iterator[str]:
    """Yields rooms in an include cycle, and names that are not in the table."""
    for folder, rooms in ROOMS.items():
        for room, below in rooms.items():
            seen: set[str] = set()
            todo = list(below)
            while todo:
                name = todo.pop()
                if name not in rooms:
                    yield f"tools/check_layers.py:1: {folder}/{room} may include {name}, no room"
                elif name not in seen:
                    seen.add(name)
                    todo += rooms[name]
            if room in seen:
                yield f"tools/check_layers.py:1: {folder}/{room} leads back to itself"


def check_project_include(folder: str, room: str, name: str, is_test: bool) -> str | None:
    """The violation in including the project's own header `name`, or None."""
    target = name.split("/")[0]
    if "/" not in name:
        return None if is_test else f'"{name}": write the path from src/, as "{folder}/{name}"'
    if target not in MAY_INCLUDE:
        return None if is_test else f'"{name}" is no header of src/; use <...> for system headers'
    if target == folder and not is_test and (breach := check_room(folder, room, name)):
        return breach
    # A test may include what its subject meets at run time, but not app.
    allowed = set(MAY_INCLUDE) - {"app"} if is_test and folder != "base" else MAY_INCLUDE[folder]
    if target == folder or target in allowed:
        return None
    names = ", ".join(sorted(MAY_INCLUDE[folder])) or "the standard library only"
    return f'"{name}": {folder} may include {names}; move what is shared to core, exec or base'


def check_system_include(relative: str, name: str, is_test: bool) -> str | None:
    """The violation in including the system header `name`, or None."""
    for pattern, files, why in RESTRICTED:
        if re.fullmatch(pattern, name):
            is_free = is_test and not name.startswith(("CLI/", "Python", "nanobind"))
            return None if is_free or re.fullmatch(files, relative) else f"<{name}>: {why}"
    if STANDARD.fullmatch(name):
        return None
    return f"<{name}>: not on the list of headers; add it to tools/check_layers.py where it belongs"


def check_source(root: Path, path: Path) -> Iterator[str]:
    """Yields the violations of one C++ file."""
    relative = path.relative_to(root / "src").as_posix()
    folder = relative.split("/")[0]
    if folder not in MAY_INCLUDE:
        yield f"src/{relative}:1: folder {folder} is not in the table of tools/check_layers.py"
        return
    room = relative.split("/")[1] if relative.count("/") > 1 else ""
    if room and room not in ROOMS.get(folder, {}):
        yield f"src/{relative}:1: room {folder}/{room} is not in ROOMS of tools/check_layers.py"
        return
    is_test = IS_TEST.search(relative) is not None
    for line, is_system, name in includes_of(path):
        if is_system:
            breach = check_system_include(relative, name, is_test)
        else:
            breach = check_project_include(folder, room, name, is_test)
        if breach is not None:
            yield f"src/{relative}:{line}: {breach}"


def check_module_files(root: Path) -> Iterator[str]:
    """Yields files of src/modules that are neither a module nor part of a helper with a header."""
    for path in sorted((root / "src" / "modules").rglob("*.cc")):
        if IS_TEST.search(path.name) or REGISTERS.search(path.read_text(encoding="utf-8")):
            continue
        if not any(name.startswith("modules/") for _, _, name in includes_of(path)):
            yield (
                f"{path.relative_to(root).as_posix()}:1: registers no module kind and "
                "includes no header of src/modules; add its Register<...> line, or the header "
                "that it is a part of"
            )


def check_tree(root: Path) -> list[str]:
    """All violations under `root`, in a stable order."""
    breaches: list[str] = list(check_room_table())
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in {".h", ".cc", ".inl"}:
            breaches += check_source(root, path)
    breaches += check_module_files(root)
    breaches += check_literals.bare_offsets(root)
    breaches += check_literals.named_kinds(root)
    breaches += python_layers.check_extension(root, INCLUDE, STANDARD)
    breaches += python_layers.check_packages(root)
    return breaches


def main() -> int:
    """Prints the violations."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    breaches = check_tree(root)
    for breach in breaches:
        print(breach)
    print(f"layers: {len(breaches)} breaches" if breaches else "layers: good")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
