# SPDX-License-Identifier: BSD-3-Clause
"""text.py - a plan in words and tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..base.plain_table import plain_table
from ..base.units import short_bits, short_duration, short_rate, three_digits
from ..show.rates import family
from .links import LINK, PlanRow, carried_words, group_name, limit_words, tightest
from .planning import Report, keeps, missed_flows

_MAX_FLOWS = 8
_MAX_GROUPS = 16
_WORTH_TELLING = 0.01


def render_plan(report: Report) -> RenderableType:
    """The whole plan."""
    parts: list[RenderableType] = [_headline(report), _origin(report)]
    parts += [Text(""), _comparison(report)]
    parts += [Text(""), _flows(report), *_binding(report)]
    if report.plan["links"]:
        parts += [Text(""), _links(report)]
    parts += [Text(""), _modules(report)]
    parts += [Text(""), _changes(report)]
    if report.cores is not None:
        parts += [Text(""), _cores(report)]
    return Group(*parts)


def missed_lines(report: Report) -> list[str]:
    """For each group of flows whose SLO is not met: why, and what would help."""
    rows = [{**row, "is_inherent": row["state"] == "inherent"} for row in report.missed]
    return [
        _missed_line(report, members)
        for members in _groups(rows, ("flow",), ("slo_ns", "is_inherent"))
    ]


def _missed_line(report: Report, members: list[PlanRow]) -> str:
    worst = max(members, key=lambda row: row["measured_ns"])
    flows = group_name([row["flow"] for row in members])
    who = f"{flows}: an SLO of {short_duration(worst['slo_ns'])}"
    if worst["is_inherent"]:
        least = short_duration(max(row["min_ns"] for row in members))
        if worst["link_ns"]:
            return (
                f"{who} is below what its modules and the link take: {least} for one packet, of "
                f"which '{worst['link']}' may take {short_duration(worst['link_ns'])} (a larger "
                f"share of the link, or an SLO of {_min_slo(report, worst)})"
            )
        return (
            f"{who} is below the inherent delay: its modules alone take {least} for "
            f"one packet (cheaper modules, or an SLO of {_min_slo(report, worst)})"
        )
    waits = f"waiting for the link '{worst['link']}'"
    terms = {
        "turnaround (waiting for other work)": worst["turnaround_ns"],
        "filling": worst["fill_ns"],
        "service": worst["service_ns"],
        waits: worst["link_ns"] or 0,
    }
    most = max(terms, key=lambda name: terms[name])
    fix = "a larger share of the link" if most == waits else "cheaper modules"
    return (
        f"{who} cannot be met {_load(report)}: the delay is "
        f"{short_duration(worst['measured_ns'])}, most of it {most} ({fix}, less load, or an SLO "
        f"of {_min_slo(report, worst)})"
    )


def _load(report: Report) -> str:
    is_full = report.plan["limited_by"] != LINK
    return "at full load" if is_full else "at the rate of the link"


def _min_slo(report: Report, row: PlanRow) -> str:
    if report.min_factor is None:
        return "much more"
    told = short_duration(report.min_factor * row["slo_ns"])
    is_one = len({ns for ns in report.slo_ns.values() if ns}) == 1
    return told if is_one else f"{told}, with all other SLOs raised by the same factor"


def _headline(report: Report) -> Text:
    plan = report.plan
    null = next(row for row in report.baselines if row["controller"] == "null")
    workers = plan["workers"]
    who = "one core" if len(workers) == 1 else f"{len(workers)} workers"
    if plan["limited_by"] == LINK:
        return _link_headline(report, who)
    text = Text.assemble(
        (report.name, "bold"),
        ", planned: ",
        f"{who} {'carries' if len(workers) == 1 else 'carry'} ",
        (short_rate(plan["rate_pps"]), "bold red" if report.missed else "bold green"),
        f", {three_digits(1e9 / plan['rate_pps'])} ns per packet",
    )
    gain = plan["rate_pps"] / null["rate_pps"]
    if abs(gain - 1) > _WORTH_TELLING:
        text.append(f", {three_digits(gain)} times the rate without buffers")
    else:
        text.append(", the same as without buffers: none pays off here")
    if report.missed:
        text.append(f"; {len(report.missed)} of its SLOs cannot be met", "red")
    if len(workers) > 1:
        loads = ", ".join(f"{row['name']} {row['load']:.0%}" for row in workers)
        text.append(f" (load: {loads})")
    return text


def _link_headline(report: Report, who: str) -> Text:
    plan, tight = report.plan, tightest(report.plan)
    assert tight is not None
    text = Text.assemble(
        (report.name, "bold"),
        f", planned: {limit_words(tight)} carries ",
        (short_rate(plan["rate_pps"]), "bold red" if report.missed else "bold green"),
        f" ({carried_words(tight)}); {who} could carry {short_rate(plan['core_pps'])}",
    )
    if report.missed:
        text.append(f"; {len(report.missed)} of its SLOs cannot be met", "red")
    loads = ", ".join(f"{row['name']} {row['load']:.0%}" for row in plan["workers"])
    return text.append(f" (load: {loads})")


def _origin(report: Report) -> Text:
    assumed = report.assumed
    if not assumed:
        return Text(f"{report.origin}; SLOs are about the {_percentile(report)} of delays", "dim")
    work = short_duration(assumed["work_ns"])
    guess = "" if assumed["is_work_given"] else ", assumed (--work TIME)"
    what = "one branch" if assumed["branches"] == 1 else f"{assumed['branches']} equal branches"
    return Text(
        f"{what}, batchiness {assumed['batchiness']:g}, bursts of "
        f"{assumed['burst_pkts']:g} packets per branch; a branch takes {work} for one "
        f"packet{guess}; {report.origin}",
        "dim",
    )


def _percentile(report: Report) -> str:
    if report.percentile <= 0:
        return "mean"
    return "longest" if report.percentile >= 1 else f"p{report.percentile * 100:g}"


def _comparison(report: Report) -> RenderableType:
    percentile = _percentile(report)
    table = plain_table("<", "rate", "ns/packet", f"worst {percentile} / SLO", "<SLOs")
    null = next(row for row in report.baselines if row["controller"] == "null")
    rows = [null, *(row for row in report.baselines if row is not null), report.plan]
    names = {"null": "no buffers", "max": "full batches", "optimal": "planned triggers"}
    for row in rows:
        is_plan = row is report.plan
        is_kept = not report.missed if is_plan else keeps(row, 1.0)
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
            three_digits(1e9 / row["core_pps"]),
            "-" if part is None else f"{part:.0%}",
            Text("kept", "green") if is_kept else Text("not kept", "red"),
        )
    return table


def _flows(report: Report) -> RenderableType:
    links = ("link",) if report.plan["links"] else ()
    table = plain_table(
        "<flow", "SLO", _percentile(report), "turnaround", "filling", "service", *links, "traffic",
        "1 us more buys", "<",
    )  # fmt: skip
    missed = {row["flow"] for row in report.missed}
    rows = sorted(
        report.plan["flows"],
        key=lambda row: (row["flow"] not in missed, -(row.get("multiplier_pps_per_us") or 0)),
    )
    for row in rows:
        row["is_missed"] = row["flow"] in missed
    groups = list(_groups(rows, ("flow",), ("slo_ns", "is_missed")))
    for members in groups[:_MAX_FLOWS]:
        worst = max(members, key=lambda row: row["measured_ns"])
        price = sum(row.get("multiplier_pps_per_us") or 0 for row in members)
        table.add_row(
            group_name([row["flow"] for row in members]),
            short_duration(worst["slo_ns"] or None),
            short_duration(worst["measured_ns"] or None),
            short_duration(worst["turnaround_ns"]),
            short_duration(worst["fill_ns"]),
            short_duration(worst["service_ns"]),
            *(_link_time(worst) for _ in links),
            f"{sum(row['share'] for row in members):.0%}",
            short_rate(price) if price else "",
            Text("cannot be met", "red") if worst["is_missed"] else "",
        )
    if len(groups) > _MAX_FLOWS:
        table.add_row(Text(f"and {len(groups) - _MAX_FLOWS} more", "dim"))
    return table


def _link_time(row: PlanRow) -> str:
    if row["link"] is None:
        return "-"
    return "no bound" if row["link_ns"] is None else short_duration(row["link_ns"])


def _links(report: Report) -> RenderableType:
    table = plain_table("<link", "limit", "<of", "bytes/packet", "packets", "full at", "load")
    for row in report.plan["links"]:
        has_limit = row["most_pps"] is not None
        table.add_row(
            row["link"],
            short_bits(row["limit_bps"]) if has_limit else "none",
            row["limited_by"] or "",
            three_digits(row["wire_bytes_per_pkt"]),
            f"{row['share']:.0%}",
            short_rate(row["most_pps"]) if has_limit else "",
            f"{row['load']:.0%}" if has_limit else "",
        )
    return table


def _binding(report: Report) -> list[RenderableType]:
    prices = {row["flow"]: row.get("multiplier_pps_per_us") or 0.0 for row in report.plan["flows"]}
    total = sum(prices.values())
    if total <= 0 and report.missed:
        return []  # missed_lines() reports what is missed and what would help
    if report.plan["limited_by"] == LINK:
        return [Text("what binds: the link; more time would buy nothing", "cyan")]
    if total <= 0:
        factor, most = max(report.near, key=lambda point: point[1]["rate_pps"])
        gain = most["rate_pps"] / report.plan["rate_pps"] - 1
        told = "no SLO binds: more time would buy nothing"
        if factor > 1 and gain > _WORTH_TELLING:
            told = (
                "a microsecond more would buy nothing: where a buffer does not pay now it takes "
                f"much more; SLOs {factor:g} times as long would add {gain:.1%}"
            )
        return [Text(told, "cyan")]
    first = max(prices, key=lambda flow: prices[flow])
    n = sum(1 for price in prices.values() if price > 0)
    who = first if n == 1 else f"{first} and {n - 1} more {'flow' if n == 2 else 'flows'}"
    return [
        Text(
            f"what binds: {who}; 1 us more for every flow would add "
            f"{short_rate(total)} ({total / report.plan['rate_pps']:.1%})",
            "cyan",
        )
    ]


def _modules(report: Report) -> RenderableType:
    table = plain_table(
        "<buffer before", "arriving", "trigger", "batch", "by age", "age limit", "batchiness",
        "<why",
    )  # fmt: skip
    rows = [row for row in report.plan["modules"] if row["is_controlled"]]
    for row in rows:
        row["reason"] = _why(row)
    groups = list(_groups(rows, ("module",), ("reason",)))
    for members in groups[:_MAX_GROUPS]:
        triggers = [row["trigger_pkts"] for row in members]
        is_held = max(triggers) > 0
        table.add_row(
            group_name([row["module"] for row in members]),
            _range(row["arriving_pkts"] for row in members),
            Text(_whole_range(triggers), "bold") if is_held else Text("none", "dim"),
            _range(row["batch_pkts"] for row in members),
            f"{max(row['aged_share'] for row in members):.0%}" if is_held else "",
            short_duration(min(row["age_limit_ns"] for row in members) or None) if is_held else "",
            _range(_batchiness(row) for row in members),
            Text(members[0]["reason"], "" if is_held else "dim"),
        )
    if len(groups) > _MAX_GROUPS:
        table.add_row(Text(f"and {len(groups) - _MAX_GROUPS} more", "dim"))
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
        no_time = "does not pay off: no SLO leaves time for it"
        told = {
            "": no_time,
            "a flow's budget": no_time,
            "nothing is left of a budget": no_time,
            "batches arrive large enough": "does not pay off: holding costs more than it saves",
            "larger batches gain nothing": "does not pay off: larger batches gain nothing",
            "no traffic": "no traffic arrives here",
        }.get(why, why)
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
        note = f"  {n} {'SLO' if n == 1 else 'SLOs'} cannot be met" if n else ""
        add(_slo_words(report, factor), plan, note)
    for branch, plan in report.branches:
        add(
            f"one fewer branch behind {branch.splitter}: {branch.siblings - 1} for "
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
        f", {each} {cores.load:.0%} of its capacity. An estimate: every core runs the whole "
        "pipeline on an equal share of the flows",
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


def _range(values: Iterable[float]) -> str:
    known = sorted(values)
    low, high = three_digits(known[0]), three_digits(known[-1])
    # Values that differ only by chance are shown as one.
    if known[-1] <= 1.1 * known[0]:
        return three_digits(sum(known) / len(known))
    return f"{low}-{high}"


def _whole_range(values: Iterable[int]) -> str:
    known = sorted(values)
    return str(known[0]) if known[0] == known[-1] else f"{known[0]}-{known[-1]}"
