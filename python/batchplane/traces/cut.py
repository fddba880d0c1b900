# SPDX-License-Identifier: BSD-3-Clause
"""cut.py - splits destinations into groups of prefixes with about the same number of packets.

Greedily, over the binary trie of the addresses. The wanted share is the remaining packets over the
remaining groups. Among the top-most subtrees with no more than this share, the deepest is folded
into its parent. A subtree that then exceeds the share becomes a group, and its packets are removed.
Once there are no more subtrees than remaining groups, each becomes a group.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..base.problems import BadInput, Problem
from .pcap_file import read_packets

_BITS = 32
_IPV4 = b"\x08\x00"
Node = tuple[int, int]  # length of the prefix, and its bits


@dataclass(frozen=True)
class Group:
    """A prefix and the packets that its route takes by longest prefix match."""

    prefix: str
    packets: int


def count_destinations(path: Path | str) -> dict[int, int]:
    """Packets by IPv4 destination, without other packets. Reads the file as a stream."""
    counts: dict[bytes, int] = {}
    for packet in read_packets(Path(path)):
        frame, at = packet.frame, 12
        while frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8") and at < 28:
            at += 4
        if frame[at : at + 2] != _IPV4 or len(frame) < at + 22:
            continue
        dst = frame[at + 18 : at + 22]
        counts[dst] = counts.get(dst, 0) + 1
    if not counts:
        raise BadInput(Problem("it contains no IPv4 packets", str(path)))
    return {int.from_bytes(dst, "big"): n for dst, n in counts.items()}


class _Trie:
    """Weights of subtrees over sorted addresses; taken addresses have weight 0."""

    def __init__(self, counts: Mapping[int, int]):
        self.addresses = np.array(sorted(counts), np.int64)
        self._weights = np.array([counts[int(a)] for a in self.addresses], np.int64)
        self._sums: NDArray[np.int64] = np.concatenate([[0], np.cumsum(self._weights)])
        self._folded: set[Node] = set()

    def _range(self, node: Node) -> tuple[int, int]:
        length, bits = node
        low = bits << (_BITS - length)
        high = (bits + 1) << (_BITS - length)
        first, last = np.searchsorted(self.addresses, (low, high))
        return int(first), int(last)

    def weight(self, node: Node) -> int:
        """Packets below the node that are in no group yet."""
        first, last = self._range(node)
        return int(self._sums[last] - self._sums[first])

    def take(self, node: Node) -> None:
        """Assigns the node's packets to a group."""
        first, last = self._range(node)
        self._weights[first:last] = 0
        self._sums = np.concatenate([[0], np.cumsum(self._weights)])

    def fold(self, node: Node) -> None:
        """Makes the node a leaf."""
        self._folded.add(node)

    def top_most(self, share: float) -> list[tuple[Node, int]]:
        """The top-most subtrees with no more weight than the share, and leaves."""
        found: list[tuple[Node, int]] = []
        todo: list[Node] = [(0, 0)]
        while todo:
            node = todo.pop()
            weight = self.weight(node)
            if weight == 0:
                continue
            if weight <= share or node[0] == _BITS or node in self._folded:
                found.append((node, weight))
                continue
            todo += [(node[0] + 1, node[1] << 1 | side) for side in (0, 1)]
        return found


def cut(counts: Mapping[int, int], n_groups: int) -> list[Group]:
    """Groups in the order in which they were found; fewer if there are too few addresses."""
    if n_groups < 1:
        raise BadInput(Problem(f"{n_groups} groups are none", "cut", "groups"))
    trie = _Trie(counts)
    left_pkts, left_groups = sum(counts.values()), n_groups
    groups: list[Group] = []
    while left_groups:
        share = left_pkts / left_groups
        last = _fold_until(trie, share, left_groups)
        groups += [Group(_text(node), weight) for node, weight in last]
        if len(last) != 1 or trie.weight((0, 0)) == last[0][1]:
            break  # every subtree is a group
        trie.take(last[0][0])
        left_pkts -= last[0][1]
        left_groups -= 1
    return groups


def _fold_until(trie: _Trie, share: float, left_groups: int) -> list[tuple[Node, int]]:
    """One subtree above the share, or all if they are no more than the remaining groups."""
    weights = dict(trie.top_most(share))
    # The deepest first, and among those the heaviest.
    heap = [(-node[0], -weight, node) for node, weight in weights.items()]
    heapq.heapify(heap)
    while len(weights) > left_groups:
        _, _, node = heapq.heappop(heap)
        weight = weights.pop(node, None)
        if weight is None:
            continue  # folded with its sibling
        if weight > share:
            return [(node, weight)]
        parent = (node[0] - 1, node[1] >> 1)
        weight += weights.pop((node[0], node[1] ^ 1), 0)
        weights[parent] = weight
        trie.fold(parent)
        heapq.heappush(heap, (-parent[0], -weight, parent))
    return sorted(weights.items())


def _text(node: Node) -> str:
    length, bits = node
    address = (bits << (_BITS - length)).to_bytes(4, "big")
    return f"{'.'.join(map(str, address))}/{length}"


def group_of(addresses: Iterable[int], groups: Sequence[Group]) -> list[int]:
    """The number of each address's group, by longest prefix; -1 without one."""
    by_length: dict[int, dict[int, int]] = {}
    for i, group in enumerate(groups):
        text, _, length = group.prefix.partition("/")
        value = int.from_bytes(bytes(map(int, text.split("."))), "big")
        by_length.setdefault(int(length), {})[value >> (_BITS - int(length))] = i
    lengths = sorted(by_length, reverse=True)
    found = []
    for address in addresses:
        hit = -1
        for bits in lengths:
            hit = by_length[bits].get(address >> (_BITS - bits), -1)
            if hit >= 0:
                break
        found.append(hit)
    return found


def routes_text(groups: Sequence[Group], source: str) -> str:
    """A route file for `file` of ipv4_lookup: group i leaves by gate i."""
    total = sum(group.packets for group in groups)
    lines = [f"# {len(groups)} groups of the destinations of {source}, {total} packets"]
    lines += [
        f"{group.prefix} {i}  # {group.packets / total:.2%}" for i, group in enumerate(groups)
    ]
    return "\n".join(lines) + "\n"
