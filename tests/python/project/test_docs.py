# SPDX-License-Identifier: BSD-3-Clause
"""test_docs.py - files, identifiers and commands that documents name exist."""

from __future__ import annotations

import re
import shlex
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from batchplane.cli.app import make_app

TREE = Path(__file__).resolve().parents[3]
THIS = str(Path(__file__).resolve().relative_to(TREE))
DOCUMENTS = [TREE / "README.md", TREE / "CONTRIBUTING.md", *sorted((TREE / "docs").glob("*.md"))]
FOLDERS = "src|tools|tests|bench|docs|pipelines|python"
CODE_FILE = r"[\w./-]+\.(?:h|cc|inl)\b"
# Output of commands, which is not in the tree.
MADE = ("bench/out/",)
# Names of DPDK and the standard library, and names of naming styles.
FOREIGN = re.compile(r"^(?:rte_\w+|kPascalCase|snake_case)$|^std::")


@cache
def tracked() -> tuple[str, ...]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=TREE, capture_output=True, text=True, check=False,
    ).stdout.split("\n")  # fmt: skip
    names = listed if any(listed) else [str(p.relative_to(TREE)) for p in TREE.rglob("*")]
    return tuple(name for name in names if (TREE / name).is_file())


@cache
def sources() -> dict[str, str]:
    """C++ files without their comments, by path."""
    comment = re.compile(r"^\s*//.*$|\s//\s.*$", re.MULTILINE)
    files = [name for name in tracked() if name.endswith((".h", ".cc", ".inl"))]
    return {name: comment.sub("", (TREE / name).read_text(encoding="utf-8")) for name in files}


def code_of(text: str) -> list[str]:
    """Code spans and the lines of code blocks, without comments."""
    fenced = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
    plain = fenced.sub("", text)
    blocks = re.findall(r"^    +(\S.*)$", text, re.MULTILINE)
    blocks += [line for block in fenced.findall(text) for line in block.splitlines()[1:-1]]
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", plain)]
    return [re.split(r"\s+#", words)[0].strip() for words in (*spans, *blocks)]


def is_placeholder(name: str) -> bool:
    return bool(re.search(r"[*<>{}$]|\b[A-Z]{2,}\b|\.\.", name)) or name.startswith("x_")


def wrong_paths(text: str) -> list[str]:
    found = re.findall(rf"(?<![\w./~-])(?:{FOLDERS})/[\w./*<>{{}}$-]*", text)
    found = [name.rstrip(".") for name in found]
    wrong = [
        name
        for name in found
        if not is_placeholder(name) and not name.startswith(MADE) and not (TREE / name).exists()
    ]
    for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        if not any((folder / link).exists() for folder in (TREE, TREE / "docs")):
            wrong.append(link)
    return wrong


def wrong_code_files(text: str) -> list[str]:
    names = {name for words in code_of(text) for name in re.findall(rf"^{CODE_FILE}$", words)}
    return [
        name
        for name in sorted(names)
        if not is_placeholder(name)
        and not any(f"/{file}".endswith(f"/{name}") for file in tracked())
    ]


def is_member(owner: str, member: str) -> bool:
    declared = re.compile(
        rf"\b(?:class|struct|namespace|enum class)\s+(?:alignas\(\w+\)\s+)?{owner}\b"
    )
    word = re.compile(rf"\b{member}\b")
    for text in sources().values():
        if owner not in text or member not in text:
            continue
        if re.search(rf"\b{owner}(?:<\w+>)?::{member}\b", text):
            return True
        if declared.search(text) and word.search(text):
            return True
    return False


@cache
def all_words() -> frozenset[str]:
    """All words in the tree's own files, except documents."""
    texts = [*sources().values()]
    for name in tracked():
        if name.endswith((".py", ".yaml", ".sh", ".txt", ".json")) and name != THIS:
            texts.append((TREE / name).read_text(encoding="utf-8"))
    return frozenset(word for text in texts for word in re.findall(r"\w+", text))


def wrong_identifiers(text: str) -> list[str]:
    """`snake_case` and `kConstant`, `Class::member`, and the tests that a filter names."""
    wrong = []
    for words in code_of(text):
        if re.fullmatch(r"[a-z][a-z0-9]*(?:_[a-z0-9]{2,})+(?:\(\))?|k[A-Z]\w+", words):
            name = words.removesuffix("()")
            if name not in all_words() and not FOREIGN.match(name):
                wrong.append(name)
        wrong += [
            f"{owner}::{member}"
            for owner, member in re.findall(r"(?<![\w:])([A-Za-z]\w*)::(\w+)", words)
            if not FOREIGN.match(f"{owner}::{member}") and not is_member(owner, member)
        ]
        for name in re.findall(r"--gtest_filter='?([\w.*]+)", words):
            suite = re.escape(name.split(".")[0]).replace(r"\*", r"\w*")
            made = re.compile(rf"\bTEST(?:_[FP])?\(\s*{suite}\s*,")
            if not any(made.search(source) for source in sources().values()):
                wrong.append(name)
    return wrong


def command_words(words: str, program: str) -> list[list[str]]:
    """The arguments after the program's name, once for each call."""
    try:
        parts = shlex.split(words)
    except ValueError:
        parts = words.split()
    calls: list[list[str]] = []
    for part in parts:
        if part.split("/")[-1] == program:
            calls.append([])
        elif part in {"&&", ";", "|"}:
            break
        elif calls:
            calls[-1].append(part)
    return calls


def wrong_call(words: list[str]) -> str | None:
    command: Any = typer.main.get_command(make_app())
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        inner = command.commands.get(words[0])
        if inner is None:
            return words[0]
        command, words = inner, words[1:]
    known = {"--help", "-h"} | {
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    for word in words:
        name = word.split("=")[0].rstrip(",;")
        if re.fullmatch(r"--?[a-z][\w-]*", name) and name not in known:
            return f"{command.name} {name}"
    return None


def wrong_calls(text: str) -> list[str]:
    wrong = []
    for code in code_of(text):
        if not re.match(r"(?:\w+=\S+ )*(?:\S*/)?batchplane [a-z-]", code):
            continue
        for words in command_words(code, "batchplane"):
            bad = wrong_call(words)
            if bad is not None:
                wrong.append(bad)
    return wrong


def wrong_make_words(text: str) -> list[str]:
    makefile = (TREE / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][\w-]*):", makefile, re.MULTILINE))
    variables = set(re.findall(r"^(\w+) *\?=", makefile, re.MULTILINE))
    wrong = []
    for code in code_of(text):
        if not re.match(r"(?:\w+=\S+ )*make(?: |$)", code):
            continue
        for words in command_words(code, "make"):
            for word in words:
                name = word.split("=")[0]
                if name not in (variables if "=" in word else targets):
                    wrong.append(f"make {word}")
    return wrong


def wrong_programs(text: str) -> list[str]:
    """Steps of run_tests.sh, and built programs: benchmarks and tests."""
    steps = (TREE / "tools" / "run_tests.sh").read_text(encoding="utf-8")
    wrong = []
    for code in code_of(text):
        for step in re.findall(r"(?<=tools/run_tests\.sh )([a-z -]+)", code):
            wrong += [word for word in step.split() if not re.search(rf"\b{word}\b", steps)]
        for name in re.findall(r"build/bench/bench_(\w+)", code):
            if not any(
                (TREE / "bench" / kind / f"{name}.cc").exists() for kind in ("micro", "macro")
            ):
                wrong.append(f"bench_{name}")
        for folder, name in re.findall(r"build/(tests/)?test_(\w+)", code):
            if not (TREE / ("tests" if folder else "src") / name).is_dir():
                wrong.append(f"test_{name}")
    return wrong


CHECKS = [
    wrong_paths,
    wrong_code_files,
    wrong_identifiers,
    wrong_calls,
    wrong_make_words,
    wrong_programs,
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_names_in_documents_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert [name for check in CHECKS for name in check(text)] == []


def test_contributing_has_every_folder() -> None:
    text = (TREE / "CONTRIBUTING.md").read_text(encoding="utf-8")
    parts = [Path(name).parts for name in tracked()]
    top = {p[0] for p in parts if len(p) > 1 and not p[0].startswith(".")} - {"src", "python"}
    top |= {f"src/{p[1]}" for p in parts if p[0] == "src" and len(p) > 2} | {"python/batchplane"}
    assert [name for name in sorted(top) if f"| `{name}`" not in text] == []


def test_comments_name_files_that_are_there() -> None:
    folders = {Path(name).parts[1] for name in tracked() if name.startswith("src/")}
    named = re.compile(rf"(?<![\w/.\"<])(?:src/)?((?:{'|'.join(sorted(folders))})/{CODE_FILE})")
    wrong = []
    for name in sources():
        for line in (TREE / name).read_text(encoding="utf-8").splitlines():
            if "//" not in line:
                continue
            wrong += [
                f"{name}: {file}"
                for file in named.findall(line.split("//", 1)[1])
                if not (TREE / "src" / file).exists() and not is_placeholder(file)
            ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("it is in src/core/egress.h", "src/core/egress.h"),
        ("see [there](nowhere.md)", "nowhere.md"),
        ("`core/path_automaton.cc` compiles", "core/path_automaton.cc"),
        ("`Task::loop` reads the clock", "Task::loop"),
        ("`loop_nowhere` reads the clock", "loop_nowhere"),
        ("    build/test_exec --gtest_filter='Nowhere.*'", "Nowhere.*"),
        ("    batchplane simulate gateway --sideways", "simulate --sideways"),
        ("`batchplane fly`", "fly"),
        ("`make coffee`", "make coffee"),
        ("`make run CUPS=2`", "make CUPS=2"),
        ("`tools/run_tests.sh build-release ctest-nowhere`", "ctest-nowhere"),
        ("`build/bench/bench_nothing`", "bench_nothing"),
        ("`build/test_nothing`", "test_nothing"),
    ],
)
def test_a_name_that_does_not_exist_is_found(text: str, bad: str) -> None:
    assert [name for check in CHECKS for name in check(text)] == [bad]
