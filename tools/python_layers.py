# SPDX-License-Identifier: BSD-3-Clause
"""python_layers.py - which package of python/batchplane may import which: the Python table of
check_layers.py, and the C++ folders that the extension may include."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "batchplane"
FOLDER = f"python/{PACKAGE}"
TABLE = "MAY_IMPORT in tools/python_layers.py"

# Package under python/batchplane -> packages that it may import besides itself; imports inside of
# functions and for types count too. Shared code goes down. Files in the folder itself are the
# project's public face: they may import anything, and nothing imports them.
MAY_IMPORT: dict[str, set[str]] = {
    "base": set(),
    "traces": {"base"},
    "demo": {"base", "lang", "daemon"},
    "lang": {"base"},
    "native": {"base", "lang"},
    "costs": {"base", "native"},
    "egress": {"base", "native"},
    "placement": {"base", "native"},
    "slo": {"base", "native", "costs"},
    "daemon": {"base", "lang"},
    "profile": {"base", "lang", "daemon", "costs"},
    "show": {"base", "daemon"},
    "control": {"base", "daemon", "costs"},
    "changes": {"base", "lang", "daemon", "control"},
    "routes": {"base", "lang", "daemon", "traces"},
    "admission": {"base", "lang", "daemon", "native", "costs", "changes", "routes"},
    "sim": {
        *("base", "lang", "daemon", "traces", "costs", "show", "control", "changes"),
        *("native", "routes", "admission"),
    },
    "plots": {"base", "show", "sim"},
    "plan": {"base", "lang", "costs", "show", "native", "sim", "plots"},
}
_ALL = set(MAY_IMPORT)
MAY_IMPORT["commands"] = _ALL
MAY_IMPORT["compare"] = _ALL | {"commands"}
MAY_IMPORT["experiments"] = _ALL | {"commands"}
MAY_IMPORT["cli"] = _ALL | {"commands", "compare", "experiments"}

# Python modules that would load the engine into the client's process.
ENGINE_IMPORTS = {"ctypes", "cffi", "_cffi_backend"}
# The extension: simulator, controllers and their base; never the engine.
EXTENSION_FILES = re.compile(rf"{FOLDER}/native/[a-z_]+\.(h|cc)")
EXTENSION_INCLUDES = {"base", "exec", "egress", "placement", "spec", "telemetry", "slo", "sim"}
EXTENSION_NAME = "_native"
EXTENSION_LOADER = f"{FOLDER}/native/loader.py"


def check_extension(
    root: Path, include: re.Pattern[str], standard: re.Pattern[str]
) -> Iterator[str]:
    """Yields violations of the C++ files below python/."""
    for path in sorted((root / "python").rglob("*")):
        if path.suffix not in {".h", ".cc", ".inl"}:
            continue
        relative = path.relative_to(root).as_posix()
        if not EXTENSION_FILES.fullmatch(relative):
            yield f"{relative}:1: C++ for Python stands in {FOLDER}/native"
            continue
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if (match := include.match(text)) is None:
                continue
            is_system, name = match[1] == "<", match[2]
            if is_system and not name.startswith("nanobind/") and not standard.fullmatch(name):
                yield f"{relative}:{line}: <{name}>: the extension needs C++ and nanobind only"
            elif not is_system and "/" in name and name.split("/")[0] not in EXTENSION_INCLUDES:
                allowed = ", ".join(sorted(EXTENSION_INCLUDES))
                yield f'{relative}:{line}: "{name}": the extension may include {allowed}'


def imports_of(root: Path, path: Path) -> Iterator[tuple[int, str]]:
    """Yields line and full dotted name of everything that a file imports, at any place."""
    package = path.relative_to(root / "python").parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            start = ".".join((*above, *([node.module] if node.module else [])))
            yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)


def file_of(root: Path, name: str) -> Path | None:
    """The project's file for a dotted name, or None; the last part may be a name in the file."""
    for dotted in (name, name.rpartition(".")[0]):
        path = root / "python" / dotted.replace(".", "/")
        if path.with_suffix(".py").is_file():
            return path.with_suffix(".py")
    # Names that the package itself defines.
    package = root / "python" / name.rpartition(".")[0].replace(".", "/") / "__init__.py"
    return package if package.is_file() else None


def check_import(relative: str, name: str) -> str | None:
    """The violation in importing `name`, or None."""
    parts = name.split(".")
    if parts[0] in ENGINE_IMPORTS:
        return f"{name}: Python talks to the daemon and loads the extension, never the engine"
    if EXTENSION_NAME in parts and relative != EXTENSION_LOADER:
        return f"{name}: ask native/loader.py for the extension"
    room = relative.removeprefix(f"{FOLDER}/").rpartition("/")[0].partition("/")[0]
    if parts[0] != PACKAGE or room not in MAY_IMPORT or parts[1:2] == [room]:
        return None
    if len(parts) < 2 or parts[1] not in MAY_IMPORT:
        return f"{name}: what stands in {FOLDER} itself is imported by none of its packages"
    if parts[1] in MAY_IMPORT[room]:
        return None
    names = ", ".join(sorted(MAY_IMPORT[room])) or "none of the others"
    return f"{name}: {room} may import {names}; move down what is shared; see {TABLE}"


def check_packages(root: Path) -> Iterator[str]:
    """Yields the violations of all Python files below python/, and import cycles."""
    yield from circles(MAY_IMPORT, "tools/python_layers.py:1: {} leads back to itself: {}")
    graph: dict[str, set[str]] = {}
    for path in sorted((root / "python").rglob("*.py")):
        relative = path.relative_to(root).as_posix()
        folders = relative.removeprefix(f"{FOLDER}/").split("/")[:-1]
        if folders and folders[0] not in MAY_IMPORT:
            yield f"{relative}:1: package {folders[0]} is not in {TABLE}"
            continue
        graph[relative] = set()
        told: set[str] = set()
        for line, name in imports_of(root, path):
            breach = check_import(relative, name)
            # For several names from one file, the first is reported.
            file = file_of(root, name) or name.rpartition(".")[0] or name
            if breach is not None and f"{line}{file}" not in told:
                told.add(f"{line}{file}")
                yield f"{relative}:{line}: {breach}"
            if isinstance(file, Path):
                graph[relative].add(file.relative_to(root).as_posix())
    yield from circles(graph, "{}:1: its imports lead back to it: {}")


def circles(graph: dict[str, set[str]], words: str) -> Iterator[str]:
    """Yields each cycle once, at its first name, with the whole path."""
    told: set[str] = set()
    for start in sorted(graph):
        way = way_back(graph, start)
        if way and told.isdisjoint(way):
            told.update(way)
            yield words.format(start, " -> ".join([*way, start]))


def way_back(graph: dict[str, set[str]], start: str) -> list[str]:
    """A shortest path from a name back to itself, without its end; empty if there is none."""
    came_from: dict[str, str] = {}
    todo = [start]
    for name in todo:
        for below in sorted(graph.get(name, set())):
            if below == start:
                way = [name]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if below not in came_from:
                came_from[below] = name
                todo.append(below)
    return []
