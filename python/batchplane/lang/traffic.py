# SPDX-License-Identifier: BSD-3-Clause
"""traffic.py - checks the lists of traffic flows in generators and sources: their number and the
types of their values, before anything computes with them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..base.limits import RATE_PPS, TRAFFIC_FLOWS
from ..base.problems import Problem
from .canonical import Document

MAX_TRAFFIC_WEIGHT = 1_000_000
_MAX_FRAME_BYTES = 9732  # with its checksum: kMaxWireBytes of src/traffic


def traffic_problems(document: Document) -> list[Problem]:
    """The mistakes in lists of traffic flows."""
    problems = []
    for key, params in _sources(document.pipeline):
        for where, message, fix in _mistakes(params):
            problems.append(document.problem(f"{key}.params{where}", message, fix))
    return problems


def _sources(pipeline: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for g, entry in enumerate(pipeline.get("generators") or []):
        if isinstance(entry, dict) and isinstance(entry.get("params", {}), dict):
            yield f"generators[{g}]", entry.get("params", {})
    for name, module in (pipeline.get("modules") or {}).items():
        is_source = isinstance(module, dict) and module.get("kind") == "source"
        if is_source and isinstance(module.get("params", {}), dict):
            yield f"modules.{name}", module.get("params", {})


def _mistakes(params: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yields (key, message, fix)."""
    yield from _number(params, "rate_pps", "", RATE_PPS.most)
    yield from _sizes(params, "")
    flows = params.get("flows")
    if flows is None:
        return
    if not isinstance(flows, list):
        yield ".flows", f"expected a list, found {_told(flows)}", "flows: [{dst_ip: 10.0.0.1}]"
        return
    total = 0
    for i, flow in enumerate(flows):
        key = f".flows[{i}]"
        if not isinstance(flow, dict):
            yield key, f"expected a mapping, found {_told(flow)}", "for example {dst_ip: 10.0.0.1}"
            continue
        yield from _flow(flow, key)
        count = flow.get("count", 1)
        total += count if _is_whole(count, 1, TRAFFIC_FLOWS.most) else 1
    if total > TRAFFIC_FLOWS.most:
        yield ".flows", f"more than {TRAFFIC_FLOWS.most} traffic flows", "lower count"


def _flow(flow: dict[str, Any], key: str) -> Iterator[tuple[str, str, str]]:
    count = flow.get("count", 1)
    if not _is_whole(count, 1, TRAFFIC_FLOWS.most):
        fix = f"an integer from 1 to {TRAFFIC_FLOWS.most}"
        yield f"{key}.count", f"count is {_told(count)}", fix
    for text in ("name", "flow"):
        if not isinstance(flow.get(text, ""), str):
            yield f"{key}.{text}", f"expected text, found {_told(flow[text])}", ""
    yield from _number(flow, "weight", key, MAX_TRAFFIC_WEIGHT)
    yield from _number(flow, "rate_pps", key, RATE_PPS.most)
    yield from _sizes(flow, key)


def _sizes(given: dict[str, Any], key: str) -> Iterator[tuple[str, str, str]]:
    size = given.get("size_bytes", 0)
    if not _is_whole(size, 0, _MAX_FRAME_BYTES):
        fix = f"an integer from 0 to {_MAX_FRAME_BYTES}"
        yield f"{key}.size_bytes", f"size_bytes is {_told(size)}", fix
    mix = given.get("size_mix") or []
    if not isinstance(mix, list) or not all(isinstance(share, dict) for share in mix):
        message = f"size_mix is {_told(mix)}"
        yield f"{key}.size_mix", message, "[{size_bytes: 64, weight: 7}, ...]"
        return
    for i, share in enumerate(mix):
        here = f"{key}.size_mix[{i}]"
        yield from _number(share, "weight", here, MAX_TRAFFIC_WEIGHT)
        if not _is_whole(share.get("size_bytes", 64), 0, _MAX_FRAME_BYTES):
            fix = f"an integer from 0 to {_MAX_FRAME_BYTES}"
            yield f"{here}.size_bytes", f"size_bytes is {_told(share['size_bytes'])}", fix


def _number(
    given: dict[str, Any], name: str, key: str, most: float
) -> Iterator[tuple[str, str, str]]:
    value = given.get(name, 0)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 <= value <= most:
        yield f"{key}.{name}", f"{name} is {_told(value)}", f"a number from 0 to {most}"


def _is_whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _told(value: Any) -> str:
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "a mapping"
    return "nothing" if value is None else f"'{str(value)[:40]}'"
