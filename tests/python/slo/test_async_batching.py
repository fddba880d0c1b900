# SPDX-License-Identifier: BSD-3-Clause
"""test_async_batching.py - the asyncio server of the examples, in virtual time."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
from built import needs_extension

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "async_batching.py"
pytestmark = needs_extension


@pytest.fixture(scope="module")
def example() -> Any:
    spec = importlib.util.spec_from_file_location("async_batching", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its data classes look it up there
    spec.loader.exec_module(module)
    return module


def kept(example: Any, served: Any) -> list[bool]:
    return [served.is_kept(name) for name in example.MODELS]


def test_without_batches_the_core_is_saturated(example: Any) -> None:
    served = example.run("none", seconds=10)
    assert served.busy_share > 0.99
    assert kept(example, served) == [False] * 4


def test_full_batches_are_late(example: Any) -> None:
    served = example.run("full", seconds=10)
    assert served.busy_share < 0.35
    assert kept(example, served) == [False] * 4


@pytest.mark.parametrize("seed", [1, 2])
def test_optimal_keeps_the_slo_at_half_the_core(example: Any, seed: int) -> None:
    served = example.run("optimal", seconds=20, seed=seed)
    assert served.busy_share < 0.5
    assert kept(example, served) == [True] * 4
    # Serving each item at once would meet the SLO too, but would take the whole core.
    waiting = example.run("waiting", seconds=5, seed=seed)
    assert waiting.busy_share > 0.95 and kept(example, waiting) == [True] * 4


def test_virtual_time_is_the_same_every_time(example: Any) -> None:
    first, second = (example.run("optimal", seconds=2, seed=3) for _ in range(2))
    assert first.delays_ms == second.delays_ms
