# SPDX-License-Identifier: BSD-3-Clause
"""Golden cases of split; the model draws as its generator's authors wrote it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from golden import Case, Fate, all_sorts, case, good_ipv4, other_protocols


@case("split")
def split() -> Case:
    turn = itertools.cycle(range(3))
    frames = good_ipv4() + other_protocols()
    return Case("split", {"gates": 3}, frames, lambda frame: ("out", next(turn), frame))


@case("split", "weighted")
def split_weighted() -> Case:
    params = {"mode": "weighted", "gates": 3, "weights": [0, 5, 0]}
    return Case("split", params, all_sorts(), lambda frame: ("out", 1, frame))


@case("split", "hash")
def split_hash() -> Case:
    """Only one gate has weight: every flow takes it, and what has no Ethernet header is dropped."""

    def model(frame: bytes) -> Fate:
        return ("out", 2, frame) if len(frame) >= 14 else ("drop", "too_short")

    params = {"mode": "hash", "gates": 4, "weights": [0, 0, 2.5, 0]}
    return Case("split", params, all_sorts(14), model)


def xoshiro256starstar(seed: int) -> Iterator[int]:
    """Blackman and Vigna 2018, its state filled by splitmix64."""
    mask = (1 << 64) - 1

    def left(x: int, k: int) -> int:
        return (x << k | x >> (64 - k)) & mask

    state = []
    for _ in range(4):
        seed = (seed + 0x9E3779B97F4A7C15) & mask
        z = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        state.append(z ^ z >> 31)
    while True:
        yield left(state[1] * 5 & mask, 7) * 9 & mask
        shifted = state[1] << 17 & mask
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= shifted
        state[3] = left(state[3], 45)


@case("split", "random")
def split_random() -> Case:
    draws = xoshiro256starstar(7)

    def model(frame: bytes) -> Fate:
        return ("out", (next(draws) >> 32) * 5 >> 32, frame)

    return Case("split", {"mode": "random", "gates": 5, "seed": 7}, all_sorts(15), model)
