# SPDX-License-Identifier: BSD-3-Clause
"""Makes the golden cases of modules: inputs, and what must come out, by independent models.

    python tests/golden/make.py            writes all cases
    python tests/golden/make.py --check    writes nothing; exits 1 when a file would change

A case is one folder, src/modules/<family>/golden/<kind> or .../<kind>.<variant>:

    case.json     {"kind", "params", "input": "in.pcap", "outputs": {"<gate>": "out_<gate>.pcap"},
                   "drops": {"<reason>": packets}, "consumed_pkts": packets (terminal modules)}
                  and, where the module needs them, "connected_gates", "now_ns", "kept_pkts",
                  "meta": {"l3_offset_bytes", "l4_offset_bytes", "next_hop", "in_interface", "vrf",
                  "tunnel_id", "is_originated", "drop_reason": name} (of every packet that comes in),
                  "meta_of": [{..}] (the same for packet i alone, on top of "meta"; also "mark"),
                  "interfaces": [{"name", "port", "mac", "mtu_bytes", "addresses": ["10.0.0.1/8"]}],
                  "companions": [{"kind", "params", "connected_gates"}] (modules that share tables
                  with this one and are made before it),
                  "housekeep_first": true (timers run once before the batch; nothing may come out).
                  "${TMP}" in a parameter stands for a folder of the test's own.
    in.pcap       the packets, in one batch of at most 256
    out_N.pcap    what must leave by gate N, byte for byte and in order; in-place modules use gate 0

The test src/modules/golden_test.cc runs every folder; nothing needs to be registered there.

To add cases, write <name>_golden.py beside the module with functions `@case("kind")` or
`@case("kind", variant="name")` that return a Case; it is found by its name, may import what lies in
tests/golden and other such files, and nothing else has to be edited. Its model maps one input frame
to what becomes of it: ("out", gate, bytes), ("drop", reason), ("keep",) or ("consume",). A list of fates also tells
what the module sends besides: ("emit", gate, bytes), ahead of what stays in the batch. With
Case.metas the model gets the packet's metadata as a second argument. Models use scapy or plain
arithmetic and know nothing of the C++ code: they are the second opinion.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

from golden import CASES, Case, Fate
from scapy.utils import PcapWriter

MODULES = Path(__file__).resolve().parents[2] / "src" / "modules"


def pcap_bytes(frames: list[bytes]) -> bytes:
    """A capture file with all times zero, so that it is the same on every day."""
    out = io.BytesIO()
    writer = PcapWriter(out, linktype=1, nano=False)
    writer.write_header(None)
    for frame in frames:
        writer.write_packet(frame, sec=0, usec=0)
    writer.flush()
    return out.getvalue()


@dataclass
class Outcome:
    """What the fates of a batch add up to."""

    emitted: list[tuple[int, bytes]] = field(default_factory=list)
    stayed: list[tuple[int, bytes]] = field(default_factory=list)
    drops: dict[str, int] = field(default_factory=dict)
    consumed: int = 0
    kept: int = 0

    def add(self, fate: Fate) -> None:
        if fate[0] == "out":
            self.stayed.append((fate[1], fate[2]))
        elif fate[0] == "emit":
            self.emitted.append((fate[1], fate[2]))
        elif fate[0] == "drop":
            self.drops[fate[1]] = self.drops.get(fate[1], 0) + 1
        elif fate[0] == "keep":
            self.kept += 1
        elif fate[0] == "consume":
            self.consumed += 1
        else:
            raise ValueError(f"no such fate: {fate[0]}")


def outcome_of(case: Case) -> Outcome:
    if case.metas and len(case.metas) != len(case.frames):
        raise ValueError(f"{case.kind}: {len(case.metas)} metas for {len(case.frames)} frames")
    outcome = Outcome()
    for i, frame in enumerate(case.frames):
        found = case.model(frame, case.metas[i]) if case.metas else case.model(frame)
        for fate in found if isinstance(found, list) else [found]:
            outcome.add(fate)
    return outcome


def files_of(case: Case) -> dict[str, bytes]:
    outcome = outcome_of(case)
    outputs: dict[int, list[bytes]] = {}
    for gate, frame in outcome.emitted + outcome.stayed:
        outputs.setdefault(gate, []).append(frame)
    description = {
        "kind": case.kind,
        "params": case.params,
        "input": "in.pcap",
        "outputs": {str(gate): f"out_{gate}.pcap" for gate in sorted(outputs)},
        "drops": dict(sorted(outcome.drops.items())),
        **({"consumed_pkts": outcome.consumed} if outcome.consumed else {}),
        **({"kept_pkts": outcome.kept} if outcome.kept else {}),
        **({"meta_of": case.metas} if case.metas else {}),
        **case.setting,
    }
    files = {
        "case.json": (json.dumps(description, indent=2) + "\n").encode(),
        "in.pcap": pcap_bytes(case.frames),
    }
    for gate, frames in outputs.items():
        files[f"out_{gate}.pcap"] = pcap_bytes(frames)
    return files


def load_cases() -> None:
    """Fills CASES from the files beside the modules."""
    paths = sorted(MODULES.glob("*/*_golden.py"))
    stems = [path.stem for path in paths]
    for path in paths:
        if stems.count(path.stem) > 1:
            raise SystemExit(f"{path.relative_to(MODULES)}: another family has a {path.name}, too")
    sys.path += sorted({str(path.parent) for path in paths})
    for path in paths:
        importlib.import_module(path.stem)


def folders_without_case() -> list[Path]:
    """What a case that is gone, or has a new name, has left behind."""
    known = {folder_of(name) for name in CASES}
    return sorted(path for path in MODULES.glob("*/golden/*") if path not in known)


def folder_of(name: str) -> Path:
    """Beside the file in which the case stands."""
    return Path(CASES[name].__code__.co_filename).parent / "golden" / name


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, report differences")
    args = parser.parse_args()
    load_cases()
    n_changed = 0
    for folder_name, make in sorted(CASES.items()):
        folder = folder_of(folder_name)
        files = files_of(make())
        on_disk = {p.name: p.read_bytes() for p in folder.glob("*") if p.is_file()}
        changed = [name for name, data in files.items() if on_disk.get(name) != data]
        stale = on_disk.keys() - files.keys()
        for name in sorted([*changed, *stale]):
            print(f"{'differs' if args.check else 'updated'}: {folder_name}/{name}")
        n_changed += len(changed) + len(stale)
        if args.check:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        for name in changed:
            (folder / name).write_bytes(files[name])
        for name in stale:
            (folder / name).unlink()
    left = folders_without_case()
    for folder in left:
        print(f"no case: {folder.relative_to(MODULES)}: remove it, or give it back its case")
    print(f"{len(CASES)} golden cases, {n_changed} files {'differ' if args.check else 'updated'}")
    return 1 if left or (args.check and n_changed) else 0


if __name__ == "__main__":
    sys.exit(main())
