# SPDX-License-Identifier: BSD-3-Clause
"""model.py - the properties of a generated trace of a backbone link, and their distributions.

Sessions arrive at random, last some seconds and send a heavy-tailed number of bytes: most have a
packet or two, few of them carry most of the bytes. Each goes to a destination of a fixed set, by
Zipf's law. docs/traces.md has the origin of the figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..base.problems import BadInput, Problem

MIN_BYTES, MAX_BYTES = 64, 1518  # on the wire, with checksum
# Share of packets, and the range of their sizes, uniform: acknowledgements, others, full frames.
SIZE_MIX = ((0.45, 64, 64), (0.15, 65, 1517), (0.40, 1518, 1518))


@dataclass(frozen=True)
class TraceModel:
    """The statistics of a trace; the defaults are those of a CAIDA trace of 2019."""

    packets: int = 1_000_000
    rate_pps: float = 1_000_000.0
    destinations: int = 65_536
    zipf: float = 0.9  # the share of the destination of rank r is proportional to r^-zipf
    session_mean_bytes: float = 18_000.0
    session_min_bytes: float = 64.0
    session_max_bytes: float = 0.8e9
    session_mean_s: float = 5.4
    session_max_s: float = 60.0
    burstiness: float = 1.13  # mean number of packets of one flow in a row
    tcp_share: float = 0.85
    dst_mac: str = "02:77:0b:00:00:01"  # of pipelines/l2l3.yaml and gateway.yaml
    seed: int = 1


def checked(model: TraceModel) -> TraceModel:
    """The model, if such a trace can exist. Raises BadInput."""
    problems = []
    limits = {
        "packets": (1, 1e12),
        "rate_pps": (1.0, 1e9),
        "destinations": (1, 1 << 22),
        "zipf": (0.0, 3.0),
        "session_min_bytes": (64.0, 1e9),
        "session_max_bytes": (64.0, 1e13),
        "session_mean_s": (1e-6, 1e6),
        "session_max_s": (1e-6, 1e6),
        "burstiness": (1.0, 1000.0),
        "tcp_share": (0.0, 1.0),
        "seed": (0, 1 << 62),
    }
    for key, (least, most) in limits.items():
        value = float(getattr(model, key))
        if not least <= value <= most:  # NaN fails too
            problems.append(Problem(f"{value:g} is not in {least:g} to {most:g}", "trace", key))
    min_b, mean_b, max_b = (
        model.session_min_bytes, model.session_mean_bytes, model.session_max_bytes,
    )  # fmt: skip
    if not min_b < mean_b < max_b:
        message = f"a mean of {mean_b:g} bytes is not between {min_b:g} and {max_b:g}"
        problems.append(Problem(message, "trace", "session_mean_bytes"))
    if not model.session_mean_s < model.session_max_s:
        message = f"a mean of {model.session_mean_s:g} s is not below {model.session_max_s:g} s"
        problems.append(Problem(message, "trace", "session_mean_s"))
    if problems:
        raise BadInput(problems)
    return model


# --- sizes of packets -----------------------------------------------------------------------------


def mean_packet_bytes() -> float:
    """The mean of SIZE_MIX."""
    return sum(share * (low + high) / 2 for share, low, high in SIZE_MIX)


def draw_packet_bytes(rng: np.random.Generator, n: int) -> NDArray[np.int32]:
    """Random sizes on the wire."""
    kind = rng.choice(len(SIZE_MIX), size=n, p=[share for share, _, _ in SIZE_MIX])
    low = np.array([low for _, low, _ in SIZE_MIX])[kind]
    high = np.array([high for _, _, high in SIZE_MIX])[kind]
    return rng.integers(low, high + 1).astype(np.int32)


# --- sizes of sessions ----------------------------------------------------------------------------


def pareto_mean(alpha: float, least: float, most: float) -> float:
    """The mean of a Pareto distribution truncated at both ends."""
    norm = 1 - (least / most) ** alpha
    if abs(alpha - 1) < 1e-9:
        return float(least * math.log(most / least) / norm)
    power = 1 - alpha
    return float(alpha * least**alpha * (most**power - least**power) / (power * norm))


@lru_cache(maxsize=16)
def tail_index(least: float, mean: float, most: float) -> float:
    """The exponent with which the truncated Pareto distribution has this mean."""
    low, high = 1e-3, 20.0  # the mean falls with the exponent
    for _ in range(200):
        middle = (low + high) / 2
        if pareto_mean(middle, least, most) > mean:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def draw_session_packets(model: TraceModel, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
    """The number of packets of each session, at least one."""
    least, most = model.session_min_bytes, model.session_max_bytes
    alpha = tail_index(least, model.session_mean_bytes, most)
    tail = 1 - rng.random(n) * (1 - (least / most) ** alpha)
    n_bytes = least * tail ** (-1 / alpha)
    return np.asarray(np.ceil(n_bytes / mean_packet_bytes()), np.int64)


@lru_cache(maxsize=16)
def mean_session_packets(model: TraceModel) -> float:
    """The mean of draw_session_packets(): of the rounded-up quotient, from the distribution's
    tail."""
    least, most = model.session_min_bytes, model.session_max_bytes
    alpha = tail_index(least, model.session_mean_bytes, most)
    unit = mean_packet_bytes()
    n_most = math.ceil(most / unit)
    # E[N] = sum over k of P(N > k): one by one at first, then at the middle of growing steps.
    edges = np.unique(np.concatenate([np.arange(0, 5000), np.geomspace(5000, n_most, 4000)]))
    at = np.maximum(edges * unit, least)
    norm = 1 - (least / most) ** alpha
    above = np.clip(((least / at) ** alpha - (least / most) ** alpha) / norm, 0, 1)
    whole = above[:5000].sum()
    rest = float(np.trapezoid(above[4999:], edges[4999:])) if n_most > 5000 else 0.0
    return float(whole + rest)


def draw_durations_s(model: TraceModel, rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Truncated exponential durations with the model's mean."""
    scale = _duration_scale(model.session_mean_s, model.session_max_s)
    cut = -math.expm1(-model.session_max_s / scale)
    return -scale * np.log1p(-rng.random(n) * cut)


@lru_cache(maxsize=16)
def _duration_scale(mean: float, most: float) -> float:
    """The scale of the exponential distribution with this mean once truncated; flat near most /
    2."""
    low, high = mean * 1e-3, most * 1e3
    for _ in range(200):
        middle = math.sqrt(low * high)
        x = most / middle
        cut_mean = middle - most / math.expm1(x) if x < 700 else middle
        low, high = (middle, high) if cut_mean < mean else (low, middle)
    return math.sqrt(low * high)


# --- destinations ---------------------------------------------------------------------------------


def zipf_shares(n: int, exponent: float) -> NDArray[np.float64]:
    """Shares by rank; they sum to 1."""
    shares = np.arange(1, n + 1, dtype=np.float64) ** -exponent
    return np.asarray(shares / shares.sum(), np.float64)


def destination_addresses(n: int, rng: np.random.Generator) -> NDArray[np.uint32]:
    """Distinct addresses by rank, in networks of unicast space, so that many share prefixes."""
    n_networks = max(1, n // 16)
    networks = _distinct(rng, n_networks, 11 << 16, 223 << 16)
    of_network = rng.choice(n_networks, size=4 * n + 64, p=zipf_shares(n_networks, 0.7))
    hosts = rng.integers(1, 255, size=4 * n + 64)
    found = (networks[of_network].astype(np.uint64) << np.uint64(8)) | hosts.astype(np.uint64)
    _, first = np.unique(found, return_index=True)
    chosen = found[np.sort(first)][:n].astype(np.uint32)
    if len(chosen) < n:  # the networks are full: use any free address
        more = _distinct(rng, 2 * n, 11 << 24, 223 << 24)
        more = more[~np.isin(more, chosen)][: n - len(chosen)]
        chosen = np.concatenate([chosen, more.astype(np.uint32)])
    return np.asarray(chosen, np.uint32)


def _distinct(rng: np.random.Generator, n: int, low: int, high: int) -> NDArray[np.int64]:
    found = np.unique(rng.integers(low, high, size=2 * n + 64))
    found = found[(found >> (16 if high <= 1 << 24 else 24)) != 127]
    return np.asarray(rng.permutation(found)[:n], np.int64)
