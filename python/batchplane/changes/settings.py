# SPDX-License-Identifier: BSD-3-Clause
"""settings.py - settings that can change while traffic flows, as NAME.SETTING=VALUE."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from typing import Any

from ..base.limits import (
    AGE_LIMIT_NS,
    DELAY_SLO_NS,
    POLL_PKTS,
    RATE_PPS,
    TRIGGER_PKTS,
    WEIGHT,
    Limit,
)
from ..base.problems import BadInput, Problem, suggestion
from ..base.units import duration_text, parse_duration_ns, parse_scaled
from ..control.options import controller_set, is_control_word
from ..daemon.client import Client
from ..lang.traffic import MAX_TRAFFIC_WEIGHT
from ..lang.yaml_loader import resolve_plain

FORMS = """  MODULE.trigger=PKTS            packets that the buffer collects; 0 = no buffering
  MODULE.age_limit=50us          longest time it holds a packet; none = the stranding limit
  MODULE.weight=8                its share of the core, 1 to 1024, with wfq execution
  INPUT.poll_pkts=8              most packets of a poll of its task, 1 to engine.batch_pkts;
                                 also of a queue that a task polls
  FLOW.slo=1ms                   the delay SLO
  GENERATOR.rate=5M              packets per second; also .on, .saturate=true|false,
                                 .weights=3,1
  PORT.SETTING=VALUE             a setting that `show ports` lists for the port
  controller=NAME                controller for triggers and age limits, or none; also
                                 controller.period=10ms, .costs=FILE, .tolerance=0.05, ...
  placement.policy=power         also latency, throughput; .watt_cap=100,
                                 placement.MODULE.policy=latency, .budget=200us, .value=2
  idle=release|hold              when no input arrives: release held packets, or hold them
NAME can be a pattern: 'ttl_*.trigger=8'."""

_OF_MODULE = ("trigger", "age_limit", "weight", "poll_pkts")
_GENERATOR = ("rate", "on", "saturate", "weights")
_FLAGS = {"on": "is_on", "saturate": "is_saturating"}


def parse_settings(words: Sequence[str], names: dict[str, list[str]]) -> list[dict[str, Any]]:
    """The protocol's `set` objects; `names` has the running modules, flows, generators and
    ports."""
    sets: list[dict[str, Any]] = []
    problems: list[Problem] = []
    control = [word for word in words if is_control_word(word.partition("=")[0]) and "=" in word]
    for word in words:
        try:
            sets += [] if word in control else _parse(word, names)
        except BadInput as error:
            problems += error.problems
    if control:
        try:
            sets.append(controller_set(control))
        except BadInput as error:
            problems += error.problems
    if problems:
        raise BadInput(problems)
    return sets


def running_names(client: Client) -> dict[str, list[str]]:
    """The names in a running daemon that settings can refer to."""

    def column(what: str) -> list[str]:
        return [str(row["name"]) for row in client.show(what)]

    return {
        "module": [str(node["name"]) for node in client.show("graph")["nodes"]],
        # `other` collects the packets that follow no declared path; it cannot have an SLO.
        "flow": [name for name in column("flows") if name != "other"],
        "generator": column("generators"),
        "port": column("ports"),
    }


def _parse(word: str, names: dict[str, list[str]]) -> list[dict[str, Any]]:
    left, equals, value = word.partition("=")
    if not equals or not left or not value:
        raise _bad(word, f"'{word}' is not a setting", "NAME.SETTING=VALUE, such as ttl.trigger=8")
    if left == "idle":
        if value not in ("release", "hold"):
            raise _bad(word, f"idle is release or hold, not '{value}'")
        return [{"what": "idle", "mode": value}]
    if left.startswith("placement."):
        return [_placement(word, left.split(".")[1:], value)]
    pattern, dot, setting = left.rpartition(".")
    if not dot or not pattern:
        raise _bad(word, f"'{left}' needs a name", f"NAME.{left}={value}")
    group = _group(setting, pattern, names)
    if group == "port":
        return [
            {"what": "port", "name": name, setting: resolve_plain(value)}
            for name in _matching(word, pattern, names, "port")
        ]
    change = _change(word, setting, value)
    target = {"module": "module", "flow": "flow", "generator": "name"}[group]
    return [{**change, target: name} for name in _matching(word, pattern, names, group)]


def _placement(word: str, names: list[str], value: str) -> dict[str, Any]:
    setting = names[-1]
    if len(names) > 2 or not setting:
        raise _bad(
            word, f"'{'.'.join(names)}' is no setting of placement", "placement.policy=power"
        )
    duration_ns = parse_duration_ns(value)
    change: dict[str, Any] = {"what": "placement"}
    if len(names) == 2:
        change["module"] = names[0]
    if duration_ns is not None:
        change[f"{setting}_ns"] = duration_ns
    else:
        change[setting] = resolve_plain(value)
    return change


def _group(setting: str, pattern: str, names: dict[str, list[str]]) -> str:
    if setting in _OF_MODULE:
        return "module"
    if setting == "slo":
        return "flow"
    is_port = pattern in names.get("port", []) and pattern not in names.get("generator", [])
    if setting in _GENERATOR and not is_port:
        return "generator"
    if fnmatch.filter(names.get("port", []), pattern):
        return "port"
    fix = suggestion(setting, (*_OF_MODULE, "slo", *_GENERATOR), "see batchplane set --help")
    raise _bad(f"{pattern}.{setting}", f"unknown setting '{setting}'", fix)


def _matching(word: str, pattern: str, names: dict[str, list[str]], group: str) -> list[str]:
    known = names.get(group, [])
    found = fnmatch.filter(known, pattern)
    if not found:
        fix = suggestion(pattern, known, f"no {group} has that name" if not known else "")
        raise _bad(word, f"there is no {group} '{pattern}'", fix)
    return found


def _change(word: str, setting: str, value: str) -> dict[str, Any]:
    if setting in ("trigger", "poll_pkts"):
        if not value.isdigit():
            example = "ttl.trigger=8" if setting == "trigger" else "in.poll_pkts=8"
            raise _bad(word, f"'{value}' is not a number of packets", f"for example {example}")
        if setting == "trigger":
            pkts = _within(word, value, int(value), TRIGGER_PKTS)
            return {"what": "trigger", "trigger_pkts": pkts}
        return {"what": "poll_pkts", "poll_pkts": _within(word, value, int(value), POLL_PKTS)}
    if setting == "weight":
        if not value.isdigit() or not WEIGHT.least <= int(value) <= WEIGHT.most:
            raise _bad(word, f"'{value}' is not a weight", f"{WEIGHT.least} to {WEIGHT.most}")
        return {"what": "weight", "weight": int(value)}
    if setting in ("age_limit", "slo"):
        key = "age_limit_ns" if setting == "age_limit" else "delay_slo_ns"
        duration_ns = None if value == "none" else parse_duration_ns(value)
        if duration_ns is None and value != "none":
            raise _bad(word, f"'{value}' is not a duration", "with a unit: 50us, 1ms; or none")
        if duration_ns is not None:
            _within(
                word, value, duration_ns, AGE_LIMIT_NS if setting == "age_limit" else DELAY_SLO_NS
            )
        # 0 removes an SLO; null removes a module's own age limit.
        none = 0 if setting == "slo" else None
        return {"what": setting, key: none if duration_ns is None else duration_ns}
    if setting == "rate":
        rate_pps = parse_scaled(value)
        if rate_pps is None:
            raise _bad(word, f"'{value}' is not a rate", "packets per second: 5M, 250k, 1000")
        _within(word, value, rate_pps, RATE_PPS)
        is_whole = rate_pps.is_integer()
        return {"what": "generator", "rate_pps": int(rate_pps) if is_whole else rate_pps}
    if setting in _FLAGS:
        if value not in ("true", "false", "on", "off"):
            raise _bad(word, f"'{value}' is not true or false")
        return {"what": "generator", _FLAGS[setting]: value in ("true", "on")}
    try:
        weights = [float(part) for part in value.split(",")]
    except ValueError as error:
        raise _bad(word, f"'{value}' are not weights", "for example 3,1,1") from error
    if not all(0 <= weight <= MAX_TRAFFIC_WEIGHT for weight in weights):
        raise _bad(word, f"'{value}' is out of range", f"weights from 0 to {MAX_TRAFFIC_WEIGHT}")
    return {"what": "generator", "weights": weights}


def _within(word: str, text: str, value: Any, limit: Limit) -> Any:
    """The value, if it is within the limit. Raises BadInput."""
    if not limit.least <= value <= limit.most:
        is_time = word.partition("=")[0].endswith((".age_limit", ".slo"))
        least, most = (duration_text(n) if is_time else str(n) for n in limit)
        raise _bad(word, f"'{text[:40]}' is out of range", f"{least} to {most}")
    return value


def _bad(word: str, message: str, fix: str = "") -> BadInput:
    return BadInput(Problem(message, "command line", word, fix))
