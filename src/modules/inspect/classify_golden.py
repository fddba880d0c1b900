# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of classify; numpy multiplies, with as many digits as it has."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from dpi_golden import some_frames
from golden import Case, Fate, case

M64 = (1 << 64) - 1


class Rng:
    """xoshiro256**, begun by splitmix64, as the engine's."""

    def __init__(self, seed: int) -> None:
        self.state = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & M64
            z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & M64
            z = (z ^ z >> 27) * 0x94D049BB133111EB & M64
            self.state.append(z ^ z >> 31)

    def next(self) -> int:
        s = self.state
        result = rotated(s[1] * 5 & M64, 7) * 9 & M64
        t = s[1] << 17 & M64
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotated(s[3], 45)
        return result

    def uniform(self) -> float:
        return (self.next() >> 11) * 2.0**-53


def rotated(x: int, n: int) -> int:
    return (x << n | x >> (64 - n)) & M64


def layers_of(widths: list[int]) -> list[Any]:
    """What `random` makes of widths."""
    rng = Rng(17)
    layers = []
    for n_in, n_out in pairwise(widths):
        reach = 2 / np.sqrt(n_in)
        values = [np.float32((rng.uniform() - 0.5) * 2 * reach) for _ in range(n_in * n_out)]
        layers.append(np.array(values, dtype=np.float64).reshape(n_in, n_out))
    return layers


def case_of(widths: list[int]) -> Case:
    layers = layers_of(widths)

    def model(frame: bytes) -> Fate:
        x = np.zeros(widths[0])
        text = frame[14 : 14 + widths[0]]
        x[: len(text)] = np.frombuffer(text, dtype=np.uint8) / 255
        for i, weights in enumerate(layers):
            x = x @ weights + np.float64(np.float32(0.01))
            if i + 1 < len(layers):
                x = np.maximum(x, 0)
        best = np.sort(x)[::-1]
        if len(best) > 1 and best[0] - best[1] < 1e-5:
            raise ValueError("too close to call: take other widths")
        return ("out", int(np.argmax(x)), frame)

    params = {"random": widths}
    frames = [frame for frame in some_frames() if len(frame) > 14]
    return Case("classify", params, frames, model, {"connected_gates": widths[-1]})


@case("classify")
def classify() -> Case:
    return case_of([256, 128, 64, 8])


@case("classify", variant="odd")
def classify_odd() -> Case:
    return case_of([61, 17, 3])
