# SPDX-License-Identifier: BSD-3-Clause
"""test_traces.py - reading captures: formats, clocks, flows, rules, and damaged files."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batchplane.base.problems import BadInput
from batchplane.traces import trace as traces
from batchplane.traces.flows import five_tuple_of, flow_bytes, parse_rules
from batchplane.traces.pcap_file import read_packets, write_pcap, write_pcapng
from batchplane.traces.trace import TraceReader, read_trace

T0 = 1_700_000_000_000_000_000


def frame(
    src: str = "10.0.0.1",
    dst: str = "10.1.0.1",
    ports: tuple[int, int] = (1024, 80),
    protocol: int = 17,
    tags: bytes = b"",
    n_bytes: int = 60,
    fragment: int = 0,
) -> bytes:
    """An Ethernet frame of IPv4; the payload is zeros."""
    ip = struct.pack(">BBHHHBBH", 0x45, 0, n_bytes - 14 - len(tags), 0, fragment, 64, protocol, 0)
    ip += bytes(map(int, src.split("."))) + bytes(map(int, dst.split(".")))
    start = bytes.fromhex("020000000002020000000001") + tags + b"\x08\x00" + ip
    return (start + struct.pack(">HH", *ports)).ljust(n_bytes, b"\0")


PACKETS = [
    (T0, frame()),
    (T0 + 1_500, frame(dst="10.1.0.2", n_bytes=1514)),
    (T0 + 1_500, frame()),
    (T0 + 2_000_000_000, frame(ports=(1024, 81))),
]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("form", ["us", "ns", "ng6", "ng9", "ng2"])
def test_every_form_gives_times_sizes_and_flows(tmp_path: Path, form: str, order: str) -> None:
    path = tmp_path / "t.cap"
    tick = {"us": 1000, "ng6": 1000, "ng2": 954}.get(form, 1)
    if form in ("us", "ns"):
        write_pcap(path, PACKETS, is_ns=form == "ns", order=order)
    else:
        # 0x94: ticks of 2^-20 s
        write_pcapng(path, PACKETS, {"ng6": 6, "ng9": 9, "ng2": 0x94}[form], order)
    trace = read_trace(path)
    assert np.abs(trace.time_ns - [0, 1_500, 1_500, 2_000_000_000]).max() < tick
    if tick == 1:
        assert trace.time_ns.tolist() == [0, 1_500, 1_500, 2_000_000_000]
        assert trace.start_ns == T0
    assert trace.size_bytes.tolist() == [64, 1518, 64, 64]
    assert trace.flow.tolist() == [0, 1, 0, 2]
    assert trace.names[1] == "10.0.0.1:1024 > 10.1.0.2:80 udp"
    assert trace.first_frames == [PACKETS[0][1], PACKETS[1][1], PACKETS[3][1]]


def test_what_another_library_writes_is_read(tmp_path: Path) -> None:
    from scapy.utils import PcapNgWriter, wrpcap  # type: ignore[import-untyped]

    raw = [frame(n_bytes=n) for n in (60, 61, 62, 1514)]
    wrpcap(str(tmp_path / "a.pcap"), raw, linktype=1)
    assert [packet.frame for packet in read_packets(tmp_path / "a.pcap")] == raw
    with PcapNgWriter(str(tmp_path / "b.pcapng")) as writer:
        writer.linktype = 1
        for data in raw:
            writer.write(data)
    assert [packet.frame for packet in read_packets(tmp_path / "b.pcapng")] == raw


def test_cut_packets_count_with_their_full_length(tmp_path: Path) -> None:
    write_pcap(tmp_path / "t.pcap", PACKETS, snap_bytes=48)
    trace = read_trace(tmp_path / "t.pcap")
    assert trace.size_bytes.tolist() == [64, 1518, 64, 64]
    assert [len(first) for first in trace.first_frames] == [60, 1514, 60]


def test_chunks_bound_the_memory_and_join_to_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packets = [(T0 + i * 100, frame(ports=(i % 7, 80))) for i in range(1000)]
    write_pcap(tmp_path / "t.pcap", packets)
    monkeypatch.setattr(traces, "CHUNK_PKTS", 64)
    reader = TraceReader(tmp_path / "t.pcap")
    chunks = list(reader)
    assert [len(chunk.flow) for chunk in chunks] == [64] * 15 + [40]
    assert np.concatenate([chunk.time_ns for chunk in chunks]).tolist() == list(
        range(0, 100000, 100)
    )
    assert np.concatenate([chunk.flow for chunk in chunks]).tolist() == [i % 7 for i in range(1000)]
    assert len(reader.names) == 7


def test_packets_out_of_order_are_told_and_sorted_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "t.pcap"
    write_pcap(path, [(T0 + 500, frame()), (T0 + 100, frame(ports=(1, 2))), (T0 + 900, frame())])
    with pytest.raises(BadInput) as error:
        read_trace(path)
    assert str(error.value) == (
        f"{path}: packet 2 is 400 ns older than the packet before it "
        "(sort the packets by time: reordercap IN OUT)"
    )
    trace = read_trace(path, is_sorted=True)
    assert trace.time_ns.tolist() == [0, 400, 800]
    assert trace.flow.tolist() == [1, 0, 0]
    assert trace.start_ns == T0 + 100


def told(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(BadInput) as error:
        read_trace(path)
    (line,) = error.value.lines()
    assert line.startswith(f"{path}: ")
    return line.removeprefix(f"{path}: ")


def test_damaged_files_give_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.pcap"
    write_pcap(path, PACKETS)
    good = path.read_bytes()
    assert told(path, b"") == "the file is empty"
    assert told(path, good[:24]) == "it contains no packets"
    assert told(path, good[:10]).startswith("the file ends in the middle of its header")
    assert told(path, good[:30]).startswith("the file ends in the middle of packet 1")
    assert told(path, good[:-1]).startswith("the file ends in the middle of packet 4")
    assert told(path, b"hello world").startswith("this is neither pcap nor pcapng")
    assert told(path, b"\x1f\x8b\x08").startswith("the file is compressed")
    assert "link type is 113" in told(path, good[:20] + struct.pack("<I", 113) + good[24:])
    huge = struct.pack("<IIII", 0, 0, 1 << 30, 60)
    assert told(path, good[:24] + huge) == f"packet 1 claims {1 << 30} bytes: the file is damaged"
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        read_trace(tmp_path / "missing.pcap")


def test_damaged_pcapng_gives_one_line(tmp_path: Path) -> None:
    path = tmp_path / "t.pcapng"
    write_pcapng(path, PACKETS)
    good = path.read_bytes()
    interface = 28
    packet = interface + struct.unpack_from("<I", good, interface + 4)[0]
    assert "middle of a block" in told(path, good[:-1])
    assert "middle of a block" in told(path, good + b"\0")
    assert told(path, good[:8] + b"zzzz" + good[12:]) == "the header of a section is damaged"
    assert "claims 7 bytes" in told(
        path, good[: packet + 4] + struct.pack("<I", 7) + good[packet + 8 :]
    )
    assert "two lengths" in told(path, good[:-4] + struct.pack("<I", 8))
    assert "interface 0, which was not described" in told(path, good[:interface] + good[packet:])
    simple = struct.pack("<IIII", 3, 16, 0, 16)
    assert "without a usable time" in told(path, good[:packet] + simple)
    longer = good[: packet + 20] + struct.pack("<I", 5000) + good[packet + 24 :]
    assert "longer than its block" in told(path, longer)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=120), st.integers(0, 400), st.integers(0, 255))
def test_no_damage_ends_in_anything_but_a_line(tail: bytes, at: int, value: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        for write in (write_pcap, write_pcapng):
            path = Path(folder, "t")
            write(path, PACKETS[:2])
            content = bytearray(path.read_bytes() + tail)
            content[at % len(content)] = value
            path.write_bytes(content)
            try:
                trace = read_trace(path)
            except BadInput as error:
                assert len(error.lines()) == 1
            else:
                assert len(trace.flow) >= 1


def test_flows_are_five_tuples_with_tags_and_destination() -> None:
    def tag(vid: int, priority: int = 0) -> bytes:
        return struct.pack(">HH", 0x8100, priority << 13 | vid)

    base = flow_bytes(frame())
    assert flow_bytes(frame(n_bytes=1000)) == base
    others = [
        frame(src="10.0.0.2"),
        frame(ports=(1025, 80)),
        frame(protocol=6),
        frame(tags=tag(7)),
        b"\xff" + frame()[1:],
    ]
    assert len({base, *map(flow_bytes, others)}) == 6
    assert flow_bytes(frame(tags=tag(7, 5))) == flow_bytes(frame(tags=tag(7)))
    # In a fragment, the position of the ports holds payload.
    fragments = [frame(fragment=185, ports=(1, 2)), frame(fragment=370, ports=(3, 4))]
    assert flow_bytes(fragments[0]) == flow_bytes(fragments[1]) != base
    assert str(five_tuple_of(fragments[0])) == "10.0.0.1 > 10.1.0.1 udp"
    assert str(five_tuple_of(frame(tags=tag(7)))) == "10.0.0.1:1024 > 10.1.0.1:80 udp vlan 7"
    ipv6 = (
        bytes(12) + b"\x86\xdd\x60\0\0\0\0\x08\x06\x40" + bytes(15) + b"\x01" + bytes(15) + b"\x02"
    )
    assert str(five_tuple_of(ipv6 + struct.pack(">HH", 5, 6))) == "[::1]:5 > [::2]:6 tcp"
    assert str(five_tuple_of(bytes(12) + b"\x08\x06" + bytes(28))) == "0x0806"


@given(st.binary(max_size=90))
def test_any_bytes_have_a_flow_that_can_be_told(data: bytes) -> None:
    assert str(five_tuple_of(data))
    assert str(five_tuple_of(bytes(12) + b"\x81\x00" + data))


def test_rules_join_flows_by_name(tmp_path: Path) -> None:
    write_pcap(tmp_path / "t.pcap", PACKETS)
    rules = parse_rules(
        [
            {"name": "big", "dst": "10.1.0.2/32"},
            {"name": "web", "src": "10.0.0.0/8", "protocol": "udp", "dst_port": 80},
            {"name": "big", "protocol": 17},
        ]
    )
    trace = read_trace(tmp_path / "t.pcap", rules)
    assert trace.names == ["big", "web"]
    assert trace.flow.tolist() == [1, 0, 1, 0]
    assert trace.first_frames == [PACKETS[1][1], PACKETS[0][1]]
    with pytest.raises(BadInput) as error:
        read_trace(tmp_path / "t.pcap", rules[:2])
    assert "packet 4 (10.0.0.1:1024 > 10.1.0.1:81 udp) belongs to no traffic flow" in str(
        error.value
    )


def test_bad_rules_are_told_all_at_once() -> None:
    with pytest.raises(BadInput) as error:
        parse_rules(
            [{"name": "a", "sorc": "1"}, {"src": "10.0.0.0/99", "protocol": "tpc", "vlan": 5000}]
        )
    assert error.value.lines() == [
        "rules[0].sorc: unknown key 'sorc' (did you mean 'src'?)",
        "rules[1].name: a rule needs the name of a traffic flow",
        "rules[1].src: '10.0.0.0/99' is not a prefix (such as 10.0.0.0/8 or 2001:db8::/32)",
        "rules[1].protocol: unknown protocol 'tpc' (did you mean 'tcp'?)",
        "rules[1].vlan: '5000' is not a number from 0 to 4095",
    ]


def test_too_many_flows_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_pcap(tmp_path / "t.pcap", PACKETS)
    monkeypatch.setattr(traces, "MAX_FLOWS", 2)
    with pytest.raises(BadInput, match="packet 4 is of more than 2 different flows"):
        read_trace(tmp_path / "t.pcap")
