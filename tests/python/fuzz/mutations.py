# SPDX-License-Identifier: BSD-3-Clause
"""mutations.py - seeded changes to good files: to their text, words, bytes or JSON."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

# Values that numbers, names and positions in files are least prepared for.
WORDS = (
    "", "~", "true", "-1", "0", "1", "1e999", "-1e308", ".nan", ".inf", "4294967296", "65536",
    "18446744073709551616", "9" * 30, "1.5", "0x10", "[]", "{}", "[[]]", "[~]", "{a: 1}",
    "'g../x'", "../x", "a.b", "a[0]", "a[", "*", "[*]", "1ns", "0s", "99999999999999999999s",
    "1e9", "5M", "${x}", "${1//0}", "${i + 1}", "${", "&a [*a]", "!!python/object:os.x", "!!binary x",
    "<<: *x", "'", '"', "| ", "- x", "x: y", "\x07", "é\u2028", "a" * 300, "10.0.0.0/33", "::1/129",
    "02:00:00:00:00", "none", "in", "drop", "in -> in", "a:4294967296 -> b",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 1 << 32, (1 << 63) - 1, 1 << 63, -(1 << 70), 10**400, 1e18, 1e308, -0.5,
    "", "x", "g../x", "a" * 300, "1ns", "\x00", "é", [], {}, [[]], [None], {"a": 1}, [{"kind": 1}],
)  # fmt: skip
_WORD = re.compile(r"[\w.:/+-]+")


def mutated_text(text: str, rng: random.Random) -> str:
    """One to three changes to lines and words."""
    for _ in range(rng.randint(1, 3)):
        text = rng.choice((_word, _word, _word, _line, _insert, _cut, _indent))(text, rng)
    return text


def mutated_json(text: str, rng: random.Random) -> str:
    """One to three changes to the tree, or sometimes to its text."""
    if rng.random() < 0.2:
        return mutated_text(text, rng)
    tree = json.loads(text)
    for _ in range(rng.randint(1, 3)):
        _change_tree(tree, rng)
    return json.dumps(tree)


def mutated_bytes(data: bytes, rng: random.Random) -> bytes:
    """One to four changes to bytes and 4-byte words."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed) + 1)
        how = rng.randrange(5)
        if how == 0:
            del changed[at:]
        elif how == 1:
            changed[at : at + 1] = bytes([rng.randrange(256)])
        elif how == 2:
            word = rng.choice((0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF, 1 << 18))
            changed[at : at + 4] = word.to_bytes(4, rng.choice(("little", "big")))
        elif how == 3:
            del changed[at : at + rng.randint(1, 32)]
        else:
            changed[at:at] = changed[at : at + rng.randint(1, 64)]
    return bytes(changed)


def _word(text: str, rng: random.Random) -> str:
    found = list(_WORD.finditer(text))
    if not found:
        return text + rng.choice(WORDS)
    at = rng.choice(found)
    new = rng.choice(WORDS) if rng.random() < 0.7 else rng.choice(found)[0]
    return text[: at.start()] + new + text[at.end() :]


def _line(text: str, rng: random.Random) -> str:
    lines = text.splitlines() or [""]
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    how = rng.randrange(3)
    if how == 0:
        del lines[i]
    elif how == 1:
        lines.insert(j, lines[i])
    else:
        lines[i], lines[j] = lines[j], lines[i]
    return "\n".join(lines) + "\n"


def _insert(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return (
        text[:at] + rng.choice((*WORDS, ":", ",", "[", "]", "{", "}", "\t", "\n", "#")) + text[at:]
    )


def _cut(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] if rng.random() < 0.3 else text[:at] + text[at + rng.randint(1, 20) :]


def _indent(text: str, rng: random.Random) -> str:
    lines = text.splitlines() or [""]
    i = rng.randrange(len(lines))
    lines[i] = "  " + lines[i] if rng.random() < 0.5 else lines[i][2:]
    return "\n".join(lines) + "\n"


def _change_tree(tree: Any, rng: random.Random) -> None:
    places: list[tuple[Any, Any]] = []
    todo = [tree]
    while todo:
        at = todo.pop()
        keys = list(at) if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()
        for key in keys:
            places.append((at, key))
            todo.append(at[key])
    if not places:
        return
    holder, key = rng.choice(places)
    how = rng.random()
    if how < 0.15:
        del holder[key]
    elif how < 0.25 and isinstance(holder, dict):
        holder[rng.choice(("g../x", "[]", "", "a.b[1]", "\x00", "kind"))] = holder[key]
    elif how < 0.4:
        other, other_key = rng.choice(places)
        holder[key] = copy.deepcopy(other[other_key])
    else:
        holder[key] = copy.deepcopy(rng.choice(VALUES))
