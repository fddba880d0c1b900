# SPDX-License-Identifier: BSD-3-Clause
"""test_doctor.py - findings on fake machines, good and bad."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from batchplane.commands.doctor import Finding, Machine, examine, run_command

FLAGS = "fpu avx avx2 bmi1 bmi2 f16c fma abm movbe avx512f avx512bw avx512dq avx512vl"
GOOD = {
    "proc/cpuinfo": f"model name\t: Test CPU\nflags\t\t: {FLAGS}\n",
    "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable:    8388608 kB\n",
    "proc/mounts": "nodev /dev/hugepages hugetlbfs rw 0 0\n",
    "proc/self/status": "Name:\tx\nCapEff:\t000001ffffffffff\n",
    "proc/sys/kernel/unprivileged_userns_clone": "1",
    "proc/sys/kernel/sched_autogroup_enabled": "0",
    "proc/sys/user/max_user_namespaces": "1000",
    "sys/devices/system/cpu/online": "0-3",
    "sys/devices/system/cpu/isolated": "2-3",
    "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "512",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
    "sys/kernel/iommu_groups/0/x": "",
    "sys/module/vfio_pci/x": "",
    "dev/net/tun": "",
    "proc/net/dev": "Inter-| Receive\n face |bytes\n    lo: 1 2\n veth0: 3 4\n",
}


CARD = '{"platforms": [{"platform": "Maker", "devices": ["Card"]}]}'
GPU = '{"devices": [{"device": "NVIDIA H9", "driver": "CUDA 13.0", "bus": "0"}]}'


def commands(
    features: str = "off", version: str = "22.11.5", opencl: str = CARD, cuda: str = GPU
) -> object:
    def run(words: Sequence[str]) -> str:
        if words[1] == "--opencl":
            return opencl
        if words[1] == "--cuda":
            return cuda
        if words[0] == "pkg-config":
            return version
        if words[1] == "-i":
            return "driver: veth\n" if words[2] == "veth0" else "driver: loopback\n"
        return f"tx-checksum-ip-generic: {features}\ntx-tcp-segmentation: {features} [fixed]\nrx-gro: {features}\n"

    return run


def examined(root: Path, change: dict[str, str | None], run: object = None) -> dict[str, Finding]:
    for path, text in {**GOOD, **change}.items():
        if text is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
    machine = Machine(root, run or commands(), uid=1000)  # type: ignore[arg-type]
    return {finding.topic: finding for finding in examine(machine)}


def test_a_good_machine(tmp_path: Path) -> None:
    findings = examined(tmp_path, {})
    assert [finding.topic for finding in findings.values() if not finding.is_ok] == []
    assert len(findings) == 19 and all(finding.remedy == "" for finding in findings.values())
    assert findings["hugepages"].message == "512 of 2 MB"


@pytest.mark.parametrize(
    ("change", "topic", "message", "remedy"),
    [
        (
            {"proc/cpuinfo": "flags\t: avx fma\n"},
            "cpu",
            "unknown processor lacks avx2",
            "-march=native",
        ),
        (
            {"proc/cpuinfo": f"flags\t: {FLAGS.replace('avx512bw', '')}\n"},
            "avx-512",
            "no avx512bw",
            "no action needed",
        ),
        ({"sys/devices/system/cpu/online": "0"}, "cores", "1 core(s)", "give the machine 2 cores"),
        (
            {"sys/devices/system/cpu/online": "0-1"},
            "devices",
            "inline, cores, simulated",
            "a core for each thread",
        ),
        (
            {"sys/devices/system/cpu/isolated": ""},
            "isolation",
            "no core is isolated",
            "isolcpus=3 nohz_full=3",
        ),
        ({"proc/meminfo": "MemAvailable: 500000 kB\n"}, "memory", "488 MB available", "ps aux"),
        (
            {"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "0"},
            "hugepages",
            "none reserved",
            "echo 512 | sudo tee /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        ),
        (
            {"proc/mounts": "proc /proc proc rw 0 0\n"},
            "hugepages",
            "hugetlbfs is not mounted",
            "sudo mkdir",
        ),
        (
            {"sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"},
            "transparent hugepages",
            "never",
            "echo madvise | sudo tee",
        ),
        (
            {"proc/self/status": "CapEff:\t0000000000000000\n"},
            "permissions",
            "an ordinary user",
            "unshare -Urn",
        ),
        (
            {"proc/self/status": "CapEff:\t0000000000001000\n"},
            "priority",
            "no priority over",
            "setcap",
        ),
        (
            {"proc/sys/kernel/sched_autogroup_enabled": "1"},
            "autogroup",
            "keep other sessions off",
            "sysctl -w",
        ),
        ({"dev/net/tun": None}, "tun", "is missing", "sudo modprobe tun"),
        ({"sys/module/vfio_pci/x": None}, "vfio", "not loaded", "sudo modprobe vfio-pci"),
        ({"sys/kernel/iommu_groups/0/x": None}, "vfio", "no IOMMU", "intel_iommu=on"),
        (
            {"proc/sys/kernel/unprivileged_userns_clone": "0"},
            "user namespaces",
            "need root",
            "sysctl -w",
        ),
        (
            {"proc/sys/user/max_user_namespaces": "0"},
            "user namespaces",
            "disabled",
            "sysctl -w",
        ),
    ],
)
def test_one_thing_is_wrong(
    tmp_path: Path, change: dict[str, str | None], topic: str, message: str, remedy: str
) -> None:
    finding = examined(tmp_path, change)[topic]
    assert not finding.is_ok and message in finding.message and remedy in finding.remedy


def test_offloads_are_seen_on_veth_only(tmp_path: Path) -> None:
    findings = examined(tmp_path, {}, commands("on"))
    assert findings["offloads of veth0"] == Finding(
        "offloads of veth0",
        False,
        "tx-checksum-ip-generic, rx-gro on: packets arrive oversized or with partial checksums",
        "sudo ethtool -K veth0 tx off tso off gso off gro off",
    )
    assert "offloads of lo" not in findings


@pytest.mark.parametrize(
    ("version", "message"), [("", "not found"), ("23.11.0", "tested with 22.11")]
)
def test_dpdk_versions(tmp_path: Path, version: str, message: str) -> None:
    assert message in examined(tmp_path, {}, commands(version=version))["dpdk"].message


def test_an_empty_machine_is_no_crash(tmp_path: Path) -> None:
    findings = examine(Machine(tmp_path, lambda _: "", uid=1000))
    assert all(finding.remedy for finding in findings if not finding.is_ok)


def test_this_machine_can_be_examined() -> None:
    assert len(examine()) >= 13


def test_missing_programs_say_nothing() -> None:
    assert run_command(["no-such-program-here"]) == "" and run_command(["false"]) == ""
    assert run_command(["echo", "x"]) == "x\n"


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ('{"missing": "there is no libOpenCL.so.1"}', "there is no libOpenCL.so.1"),
        ('{"platforms": []}', "no platform"),
        ('{"platforms": [{"platform": "Maker", "devices": []}]}', "Maker: no device"),
        ("", "tells nothing"),
    ],
)
def test_what_is_missing_of_opencl(tmp_path: Path, told: str, message: str) -> None:
    finding = examined(tmp_path, {}, commands(opencl=told))["opencl"]
    assert not finding.is_ok and message in finding.message and "pocl" in finding.remedy
    assert examined(tmp_path, {})["opencl"].message == "Maker: Card"


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ('{"missing": "there is no libcuda.so.1"}', "there is no libcuda.so.1"),
        ('{"devices": []}', "no GPU"),
        ("", "tells nothing"),
    ],
)
def test_what_is_missing_of_cuda(tmp_path: Path, told: str, message: str) -> None:
    finding = examined(tmp_path, {}, commands(cuda=told))["cuda"]
    assert not finding.is_ok and message in finding.message and "NVIDIA" in finding.remedy
    assert examined(tmp_path, {})["cuda"].message == "NVIDIA H9 (CUDA 13.0)"
