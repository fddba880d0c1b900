# SPDX-License-Identifier: BSD-3-Clause
"""control.py - SLOs and whether they are met, the controller's actions, and the reasons."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..base.plain_table import plain_table
from ..base.units import short_bits, short_count, short_duration, short_rate, three_digits

_STATE_STYLES = {"met": "green", "violating": "red", "infeasible": "red", "inherent": "red"}
_MAX_FLOWS_REPORTED = 16
_MAX_DRIFTING = 6


def signed_duration(ns: float | None) -> str:
    """A duration that may be negative."""
    return f"-{short_duration(-ns)}" if ns is not None and ns < 0 else short_duration(ns)


def _state(row: dict[str, Any], key: str = "state") -> Text:
    state = str(row[key])
    return Text(state.replace("_", " "), _STATE_STYLES.get(state, ""))


def _of_periods(row: dict[str, Any]) -> str:
    if row.get("periods") is None:
        return "-"
    stalled = row.get("stalled_periods")
    held_up = f" ({stalled} held up)" if stalled else ""
    return f"{row['violated_periods']} of {row['periods']}{held_up}"


def render_slo(rows: list[dict[str, Any]]) -> RenderableType:
    """`show slo`: a row for each flow."""
    table = plain_table(
        "<flow", "SLO", "now", "headroom", "last p50", "p99", "worst", "all p50", "p99", "worst",
        "packets", "late", "violated periods", "<since", "<last",
    )  # fmt: skip
    hints: list[RenderableType] = []
    for row in rows:
        late = row.get("late_ratio")
        table.add_row(
            row["flow"],
            short_duration(row["slo_ns"] or None),
            short_duration(row.get("delay_ns")),
            signed_duration(row.get("headroom_ns")),
            *_delays(row.get("last") or {}),
            short_duration(row.get("p50_ns")),
            short_duration(row.get("p99_ns")),
            short_duration(row.get("delay_max_ns")),
            short_count(row["pkts"]),
            "-"
            if late is None or not row["slo_ns"]
            else f"{short_count(row['late_pkts'])} ({late:.2%})",
            _of_periods(row) if row["slo_ns"] else "-",
            _state(row, "state_since"),
            _state(row),
        )
        if row.get("hint"):
            hints.append(Text(f"{row['flow']}: {row['hint']}", "yellow"))
    if not rows:
        return Text("the pipeline declares no flows (add flows: to its file)", "dim")
    percentile = rows[0].get("percentile")
    told = []
    if percentile is not None:
        which = f"p{percentile * 100:g}" if percentile > 0 else "mean"
        is_controlled = any(row.get("periods") is not None for row in rows)
        since = "the controller or the SLO was set" if is_controlled else "the start"
        told = [
            Text(
                f"now: {which} of the last period; headroom: SLO minus now; last: last period; "
                f"all, packets, late, since: since {since}; held up: by the machine",
                "dim",
            )
        ]
    return Group(table, *hints, *told)


def _delays(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(short_duration(row.get(key)) for key in ("p50_ns", "p99_ns", "delay_max_ns"))


def _times(value: dict[str, Any] | None) -> str:
    if not value:
        return "-"
    return f"{short_duration(value['median'])} median, {short_duration(value['p99'])} p99"


def render_control(data: dict[str, Any]) -> RenderableType:
    """`show control`: the controller, its costs, its last decisions, and its faults."""
    if data["controller"] == "none":
        return Text("no controller is running (batchplane set controller=optimal)", "dim")
    lines: list[RenderableType] = [
        Text.assemble(
            (controller_name(data), "bold"),
            f" every {short_duration(data['period_ns'])}, p{data['percentile'] * 100:g} of delays, "
            f"costs: {data.get('costs') or 'sampled runs'}",
        ),
        _step_costs(data),
    ]
    if data.get("has_program") is False:
        lines.append(Text("no program is connected: the last decision stays in force", "yellow"))
    if data.get("predicted_pps"):
        lines.append(
            Text(
                f"model prediction: load {data['predicted_load']:.0%}, at most "
                f"{short_rate(data['predicted_pps'])}"
            )
        )
    drifting = data.get("drifting", [])
    for row in drifting[:_MAX_DRIFTING]:
        lines.append(
            Text(
                f"{row['module']} takes {three_digits(row['drift_ratio'])} times its profiled cost",
                "yellow",
            )
        )
    if len(drifting) > _MAX_DRIFTING:
        lines.append(Text(f"and {len(drifting) - _MAX_DRIFTING} more modules", "yellow"))
    for event in data.get("events", []):
        lines.append(_event(event))
    return Group(*lines, _decisions(data.get("decisions", [])))


def controller_name(control: dict[str, Any]) -> str:
    """The name that users know: for a program its file."""
    return str(control.get("label") or control["controller"])


def _step_costs(data: dict[str, Any]) -> RenderableType:
    """The duration of a step, part by part, and its share of the worker's time."""
    table = plain_table("<one step", "median", "p99", "longest")
    parts = (
        ("read counters", "count_ns"), ("run controller", "controller_ns"),
        ("change buffers", "apply_ns"), ("total", "step_ns"),
    )  # fmt: skip
    for label, key in parts:
        times = data.get(key) or {}
        table.add_row(label, *[short_duration(times.get(k)) for k in ("median", "p99", "max")])
    failed = data.get("failed_steps", 0)
    told = f"{data['steps']} steps" + (f", {failed} failed" if failed else "")
    return Group(Text(f"{told}; control uses {data['worker_ratio']:.2%} of a worker's time"), table)


def _event(event: dict[str, Any]) -> Text:
    times = f"{event['times']} times, last " if event["times"] > 1 else ""
    at = f" ({times}in period {event['period']})" if event.get("period") else ""
    return Text(f"event: {event['message']}{at}", "red")


def _decisions(decisions: list[dict[str, Any]], max_changes: int = 6) -> RenderableType:
    if not decisions:
        return Text("no decision has made a change yet", "dim")
    last_ns = decisions[-1]["now_ns"]
    table = plain_table("ago", "<module", "trigger", "age limit", "credit", "polls", "<why")
    for decision in decisions:
        ago = short_duration(last_ns - decision["now_ns"]) if decision["now_ns"] != last_ns else ""
        rows = _changes(decision)
        for row in rows[:max_changes]:
            table.add_row(ago or "last", *row)
            ago = " "
        if len(rows) > max_changes:
            more = Text(f"and {len(rows) - max_changes} more", "dim")
            table.add_row("", more, "", "", "", "", "")
    return Group(Text("last decisions that made a change", "bold"), table)


def _changes(decision: dict[str, Any]) -> list[tuple[str, ...]]:
    """Module, trigger, age limit, credit, polls and why of each change."""
    rows: list[tuple[str, ...]] = []
    for change in decision["changes"]:
        is_same = change["from_age_ns"] == change["to_age_ns"]
        age = "" if is_same else short_duration(change["to_age_ns"] or None)
        rows.append((change["module"], _from_to(change), age, "", "", change["reason"]))
    for change in decision.get("credits", []):
        rows.append((change["module"], "", "", _from_to(change), "", ""))
    for change in decision.get("polls", []):
        rows.append((", ".join(change["inputs"]), "", "", "", _from_to(change), ""))
    return rows


def _from_to(change: dict[str, Any]) -> str:
    if change["from_pkts"] == change["to_pkts"]:
        return str(change["to_pkts"])
    return f"{change['from_pkts']} -> {change['to_pkts']}"


def render_explain(data: dict[str, Any]) -> RenderableType:
    """`explain`: the delay budget of flows term by term, and the reason for each trigger."""
    parts: list[RenderableType] = [Text(str(data["controller"]), "bold")]
    for row in data["flows"]:
        parts += [Text(""), *_flow(row)]
    if data["modules"]:
        parts += [Text(""), _modules(data["modules"]), *_holding(data)]
    return Group(*parts, Text(""), _decisions(data["decisions"]))


def _heaviest(module: dict[str, Any]) -> str:
    """The port or module behind the buffer that takes most of the service, if it is another one."""
    if module["heaviest"] == module["module"]:
        return ""
    return f"{short_duration(module['heaviest_ns'])} of it in {module['heaviest']}"


def _flow(row: dict[str, Any]) -> list[RenderableType]:
    slo_ns = row["slo_ns"]
    head = Text.assemble((str(row["flow"]), "bold"), "  ", _state(row))
    if slo_ns:
        head.append(f"  SLO {short_duration(slo_ns)}")
    if row.get("measured_ns"):
        head.append(f", measured {short_duration(row['measured_ns'])}")
    table = plain_table("<", "", "<")
    table.show_header = False
    table.add_row("ring and turnaround", short_duration(row["turnaround_ns"]), "")
    for module in row.get("modules", []):
        table.add_row(
            f"{module['module']}: fill", short_duration(module["fill_ns"]),
            f"for {module['trigger_pkts']} packets" if module["trigger_pkts"] else "no buffer",
        )  # fmt: skip
        table.add_row(
            f"{module['module']}: service", short_duration(module["service_ns"]), _heaviest(module)
        )
    if not row.get("modules"):
        table.add_row("fill", short_duration(row["fill_ns"]), "")
        table.add_row("service", short_duration(row["service_ns"]), "")
    if row.get("bias_ns"):
        beyond = "shorter than the model predicts" if row["bias_ns"] < 0 else "beyond the model"
        table.add_row("measured", signed_duration(row["bias_ns"]), beyond)
    if egress := row.get("egress"):
        table.add_row(*_egress(egress))
    if slo_ns:
        margin = row.get("margin_ns")
        told = f"{short_duration(margin)} of it is margin" if margin else ""
        table.add_row("slack", signed_duration(row["slack_ns"]), told)
    lines: list[RenderableType] = [head, table]
    if row.get("legs"):
        lines.append(_legs(row["legs"]))
    if row["multiplier_pps_per_us"]:
        gain = short_rate(row["multiplier_pps_per_us"])
        lines.append(Text(f"1 us more SLO would add {gain}", "cyan"))
    if row.get("hint"):
        lines.append(Text(str(row["hint"]), "yellow"))
    return lines


def _egress(row: dict[str, Any]) -> tuple[str, str, str]:
    """The delay bound of the scheduler on a flow's path."""
    share = f"{short_bits(row['share_bps'])} are its share" if row["share_bps"] else ""
    if row["bound_ns"] is None:
        return "egress: at most", "-", share or "no share is promised"
    beyond = "; it sends more, so that its queue grows" if row["is_beyond_share"] else ""
    return "egress: at most", short_duration(row["bound_ns"]), share + beyond


def _legs(rows: list[dict[str, Any]]) -> RenderableType:
    """The delay budget of each task."""
    table = plain_table("task", "<up to", "budget", "measured", "1 us more saves")
    for row in rows:
        saved = row["load_per_us"]
        table.add_row(
            str(row["task"]), str(row["ends_at"]), short_duration(row["budget_ns"]),
            short_duration(row["measured_ns"]), f"{saved:.2%} of a core" if saved else "",
        )  # fmt: skip
    return table


def _modules(rows: list[dict[str, Any]]) -> RenderableType:
    table = plain_table(
        "<module", "trigger", "age limit", "arriving", "batch", "ns = per batch", "+ per packet",
        "1 us adds", "<why",
    )  # fmt: skip
    for row in rows:
        binding = f": {row['binding_flow']}" if row.get("binding_flow") else ""
        why = f"{row.get('why') or row.get('last_reason', '')}{binding}"
        price = row.get("multiplier_pps_per_us")
        table.add_row(
            row["module"],
            str(row.get("trigger_pkts", "-")),
            short_duration(row.get("age_limit_ns") or None),
            *[
                "-" if row.get(key) is None else three_digits(row[key])
                for key in (
                    "arrived_mean_pkts",
                    "batch_mean_pkts",
                    "cost_per_batch_ns",
                    "cost_per_pkt_ns",
                )
            ],
            short_rate(price) if price else "",
            why,
        )
    return table


def _holding(data: dict[str, Any]) -> list[RenderableType]:
    """The cost of holding a packet."""
    lines: list[RenderableType] = []
    hold_ns = max((row.get("hold_ns") or 0.0 for row in data["modules"]), default=0.0)
    if hold_ns:
        lines.append(Text(f"cost of holding a packet: {three_digits(hold_ns)} ns"))
    return lines


def slo_lines(report: dict[str, Any]) -> list[RenderableType]:
    """How each SLO was met, for the final report; nothing without a controller."""
    control, rows = report.get("control") or {}, report.get("slo") or []
    if control.get("controller", "none") == "none":
        return []
    told: list[RenderableType] = [
        Text.assemble(
            ("\ncontroller ", ""),
            (controller_name(control), "bold"),
            f": {control['steps']} steps, {_times(control['step_ns'])} each, "
            f"{control['worker_ratio']:.2%} of a worker's time",
        )
    ]
    promised = [row for row in rows if row["slo_ns"]]
    for row in promised[:_MAX_FLOWS_REPORTED]:
        late = row.get("late_ratio") or 0.0
        text = Text.assemble(
            f"{row['flow']}: SLO {short_duration(row['slo_ns'])} ",
            _state(row, "state_since"),
            f", {late:.2%} of {short_count(row['pkts'])} packets late, "
            f"{row['violated_periods']} of {row['periods']} periods violated",
        )
        if row.get("stalled_periods"):
            text.append(f", {row['stalled_periods']} of them while the machine held the worker up")
        if row.get("excess_ratio") is not None:
            text.append(f", the others by {row['excess_ratio']:.0%} on average")
        told.append(text)
        if row.get("hint"):
            told.append(Text(f"  {row['hint']}", "yellow"))
    if len(promised) > _MAX_FLOWS_REPORTED:
        told.append(Text(f"and {len(promised) - _MAX_FLOWS_REPORTED} more flows", "dim"))
    return told + [_event(event) for event in control.get("events", [])]
