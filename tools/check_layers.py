#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_layers.py - who may include whom: one table, checked against every #include and import.

usage: check_layers.py [ROOT]     prints one line per breach; exit code 1 when there is one
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Folder under src/ -> folders that it may include besides itself. What is shared goes down, not
# sideways: modules, ports and traffic never include each other.
MAY_INCLUDE: dict[str, set[str]] = {
    "base": set(),
    "exec": {"base"},
    "report": {"base", "exec"},
    "spec": {"base", "exec"},
    "slo": {"base", "exec"},
    "sim": {"base", "exec", "report", "spec", "slo"},
    "core": {"base", "exec", "spec"},
    "modules": {"base", "exec", "spec", "core"},
    "ports": {"base", "exec", "spec", "core"},
    "traffic": {"base", "exec", "spec", "core"},
    "profile": {"base", "exec", "spec", "core", "ports", "traffic"},
    "app": {
        *("base", "exec", "report", "spec", "slo"),
        *("core", "modules", "ports", "traffic", "profile"),
    },
}

# System headers beyond C++'s and POSIX's own, by pattern, and the files that may name them.
RESTRICTED: list[tuple[str, str, str]] = [
    (
        r"rte_.*",
        r"core/(packet|thread)[a-z_]*\.(h|cc)|[a-z]+/[a-z0-9_]*dpdk[a-z0-9_]*\.(h|cc)|app/.*",
        "DPDK belongs in core/packet* and thread*, in files with dpdk in their name, and in app",
    ),
    (r"nlohmann/.*", r"app/.*", "JSON stays in app"),
    (r"CLI/.*", r"app/.*", "the command line stays in app"),
    (
        r"pcap.*",
        r"ports/.*|traffic/.*|app/.*|modules/[a-z_]*pcap[a-z_]*\.(h|cc)",
        "libpcap belongs in ports, traffic, app and modules named after it",
    ),
    (
        r"sys/(socket|un)\.h",
        r"ports/.*|traffic/.*|app/.*|modules/kernel_tap\.cc",
        "sockets belong in ports and app",
    ),
    (r"Python\.h|nanobind/.*", r"$^", "Python is met in python/batchplane/native*.cc only"),
    (r"gtest/.*|gmock/.*", r".*_test(_util)?\.(h|cc)", "GoogleTest is for tests"),
    (r"benchmark/.*", r".*_bench\.cc", "google-benchmark is for benchmarks"),
]
# Anything else must look like a C++ standard header (no dot), a C or POSIX one, or intrinsics.
STANDARD = re.compile(
    r"[a-z0-9_]+|(sys|net|netinet|arpa|linux|sanitizer)/[a-z0-9_]+\.h|[a-z0-9]+intrin\.h|cpuid\.h|"
    r"(pthread|sched|unistd|fcntl|poll|time|signal|errno|dirent|dlfcn|ifaddrs|pwd|spawn|string|"
    r"stdlib|stdio|math|limits|getopt|syslog|malloc|byteswap|endian|elf)\.h"
)

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]')
REGISTERS = re.compile(r"\bRegister<")
IS_TEST = re.compile(r"_(test|bench)\.cc$|_test_util\.(h|cc)$")
# Python modules that would bring the engine into the client's process.
ENGINE_IMPORTS = {"ctypes", "cffi", "_cffi_backend"}
# The extension for Python: simulator and controllers, and what they stand on; never the engine.
EXTENSION_FILES = re.compile(r"python/batchplane/native[a-z_]*\.(h|cc)")
EXTENSION_INCLUDES = {"base", "exec", "spec", "report", "slo", "sim"}
EXTENSION_NAME = "_native"
EXTENSION_LOADER = "python/batchplane/native.py"


def includes_of(path: Path) -> Iterator[tuple[int, bool, str]]:
    """Yields line, whether in angle brackets, and the name of each include."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if match := INCLUDE.match(line):
            yield number, match[1] == "<", match[2]


def check_project_include(folder: str, name: str, is_test: bool) -> str | None:
    """The breach in including the project's own header `name`, or None."""
    target = name.split("/")[0]
    if "/" not in name:
        return None if is_test else f'"{name}": write the path from src/, as "{folder}/{name}"'
    if target not in MAY_INCLUDE:
        return None if is_test else f'"{name}" is no header of src/; use <...> for system headers'
    # A test may set up what its subject meets at run time, but app stays on top.
    allowed = set(MAY_INCLUDE) - {"app"} if is_test and folder != "base" else MAY_INCLUDE[folder]
    if target == folder or target in allowed:
        return None
    names = ", ".join(sorted(MAY_INCLUDE[folder])) or "the standard library only"
    return f'"{name}": {folder} may include {names}; move what is shared to core, exec or base'


def check_system_include(relative: str, name: str, is_test: bool) -> str | None:
    """The breach in including the system header `name`, or None."""
    for pattern, files, why in RESTRICTED:
        if re.fullmatch(pattern, name):
            is_free = is_test and not name.startswith(("CLI/", "Python", "nanobind"))
            return None if is_free or re.fullmatch(files, relative) else f"<{name}>: {why}"
    if STANDARD.fullmatch(name):
        return None
    return f"<{name}>: not on the list of headers; add it to tools/check_layers.py where it belongs"


def check_source(root: Path, path: Path) -> Iterator[str]:
    """Yields the breaches of one C++ file."""
    relative = path.relative_to(root / "src").as_posix()
    folder = relative.split("/")[0]
    if folder not in MAY_INCLUDE:
        yield f"src/{relative}:1: folder {folder} is not in the table of tools/check_layers.py"
        return
    is_test = IS_TEST.search(relative) is not None
    for line, is_system, name in includes_of(path):
        if is_system:
            breach = check_system_include(relative, name, is_test)
        else:
            breach = check_project_include(folder, name, is_test)
        if breach is not None:
            yield f"src/{relative}:{line}: {breach}"


def check_module_files(root: Path) -> Iterator[str]:
    """Yields files of src/modules that are neither a module nor part of a helper with a header."""
    for path in sorted((root / "src" / "modules").glob("*.cc")):
        if IS_TEST.search(path.name) or REGISTERS.search(path.read_text(encoding="utf-8")):
            continue
        if not any(name.startswith("modules/") for _, _, name in includes_of(path)):
            yield (
                f"src/modules/{path.name}:1: registers no module kind and includes no header of "
                "src/modules; add its Register<...> line, or the header that it is a part of"
            )


def check_extension(root: Path) -> Iterator[str]:
    """Yields breaches of the C++ files below python/."""
    for path in sorted((root / "python").rglob("*")):
        if path.suffix not in {".h", ".cc", ".inl"}:
            continue
        relative = path.relative_to(root).as_posix()
        if not EXTENSION_FILES.fullmatch(relative):
            yield f"{relative}:1: C++ for Python stands in python/batchplane/native*.cc"
            continue
        for line, is_system, name in includes_of(path):
            target = name.split("/")[0]
            if is_system and not name.startswith("nanobind/") and not STANDARD.fullmatch(name):
                yield f"{relative}:{line}: <{name}>: the extension needs C++ and nanobind only"
            elif not is_system and "/" in name and target not in EXTENSION_INCLUDES:
                allowed = ", ".join(sorted(EXTENSION_INCLUDES))
                yield f'{relative}:{line}: "{name}": the extension may include {allowed}'


def check_python(root: Path) -> Iterator[str]:
    """Yields imports with which Python would load code past the extension and its loader."""
    for path in sorted((root / "python").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            line = getattr(node, "lineno", 0)
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                names = [node.module]
            for name in names:
                relative = path.relative_to(root).as_posix()
                if name.split(".")[0] in ENGINE_IMPORTS:
                    yield (
                        f"{relative}:{line}: {name}: Python talks to the daemon and loads the "
                        "extension, never the engine"
                    )
                elif name.split(".")[-1] == EXTENSION_NAME and relative != EXTENSION_LOADER:
                    yield f"{relative}:{line}: {name}: ask native.py for the extension"


def check_tree(root: Path) -> list[str]:
    """All breaches under `root`, in a stable order."""
    breaches: list[str] = []
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in {".h", ".cc", ".inl"}:
            breaches += check_source(root, path)
    breaches += check_module_files(root)
    breaches += check_extension(root)
    breaches += check_python(root)
    return breaches


def main() -> int:
    """Prints the breaches."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    breaches = check_tree(root)
    for breach in breaches:
        print(breach)
    print(f"layers: {len(breaches)} breaches" if breaches else "layers: good")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
