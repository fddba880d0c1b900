# SPDX-License-Identifier: BSD-3-Clause
"""device_check.py - checks the devices of a pipeline without a daemon, before simulations and
plans."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from ..base.problems import Problem, suggestion
from .canonical import Document, in_words
from .device_schema import DEVICE_PARAMS

_LAW = "{batch: 20us, pkt_ns: 15, byte_ns: 0.05}"


def device_problems(document: Document) -> list[Problem]:
    """Everything that the daemon would reject, except what depends on its machine."""
    return list(_found(document))


def _found(document: Document) -> Iterator[Problem]:
    for name, device in document.pipeline.get("devices", {}).items():
        key = f"devices.{name}"
        kind = str(device.get("kind"))
        if kind not in DEVICE_PARAMS:
            fix = suggestion(kind, DEVICE_PARAMS)
            yield document.problem(f"{key}.kind", f"there is no kind of device '{kind}'", fix)
            continue
        model = DEVICE_PARAMS[kind]
        try:
            model.model_validate(device.get("params", {}))
        except ValidationError as error:
            for mistake in error.errors(include_url=False):
                where = ".".join(str(part) for part in mistake["loc"])
                is_unknown = mistake["type"] == "extra_forbidden"
                words = "this is not known here" if is_unknown else in_words(mistake)
                fix = _LAW if where.startswith("laws.") else ""
                if is_unknown and len(mistake["loc"]) == 1:
                    fix = suggestion(where, model.model_fields)
                yield document.problem(f"{key}.params.{where}", words, fix)
