#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""lint_sizes.py - checks the length of files and functions, and the first two lines of files.

usage: lint_sizes.py [ROOT]
Notes files above 400 lines and functions above 60; fails at 600 and 80. Exceptions are below.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE_LINES_NOTED, FILE_LINES_MAX = 400, 600
FUNCTION_LINES_NOTED, FUNCTION_LINES_MAX = 60, 80
FOLDERS = ("src", "tests", "bench", "python", "tools")
LICENSE = "SPDX-License-Identifier: BSD-3-Clause"

# "path" or "path:function" -> why it may be long. Reasons are read in review.
ALLOWED: dict[str, str] = {
    "tests/python/snapshots.py:snapshot": "one literal: what a daemon answers, whole",
}

NO_FUNCTION = re.compile(
    r"\b(namespace|class|struct|enum|union|extern|concept|using|typedef|static_assert)\b|"
    r"^\s*(if|for|while|switch|do|else|return)\b"
)
NAME = re.compile(r"([~\w:]+|operator[^\s(]+)\s*\(")


@dataclass(frozen=True)
class Finding:
    """Something that is too long, or wrong at the top of a file."""

    where: str
    text: str
    is_error: bool


def strip_code(text: str) -> str:
    """Blanks comments, strings and characters, so that braces can be counted; keeps line breaks."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
        re.DOTALL,
    )
    return token.sub(lambda match: "\n" * match[0].count("\n"), text)


def is_function_head(head: str) -> bool:
    """Whether the text before a brace begins a function; ignores template arguments."""
    before = None
    while before != head:
        before, head = head, re.sub(r"<[^<>]*>", " ", head)
    return "(" in head and NO_FUNCTION.search(head) is None


def cpp_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Yields name, first line and number of lines of each C++ function body."""
    depth_of_function: int | None = None
    name, first, depth = "", 0, 0
    head: list[str] = []
    head_line = 0
    for number, line in enumerate(strip_code(text).splitlines(), start=1):
        if depth_of_function is None:
            if not head:
                head_line = number
            head.append(line)
            joined = " ".join(head)
            if "{" in line and is_function_head(joined.split("{")[0]):
                found = NAME.search(joined)
                name, first, depth_of_function = found[1] if found else "?", head_line, depth
            if re.search(r"[;{}:]\s*$", line) or not line.strip() or line.lstrip().startswith("#"):
                head = []
        depth += line.count("{") - line.count("}")
        if depth_of_function is not None and depth <= depth_of_function:
            yield name, first, number - first + 1
            depth_of_function = None
            head = []


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Yields name, first line and number of lines of each Python function."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def check_top(root: Path, relative: str, lines: list[str]) -> Iterator[Finding]:
    """Checks the licence line and, in C++, the sentence about the file (once for a pair)."""
    if LICENSE not in "\n".join(lines[:3]):
        yield Finding(f"{relative}:1", f"the first line has to be `{LICENSE}`", True)
    if relative.endswith((".cc", ".h", ".inl")):
        name = relative.rsplit("/", 1)[-1]
        header = re.sub(r"(_(dpdk|heap|avx2|avx512))?\.cc$", ".h", relative)
        has_header = header != relative and (root / header).exists()
        if not has_header and not "".join(lines[1:2]).startswith(f"// {name} - "):
            yield Finding(f"{relative}:2", f"has to begin `// {name} - what it is`", True)


def check_length(where: str, key: str, lines: int, noted: int, most: int) -> Iterator[Finding]:
    """Compares a length with its two limits."""
    if lines > noted and key not in ALLOWED:
        text = f"{lines} lines (try for {noted}, at most {most})"
        yield Finding(where, f"{text}: split it by idea", lines > most)


def check_file(root: Path, path: Path) -> Iterator[Finding]:
    """Yields the findings of one file."""
    relative = path.relative_to(root).as_posix()
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    if not lines:
        return
    yield from check_top(root, relative, lines)
    yield from check_length(f"{relative}:1", relative, len(lines), FILE_LINES_NOTED, FILE_LINES_MAX)
    functions = python_functions(text) if path.suffix == ".py" else cpp_functions(text)
    for name, first, count in functions:
        yield from check_length(
            f"{relative}:{first}: {name}",
            f"{relative}:{name}",
            count,
            FUNCTION_LINES_NOTED,
            FUNCTION_LINES_MAX,
        )


def check_tree(root: Path) -> list[Finding]:
    """All findings under `root`, in a stable order."""
    findings: list[Finding] = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".h", ".cc", ".inl", ".py"} and path.is_file():
                findings += check_file(root, path)
    return findings


def main() -> int:
    """Prints the findings; errors set the exit code."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    findings = check_tree(root)
    for finding in findings:
        print(f"{finding.where}: {'error' if finding.is_error else 'note'}: {finding.text}")
    n_errors = sum(finding.is_error for finding in findings)
    print(f"sizes: {n_errors} errors, {len(findings) - n_errors} notes")
    return 1 if n_errors else 0


if __name__ == "__main__":
    sys.exit(main())
