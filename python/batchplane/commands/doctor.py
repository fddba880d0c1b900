# SPDX-License-Identifier: BSD-3-Clause
"""doctor.py - finds what slows or stops the engine on this machine, with the exact fix."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..base.problems import RunFailed
from ..daemon.process import find_program

# The features of x86-64-v3; Linux lists lzcnt as `abm`.
_V3 = ("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe")
_AVX512 = ("avx512f", "avx512bw", "avx512dq", "avx512vl")
_CAP_NET_ADMIN, _CAP_SYS_NICE = 12, 23
# The capabilities that a daemon keeps once its ports are up, if it had them, and why: kKept of
# src/app/start/privileges.cc.
KEPT = {
    "CAP_NET_RAW": "packet sockets, which a live change may add",
    "CAP_NET_ADMIN": "taps, only where the pipeline has some at the start",
    "CAP_SYS_NICE": "the control thread's priority, only where RLIMIT_NICE cannot be raised",
    "CAP_IPC_LOCK, CAP_SYS_ADMIN, CAP_SYS_RAWIO": "memory of NICs by PCI address, only with such",
}
_OFFLOADS = (
    "tx-checksum-ip-generic",
    "tx-checksum-ipv4",
    "tx-tcp-segmentation",
    "tx-generic-segmentation",
    "rx-gro",
)
_SHORT_OFFLOADS = "tx off tso off gso off gro off"

Command = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Finding:
    """One check. If is_ok is false, `remedy` is a command or says what to do."""

    topic: str
    is_ok: bool
    message: str
    remedy: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def run_command(words: Sequence[str]) -> str:
    """Standard output of a program; empty if the program is missing or fails."""
    program = shutil.which(words[0])
    if program is None:
        return ""
    try:
        done = subprocess.run([program, *words[1:]], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


@dataclass(frozen=True)
class Machine:
    """Where to look; tests put a fake tree under `root`."""

    root: Path = Path("/")
    run: Command = run_command
    uid: int = field(default_factory=os.geteuid)

    def read(self, path: str) -> str:
        """Text of a file under root; empty if it cannot be read."""
        try:
            return (self.root / path.lstrip("/")).read_text().strip()
        except OSError:
            return ""

    def folders(self, path: str) -> list[Path]:
        """Sorted entries of a folder under root."""
        folder = self.root / path.lstrip("/")
        return sorted(folder.iterdir()) if folder.is_dir() else []

    def has(self, path: str) -> bool:
        """Whether the path exists under root."""
        return (self.root / path.lstrip("/")).exists()

    def can(self, capability: int) -> bool:
        """Whether this process has the capability."""
        match = re.search(r"^CapEff:\s*([0-9a-f]+)", self.read("/proc/self/status"), re.M)
        return bool(match and int(match[1], 16) >> capability & 1)


def examine(machine: Machine | None = None) -> list[Finding]:
    """All findings, in the order in which you should fix them."""
    machine = machine or Machine()
    checks = (
        _instructions,
        _avx512,
        _cores,
        _devices,
        _opencl,
        _cuda,
        _isolation,
        _memory,
        _hugepages,
        _transparent,
        _dpdk,
        _permissions,
        _priority,
        _autogroup,
        _kept,
        _tun,
        _vfio,
        _namespaces,
        _offloads,
    )
    return [finding for check in checks for finding in check(machine)]


# --- processor -----------------------------------------------------------------------------------


def _flags(machine: Machine) -> set[str]:
    match = re.search(r"^flags\s*:(.*)$", machine.read("/proc/cpuinfo"), re.M)
    return set(match[1].split()) if match else set()


def _instructions(machine: Machine) -> list[Finding]:
    model = re.search(r"^model name\s*:\s*(.*)$", machine.read("/proc/cpuinfo"), re.M)
    missing = [flag for flag in _V3 if flag not in _flags(machine)]
    name = model[1] if model else "unknown processor"
    if missing:
        return [
            Finding(
                "cpu",
                False,
                f"{name} lacks {', '.join(missing)}: the daemon will not start",
                "cmake -B build -DCMAKE_CXX_FLAGS=-march=native, or a processor of 2013 or later",
            )
        ]
    return [Finding("cpu", True, f"{name}: x86-64-v3")]


def _avx512(machine: Machine) -> list[Finding]:
    missing = [flag for flag in _AVX512 if flag not in _flags(machine)]
    if missing:
        return [
            Finding(
                "avx-512",
                False,
                f"no {missing[0]}: lookups and scatter take the AVX2 or scalar path",
                "no action needed; lookups are faster with AVX-512",
            )
        ]
    return [Finding("avx-512", True, "AVX-512 F, BW, DQ, VL")]


def _count_cores(text: str) -> int:
    ranges = [part.split("-") for part in text.split(",") if part]
    return sum(int(part[-1]) - int(part[0]) + 1 for part in ranges)


def _cores(machine: Machine) -> list[Finding]:
    online = machine.read("/sys/devices/system/cpu/online")
    count = _count_cores(online) if re.fullmatch(r"[\d,-]+", online) else 0
    if count < 2:
        return [
            Finding(
                "cores",
                False,
                f"{count} core(s): worker and generator share it",
                "give the machine 2 cores: one for the worker, one for everything else",
            )
        ]
    return [Finding("cores", True, f"{count} cores online ({online})")]


def _devices(machine: Machine) -> list[Finding]:
    """Whether modules can run on devices here (docs/devices.md)."""
    count = _count_cores(machine.read("/sys/devices/system/cpu/online").strip() or "0")
    if count < 3:
        return [
            Finding(
                "devices",
                False,
                "inline, cores, simulated: their threads share a core with generator and control",
                "for modules on devices, a core for each thread beside those two",
            )
        ]
    return [Finding("devices", True, f"inline, cores (up to {count - 2} of their own), simulated")]


def _opencl(machine: Machine) -> list[Finding]:
    """The devices of kind opencl on this machine (docs/devices.md)."""
    remedy = "only for devices of kind opencl: a driver, such as pocl-opencl-icd for this processor"
    found, missing = _told(machine, "--opencl")
    if missing:
        return [Finding("opencl", False, missing, remedy)]
    names = [
        f"{platform['platform']}: {', '.join(platform['devices']) or 'no device'}"
        for platform in found["platforms"]
    ]
    is_ok = any(platform["devices"] for platform in found["platforms"])
    return [Finding("opencl", is_ok, "; ".join(names) or "no platform", "" if is_ok else remedy)]


def _cuda(machine: Machine) -> list[Finding]:
    """The devices of kind cuda on this machine (docs/devices.md)."""
    remedy = "only for devices of kind cuda: an NVIDIA GPU and its driver"
    found, missing = _told(machine, "--cuda")
    if missing:
        return [Finding("cuda", False, missing, remedy)]
    names = [f"{gpu['device']} ({gpu['driver']})" for gpu in found["devices"]]
    return [Finding("cuda", bool(names), "; ".join(names) or "no GPU", "" if names else remedy)]


def _told(machine: Machine, flag: str) -> tuple[dict[str, Any], str]:
    """The daemon's list of devices, or the reason why there is none."""
    try:
        program = str(find_program())
    except RunFailed:
        program = "batchplaned"
    told = machine.run([program, flag])
    if not told:
        name = Path(program).name
        return {}, f"`{name} {flag}` tells nothing: it is not built, or a driver ends it"
    found: dict[str, Any] = json.loads(told)
    return found, str(found.get("missing", ""))


def _isolation(machine: Machine) -> list[Finding]:
    isolated = machine.read("/sys/devices/system/cpu/isolated")
    if isolated:
        return [Finding("isolation", True, f"cores {isolated} are isolated")]
    online = machine.read("/sys/devices/system/cpu/online")
    last = re.split(r"[,-]", online)[-1] or "1"
    return [
        Finding(
            "isolation",
            False,
            "no core is isolated: other programs can stall the worker and raise delays",
            f"add isolcpus={last} nohz_full={last} rcu_nocbs={last} to GRUB_CMDLINE_LINUX in "
            "/etc/default/grub, then update-grub and reboot",
        )
    ]


# --- memory --------------------------------------------------------------------------------------


def _memory(machine: Machine) -> list[Finding]:
    match = re.search(r"^MemAvailable:\s*(\d+) kB", machine.read("/proc/meminfo"), re.M)
    free_mb = int(match[1]) // 1024 if match else 0
    if free_mb < 1024:
        return [
            Finding(
                "memory",
                False,
                f"{free_mb} MB available: large route tables need more",
                "ps aux --sort=-rss | head, and stop what you do not need",
            )
        ]
    return [Finding("memory", True, f"{free_mb} MB available")]


def _hugepages(machine: Machine) -> list[Finding]:
    sizes = []
    for folder in machine.folders("/sys/kernel/mm/hugepages"):
        size = re.search(r"hugepages-(\d+)kB", folder.name)
        total = machine.read(f"/sys/kernel/mm/hugepages/{folder.name}/nr_hugepages")
        if size and total.isdigit() and int(total):
            sizes.append(f"{total} of {int(size[1]) // 1024} MB")
    if not sizes:
        return [
            Finding(
                "hugepages",
                False,
                "none reserved: tables and packets cause more TLB misses",
                "echo 512 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
            )
        ]
    if machine.has("/proc/mounts") and " hugetlbfs " not in machine.read("/proc/mounts"):
        return [
            Finding(
                "hugepages",
                False,
                f"{', '.join(sizes)}, but hugetlbfs is not mounted",
                "sudo mkdir -p /dev/hugepages && sudo mount -t hugetlbfs nodev /dev/hugepages",
            )
        ]
    return [Finding("hugepages", True, ", ".join(sizes))]


def _transparent(machine: Machine) -> list[Finding]:
    setting = re.search(r"\[(\w+)\]", machine.read("/sys/kernel/mm/transparent_hugepage/enabled"))
    mode = setting[1] if setting else "not available"
    if mode in ("always", "madvise"):
        return [
            Finding("transparent hugepages", True, f"{mode}: used when no hugepages are reserved")
        ]
    return [
        Finding(
            "transparent hugepages",
            False,
            f"{mode}: memory is in 4 KB pages",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        )
    ]


# --- software and rights -------------------------------------------------------------------------


def _dpdk(machine: Machine) -> list[Finding]:
    version = machine.run(["pkg-config", "--modversion", "libdpdk"]).strip()
    if not version:
        return [
            Finding(
                "dpdk",
                False,
                "libdpdk was not found",
                "sudo apt-get install libdpdk-dev pkg-config",
            )
        ]
    if not version.startswith("22.11"):
        return [
            Finding(
                "dpdk",
                False,
                f"DPDK {version}; Batchplane is built and tested with 22.11",
                "sudo apt-get install libdpdk-dev (Debian 12)",
            )
        ]
    return [Finding("dpdk", True, f"DPDK {version}")]


def _permissions(machine: Machine) -> list[Finding]:
    if machine.can(_CAP_NET_ADMIN):
        who = "root" if machine.uid == 0 else "CAP_NET_ADMIN"
        return [Finding("permissions", True, f"{who}: tap and af_packet ports work")]
    return [
        Finding(
            "permissions",
            False,
            "running as an ordinary user: generators, rings and pcap files work, "
            "tap and af_packet ports do not",
            "sudo batchplane ..., or unshare -Urn for your own network namespace",
        )
    ]


def _priority(machine: Machine) -> list[Finding]:
    if machine.can(_CAP_SYS_NICE):
        return [Finding("priority", True, "control comes before generators on its core")]
    return [
        Finding(
            "priority",
            False,
            "control has no priority over generators on its core: its replies may lag under load",
            "sudo setcap cap_sys_nice+ep build/batchplaned",
        )
    ]


def _autogroup(machine: Machine) -> list[Finding]:
    setting = "kernel.sched_autogroup_enabled"
    if machine.read("/proc/sys/" + setting.replace(".", "/")) in {"", "0"}:
        return [Finding("autogroup", True, "threads share the cores, and not sessions")]
    return [
        Finding(
            "autogroup",
            False,
            "sessions share the cores as groups: some kernels (6.18) then let a daemon that fills"
            " its cores keep other sessions off one of them for a minute",
            f"sudo sysctl -w {setting}=0",
        )
    ]


def _kept(_machine: Machine) -> list[Finding]:
    """The capabilities that a running daemon keeps."""
    reasons = "; ".join(f"{name}: {why}" for name, why in KEPT.items())
    told = f"once its ports are up the daemon drops all capabilities but {reasons}"
    return [Finding("kept rights", True, told)]


def _tun(machine: Machine) -> list[Finding]:
    if not machine.has("/dev/net/tun"):
        return [Finding("tun", False, "/dev/net/tun is missing: no tap ports", "sudo modprobe tun")]
    return [Finding("tun", True, "/dev/net/tun is available")]


def _vfio(machine: Machine) -> list[Finding]:
    if machine.has("/sys/module/vfio_pci"):
        groups = machine.folders("/sys/kernel/iommu_groups")
        if groups:
            return [Finding("vfio", True, f"vfio-pci is loaded, {len(groups)} IOMMU groups")]
        return [
            Finding(
                "vfio",
                False,
                "vfio-pci is loaded, but there is no IOMMU",
                "add intel_iommu=on iommu=pt to the kernel command line, or echo 1 | sudo tee "
                "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
            )
        ]
    return [
        Finding(
            "vfio",
            False,
            "vfio-pci is not loaded: no NICs by PCI address",
            "sudo modprobe vfio-pci (only needed for DPDK NICs)",
        )
    ]


def _namespaces(machine: Machine) -> list[Finding]:
    clone = machine.read("/proc/sys/kernel/unprivileged_userns_clone")
    most = machine.read("/proc/sys/user/max_user_namespaces")
    if clone == "0":
        return [
            Finding(
                "user namespaces",
                False,
                "not allowed for ordinary users: end-to-end tests need root",
                "sudo sysctl -w kernel.unprivileged_userns_clone=1",
            )
        ]
    if most == "0":
        return [
            Finding(
                "user namespaces",
                False,
                "disabled: end-to-end tests cannot run",
                "sudo sysctl -w user.max_user_namespaces=10000",
            )
        ]
    return [Finding("user namespaces", True, "allowed")]


def _offloads(machine: Machine) -> list[Finding]:
    """Ends of veth pairs that pass on partial checksums or oversized segments."""
    findings = []
    # Not /sys/class/net: inside a network namespace it may still show the previous one.
    for name in re.findall(r"^\s*([^\s:]+):", machine.read("/proc/net/dev"), re.M):
        settings = machine.run(["ethtool", "-i", name])
        if "driver: veth" not in settings:
            continue
        features = machine.run(["ethtool", "-k", name])
        on = [
            feature for feature in _OFFLOADS if re.search(rf"^\s*{feature}: on\s*$", features, re.M)
        ]
        if on:
            findings.append(
                Finding(
                    f"offloads of {name}",
                    False,
                    f"{', '.join(on)} on: packets arrive oversized or with partial checksums",
                    f"sudo ethtool -K {name} {_SHORT_OFFLOADS}",
                )
            )
        else:
            findings.append(Finding(f"offloads of {name}", True, "off"))
    return findings
