# SPDX-License-Identifier: BSD-3-Clause
"""test_view.py - the views as text, from made-up snapshots."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType
from snapshots import HELLO, snapshot

from batchplane.base.units import (
    duration_text,
    parse_duration_ns,
    parse_scaled,
    short_count,
    short_duration,
    short_rate,
)
from batchplane.show.graph import graph_dot
from batchplane.show.rates import compute_rates, family, in_order_of_the_way
from batchplane.show.report import render_report, render_trace, report_json
from batchplane.show.sessions import render_ended
from batchplane.show.tables import WHAT, render_show
from batchplane.show.view import facts_line, plain_line, render_live


def text_of(renderable: RenderableType, width: int = 130) -> list[str]:
    console = Console(file=io.StringIO(), width=width, no_color=True, highlight=False)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_live_view() -> None:
    assert text_of(render_live(snapshot(1), snapshot(2), HELLO, 2.0, 10)) == [
        "demo  2 of 10 s",
        "in 1.00 Mpps   out 998 kpps   dropped 2.00 kpps   held 9   w0 62% busy   load refused 10 pps",
        "module    kind          rate  batch  ns/pkt  core    dropped",
        "in        port_in  1.00 Mpps    8.0    3.00    0%",
        "ttl_* x5  ttl      1.00 Mpps    8.0    6.00    1%  2.00 kpps",
        "out       sink     1.00 Mpps    8.0       -     -",
        "",
        "flow            rate      SLO     mean      p50      p95      p99  p99.9      max   late",
        "flow_* x5  1.00 Mpps  1.00 ms  4.00 us  3.00 us  9.00 us  11.0 us      -  2.50 ms  0.00%",
        "",
        "buffer    trigger  age limit  held    wait  full/s  age/s  idle/s  change/s  late",
        "ttl_* x5       16    50.0 us    10  500 ns  62.5 k      5       0         0     0",
        "",
        "dropped by  reason            rate  packets                         meaning",
        "ttl_* x5    ttl_expired  2.00 kpps     4000  the TTL ended; look for a loop",
    ]


def test_few_alike_modules_stay_apart() -> None:
    lines = text_of(render_live(snapshot(1, 3), snapshot(2, 3), HELLO, 2.0))
    assert [line.split()[0] for line in lines[3:8]] == ["in", "ttl_0", "ttl_1", "ttl_2", "out"]


def test_the_view_fits_the_terminal() -> None:
    many = snapshot(2, 3)
    many["runtime"]["modules"] *= 30
    for i, entry in enumerate(many["runtime"]["modules"]):
        many["runtime"]["modules"][i] = {
            **entry,
            "name": f"{'abcdefghij'[i % 10]}{'xyz'[i // 10 % 3]}{i // 30}q",
        }
    lines = text_of(render_live(None, many, HELLO, 2.0, None, max_rows=40))
    assert len(lines) <= 40 and any("more" in line for line in lines)


def test_modules_are_in_the_order_of_the_way() -> None:
    rows = [{"name": name} for name in ("a", "b", "c", "queue")]
    edges = [("c", "b"), ("b", "a"), ("c", "a"), ("a", "queue"), ("queue", "b")]
    graph = {"edges": [{"from": start, "gate": 0, "to": end} for start, end in edges[:4]]}
    assert [row["name"] for row in in_order_of_the_way(rows, graph)] == ["c", "b", "a", "queue"]
    loop = {"edges": [{"from": start, "gate": 0, "to": end} for start, end in edges]}
    assert in_order_of_the_way(rows, loop)[0]["name"] == "c"
    assert in_order_of_the_way(rows, {}) == rows


def test_first_snapshot_counts_from_the_start() -> None:
    rates = compute_rates(None, snapshot(4))
    assert rates.interval_s == 4 and rates.in_pps == 1e6
    assert rates.modules[1].batch_mean_pkts == 8.0 and rates.flows[0].late_ratio == pytest.approx(
        10 / 4e6
    )


def test_equal_snapshots_divide_by_nothing() -> None:
    rates = compute_rates(snapshot(1), snapshot(1))
    assert (
        rates.in_pps == 0
        and rates.modules[0].batch_mean_pkts is None
        and rates.flows[0].late_ratio is None
    )
    assert text_of(render_live(snapshot(1), snapshot(1), HELLO, 0))


def test_a_module_that_came_later_counts_from_zero() -> None:
    before = snapshot(1)
    before["runtime"]["modules"] = before["runtime"]["modules"][:1]
    assert compute_rates(before, snapshot(2)).modules[-1].rate_pps == 2e6


def test_plain_line() -> None:
    assert plain_line(snapshot(1), snapshot(2), 2.0) == (
        "t=2s  in=1.00 Mpps  out=998 kpps  dropped=2.00 kpps  held=9  busy=62%  p50=3.00 us  p99=11.0 us"
    )


def test_lost_packets_are_shown() -> None:
    now = snapshot(2)
    now["runtime"]["balance"]["is_exact"] = False
    assert "packet counts do not add up" in text_of(render_live(snapshot(1), now, HELLO, 2.0))[1]
    assert any(
        "do not add up" in line for line in text_of(render_report(snapshot(1), now, HELLO, {}))
    )


def test_report() -> None:
    lines = text_of(render_report(snapshot(0), snapshot(10), HELLO, {}))
    assert lines[1:3] == [
        "demo, measured: 10.0 s, 1.00 Mpps in, 998 kpps out, 620 ns of worker time per packet",
        "10000000 packets = 9979991 sent + 20000 dropped + 9 held  (all packets accounted for)",
    ]
    assert "20.0 k dropped by ttl_*: ttl_expired - the TTL ended; look for a loop" in lines
    assert lines[-1].startswith("w0 was held up 2 times by the machine, for up to 130 us")


def test_report_for_programs() -> None:
    data = report_json(snapshot(0), snapshot(10), HELLO, {"x": 1})
    assert (
        data["in_pps"] == 1e6
        and data["ns_per_pkt"] == pytest.approx(620)
        and data["report"] == {"x": 1}
    )


def test_facts_line_leaves_out_what_is_unknown() -> None:
    assert facts_line({"facts": {"lookup": "scalar"}}) == "lookup scalar"
    assert facts_line(HELLO) == (
        "lookup avx512 | memory: 4 KB pages, no hugepages | w0 on core 1 | generator on core 0 | Test CPU"
    )


def test_family_names() -> None:
    assert [family(name) for name in ("ttl_3", "a1_b12", "plain", "x2y")] == [
        "ttl_*",
        "a1_b*",
        "plain",
        "x*y",
    ]


NAT: list[dict[str, Any]] = [
    {
        "module": "nat", "kind": "napt", "max_connections": 100, "connections_now": 3,
        "states": {"udp": 3, "tcp_open": 0}, "matching": 3,
        "external": [{"address": "203.0.113.1", "tcp_ports": 0, "udp_ports": 3, "icmp_ports": 0}],
        "connections": [
            {"protocol": "udp", "inside": "10.0.0.1:5", "outside": "203.0.113.1:5",
             "remote": "198.51.100.1:53", "state": "udp", "idle_s": 2}
        ],
    }
]  # fmt: skip


SESSIONS: list[dict[str, Any]] = [
    {"table": "ues", "module": "decap", "matching": 7, "sessions": [
        {"seid": 9, "ue": "10.0.0.9", "rules": 2, "up_pkts": 5, "up_bytes": 420, "down_pkts": 4,
         "up_dropped_pkts": 1, "down_bytes": 336, "down_dropped_pkts": 0}]}
]  # fmt: skip


def test_sessions_show_their_use_and_what_is_left_out() -> None:
    shown = text_of(render_show("sessions", SESSIONS))
    assert shown[0] == "ues  7 sessions"
    assert shown[2].split() == ["9", "10.0.0.9", "2", "5", "420", "1", "4", "336", "0"]
    assert shown[3] == "6 more match; limit=7 shows them"


def test_sessions_show_what_is_left_of_their_quotas() -> None:
    urrs = [{"id": 1}, {"id": 4, "quota_left_bytes": 77, "is_used_up": False}]
    row = {**SESSIONS[0]["sessions"][0], "urrs": urrs}
    report = {"number": 3, "seid": 9, "kind": "usage", "urr": 4, "trigger": "quota"}
    shown = text_of(
        render_show("sessions", [{**SESSIONS[0], "sessions": [row], "reports": [report]}])
    )
    quotas = shown[shown.index("quotas") :]
    assert quotas[1].split()[:3] == ["seid", "urr", "quota_left_bytes"]
    assert quotas[2].split() == ["9", "4", "77", "no"]
    assert quotas[3] == "latest reports"
    assert quotas[5].split() == ["3", "9", "usage", "4", "quota"]


def test_what_a_command_ended_is_told_by_rule() -> None:
    urr = {"id": 1, "report": 8, "up_pkts": 2, "up_bytes": 80, "down_pkts": 3, "down_bytes": 120}
    pdrs = [
        {"id": n, "source": "core", "pkts": 3, "bytes": 120, "dropped_pkts": 5} for n in range(50)
    ]
    ended = [{"seid": 9, "is_deleted": True, "urrs": [urr], "pdrs": pdrs}]
    shown = text_of(render_ended(ended))
    assert shown[0].startswith("1 sessions ended")
    assert shown[2].split() == ["9", "urr", "1", "8", "2", "80", "3", "120"]
    assert shown[3].split() == ["9", "pdr", "0", "3", "120", "5"]
    assert shown[-1] == "11 more rules; --json shows all"
    only_rules = [{**ended[0], "is_deleted": False}]
    assert text_of(render_ended(only_rules))[0].startswith("rules ended")


def test_nat_says_what_it_leaves_out() -> None:
    shown = text_of(render_show("nat", NAT))
    assert any("3 of 100 connections  3 udp" in line for line in shown)
    assert any("2 more match; limit=3 shows them" in line for line in shown)


CORES = {
    "cores": [
        {
            "worker": "w0", "core": 1, "load": 0.5, "held_up": 0.0, "runs_per_s": 10.0,
            "modules": 3, "inputs": ["in"], "poll_pkts": [32],
        }
    ],
    "rings": [],
}  # fmt: skip


# Devices and schedulers have their own tests.
@pytest.mark.parametrize(
    "what", [what for what in WHAT if what not in ("devices", "placement", "egress")]
)
def test_every_show_renders(what: str) -> None:
    collected = {"cores": CORES, "nat": NAT, "sessions": SESSIONS, "all": snapshot(2)}
    data = collected[what] if what in collected else snapshot(2)[what]
    assert len(text_of(render_show(what, data))) >= 2
    json_lists = {
        "buffers": {"buffers": []},
        "runtime": snapshot(2)["runtime"],
        "graph": {"nodes": [], "edges": []},
        "control": {"controller": "none"},
        "cores": {"cores": [], "rings": []},
        "all": {"runtime": snapshot(2)["runtime"]},
    }
    assert text_of(render_show(what, json_lists.get(what, []))) is not None


def test_show_tables() -> None:
    runtime = text_of(render_show("runtime", snapshot(2)["runtime"]))
    assert runtime[0] == "2000000 in = 1995991 sent + 4000 dropped + 9 held + 0 in flight: balanced"
    buffers = text_of(render_show("buffers", snapshot(2)["buffers"]))
    assert buffers[1].split() == [
        "ttl_0",
        "16",
        "50.0",
        "us",
        "0",
        "4.00",
        "25000",
        "2",
        "0",
        "0",
        "500",
        "ns",
        "0",
    ]
    assert buffers[-1] == "maximum firings in one run: 3"
    idle = [
        {**row, "trigger_pkts": 0, "held_pkts": 0, "causes": {}}
        for row in snapshot(2, 2)["buffers"]["buffers"]
    ]
    assert text_of(render_show("buffers", {"buffers": idle})) == ["2 unused buffers (trigger 0)"]
    assert text_of(render_show("drops", [])) == ["no packets dropped"]
    assert (
        text_of(render_show("tables", snapshot(2)["tables"]))[1]
        == "lookup  ipv4_lookup  routes=500, path=avx512"
    )
    routes = {
        "count": 2,
        "routes": [{"prefix": "10.0.0.0/8", "gate": 1}, {"prefix": "0.0.0.0/0", "via": "x"}],
    }
    assert text_of(render_show("tables", routes)) == [
        "count  2",
        "prefix      gate  via",
        "10.0.0.0/8  1",
        "0.0.0.0/0         x",
    ]


def test_ports_tell_what_is_wrong_with_them() -> None:
    offloads = {"finding": "tso is on", "remedy": "ethtool -K x tso off", "own": {"tso": True}}
    port = {**snapshot(2)["ports"][0], "facts": {"driver": "x", "errors": 0, "offloads": offloads}}
    lines = text_of(render_show("ports", [port]))
    assert lines[1].endswith(" driver=x") and lines[2] == "p0: tso is on (ethtool -K x tso off)"


def test_graph_as_text_names_a_joined_module_once() -> None:
    assert text_of(render_show("graph", snapshot(2, 1)["graph"])) == [
        "in port_in 2.00 M",
        "└── ttl_0 ttl 2.00 M trigger 16",
        "    ├── 0 out sink 2.00 M",
        "    └── drop icmp icmp_error 4000",
        "        └── out sink 4000",
    ]


def test_graph_for_graphviz() -> None:
    dot = graph_dot(snapshot(2, 1)["graph"], 'de"mo')
    assert dot.startswith('digraph "de\\"mo" {') and dot.endswith("}")
    assert '"ttl_0" [label="ttl_0\\nttl\\ntrigger 16"];' in dot
    assert '"ttl_0" -> "icmp" [label="drop\\n4000", penwidth=1.0, style=dashed];' in dot


def test_trace() -> None:
    packets = [
        {
            "id": 7,
            "summary": "UDP",
            "events": [
                {"at_ns": 1000, "module": "in", "event": "run", "batch_pkts": 32},
                {"at_ns": 1000, "module": "lookup", "event": "run", "batch_pkts": 32, "gate": 3},
                {"at_ns": 1200, "module": "ttl", "event": "hold"},
                {"at_ns": 9000, "module": "ttl", "event": "fire", "cause": "age", "batch_pkts": 5},
                {"at_ns": 9100, "module": "ttl", "event": "drop", "reason": "ttl_expired"},
            ],
        }
    ]
    assert text_of(render_trace(packets)) == [
        "packet 7  UDP",
        "       +0 ns  in                   runs in a batch of 32",
        "       +0 ns  lookup               runs in a batch of 32, leaves by gate 3",
        "     +200 ns  ttl                  waits in the buffer",
        "    +8.00 us  ttl                  buffer fires in a batch of 5: age",
        "    +8.10 us  ttl                  dropped: ttl_expired",
        "",
    ]
    assert "no packet seen" in text_of(render_trace([]))[0]


def test_units() -> None:
    assert [short_rate(x) for x in (0, 12, 999.9, 1000, 12.34e6, 123e6)] == [
        "0 pps",
        "12 pps",
        "1.00 kpps",
        "1.00 kpps",
        "12.3 Mpps",
        "123 Mpps",
    ]
    assert [short_duration(x) for x in (None, 0, 12.3, 1500, 2e6, 3e9)] == [
        "-",
        "0 ns",
        "12.3 ns",
        "1.50 us",
        "2.00 ms",
        "3.00 s",
    ]
    assert [short_count(x) for x in (None, 9999, 10_000, 2.5e9)] == [
        "-",
        "9999",
        "10.0 k",
        "2.50 G",
    ]
    for ns in (1, 999, 1000, 1500, 10**6, 15 * 10**8, 10**9):
        assert parse_duration_ns(duration_text(ns)) == ns
    assert [parse_duration_ns(x) for x in ("1.5us", "2 ms", "5", "us", "-1us", 5)] == [
        1500,
        2_000_000,
    ] + [None] * 4
    assert [parse_scaled(x) for x in ("5M", "2.5k", "7", "1Gpps", "x", "5m")] == [
        5e6,
        2500,
        7,
        1e9,
        None,
        None,
    ]
