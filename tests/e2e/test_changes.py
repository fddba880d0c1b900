# SPDX-License-Identifier: BSD-3-Clause
"""test_changes.py - routes, settings and whole graphs change while packets flow; trace and save."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from commands import TREE, Commands, assert_balanced
from lab import Lab, steady_pings
from waiting import wait_until

B = "10.0.2.2"


def test_routes_change_under_traffic(lab: Lab, router: Commands) -> None:
    """2000 edits of other routes lose no ping; deleting the route in use stops pings at once."""
    assert "1 received" in ping_once(lab, "a", B)
    with steady_pings(lab, B), router.client("router") as client:
        for i in range(1000):
            prefix = f"172.16.{i % 250}.0/24"
            client.module("lookup", "add", {"prefix": prefix, "via": B})
            client.module("lookup", "delete", {"prefix": prefix})
    assert "1 received" in ping_once(lab, "a", B)
    router.good("set", "lookup", "add", f"prefix={B}/32", "drop=true")
    assert "0 received" in ping_once(lab, "a", B)
    router.good("set", "lookup", "delete", f"prefix={B}/32")
    assert "1 received" in ping_once(lab, "a", B)


def ping_once(lab: Lab, host: str, address: str) -> str:
    """One ping with a timeout of two seconds."""
    return lab.hosts[host].run("ping", "-n", "-c", "1", "-W", "2", address, is_good=False)


def test_a_next_hop_changes_under_traffic(lab: Lab, router: Commands) -> None:
    """A route by next-hop id follows the id, and the id's meaning changes in one step."""
    lab.hosts["b"].run("ip", "address", "add", "198.51.100.7/32", "dev", "lo")
    router.good("set", "lookup", "next_hop", "id=5", f"via={B}")
    router.good("set", "lookup", "add", "prefix=198.51.100.0/24", "next_hop=5")
    assert "1 received" in ping_once(lab, "a", "198.51.100.7")
    assert "1 received" in ping_once(lab, "a", B)
    with steady_pings(lab, B):
        router.good("set", "lookup", "next_hop", "id=5", "drop=true")
        assert "0 received" in ping_once(lab, "a", "198.51.100.7")
        router.good("set", "lookup", "next_hop", "id=5", f"via={B}")
        assert "1 received" in ping_once(lab, "a", "198.51.100.7")


def test_apply_under_traffic_loses_nothing(lab: Lab, router: Commands, folder: Path) -> None:
    """A counter is inserted and removed ten times; neighbours stay known, and no ping is lost."""
    text = (TREE / "pipelines" / "router.yaml").read_text()
    longer = folder / "longer.yaml"
    counted = text.replace(
        "  ttl: {kind: ttl}\n", "  ttl: {kind: ttl}\n  seen: {kind: counter, trigger: 0}\n"
    )
    counted = counted.replace("ttl -> neighbour", "ttl -> seen -> neighbour")
    longer.write_text(counted.replace("ttl, neighbour, out", "ttl, seen, neighbour, out"))
    assert "1 received" in ping_once(lab, "a", B)
    with steady_pings(lab, B):
        told = router.good("apply", str(longer))
        assert "seen" in told, told
        for _ in range(2):
            router.good("apply", "router")
            router.good("apply", str(longer))
    runtime = router.json("show", "runtime")
    assert_balanced(runtime["balance"])
    assert {module["name"]: module["pkts"] for module in runtime["modules"]}["seen"] > 0


def test_a_refused_apply_changes_nothing(batchplane: Commands, folder: Path) -> None:
    batchplane.good("start", "l2l3", "nexthops=4", "rate_pps=100000")
    before = batchplane.good("save")
    broken = folder / "broken.yaml"
    broken.write_text(
        (TREE / "pipelines" / "l2l3.yaml").read_text().replace("kind: l2_table", "kind: l2_tabel")
    )
    done = batchplane.run("apply", str(broken), "nexthops=4")
    assert done.code == 2 and "did you mean 'l2_table'" in done.err, done.err
    larger = batchplane.run("apply", "l2l3", "nexthops=4", "rate_pps=100000", "--dry-run", "--json")
    assert json.loads(larger.out)["applied"] is False
    assert batchplane.good("save") == before
    batchplane.stop("l2l3")


def test_what_is_saved_starts_the_same_router(lab: Lab, router: Commands, folder: Path) -> None:
    """Live routes, neighbours, triggers and limits are the same after save, stop and start."""
    lab.hosts["b"].run("ip", "address", "add", "198.51.100.7/32", "dev", "lo")
    mac = json.loads(lab.hosts["b"].run("ip", "-json", "link", "show", "eth0"))[0]["address"]
    router.good("set", "lookup", "add", "prefix=198.51.100.0/24", f"via={B}")
    router.good("set", "neighbour", "add", "interface=wan", f"address={B}", f"mac={mac}")
    router.good("set", "ttl.trigger=4", "ttl.age_limit=200us", "lan_to_wan.slo=3ms", "idle=release")
    wait_until(lambda: "1 received" in ping_once(lab, "a", "198.51.100.7"), "the new route is used")
    saved = folder / "saved.yaml"
    router.good("save", str(saved))
    tables = static_routes(router)
    router.stop("router")
    router.good("start", str(saved))
    assert "1 received" in ping_once(lab, "a", "198.51.100.7")
    assert static_routes(router) == tables
    buffers = {b["module"]: b for b in router.json("show", "buffers")["buffers"]}
    assert (buffers["ttl"]["trigger_pkts"], buffers["ttl"]["age_limit_ns"]) == (4, 200_000)
    flows = {flow["name"]: flow["delay_slo_ns"] for flow in router.json("show", "flows")}
    assert flows["lan_to_wan"] == 3_000_000
    again = folder / "again.yaml"
    router.good("save", str(again))
    assert again.read_text() == saved.read_text()


def static_routes(commands: Commands) -> list[Any]:
    """All routes, in an order that does not depend on when they were added."""
    routes = commands.json("show", "tables", "lookup")["routes"]
    return sorted(routes, key=lambda route: json.dumps(route, sort_keys=True))


# --- trace ---------------------------------------------------------------------------------------


def test_trace_tells_path_waits_and_batches(batchplane: Commands) -> None:
    batchplane.good("start", "l2l3", "nexthops=4", "rate_pps=200000", "trigger=8", "age_limit=5ms")
    packets = batchplane.json("trace", "5", "dst host 20.0.2.1")["packets"]
    assert len(packets) == 5
    for packet in packets:
        assert "20.0.2.1" in packet["summary"], packet
        runs = [event["module"] for event in packet["events"] if event["event"] == "run"]
        assert runs[:5] == ["type_check", "l2", "lookup_0", "ttl_0_2", "mac_0_2"], packet
        assert (
            packet["events"][-1]["event"] == "egress"
            and packet["events"][-1]["module"] == "out_0_2"
        )
        times = [event["at_ns"] for event in packet["events"]]
        assert times == sorted(times)
    held = [event for packet in packets for event in packet["events"] if event["event"] == "hold"]
    assert held and all(event["module"] == "ttl_0_2" for event in held)
    waits = [
        event["waited_ns"]
        for packet in packets
        for event in packet["events"]
        if "waited_ns" in event
    ]
    assert waits and max(waits) > 0
    assert batchplane.good("trace", "1").strip(), "and as text"
    batchplane.stop("l2l3")


def test_trace_tells_why_a_packet_was_dropped(lab: Lab, router: Commands) -> None:
    router.good("set", "lookup", "add", "prefix=203.0.113.0/24", "drop=true")
    tracing = router.popen(
        "trace", "1", "icmp and dst net 203.0.113.0/24", "--timeout", "20", "--json"
    )
    lab.hosts["a"].start("ping", "-n", "-i", "0.05", "203.0.113.1")
    out, err = tracing.communicate(timeout=60)
    assert tracing.returncode == 0, err
    packet = json.loads(out)["packets"][0]
    # Its drop gate leads to the ICMP errors, which are not sent for routes that say drop.
    drops = [
        (event["module"], event.get("reason"))
        for event in packet["events"]
        if event["event"] == "drop"
    ]
    assert drops, packet
    assert any(reason for _, reason in drops), packet
    assert "lookup" in [event["module"] for event in packet["events"]]


def test_a_filter_that_matches_nothing_ends_in_time(batchplane: Commands) -> None:
    batchplane.good("start", "l2l3", "nexthops=4", "rate_pps=50000")
    assert batchplane.json("trace", "3", "arp", "--timeout", "0.5") == {"packets": []}
    wrong = batchplane.run("trace", "1", "udp adn port 5")
    assert wrong.code != 0 and "is no filter" in wrong.err and len(wrong.lines) == 1, wrong.err
    batchplane.stop("l2l3")
