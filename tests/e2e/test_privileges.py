# SPDX-License-Identifier: BSD-3-Clause
"""test_privileges.py - the capabilities of a daemon started by root once its ports are up, by
thread."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from commands import Commands, running
from lab import Lab, ping
from load import LOAD
from test_ports import THREE

from batchplane.commands.doctor import KEPT

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: it needs root")
ADMIN, RAW, NICE = 1 << 12, 1 << 13, 1 << 23
TWO = "\n".join(line for line in THREE.splitlines() if "dmz" not in line).replace(
    "name: three", "name: two"
)
TAP = """
name: tapped
ports: {{link: {{kind: tap, interface: {name}}}}}
modules:
  in: {{kind: port_in, port: link}}
  out: {{kind: sink}}
connect: [in -> out]
"""


def rights(pid: int) -> dict[str, dict[str, str]]:
    """The status of each thread."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        fields = dict(re.findall(r"^(\w+):\s*(.*)$", (task / "status").read_text(), re.M))
        found[f"{task.name} {fields['Name']}"] = fields
    return found


def assert_kept(pid: int, mask: int) -> None:
    """Every thread has exactly these capabilities, can never get more, and passes none on."""
    threads = rights(pid)
    assert len(threads) > 2
    # If the limit could not be raised, the control thread's priority needs the capability.
    limits = Path(f"/proc/{pid}/limits").read_text()
    (limit,) = re.findall(r"^Max nice priority +(\d+) ", limits, re.M)
    if int(limit) < 30:
        mask |= int(next(iter(threads.values()))["CapEff"], 16) & NICE
    for thread, status in threads.items():
        for field in ("CapEff", "CapPrm", "CapBnd"):
            assert int(status[field], 16) == mask, (thread, field, status[field])
        assert int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0, thread
        assert status["NoNewPrivs"] == "1", thread


def test_threads_without_ports_keep_raw_sockets_only(loaded: Commands) -> None:
    assert_kept(loaded.pid("l2l3"), RAW)
    assert re.search(r"keeps CAP_NET_RAW(, CAP_SYS_NICE)?\n", loaded.log())
    assert "CAP_NET_RAW" in KEPT and "kept rights" in loaded.run("doctor").out
    # Threads that a change adds have the capabilities of their creator.
    loaded.good("apply", "l2l3", *LOAD, "trigger=8")
    assert_kept(loaded.pid("l2l3"), RAW)


def test_the_control_thread_has_its_priority_all_the_same(batchplane: Commands) -> None:
    with running(batchplane, "l2l3", "l2l3", *LOAD):
        pid = batchplane.pid("l2l3")
        threads = [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
        nice = [os.getpriority(os.PRIO_PROCESS, thread) for thread in threads]
        ordinary = os.getpriority(os.PRIO_PROCESS, 0)
        assert min(nice) == -10 and max(nice) == ordinary, nice
        # A real-time thread that spins for a lock would starve the lock's owner, and the core.
        policies = {os.sched_getscheduler(thread) & ~os.SCHED_RESET_ON_FORK for thread in threads}
        assert policies == {os.SCHED_OTHER}


def test_a_change_adds_a_port_of_the_kernel(lab: Lab, folder: Path) -> None:
    lab.add_host("c", "dmz0", "10.0.3.2/24", "10.0.3.1")
    two, three = folder / "two.yaml", folder / "three.yaml"
    two.write_text(TWO)
    three.write_text(THREE)
    with running(Commands(folder, lab.router), "two", str(two)) as commands:
        assert_kept(commands.pid("two"), RAW)
        commands.good("apply", str(three))
        assert " 0% packet loss" in ping(lab, "a", "-c", "2", "-W", "10", "10.0.3.2")
        assert_kept(commands.pid("two"), RAW)


def test_taps_keep_what_they_need(lab: Lab, folder: Path) -> None:
    pipeline = folder / "tapped.yaml"
    pipeline.write_text(TAP.format(name="tap7"))
    with running(Commands(folder, lab.router), "tapped", str(pipeline)) as commands:
        assert_kept(commands.pid("tapped"), RAW | ADMIN)


def test_a_daemon_writes_through_no_link(batchplane: Commands, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for suffix in (".json", ".log", ".pipeline"):
        (batchplane.folder / f"l2l3{suffix}").symlink_to(victim)
    batchplane.good("start", "l2l3", *LOAD)
    batchplane.stop("l2l3")
    assert victim.read_text() == "precious"
