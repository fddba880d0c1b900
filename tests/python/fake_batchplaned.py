#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""fake_batchplaned.py - speaks the daemon's command line and protocol without moving a packet.

Behaviour by environment: FAKE_FAIL=refuse|crash|mute makes the start fail.
"""

import importlib.util
import json
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

KINDS = {
    "modules": [
        {
            "kind": "source",
            "shape": "input",
            "help": "Makes packets.",
            "params": [
                {
                    "name": "burst_pkts",
                    "type": "int",
                    "unit": "pkts",
                    "default": 0,
                    "min": 0,
                    "max": 256,
                    "help": "packets per poll",
                },
                {"name": "flows", "type": "list", "default": [], "help": "flows to make"},
            ],
        },
        {
            "kind": "port_in",
            "shape": "input",
            "help": "Takes packets from a port.",
            "params": [{"name": "port", "type": "port", "help": "name of the port"}],
        },
        {"kind": "queue", "shape": "queue", "help": "Joins two tasks.", "params": []},
        {
            "kind": "ttl",
            "shape": "in_place",
            "help": "Decrements the TTL.",
            "params": [
                {
                    "name": "mend_checksum",
                    "type": "bool",
                    "default": True,
                    "help": "update the header checksum",
                }
            ],
            "drops": [
                {"name": "ttl_expired", "meaning": "the TTL ended", "remedy": "look for a loop"}
            ],
        },
        {
            "kind": "cost",
            "shape": "in_place",
            "help": "Keeps the core busy.",
            "params": [
                {
                    "name": "cost_per_batch_ns",
                    "type": "float",
                    "unit": "ns",
                    "default": 0.0,
                    "min": 0,
                    "max": 1e6,
                    "help": "time per batch",
                }
            ],
        },
        {
            "kind": "lookup",
            "shape": "splitter",
            "help": "Looks up.",
            "gate_names": ["forward", "local"],
            "params": [
                {"name": "routes", "type": "list", "default": [], "help": "routes"},
                {
                    "name": "gateway",
                    "type": "ipv4",
                    "default": "0.0.0.0",
                    "help": "default gateway",
                },
                {
                    "name": "within",
                    "type": "ipv4_prefix",
                    "default": "0.0.0.0/0",
                    "help": "a prefix",
                },
                {"name": "mac", "type": "mac", "default": "", "help": "a MAC"},
                {
                    "name": "window_ns",
                    "type": "int",
                    "unit": "ns",
                    "default": 1000,
                    "help": "a time",
                },
                {
                    "name": "mode",
                    "type": "string",
                    "default": "fast",
                    "choices": ["fast", "small"],
                    "help": "how",
                },
            ],
        },
        {
            "kind": "sink",
            "shape": "terminal",
            "help": "Frees packets.",
            "params": [],
            "is_egress": True,
        },
        {"kind": "drop", "shape": "terminal", "help": "Drops packets.", "params": []},
    ],
    "ports": [
        {
            "kind": "ring",
            "params": [
                {"name": "size_pkts", "type": "int", "default": 64, "min": 1, "help": "packets"}
            ],
        },
        {"kind": "dpdk", "params": []},
    ],
    "generator": {
        "params": [{"name": "rate_pps", "type": "float", "default": 1.0, "help": "rate"}]
    },
}


def snapshot(pipeline, started_ns):
    pkts = (time.monotonic_ns() - started_ns) // 100
    names = list(pipeline["modules"])
    return {
        "runtime": {
            "now_ns": time.monotonic_ns(),
            "epoch_ns": started_ns,
            "workers": [
                {
                    "name": "w0",
                    "core": 1,
                    "loops": 5,
                    "busy_ratio": 0.5,
                    "runs": 4,
                    "gaps": {"count": 0, "max_ns": 0, "sum_ns": 0},
                }
            ],
            "balance": {
                "in_pkts": pkts,
                "originated_pkts": 0,
                "sent_pkts": pkts,
                "dropped_pkts": 0,
                "held_pkts": 0,
                "in_flight_pkts": 0,
                "is_exact": True,
            },
            "modules": [
                {
                    "name": name,
                    "kind": pipeline["modules"][name]["kind"],
                    "worker": "w0",
                    "batches": pkts // 32,
                    "pkts": pkts,
                    "batch_mean_pkts": 32.0,
                    "ns_per_pkt": 2.5,
                    "cost_per_batch_ns": 10.0,
                    "cost_per_pkt_ns": 2.2,
                    "dropped_pkts": 0,
                }
                for name in names
            ],
        },
        "buffers": {"buffers": [], "worst_firings_per_run": 1},
        "flows": [
            {
                "name": flow["name"],
                "path": flow["path"],
                "delay_slo_ns": flow.get("delay_slo_ns", 0),
                "pkts": pkts,
                "late_pkts": 0,
                "delay_mean_ns": 900,
                "delay_max_ns": 5000,
                "percentiles_ns": {"p50": 800, "p95": 1500, "p99": 2000, "p99.9": None},
            }
            for flow in pipeline.get("flows", [])
        ],
        "drops": [],
        "tables": [],
        "generators": [],
        "control": {"controller": pipeline.get("controller", {}).get("name", "none")},
        "ports": [
            {"name": name, "kind": port["kind"], "is_up": True, "stats": {}}
            for name, port in pipeline.get("ports", {}).items()
        ],
        "graph": {
            "nodes": [
                {"name": name, "kind": pipeline["modules"][name]["kind"], "pkts": pkts}
                for name in names
            ],
            "edges": [{**edge, "pkts": pkts} for edge in pipeline.get("edges", [])],
        },
    }


def answer(request, pipeline, name, started_ns):
    cmd, args = request["cmd"], request.get("args", {})
    if cmd == "hello":
        return {
            "version": 1,
            "daemon": "0.1.0",
            "name": name,
            "pid": os.getpid(),
            "uptime_ns": time.monotonic_ns() - started_ns,
            "pipeline": pipeline["name"],
            "facts": {
                "lookup": "scalar",
                "memory": "heap",
                "cpu": "fake",
                "workers": [{"name": "w0", "core": 1}],
                "generator_core": 0,
            },
        }
    if cmd == "show":
        shown = snapshot(pipeline, started_ns)
        return shown if args["what"] == "all" else shown[args["what"]]
    if cmd == "set":
        for entry in args.get("sets", [args]):
            if entry["what"] == "trigger":
                pipeline["modules"][entry["module"]]["trigger_pkts"] = entry["trigger_pkts"]
        return {}
    if cmd == "save":
        return pipeline
    if cmd == "apply":
        old, new = set(pipeline["modules"]), set(args["pipeline"]["modules"])
        if not args["dry_run"]:
            pipeline.clear()
            pipeline.update(args["pipeline"])
        return {
            "difference": {
                "added": sorted(new - old),
                "removed": sorted(old - new),
                "changed": [],
                "moved": [],
                "kept": sorted(old & new),
                "controller": None,
            },
            "applied": not args["dry_run"],
        }
    if cmd == "module":
        if args["verb"] != "add":
            raise ValueError(f"module '{args['module']}' has no command '{args['verb']}'")
        return {"added": args["args"]}
    if cmd == "trace":
        return {
            "packets": [
                {
                    "id": 1,
                    "summary": "10.0.0.1 > 20.0.0.1 UDP",
                    "events": [
                        {"at_ns": 100, "module": "in", "event": "run", "batch_pkts": 32},
                        {"at_ns": 900, "module": "out", "event": "egress", "batch_pkts": 32},
                    ],
                }
            ]
        }
    if cmd == "stop":
        return {"report": {"balance": snapshot(pipeline, started_ns)["runtime"]["balance"]}}
    raise ValueError(f"unknown command '{cmd}'")


def serve_one(connection, path, pipeline, name, started_ns):
    for line in connection.makefile("rb"):
        request = json.loads(line)
        try:
            reply = {
                "v": 1,
                "id": request["id"],
                "ok": True,
                "result": answer(request, pipeline, name, started_ns),
            }
        except (ValueError, KeyError) as error:
            reply = {
                "v": 1,
                "id": request["id"],
                "ok": False,
                "errors": [
                    {"where": "modules.ttl (x.yaml:3)", "message": str(error), "fix": "try add"}
                ],
            }
        connection.sendall(json.dumps(reply).encode() + b"\n")
        if request["cmd"] == "stop":
            os.unlink(path)
            os._exit(0)
    connection.close()


def serve(path, pipeline, name):
    started_ns = time.monotonic_ns()
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(path)
    os.chmod(path, 0o600)
    server.listen(8)
    print("ready", flush=True)
    while True:
        connection, _ = server.accept()
        more = (connection, path, pipeline, name, started_ns)
        threading.Thread(target=serve_one, args=more, daemon=True).start()


def rules():
    """The extension, which has the real daemon's rules."""
    build = Path(__file__).resolve().parents[2] / "build" / "python"
    (path,) = build.glob(f"_native.cpython-{sys.version_info.major}{sys.version_info.minor}-*.so")
    spec = importlib.util.spec_from_file_location("batchplane._native", path)
    native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
    return native


def check(file):
    pipeline = json.load(open(file))
    plain = {key: value for key, value in pipeline.items() if key != "source_map"}
    found, _ = rules().check_pipeline(plain, KINDS)
    errors = [{"where": where, "message": words, "fix": fix} for where, words, fix in found]
    if pipeline.get("engine", {}).get("pool_pkts") == 1:
        errors.append(
            {
                "where": "engine.pool_pkts",
                "message": "a pool of 1 is too small",
                "fix": "at least 64",
            }
        )
    print(json.dumps({"ok": not errors, "errors": errors, "plan": {"pool_pkts": 4096}}))
    return 2 if errors else 0


def main(words):
    if "--modules" in words:
        print(json.dumps(KINDS))
        return 0
    if "--check" in words:
        return check(words[words.index("--check") + 1])
    fail = os.environ.get("FAKE_FAIL")
    if fail == "refuse":
        print("p.yaml:3: modules.ttl: it is wrong (mend it)", file=sys.stderr)
        return 2
    if fail == "crash":
        print("EAL: noise", file=sys.stderr)
        print("cannot take core 99", file=sys.stderr)
        return 1
    if fail == "mute":
        signal.pause()
    path, name = words[words.index("--socket") + 1], words[words.index("--name") + 1]
    return serve(path, json.load(open(words[-1])), name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
