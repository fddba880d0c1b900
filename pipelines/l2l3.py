# SPDX-License-Identifier: BSD-3-Clause
"""l2l3.py - the pipeline of l2l3.yaml, built in Python.

batchplane run pipelines/l2l3.py nexthops=64 trigger=16
"""

from batchplane import Module, Pipeline
from batchplane.lang.expression import ip, mac
from batchplane.lang.pipeline import Options


def build(
    branches: int = 1,
    nexthops: int = 16,
    fib_size: int = 500,
    rate_pps: int = 2_000_000,
    saturate: bool = False,
    trigger: int = 0,
    age_limit: str = "500us",
    checksum: str = "incremental",
    batch: int = 32,
) -> Pipeline:
    """A virtual router per branch, and a chain of modules per next hop."""
    p = Pipeline("l2l3", Options(batch_pkts=batch))
    link = p.port("link", "ring", size_pkts=2 * batch)
    flows = [_load(b, nexthops) for b in range(branches)]
    p.generator("load", link, rate_pps=rate_pps, saturate=saturate, flows=flows)

    source = p.module("in", "port_in", port=link)
    type_check = p.module("type_check", "ether_type", rules=[{"ether_type": "ipv4", "gate": 0}])
    entries = [{"mac": mac("02:77:0b:00:00:01", b), "gate": b} for b in range(branches)]
    l2 = p.module("l2", "l2_table", entries=entries)
    _ = source >> type_check >> l2

    n_flows = branches * nexthops
    routes = [(ip("100.0.0.0", r * 256), r) for r in range(fib_size - n_flows)]
    routes += [(ip("20.0.0.0", r * 256), r) for r in range(n_flows)]
    table = [{"prefix": f"{base}/24", "gate": r % nexthops} for base, r in routes]
    for b in range(branches):
        lookup = p.module(f"lookup_{b}", "ipv4_lookup", routes=table)
        _ = l2[b] >> lookup
        for n in range(nexthops):
            ttl = p.module(
                f"ttl_{b}_{n}", "ttl", mend_checksum=False, trigger=trigger, age_limit=age_limit
            )
            chain: list[Module] = [
                ttl,
                p.module(
                    f"mac_{b}_{n}",
                    "mac_rewrite",
                    src=mac("02:bb:bb:aa:00:00", b * nexthops + n),
                    dst=mac("02:dd:dd:aa:00:00", b * nexthops + n),
                ),
                p.module(f"sum_{b}_{n}", "checksum", mode=checksum),
                p.module(f"out_{b}_{n}", "sink"),
            ]
            _ = lookup[n] >> chain[0] >> chain[1] >> chain[2] >> chain[3]
            path = [source, type_check, l2, lookup, *chain]
            p.flow(f"flow_{b}_{n}", path, delay_slo="1ms")
    return p


def _load(branch: int, nexthops: int) -> dict[str, str | int]:
    return {
        "name": f"branch_{branch}",
        "count": nexthops,
        "dst_mac": mac("02:77:0b:00:00:01", branch),
        "dst_ip": ip("20.0.0.1", branch * nexthops * 256),
        "dst_ip_step": 256,
        "flow": f"flow_{branch}_{{i}}",
    }
