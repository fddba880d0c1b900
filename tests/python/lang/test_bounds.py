# SPDX-License-Identifier: BSD-3-Clause
"""test_bounds.py - input that would take for ever, or that no type can represent, ends in a line
with the bound."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from built import needs_daemon_and_extension
from command_line import run_command
from conftest import load

from batchplane.base.json_file import read_json
from batchplane.base.limits import MODULES, TRAFFIC_FLOWS
from batchplane.base.problems import BadInput
from batchplane.base.units import parse_duration_ns, parse_scaled
from batchplane.changes.settings import parse_settings
from batchplane.lang.traffic import traffic_problems
from batchplane.lang.yaml_loader import load_yaml

GOOD = """\
ports: {link: {kind: ring}}
generators: [{name: load, port: link, rate_pps: 1000}]
modules:
  in: {kind: port_in, port: link}
  out: {kind: sink}
connect: [in -> out]
"""


@pytest.mark.parametrize("key", ["g../x", "..", "a[", "x[]", "[1].", "a.b[3].c"])
def test_a_key_of_any_shape_has_a_place(key: str) -> None:
    document = load(GOOD)
    assert document.where(key) == "p.yaml"
    assert document.where(f"modules.out.{key}") == "p.yaml:5"


@needs_daemon_and_extension
@pytest.mark.parametrize(
    ("old", "new"),
    [("kind: sink}", "kind: sink, 'g../x': 1}"), ("{link: {", "{'[]': {kind: ring}, link: {")],
)
def test_check_ends_with_odd_names(
    old: str,
    new: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(GOOD.replace(old, new))
    assert run_command(monkeypatch, "check", str(file)) == 2
    assert "p.yaml:" in capsys.readouterr().out


@pytest.mark.parametrize(
    "number", ["9223372036854775808", "-9223372036854775809", "9" * 30, "1e999", "0x" + "f" * 20]
)
def test_numbers_fit_64_bits(number: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"p.yaml:2: the number .* does not fit 64 bits"):
        load_yaml(f"modules:\n  a: {number}\n", "p.yaml")
    assert load_yaml("a: 9223372036854775807", "p.yaml").items[0][1].value == (1 << 63) - 1
    if not number.startswith("0x"):
        file = tmp_path / "x.json"
        file.write_text(f"[{number}]")
        with pytest.raises(
            BadInput, match=r"x.json: this is not valid JSON: the (integer|number) .* (fit|range)"
        ):
            read_json(file)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[NaN]", "[Infinity]", "[" + "1" * 5000 + "]", "{", "\x00"]
)
def test_invalid_json(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=r"x.json(:1)?: this is not valid JSON"):
        read_json(file)


def test_times_and_rates_beyond_all_bounds() -> None:
    assert (
        parse_duration_ns("9" * 400 + "s")
        == parse_duration_ns("1e9"[0] + "0" * 30 + "s")
        == (1 << 63) - 1
    )
    assert parse_scaled("9" * 400) is None and parse_scaled("5M") == 5e6
    names = {"module": ["ttl"], "flow": ["f"], "generator": ["load"]}
    for word, bound in {
        "ttl.trigger=257": "0 to 256",
        "ttl.age_limit=" + "9" * 30 + "s": "1ns to 1000000s",
        "f.slo=2000000s": "0ns to 1000000s",
        "load.rate=2G": "0 to 1000000000",
        "load.weights=1,inf": "0 to 1000000",
    }.items():
        with pytest.raises(BadInput, match=f"is out of range .*{bound}"):
            parse_settings([word], names)


@pytest.mark.parametrize("count", [1 << 32, 0, -1, "x", None, 1.5, [1]])
def test_counts_of_traffic_flows(count: object) -> None:
    document = load(GOOD)
    document.pipeline["generators"][0]["params"]["flows"] = [{"name": "a", "count": count}]
    (problem,) = traffic_problems(document)
    assert problem.key == "generators[0].flows[0].count" and problem.where == "p.yaml:2"
    assert problem.fix == f"an integer from 1 to {TRAFFIC_FLOWS.most}"


def test_the_sum_of_traffic_flows_and_their_shapes() -> None:
    document = load(GOOD)
    params = document.pipeline["generators"][0]["params"]
    for flows, told in {
        '[{"count": 1000000}, {"count": 1000000}]': "more than 1048576 traffic flows",
        '["a"]': "expected a mapping, found 'a'",
        '{"a": 1}': "expected a list, found a mapping",
        '[{"weight": 1e300}]': "weight is '1e+300'",
        '[{"rate_pps": -1}]': "rate_pps is '-1'",
        '[{"size_bytes": 99999}]': "size_bytes is '99999'",
        '[{"size_mix": [1]}]': "size_mix is a list",
        '[{"name": 7}]': "expected text, found '7'",
    }.items():
        params["flows"] = json.loads(flows)
        assert [problem.message for problem in traffic_problems(document)] == [told]


def test_repeats_have_an_end() -> None:
    endless = "repeat: [{as: i, count: 1000000, repeat: [{as: j, count: 1000000}]}]\n"
    with pytest.raises(
        BadInput, match=r"p.yaml:\d+: the pipeline expands to more than 1000000 values"
    ):
        load(GOOD + endless)
    many = f"repeat: [{{as: i, count: {MODULES.most}, modules: {{'m${{i}}': {{kind: sink}}}}}}]\n"
    with pytest.raises(
        BadInput,
        match=rf"p.yaml:\d+: modules: modules are more than {MODULES.most} \(lower the counts",
    ):
        load(GOOD + many)
    wrong = "flows: [{repeat: {as: i, count: 500000}, value: '${ip(0.0.0.0, i - 1000000)}'}]\n"
    with pytest.raises(BadInput) as refused:
        load(GOOD + wrong)
    assert 100 < len(refused.value.problems) < 1000


@needs_daemon_and_extension
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("check", "tree", "leaves=65536"), f"modules are more than {MODULES.most}"),
        (("simulate", "tree", "--period", "1ns"), "--period: '1ns' is out of range (1ms to 1s)"),
        (("simulate", "tree", "--duration", "2000000s"), "--duration: '2000000s' is out of range"),
        (("simulate", "tree", "rate_pps=4294967296"), "out of range"),
        (
            ("simulate", "tree", "slo=99999999999999999999s"),
            "out of range: at most 1000000000000000",
        ),
    ],
)
def test_commands_name_the_bound(
    words: tuple[str, ...],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(monkeypatch, *words) == 2
    said = capsys.readouterr()
    assert told in said.out + said.err
