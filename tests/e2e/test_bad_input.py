# SPDX-License-Identifier: BSD-3-Clause
"""test_bad_input.py - bad files, sizes and arguments: exit code 2 and lines that say what, where,
and the fix."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from commands import Commands

GOOD = """
name: small
modules:
  in: {kind: source}
  ttl: {kind: ttl}
  out: {kind: sink}
connect:
  - in -> ttl -> out
flows:
  - {name: f, path: [in, ttl, out], delay_slo: 1ms}
"""

# name: (text to replace, replacement, words that the message must have)
BROKEN = {
    "no_such_kind": ("kind: ttl", "kind: tll", ["x.yaml:5", "ttl", "did you mean 'ttl'"]),
    "no_such_param": ("kind: ttl", "kind: ttl, mend: true", ["x.yaml:5", "mend", "mend_checksum"]),
    "wrong_type": ("kind: ttl", "kind: ttl, mend_checksum: 7", ["x.yaml:5", "mend_checksum"]),
    "out_of_range": ("kind: source", "kind: source, size_bytes: 20", ["x.yaml:4", "size_bytes"]),
    "trigger_too_large": ("kind: ttl", "kind: ttl, trigger: 100000", ["x.yaml:5", "trigger"]),
    "negative_limit": ("kind: ttl", "kind: ttl, age_limit: -5us", ["x.yaml:5", "age_limit"]),
    "no_unit": ("delay_slo: 1ms", "delay_slo: 1parsec", ["x.yaml:10", "delay_slo"]),
    "no_such_module": ("in -> ttl -> out", "in -> tlt -> out", ["x.yaml:8", "tlt", "ttl"]),
    "cycle": ("in -> ttl -> out", "in -> ttl -> out\n  - ttl:drop -> ttl", ["ttl", "cycle"]),
    "unreachable": (
        "  out: {kind: sink}",
        "  out: {kind: sink}\n  lone: {kind: counter}",
        ["lone"],
    ),
    "no_path": ("path: [in, ttl, out]", "path: [in, out, ttl]", ["x.yaml:10", "path"]),
    "two_of_a_name": (
        "  ttl: {kind: ttl}",
        "  ttl: {kind: ttl}\n  ttl: {kind: null}",
        ["x.yaml:6", "ttl"],
    ),
    "unknown_section": ("modules:", "moduls:", ["moduls", "modules"]),
    "no_yaml": ("name: small", "name: [small", ["x.yaml"]),
    "no_mapping": (GOOD, "- just\n- a list\n", ["x.yaml"]),
    "nothing": (GOOD, "", ["x.yaml"]),
    "unknown_param": ("kind: ttl}", "kind: ttl, trigger: ${many}}", ["x.yaml:5", "many"]),
    "bad_expression": ("kind: ttl}", "kind: ttl, trigger: ${1 +}}", ["x.yaml:5"]),
    "binary": (GOOD, "\x00\x01\x02", ["x.yaml"]),
    "table_too_large": (
        "  ttl: {kind: ttl}",
        "  ttl: {kind: ttl}\n  l: {kind: ipv4_lookup, max_prefixes: 99000000}",
        ["x.yaml:6", "max_prefixes", "16000000"],
    ),
    "pool_too_small": (
        "name: small",
        "name: small\nengine: {pool_pkts: 8}",
        ["pool", "too small", "at least"],
    ),
    "no_such_port": ("kind: source}", "kind: port_in, port: p}", ["x.yaml:4", "'p'"]),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_pipelines_are_refused_with_reasons(
    batchplane: Commands, folder: Path, name: str
) -> None:
    """check finds the mistake and says where and what; one line for each mistake."""
    old, new, wanted = BROKEN[name]
    assert old in GOOD
    file = folder / "x.yaml"
    file.write_text(GOOD.replace(old, new))
    checked = batchplane.run("check", str(file))
    told = checked.out + checked.err
    assert checked.code == 2, told
    for word in wanted:
        assert word in told, f"{word!r} is not in: {told}"
    assert "Traceback" not in told and "bug in batchplane" not in told


@pytest.mark.parametrize(
    "name", ["no_such_kind", "table_too_large", "pool_too_small", "no_such_port"]
)
def test_broken_pipelines_do_not_start(batchplane: Commands, folder: Path, name: str) -> None:
    """start reports the same as check, and leaves nothing running."""
    old, new, wanted = BROKEN[name]
    file = folder / "x.yaml"
    file.write_text(GOOD.replace(old, new))
    started = batchplane.run("start", str(file))
    assert started.code == 2, started.err
    for word in wanted:
        assert word in started.err, f"{word!r} is not in: {started.err}"
    assert all(line.startswith("error: ") for line in started.lines), started.err
    assert batchplane.pids() == []


def test_all_mistakes_are_reported_at_once(batchplane: Commands, folder: Path) -> None:
    file = folder / "x.yaml"
    text = GOOD.replace("kind: ttl", "kind: tll").replace(
        "kind: source", "kind: source, size_bytes: 20"
    )
    file.write_text(text.replace("delay_slo: 1ms", "delay_slo: 1parsec"))
    told = batchplane.run("check", str(file))
    assert told.code == 2
    for place in ("x.yaml:4", "x.yaml:5", "x.yaml:10"):
        assert place in told.out + told.err, told.out + told.err


MACHINE = {
    "version": 1,
    "name": "x",
    "modules": {"in": {"kind": "source"}, "out": {"kind": "sink"}},
}

# Input that reaches the daemon without the command line: the daemon itself must reject it.
BROKEN_JSON = {
    "no_json": ("{", "x.json"),
    "no_object": ("[]", "expected"),
    "no_version": ('{"modules": {}}', "version"),
    "later_version": ('{"version": 2, "modules": {}}', "version"),
    "unknown_key": ('{"version": 1, "modules": {}, "edgse": []}', "edges"),
    "deep": ("[" * 5000 + "]" * 5000, "deep"),
    "no_utf8": ('{"version": 1, "name": "\udcff", "modules": {}}', "x.json"),
    "dangling": (json.dumps({**MACHINE, "edges": [{"from": "in", "to": "nowhere"}]}), "nowhere"),
    "dir": (None, "cannot be read"),
}


@pytest.mark.parametrize("name", BROKEN_JSON)
def test_the_daemon_itself_refuses_broken_files(program: Path, folder: Path, name: str) -> None:
    text, word = BROKEN_JSON[name]
    file = folder / "x.json"
    if text is None:
        file.mkdir()
    else:
        file.write_text(text, errors="surrogateescape")
    for flags in (["--socket", str(folder / "x.sock")], ["--check"]):
        done = subprocess.run(
            [str(program), *flags, str(file)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 2, done
        assert word in done.stdout + done.stderr, done
        if flags[0] != "--check":
            assert done.stderr.strip() and "ready" not in done.stdout
            assert all(len(line) < 500 for line in done.stderr.splitlines()), "lines for people"


COMMANDS = {
    "no_file": (["run", "nowhere.yaml"], 2, "nowhere.yaml"),
    "no_params": (["check", "l2l3", "nexthop=3"], 2, "nexthops"),
    "no_number": (["check", "l2l3", "nexthops=many"], 2, "nexthops"),
    "no_daemon": (["show", "runtime"], 1, "no daemon is running"),
    "no_module": (["modules", "tll"], 2, "ttl"),
    "no_command": (["sohw"], 2, "sohw"),
    "no_duration": (["run", "l2l3", "--duration", "never"], 2, "--duration"),
    "no_name": (["start", "simple", "--name", "../x"], 2, "is not a name"),
    "no_core": (["start", "simple", "--cores", "0,77"], 2, "77"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_arguments_end_with_the_right_code(batchplane: Commands, name: str) -> None:
    words, code, wanted = COMMANDS[name]
    done = batchplane.run(*words)
    assert done.code == code, done.out + done.err
    assert wanted in done.out + done.err, done.out + done.err
    assert "Traceback" not in done.err


def test_too_little_memory_is_one_line(batchplane: Commands) -> None:
    done = batchplane.run("start", "l2l3", "fib_size=20000", "--memory-mb", "16")
    assert done.code == 2, done.err
    assert len(done.lines) == 1, done.err
    assert "memory" in done.err, done.err


def test_settings_are_checked_before_anything_changes(batchplane: Commands) -> None:
    batchplane.good("start", "l2l3", "nexthops=4", "rate_pps=50000")
    before = batchplane.good("save")
    for words, wanted in (
        (["tll_0_0.trigger=4"], "tll_0_0"),
        (["ttl_0_0.trigger=4", "ttl_0_1.trigger=9999"], "trigger"),
        (["ttl_0_0.age_limit=soon"], "soon"),
        (["idle=maybe"], "release"),
        (["load.rate=-1"], "rate"),
        (["lookup_0", "add", "prefix=10.0.0.1/8", "gate=0"], "10.0.0.0/8"),
        (["lookup_0", "add", "prefix=10.0.0.0/8", "gate=99"], "99"),
        (["lookup_0", "delete", "prefix=10.0.0.0/8"], "10.0.0.0/8"),
        (["lookup_0", "burn"], "burn"),
    ):
        done = batchplane.run("set", *words)
        assert done.code != 0, (words, done.out)
        assert wanted in done.err and "Traceback" not in done.err, (words, done.err)
    assert batchplane.good("save") == before
    batchplane.stop("l2l3")


def test_each_end_of_a_port_has_one_worker(batchplane: Commands, folder: Path) -> None:
    """Two workers on one end of a ring would read packets twice: `check` and `apply` reject it."""
    text = """
workers: [{name: a}, {name: b}]
ports: {p: {kind: ring}, q: {kind: ring}}
modules:
  one: {kind: port_in, port: p, worker: a}
  end_one: {kind: sink}
  two: {kind: port_in, port: q, worker: b}
  end_two: {kind: sink}
connect: [one -> end_one, two -> end_two]
"""
    good, bad = folder / "good.yaml", folder / "bad.yaml"
    good.write_text(f"name: owners{text}")
    bad.write_text(f"name: owners{text}".replace("port: q", "port: p"))
    told = "port 'p' is polled by 'one' on worker a and by 'two' on worker b"
    done = batchplane.run("check", str(bad))
    assert done.code == 2
    assert told in done.out + done.err
    assert f"{bad}:7: modules.two" in done.out, "with its line"
    batchplane.good("check", str(good))
    batchplane.good("start", str(good))
    done = batchplane.run("apply", str(bad))
    assert done.code == 2
    assert told in done.out + done.err
    batchplane.stop("owners")
