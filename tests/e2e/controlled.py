# SPDX-License-Identifier: BSD-3-Clause
"""controlled.py - a gateway at full load, a small controller, and queries about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from commands import Commands

LOAD = ("nexthops=4", "fib_size=100", "acl_size=10", "saturate=true")
# The same twenty lines as in docs/simulator.md.
STEADY = '''
class Steady:
    """Half a batch for every buffer whose batches arrive smaller than that."""

    def __init__(self, model):
        self.model = model

    def step(self, period):
        arrived = period["modules"]
        answer = {}
        for i, module in enumerate(self.model["modules"]):
            batches = arrived["arrived_batches"][i]
            if module["is_controlled"] and batches:
                mean_pkts = arrived["arrived_pkts"][i] / batches
                answer[module["name"]] = 0 if mean_pkts >= 16 else 16
        return answer
'''


def control_of(commands: Commands) -> dict[str, Any]:
    """The answer of `show control`."""
    with commands.client("gateway") as client:
        answer: dict[str, Any] = client.show("control")
    return answer


def written(folder: Path, name: str, text: str) -> str:
    """Writes a file for a command; returns its path."""
    path = folder / name
    path.write_text(text)
    return str(path)
