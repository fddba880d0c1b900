# SPDX-License-Identifier: BSD-3-Clause
"""plan_text.py - a plan in words and tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from .plain_table import plain_table
from .planning import PlanRow, Report, keeps, missed_flows
from .rates import family
from .units import short_duration, short_rate, three_digits

_MOST_FLOWS = 8
_MOST_GROUPS = 16
_BATCH_FROM = 1.0


def render_plan(report: Report) -> RenderableType:
    """All of it."""
    parts: list[RenderableType] = [_headline(report), _origin(report)]
    parts += [Text(""), _comparison(report)]
    parts += [Text(""), _flows(report), *_binding(report)]
    parts += [Text(""), _modules(report)]
    parts += [Text(""), _changes(report)]
    if report.cores is not None:
        parts += [Text(""), _cores(report)]
    return Group(*parts)


def missed_line(report: Report, flow: PlanRow) -> str:
    """Why a flow's SLO cannot be kept at full load, and what would help."""
    slo = short_duration(flow["slo_ns"])
    if flow["state"] == "inherent":
        return (
            f"{flow['flow']}: an SLO of {slo} is below the inherent delay: its modules alone take "
            f"{short_duration(flow['least_ns'])} for one packet (cheaper modules, or an SLO above "
            "that)"
        )
    terms = {
        "turnaround": flow["turnaround_ns"],
        "filling": flow["fill_ns"],
        "service": flow["service_ns"],
    }
    name, most_ns = max(terms.items(), key=lambda term: term[1])
    if report.least_factor is not None:
        fix = f"an SLO of {short_duration(report.least_factor * flow['slo_ns'])} can be"
        if len({ns for ns in report.slo_ns.values() if ns}) > 1:
            fix = f"all SLOs {three_digits(report.least_factor)} times as long can be"
    else:
        fix = "another SLO, or fewer branches"
    return (
        f"{flow['flow']}: an SLO of {slo} cannot be kept at full load: {name} alone takes "
        f"{short_duration(most_ns)} ({fix}; cheaper modules elsewhere in the task help as well)"
    )


def _headline(report: Report) -> Text:
    plan = report.plan
    null = next(row for row in report.baselines if row["controller"] == "null")
    workers = plan["workers"]
    who = "one core" if len(workers) == 1 else f"{len(workers)} workers"
    text = Text.assemble(
        (report.name, "bold"),
        ", planned: ",
        f"{who} {'carries' if len(workers) == 1 else 'carry'} ",
        (short_rate(plan["rate_pps"]), "bold red" if report.missed else "bold green"),
        f", {three_digits(1e9 / plan['rate_pps'])} ns for each packet, "
        f"{three_digits(plan['rate_pps'] / null['rate_pps'])} times as much as without buffers",
    )
    if report.missed:
        text.append(f"; {len(report.missed)} of its SLOs cannot be kept", "red")
    if len(workers) > 1:
        loads = ", ".join(f"{row['name']} {row['load']:.0%}" for row in workers)
        text.append(f" (load: {loads})")
    return text


def _origin(report: Report) -> Text:
    assumed = report.assumed
    if not assumed:
        return Text(f"{report.origin}; p{report.percentile * 100:g} of delays", "dim")
    work = short_duration(assumed["work_ns"])
    guess = "" if assumed["is_work_given"] else ", assumed (--work TIME)"
    return Text(
        f"{assumed['branches']} equal branches, batchiness {assumed['batchiness']:g}, packets for "
        f"one branch come {assumed['burst_pkts']:g} in a row; a branch takes {work} for one "
        f"packet{guess}; {report.origin}",
        "dim",
    )


def _comparison(report: Report) -> RenderableType:
    table = plain_table("<", "rate", "ns/packet", "of the SLO at most", "<SLOs")
    null = next(row for row in report.baselines if row["controller"] == "null")
    rows = [null, *(row for row in report.baselines if row is not null), report.plan]
    names = {"null": "no buffers", "max": "full batches", "optimal": "planned triggers"}
    for row in rows:
        is_plan = row is report.plan
        is_kept = (
            not missed_flows(row) if is_plan else keeps(row, report.slo_ns, report.percentile)
        )
        part = max(
            (
                flow["measured_ns"] / flow["slo_ns"]
                for flow in row["flows"]
                if flow["slo_ns"] and flow["measured_ns"]
            ),
            default=None,
        )
        table.add_row(
            Text(names[row["controller"]], "bold" if is_plan else ""),
            Text(short_rate(row["rate_pps"]), "bold" if is_plan else ""),
            three_digits(1e9 / row["rate_pps"]),
            "-" if part is None else f"{part:.0%}",
            Text("kept", "green") if is_kept else Text("not kept", "red"),
        )
    return table


def _flows(report: Report) -> RenderableType:
    table = plain_table(
        "<flow", "SLO", "planned delay", "= turnaround", "+ filling", "+ service", "share",
        "1 us more buys", "<",
    )  # fmt: skip
    rows = sorted(
        report.plan["flows"],
        key=lambda row: (row not in report.missed, -(row.get("multiplier_pps_per_us") or 0)),
    )
    groups = list(_groups(rows, ("flow",), ("slo_ns", "state")))
    for members in groups[:_MOST_FLOWS]:
        worst = max(members, key=lambda row: row["delay_ns"])
        price = sum(row.get("multiplier_pps_per_us") or 0 for row in members)
        state = str(worst.get("state", ""))
        table.add_row(
            _names([row["flow"] for row in members]),
            short_duration(worst["slo_ns"] or None),
            short_duration(worst["delay_ns"]),
            short_duration(worst["turnaround_ns"]),
            short_duration(worst["fill_ns"]),
            short_duration(worst["service_ns"]),
            f"{sum(row['share'] for row in members):.0%}",
            short_rate(price) if price else "",
            Text("cannot be kept", "red") if state in ("infeasible", "inherent") else "",
        )
    if len(groups) > _MOST_FLOWS:
        table.add_row(Text(f"and {len(groups) - _MOST_FLOWS} more", "dim"))
    return table


def _binding(report: Report) -> list[RenderableType]:
    prices = {
        row["flow"]: row.get("multiplier_pps_per_us") or 0.0 for row in report.plan["flows"]
    }
    total = sum(prices.values())
    if total <= 0:
        return [Text("no SLO binds: more time would buy nothing", "cyan")]
    first = max(prices, key=lambda flow: prices[flow])
    n = sum(1 for price in prices.values() if price > 0)
    who = first if n == 1 else f"{first} most of {n}"
    return [
        Text(
            f"what binds: {who}; one more microsecond for every flow would buy "
            f"{short_rate(total)} ({total / report.plan['rate_pps']:.1%})",
            "cyan",
        )
    ]


def _modules(report: Report) -> RenderableType:
    table = plain_table(
        "<buffer before", "packets arrive by", "trigger", "batch", "age limit", "batchiness",
        "<why",
    )  # fmt: skip
    rows = [row for row in report.plan["modules"] if row["is_controlled"]]
    for row in rows:
        row["reason"] = _why(row)
    groups = list(_groups(rows, ("module",), ("reason",)))
    for members in groups[:_MOST_GROUPS]:
        triggers = [row["trigger_pkts"] for row in members]
        is_held = max(triggers) > 0
        table.add_row(
            _names([row["module"] for row in members]),
            _range(row["arriving_pkts"] for row in members),
            Text(_whole_range(triggers), "bold") if is_held else Text("none", "dim"),
            _range(row["batch_pkts"] for row in members),
            short_duration(min(row["age_limit_ns"] for row in members) or None),
            _range(_batchiness(row) for row in members),
            Text(members[0]["reason"], "" if is_held else "dim"),
        )
    if len(groups) > _MOST_GROUPS:
        table.add_row(Text(f"and {len(groups) - _MOST_GROUPS} more", "dim"))
    if not rows:
        return Text(
            "no module has a buffer: nothing splits the traffic, so batches arrive whole", "dim"
        )
    return table


def _why(row: PlanRow) -> str:
    why = str(row.get("why") or "")
    if row["trigger_pkts"] > 0:
        told = {
            "a flow's budget": "as large as the SLO allows",
            "turnaround of other flows": "as large as other flows' turnaround allows",
        }.get(why, why)
    else:
        told = {
            "batches arrive large enough": "does not pay: batches arrive large enough",
            "no traffic": "no traffic comes here",
        }.get(why, "does not pay: no SLO leaves time for it")
    if row["aged_share"] >= 0.05:
        told += f"; {row['aged_share']:.0%} of its batches leave early, by age"
    return told


def _batchiness(row: PlanRow) -> float:
    both = row.get("cost_per_batch_ns", 0.0) + row.get("cost_per_pkt_ns", 0.0)
    return row.get("cost_per_pkt_ns", 0.0) / both if both > 0 else 0.0


def _changes(report: Report) -> RenderableType:
    table = plain_table("<what if", "rate", "<")
    now = report.plan["rate_pps"]

    def add(what: str, plan: PlanRow, note: str = "") -> None:
        gain = plan["rate_pps"] / now - 1
        style = "green" if gain > 0.005 else "red" if gain < -0.005 else "dim"
        table.add_row(
            what, short_rate(plan["rate_pps"]), Text(f"{gain:+.1%}", style).append(note, "red")
        )

    for factor, plan in report.near:
        n = len(missed_flows(plan))
        add(_slo_words(report, factor), plan, f"  {n} SLOs cannot be kept" if n else "")
    for branch, plan in report.branches:
        add(
            f"one branch less behind {branch.splitter}: {branch.siblings - 1} for "
            f"{branch.siblings}",
            plan,
        )
    return table


def _slo_words(report: Report, factor: float) -> str:
    times = sorted({ns for ns in report.slo_ns.values() if ns})
    if len(times) == 1:
        return f"SLO {short_duration(times[0] * factor)}"
    return f"all SLOs x {factor:g}"


def _cores(report: Report) -> Text:
    cores = report.cores
    assert cores is not None
    n = f"{cores.cores} cores" if cores.cores > 1 else "one core"
    each = "each at" if cores.cores > 1 else "at"
    return Text.assemble(
        f"{short_rate(cores.offered_pps)} offered need ",
        (n, "bold"),
        f", {each} {cores.load:.0%} of what it carries - an estimate: every core runs the whole "
        "pipeline on its even share of the flows",
    )


# --- alike rows together --------------------------------------------------------------------------


def _groups(
    rows: Iterable[PlanRow], names: tuple[str, ...], keys: tuple[str, ...]
) -> Iterable[list[PlanRow]]:
    found: dict[tuple[Any, ...], list[PlanRow]] = {}
    for row in rows:
        kin = tuple(family(str(row[name])) for name in names)
        found.setdefault((*kin, *(row.get(key) for key in keys)), []).append(row)
    return found.values()


def _names(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{family(names[0])} ({len(names)})"


def _range(values: Iterable[float]) -> str:
    known = sorted(values)
    low, high = three_digits(known[0]), three_digits(known[-1])
    # What differs by chance is one number.
    if known[-1] <= 1.1 * known[0]:
        return three_digits(sum(known) / len(known))
    return f"{low}-{high}"


def _whole_range(values: Iterable[int]) -> str:
    known = sorted(values)
    return str(known[0]) if known[0] == known[-1] else f"{known[0]}-{known[-1]}"
