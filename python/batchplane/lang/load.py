# SPDX-License-Identifier: BSD-3-Clause
"""load.py - finds a pipeline by name or path and reads YAML, Python or canonical JSON."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.json_file import parse_json
from ..base.problems import BadInput, Problem, suggestion
from .canonical import Document, canonicalise
from .canonical_shape import canonical_shape
from .expand import expand
from .kinds import Kinds
from .pipeline import Pipeline
from .yaml_loader import load_yaml, resolve_plain

SUFFIXES = (".yaml", ".yml", ".py", ".json")
# The current folder may be anybody's, so names found there must not be code.
_DATA_SUFFIXES = (".yaml", ".yml", ".json")


def pipeline_folders() -> list[tuple[Path, tuple[str, ...]]]:
    """The folders in which names without a path are looked up, and the suffixes allowed there."""
    here = Path(__file__).resolve()
    shipped = (here.parents[3] / "pipelines", here.parents[1] / "pipelines")
    return [(Path("pipelines"), _DATA_SUFFIXES), *((folder, SUFFIXES) for folder in shipped)]


def pipeline_names() -> list[str]:
    """The names of all pipelines that can be run by name."""
    found = {
        path.stem
        for folder, suffixes in pipeline_folders()
        if folder.is_dir()
        for path in folder.iterdir()
        if path.suffix in suffixes
    }
    return sorted(found)


def find_pipeline(name: str) -> Path:
    """The file for `name`: a path, or a name in pipelines/."""
    path = Path(name)
    if path.suffix in SUFFIXES or "/" in name:
        if path.is_file():
            return path
        names = pipeline_names()
        raise BadInput(Problem("there is no such file", name, fix=suggestion(path.stem, names)))
    for folder, suffixes in pipeline_folders():
        for suffix in suffixes:
            candidate = folder / f"{name}{suffix}"
            if candidate.is_file():
                return _shown(candidate)
    code = Path("pipelines") / f"{name}.py"
    fix = f"code runs by its path only: {code}" if code.is_file() else ""
    fix = fix or suggestion(name, pipeline_names())
    raise BadInput(Problem(f"there is no pipeline '{name}'", fix=fix))


def has_pipeline(name: str) -> bool:
    """Whether `name` stands for a file."""
    try:
        find_pipeline(name)
    except BadInput:
        return False
    return True


def _shown(path: Path) -> Path:
    try:
        return path.resolve().relative_to(Path.cwd())
    except ValueError:
        return path


def parse_overrides(words: Sequence[str]) -> dict[str, str]:
    """Turns NAME=VALUE arguments into a mapping."""
    wrong = [word for word in words if "=" not in word or word.startswith("=")]
    if wrong:
        raise BadInput([Problem(f"'{word}' is not NAME=VALUE", "command line") for word in wrong])
    return dict(word.split("=", 1) for word in words)


def load_pipeline(
    name: str, overrides: Mapping[str, str] | None = None, kinds: Kinds | None = None
) -> Document:
    """Reads a pipeline; mistakes in its content go into the document's problems."""
    path = find_pipeline(name)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(Problem(f"cannot be read: {error}", str(path))) from error
    if path.suffix == ".py":
        return _load_python(path, overrides or {})
    if path.suffix == ".json":
        return _load_json(text, path, overrides or {})
    return canonicalise(expand(load_yaml(text, str(path)), str(path), overrides), kinds)


def _load_json(text: str, path: Path, overrides: Mapping[str, str]) -> Document:
    pipeline = parse_json(text, str(path), "JSON")
    if not isinstance(pipeline, dict) or not isinstance(pipeline.get("modules"), dict):
        raise BadInput(
            Problem(
                "this is not a canonical pipeline", str(path), fix="it needs version and modules"
            )
        )
    if overrides:
        raise BadInput(
            Problem(
                "a canonical pipeline has no params", str(path), fix="override them in the YAML"
            )
        )
    return Document(canonical_shape(pipeline, str(path)), file=str(path))


def _load_python(path: Path, overrides: Mapping[str, str]) -> Document:
    """Runs the file and calls its build(**params)."""
    try:
        build = runpy.run_path(str(path)).get("build")
        if not callable(build):
            raise BadInput(
                Problem("there is no build()", str(path), fix="def build(nexthops=16) -> Pipeline")
            )
        arguments: dict[str, Any] = {key: resolve_plain(value) for key, value in overrides.items()}
        pipeline = build(**arguments)
    except BadInput:
        raise
    except Exception as error:
        frames = [
            frame
            for frame in traceback.extract_tb(sys.exc_info()[2])
            if Path(frame.filename).name == path.name
        ]
        where = f"{path}:{frames[-1].lineno}" if frames else str(path)
        raise BadInput(Problem(f"{type(error).__name__}: {error}", where)) from error
    if not isinstance(pipeline, Pipeline):
        raise BadInput(Problem("build() did not return a Pipeline", str(path)))
    return Document(pipeline.to_json(), file=str(path), params=dict(arguments))
