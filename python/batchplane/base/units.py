# SPDX-License-Identifier: BSD-3-Clause
"""units.py - durations, rates and counts as people write and read them."""

from __future__ import annotations

import re

_NS_PER = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s)")
_SCALE = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_SCALED = re.compile(r"(\d+(?:\.\d+)?)\s*([kMG]?)(?:pps)?")
# Longer durations are read as this one: it fits 64 bits, and every limit rejects it.
LONGEST_NS = (1 << 63) - 1
_MOST_SCALED = 1e18


def parse_duration_ns(text: object) -> int | None:
    """Nanoseconds of '50us', '1.5 ms', '2s'; None if the text is not a duration."""
    match = _DURATION.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        return None
    ns = float(match[1]) * _NS_PER[match[2]]
    return round(ns) if ns < LONGEST_NS else LONGEST_NS


def parse_scaled(text: str) -> float | None:
    """The number in '5M', '10k', '250', '1.5Mpps'; None if the text is not a number."""
    match = _SCALED.fullmatch(text.strip())
    if match is None:
        return None
    value = float(match[1]) * _SCALE[match[2]]
    return value if value <= _MOST_SCALED else None


def duration_text(ns: int) -> str:
    """The shortest exact text of a duration: 50us, 1ms, 1500ns."""
    for unit in ("s", "ms", "us"):
        if ns and ns % _NS_PER[unit] == 0:
            return f"{ns // _NS_PER[unit]}{unit}"
    return f"{ns}ns"


def short_duration(ns: float | None) -> str:
    """Three digits and a unit, for tables."""
    if ns is None:
        return "-"
    for unit in ("s", "ms", "us"):
        if ns >= _NS_PER[unit]:
            return f"{three_digits(ns / _NS_PER[unit])} {unit}"
    return f"{three_digits(ns)} ns"


def three_digits(value: float) -> str:
    """1.23, 12.3, 123, 1234; 0 for zero."""
    if value == 0:
        return "0"
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def short_rate(pps: float | None) -> str:
    """A packet rate: 12.3 Mpps, 850 kpps, 12 pps."""
    if pps is None:
        return "-"
    for scale, unit in ((1e6, "Mpps"), (1e3, "kpps")):
        if abs(pps) >= scale * 0.9995:
            return f"{three_digits(pps / scale)} {unit}"
    return f"{pps:.0f} pps"


def short_bits(bps: float | None) -> str:
    """A bit rate: 12.3 Mbit/s, 850 kbit/s."""
    if bps is None:
        return "-"
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(bps) >= scale * 0.9995:
            return f"{three_digits(bps / scale)} {unit}bit/s"
    return f"{bps:.0f} bit/s"


def short_count(count: float | None) -> str:
    """A count: 1234, 56.7 k, 12.3 M."""
    if count is None:
        return "-"
    if abs(count) < 10_000:
        return f"{count:.0f}"
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(count) >= scale * 0.9995:
            return f"{three_digits(count / scale)} {unit}"
    return f"{count:.0f}"
