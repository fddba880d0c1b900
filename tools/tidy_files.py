# SPDX-License-Identifier: BSD-3-Clause
"""tidy_files.py - chooses the C++ files for a routine run of clang-tidy; never none.

usage: tidy_files.py [COMPILE_COMMANDS.json]
Environment: CLANG_TIDY_BASE, a commit to compare with.

On a branch: the files that differ from where it left the main line. On the main line, as in a fresh
clone: the files that its newest commit changed, or else the newest commit before it that changed
C++. Headers are checked through a file that includes them. With a build's compile commands, only
files that it compiles count.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

LOOK_BACK_COMMITS = 200


def git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def branch_point() -> str | None:
    wanted = os.environ.get("CLANG_TIDY_BASE")
    if wanted:
        found = git("rev-parse", "--verify", "-q", wanted + "^{commit}")
        if not found:
            sys.exit(f"tidy_files.py: CLANG_TIDY_BASE={wanted} is no commit here")
        return found[0]
    head = git("rev-parse", "HEAD")
    for main_line in ("origin/HEAD", "origin/main", "main"):
        base = git("merge-base", "HEAD", main_line)
        if base and base != head:
            return base[0]
    return None


def changed_since(commit: str) -> set[str]:
    untracked = git("ls-files", "--others", "--exclude-standard", "src")
    return {*git("diff", "--name-only", "--diff-filter=d", commit, "--", "src"), *untracked}


def includers() -> dict[str, set[str]]:
    """By file, relative to src: the files that include it."""
    by_header: dict[str, set[str]] = defaultdict(set)
    for path in Path("src").rglob("*"):
        if path.suffix in {".cc", ".h", ".inl"}:
            for name in re.findall(r'^#include "([^"]+)"', path.read_text("utf-8"), re.MULTILINE):
                by_header[name].add(str(path))
    return by_header


def sources_of(changed: set[str], compiled: set[str] | None) -> set[str]:
    """The changed sources, and for each changed header one source that includes it."""
    by_header = includers()

    def is_good(name: str) -> bool:
        return compiled is None or name in compiled

    chosen = {name for name in changed if name.endswith(".cc") and is_good(name)}
    for header in sorted(name for name in changed if name.endswith((".h", ".inl"))):
        seen, layer = {header}, {header}
        while layer:
            layer = {user for name in layer for user in by_header[name.removeprefix("src/")]} - seen
            seen |= layer
            users = {name for name in layer if name.endswith(".cc") and is_good(name)}
            if users:
                if not users & chosen:
                    chosen.add(min(users))
                break
    return chosen


def chosen_files(compiled: set[str] | None) -> set[str]:
    base = branch_point()
    files = sources_of(changed_since(base), compiled) if base else set()
    if files:
        return files
    earlier = git("rev-list", "--first-parent", f"--max-count={LOOK_BACK_COMMITS}", "HEAD")[1:]
    for commit in earlier:
        files = sources_of(changed_since(commit), compiled)
        if files:
            return files
    return {str(p) for p in Path("src").rglob("*.cc") if compiled is None or str(p) in compiled}


def main() -> None:
    compiled = None
    if len(sys.argv) > 1:
        entries = json.loads(Path(sys.argv[1]).read_text("utf-8"))
        compiled = {os.path.relpath(entry["file"]) for entry in entries}
    print(*sorted(chosen_files(compiled)), sep="\n")


if __name__ == "__main__":
    main()
