# SPDX-License-Identifier: BSD-3-Clause
"""file.py - loads a controller from FILE.py or FILE.py:NAME."""

from __future__ import annotations

import inspect
import runpy
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..base.interrupts import Interrupted
from ..base.problems import BadInput, Problem, suggestion
from .python import Controller, told_error

_MAKER = "make_controller"


def is_controller_file(word: str) -> bool:
    """Whether a controller's name means a Python file."""
    return _split(word)[0].suffix == ".py"


def _split(word: str) -> tuple[Path, str]:
    file, colon, name = word.rpartition(":")
    return (Path(file), name) if colon and file.endswith(".py") else (Path(word), "")


def load_controller(word: str | Path, model: Mapping[str, Any]) -> Controller:
    """For FILE.py: the result of its `make_controller(model)`, or an object of its only class with
    `step`. For FILE.py:NAME: the result of NAME. Raises BadInput."""
    path, name = _split(str(word))
    if not path.is_file():
        raise BadInput(Problem("there is no such file", str(path)))
    try:
        made: Controller = _called(_maker(path, name, runpy.run_path(str(path))), model)
    except (BadInput, KeyboardInterrupt, Interrupted):
        raise
    except BaseException as error:  # sys.exit() in a file must not end the run
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).name == path.name
        ]
        where = f"{path}:{frames[-1].lineno}" if frames else str(path)
        raise BadInput(Problem(told_error(error), where)) from error
    if not callable(getattr(made, "step", None)):
        fix = "def step(self, period): return {'acl_0_0': 8}"
        raise BadInput(
            Problem(f"the object from {name or _MAKER} has no step()", str(path), fix=fix)
        )
    return made


def _maker(path: Path, name: str, found: Mapping[str, Any]) -> Callable[..., Controller]:
    own: dict[str, Any] = {
        key: value
        for key, value in found.items()
        if inspect.isclass(value) and value.__module__ == found["__name__"]
        if callable(getattr(value, "step", None))
    }
    if name:
        if not callable(found.get(name)):
            raise BadInput(
                Problem(f"there is no '{name}'", str(path), fix=suggestion(name, list(own)))
            )
        return found[name]  # type: ignore[no-any-return]
    if callable(found.get(_MAKER)):
        return found[_MAKER]  # type: ignore[no-any-return]
    if len(own) == 1:
        return next(iter(own.values()))  # type: ignore[no-any-return]
    if own:
        fix = " or ".join(f"{path}:{key}" for key in own)
        raise BadInput(Problem(f"there are {len(own)} controllers", str(path), fix=fix))
    fix = f"def {_MAKER}(model): return MyController()"
    raise BadInput(
        Problem("found neither a class with step() nor make_controller()", str(path), fix=fix)
    )


def _called(make: Callable[..., Controller], model: Mapping[str, Any]) -> Controller:
    """Calls `make`, with the model if it takes an argument."""
    try:
        takes = len(inspect.signature(make).parameters) > 0
    except (TypeError, ValueError):
        takes = True
    return make(model) if takes else make()
