# SPDX-License-Identifier: BSD-3-Clause
"""test_python_controller.py - Python controllers on the real daemon: good ones, and ones that
raise, hang, return nonsense or die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from commands import Commands
from controlled import LOAD, STEADY, control_of, written
from load import in_pkts
from waiting import wait_until

SLO_NS = 5_000_000
# Good until the fifth period.
MOODY = """
import os, time


class Moody:
    def __init__(self, model):
        self.n = 0

    def step(self, period):
        self.n += 1
        if self.n < 5:
            return {{"acl_0_0": 24}}
        {mood}
"""


@pytest.fixture
def gateway(batchplane: Commands) -> Commands:
    """A gateway at full load, with SLOs."""
    batchplane.good("start", "gateway", *LOAD, "--slo", "*=5ms")
    return batchplane


def trigger_of(commands: Commands, module: str) -> int:
    with commands.client("gateway") as client:
        rows = client.show("buffers")["buffers"]
    return int(next(row["trigger_pkts"] for row in rows if row["module"] == module))


def age_limits_ns(commands: Commands, prefix: str) -> list[int]:
    """The age limits that the daemon sets for the program's triggers: settings, not
    measurements."""
    rows = commands.json("show", "buffers")["buffers"]
    return [row["age_limit_ns"] for row in rows if row["module"].startswith(prefix)]


def messages(commands: Commands) -> str:
    return "\n".join(event["message"] for event in control_of(commands).get("events", []))


@contextmanager
def deciding(commands: Commands, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`batchplane control ...` in the background."""
    process = commands.popen("control", *words)
    try:
        wait_until(lambda: control_of(commands).get("has_program") or process.poll() is not None,
                   "it decides")  # fmt: skip
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=20)


def assert_all_is_well(commands: Commands) -> None:
    """Traffic flows, and at the end no packet is missing."""
    with commands.client("gateway") as client:
        before = in_pkts(client)
        wait_until(lambda: in_pkts(client) > before, "traffic flows")
    assert commands.stop("gateway")["balance"]["dropped_pkts"] == 0


def test_twenty_lines_drive_the_daemon(gateway: Commands, folder: Path) -> None:
    with deciding(gateway, written(folder, "steady.py", STEADY), "--period", "5ms") as process:
        wait_until(lambda: trigger_of(gateway, "acl_0_3") == 16, "half a batch")
        data = control_of(gateway)
        assert (data["controller"], data["period_ns"]) == ("remote", 5_000_000)
        assert data["label"].endswith("steady.py") and data["events"] == []
        wait_until(lambda: control_of(gateway)["controller_ns"], "decisions are timed")
        told = gateway.good("show", "control")
        assert "steady.py every 5.00 ms" in told and "program" in told
        assert gateway.good("explain", "acl_0_0").strip()
        wait_until(lambda: max(age_limits_ns(gateway, "acl")) < SLO_NS,
                   "promises are kept whatever the program does next")  # fmt: skip
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    wait_until(lambda: "has gone" in messages(gateway), "the end is told")
    assert trigger_of(gateway, "acl_0_3") == 16, "the last decision stays"
    assert_all_is_well(gateway)


POLLS = """
class Polls:
    def __init__(self, model):
        pass

    def step(self, period):
        return {"changes": [], "polls": [{"task": 0, "poll_pkts": 4}]}
"""


def test_polls_are_decided_too(gateway: Commands, folder: Path) -> None:
    def poll_pkts() -> int:
        return int(gateway.json("show", "cores")["cores"][0]["poll_pkts"][0])

    assert poll_pkts() == 32
    with deciding(gateway, written(folder, "polls.py", POLLS)):
        wait_until(lambda: poll_pkts() == 4, "the polls are small")
    gateway.good("set", "controller=none")
    assert poll_pkts() == 32
    assert_all_is_well(gateway)


# Two workers with a queue between them.
CUT = """
name: gateway
workers: [{name: w0}, {name: w1}]
modules:
  in: {kind: source, burst_pkts: 16}
  q: {kind: queue, size_pkts: 512, backpressure: true, worker: w1}
  out: {kind: sink}
connect: [in -> q -> out]
"""
# The first credit is out of range; what the period tells decides the last one.
CREDITS = """
class Credits:
    def __init__(self, model):
        names = [row["name"] for row in model["modules"]]
        modules = [row["module"] for row in model["inputs"]]
        self.q = modules.index(names.index("q"))
        self.n = 0

    def step(self, period):
        self.n += 1
        now = int(period["inputs"]["credit_pkts"][self.q])
        credit = 8 if self.n == 1 else {512: 128, 128: 64}.get(now, now)
        return {"changes": [], "credits": [{"module": "q", "credit_pkts": credit}]}
"""


def test_credits_are_decided_too(batchplane: Commands, folder: Path) -> None:
    def credit_pkts() -> int:
        return int(batchplane.json("show", "cores")["rings"][0]["credit_pkts"])

    batchplane.good("start", written(folder, "cut.yaml", CUT))
    assert credit_pkts() == 512
    with deciding(batchplane, written(folder, "credits.py", CREDITS)):
        wait_until(lambda: credit_pkts() == 64, "the second credit is given")
        assert "the credit of 'q' is 8, expected 32 to 512" in messages(batchplane)
        decided = [row for one in control_of(batchplane)["decisions"] for row in one["credits"]]
        assert [(row["from_pkts"], row["to_pkts"]) for row in decided] == [(512, 128), (128, 64)]
        told = batchplane.good("show", "control")
        assert "512 -> 128" in told and "128 -> 64" in told, told
    batchplane.good("set", "controller=none")
    assert credit_pkts() == 512
    assert_all_is_well(batchplane)


def test_a_run_with_your_own_controller(batchplane: Commands, folder: Path) -> None:
    file = written(folder, "steady.py", STEADY)
    done = batchplane.run(
        "run", "gateway", *LOAD, "-d", "1.5", "--slo", "*=5ms", "--controller", f"{file}:Steady",
        "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    report = json.loads(done.out)["report"]
    assert report["control"]["label"] == f"{file}:Steady"
    assert report["control"]["failed_steps"] == 0, report["control"]["events"]
    assert report["balance"]["dropped_pkts"] == 0


@pytest.mark.parametrize(
    ("mood", "told"),
    [
        ("raise ValueError('no more')", "ValueError: no more"),
        ("return {'acl_0_0': 99}", "the trigger of 'acl_0_0' is 99, expected 0 to 32"),
        ("return 'soon'", "step() returned 'soon'"),
        ("time.sleep(60) if self.n == 5 else None", "step() did not return within 0.2 s"),
    ],
)
def test_a_failing_controller_is_reported_and_its_last_good_decision_stays(
    gateway: Commands, folder: Path, mood: str, told: str
) -> None:
    file = written(folder, "moody.py", MOODY.format(mood=mood))
    with deciding(gateway, file, "--limit", "200ms"):
        wait_until(lambda: told in messages(gateway), told)
        data = control_of(gateway)
        assert data["failed_steps"] >= 1
        assert all(event["period"] > 0 for event in data["events"])
        assert trigger_of(gateway, "acl_0_0") == 24
    assert_all_is_well(gateway)


def test_a_controller_that_hangs_for_good_gives_up(gateway: Commands, folder: Path) -> None:
    file = written(folder, "moody.py", MOODY.format(mood="time.sleep(60)"))
    with deciding(gateway, file, "--limit", "50ms") as process:
        assert process.wait(30) == 1
        assert process.stderr is not None
        assert "not be called again" in process.stderr.read()
    assert trigger_of(gateway, "acl_0_0") == 24
    assert_all_is_well(gateway)


def test_a_process_that_dies_leaves_its_last_decision(gateway: Commands, folder: Path) -> None:
    file = written(folder, "moody.py", MOODY.format(mood="os.kill(os.getpid(), 9)"))
    with deciding(gateway, file) as process:
        assert process.wait(20) == -signal.SIGKILL
    wait_until(lambda: "moody.py has gone" in messages(gateway), "its end is told")
    assert trigger_of(gateway, "acl_0_0") == 24
    assert "no program is connected" in gateway.good("show", "control")
    steps = control_of(gateway)["steps"]
    wait_until(lambda: control_of(gateway)["steps"] > steps + 3, "the daemon goes on")
    assert_all_is_well(gateway)


def test_a_stopped_process_is_reported(gateway: Commands, folder: Path) -> None:
    """Its own time limit does not work while it is stopped, but the daemon's does."""
    with deciding(gateway, written(folder, "steady.py", STEADY), "--limit", "100ms") as process:
        wait_until(lambda: trigger_of(gateway, "acl_0_0") == 16, "it decides")
        os.kill(process.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: "has not answered for 1100 ms" in messages(gateway), "it is told")
            assert trigger_of(gateway, "acl_0_0") == 16
        finally:
            os.kill(process.pid, signal.SIGCONT)
    assert_all_is_well(gateway)


def test_another_controller_or_graph_in_between(gateway: Commands, folder: Path) -> None:
    with deciding(gateway, written(folder, "steady.py", STEADY)) as process:
        gateway.good("apply", "gateway", *LOAD[1:], "nexthops=6")
        wait_until(lambda: trigger_of(gateway, "acl_0_5") == 16, "the new graph is decided for")
        assert process.poll() is None
        second = gateway.run("control", written(folder, "other.py", STEADY))
        assert second.code == 2 and "another program decides already" in second.err, second.err
        assert "steady.py" in control_of(gateway)["label"]
        gateway.good("set", "controller=max")
        wait_until(lambda: trigger_of(gateway, "acl_0_5") == 32, "max decides")
        assert process.wait(20) == 0
        assert process.stderr is not None and "controller is max" in process.stderr.read()
    assert_all_is_well(gateway)


def test_a_bad_file_starts_nothing(batchplane: Commands, folder: Path) -> None:
    file = written(folder, "broken.py", "import no_such_thing\n")
    done = batchplane.run("run", "gateway", *LOAD, "-d", "1", "--controller", file)
    assert done.code == 2 and "no_such_thing" in done.err, done.err


def test_controllers_are_compared(batchplane: Commands) -> None:
    words = ("--controllers", "null,max", "--each", "0.6", "--slo", "*=5ms")
    done = batchplane.run("compare", "gateway", *LOAD, *words, "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert [row["controller"] for row in data["controllers"]] == ["null", "max"]
    null, most = data["controllers"]
    assert null["batch_mean_pkts"] < most["batch_mean_pkts"] <= 32
    assert all(row["rate_pps"] > 0 and row["slo_ns"] == 5_000_000 for row in (null, most))
    assert data["balance"]["is_exact"] is True
    done = batchplane.run("compare", "gateway", *LOAD, *words)
    assert "over null" in done.out and "all packets accounted for" in done.out


def trust_kept_costs(cache: Path) -> None:
    """Costs that a busy machine measured are in doubt, and would be measured again."""
    (path,) = cache.rglob("*.json")
    document = json.loads(path.read_text())
    for point in document["check"]["points"]:
        point["law_ns_per_pkt"] = point["measured_ns_per_pkt"]
    path.write_text(json.dumps(document))


def test_costs_are_measured_at_the_start_and_kept(batchplane: Commands, folder: Path) -> None:
    batchplane.environment["XDG_CACHE_HOME"] = str(folder / "cache")
    words = ("gateway", *LOAD, "--controller", "optimal")
    first = batchplane.run("start", *words)
    assert first.code == 0 and "no profile yet: profiling 10 module types" in first.err, first.err
    assert "kept for this pipeline" in control_of(batchplane)["costs"]
    batchplane.good("set", "controller=full")
    assert "kept for this pipeline" in control_of(batchplane)["costs"]
    batchplane.stop("gateway")
    trust_kept_costs(folder / "cache")
    again = batchplane.run("start", *words)
    assert again.code == 0 and "profile" not in again.err, again.err
    batchplane.stop("gateway")
    batchplane.environment["XDG_CACHE_HOME"] = str(folder / "other")
    without = batchplane.run("start", *words, "--no-profile")
    assert without.code == 0 and "profile" not in without.err, without.err
    assert control_of(batchplane)["costs"] == "built-in"
    batchplane.stop("gateway")
