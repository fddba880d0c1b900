# SPDX-License-Identifier: BSD-3-Clause
"""test_layers.py - the layer check finds what it must, and leaves alone what is right."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TREE = Path(__file__).resolve().parents[2]


def load_tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TREE / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


check_layers = load_tool("check_layers")
lint_sizes = load_tool("lint_sizes")


def breaches(tmp_path: Path, relative: str, text: str) -> list[str]:
    path = tmp_path / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    found: list[str] = check_layers.check_tree(tmp_path)
    return found


def test_this_tree_is_layered() -> None:
    assert check_layers.check_tree(TREE) == []


@pytest.mark.parametrize(
    ("relative", "include"),
    [
        ("src/base/a.h", '"core/packet.h"'),
        ("src/base/a.h", "<rte_mbuf.h>"),
        ("src/exec/a.h", '"core/context.h"'),
        ("src/core/a.h", '"modules/ttl.h"'),
        ("src/core/worker.h", "<rte_ring.h>"),
        ("src/ports/a.h", '"traffic/generator.h"'),
        ("src/traffic/a.h", '"ports/ring_port.h"'),
        ("src/modules/a.h", '"ports/ring_port.h"'),
        ("src/modules/a.h", '"app/config.h"'),
        ("src/core/a_test.cc", '"app/config.h"'),
        ("src/core/a.h", "<nlohmann/json.hpp>"),
        ("src/modules/a_test.cc", "<CLI/CLI.hpp>"),
        ("src/core/a.h", "<gtest/gtest.h>"),
        ("src/core/a.h", "<boost/any.hpp>"),
        ("src/core/a.h", '"context.h"'),
        ("src/app/a.h", "<Python.h>"),
    ],
)
def test_breach_is_found_with_its_line(tmp_path: Path, relative: str, include: str) -> None:
    found = breaches(tmp_path, relative, f"#pragma once\n#include {include}\n")
    assert len(found) == 1
    assert found[0].startswith(f"{relative}:2: ")


@pytest.mark.parametrize(
    ("relative", "include"),
    [
        ("src/base/a.h", "<vector>"),
        ("src/base/a.h", "<immintrin.h>"),
        ("src/exec/a.h", '"base/rng.h"'),
        ("src/core/packet_pool_dpdk.cc", "<rte_mempool.h>"),
        ("src/core/packet.h", "<rte_mbuf.h>"),
        ("src/modules/fib_dpdk.h", "<rte_fib.h>"),
        ("src/modules/a.h", '"core/module.h"'),
        ("src/modules/a_test.cc", '"ports/ring_port.h"'),
        ("src/modules/a_test.cc", '"support/harness.h"'),
        ("src/modules/a_test.cc", "<gtest/gtest.h>"),
        ("src/app/a.h", '"traffic/generator.h"'),
        ("src/app/a.h", "<nlohmann/json.hpp>"),
    ],
)
def test_right_include_is_left_alone(tmp_path: Path, relative: str, include: str) -> None:
    text = f"#include {include}\nconst Register<A> kA;\n"
    assert breaches(tmp_path, relative, text) == []


def test_include_in_a_comment_does_not_count(tmp_path: Path) -> None:
    assert breaches(tmp_path, "src/base/a.h", '// #include "core/packet.h"\n') == []


def test_module_file_that_registers_nothing_is_found(tmp_path: Path) -> None:
    found = breaches(tmp_path, "src/modules/lost.cc", "int x;\n")
    assert len(found) == 1
    assert "registers no module kind" in found[0]


def test_module_or_helper_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "src/modules").mkdir(parents=True)
    (tmp_path / "src/modules/table.h").write_text("#pragma once\n", encoding="utf-8")
    part = '#include "modules/table.h"\n'
    (tmp_path / "src/modules/table_load.cc").write_text(part, encoding="utf-8")
    registers = 'const Register<A> kA{{.kind = "a"}};\n'
    assert breaches(tmp_path, "src/modules/a.cc", registers) == []


@pytest.mark.parametrize(
    ("relative", "include", "told"),
    [
        ("python/batchplane/native.cc", "<nanobind/nanobind.h>", None),
        ("python/batchplane/native_show.cc", '"sim/simulation.h"', None),
        ("python/batchplane/native.cc", '"native_values.h"', None),
        ("python/batchplane/native.cc", '"core/engine.h"', "the extension may include base, exec"),
        (
            "python/batchplane/native.cc",
            "<rte_mbuf.h>",
            "the extension needs C++ and nanobind only",
        ),
        ("python/batchplane/other.cc", "<vector>", "C++ for Python stands in"),
    ],
)
def test_extension_stands_on_the_simulator_alone(
    tmp_path: Path, relative: str, include: str, told: str | None
) -> None:
    (tmp_path / "src").mkdir()
    found = breaches(tmp_path, relative, f"#include {include}\n")
    assert [told in breach for breach in found if told] == ([True] if told else [])
    assert len(found) == (0 if told is None else 1)


def test_only_its_loader_names_the_extension(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    found = breaches(tmp_path, "python/batchplane/a.py", "from batchplane._native import X\n")
    assert len(found) == 1 and "ask native.py" in found[0]


def test_python_must_not_load_the_engine(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    found = breaches(tmp_path, "python/batchplane/a.py", "import json\nfrom ctypes import CDLL\n")
    assert len(found) == 1
    assert found[0].startswith("python/batchplane/a.py:2: ctypes")


def sized_file(tmp_path: Path, body: str, name: str = "src/core/a.cc") -> list[str]:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    first = "// SPDX-License-Identifier: BSD-3-Clause\n"
    path.write_text(f"{first}// {path.name} - a file.\n{body}", encoding="utf-8")
    return [finding.text for finding in lint_sizes.check_tree(tmp_path) if finding.is_error]


def test_long_function_is_found_also_as_a_template_member(tmp_path: Path) -> None:
    lines = "  call();\n" * 90
    body = (
        f"template <class T>\nstruct S {{\n  void f(int a,\n         int b) {{\n{lines}  }}\n}};\n"
    )
    assert len(sized_file(tmp_path, body)) == 1


def test_long_class_of_short_functions_is_right(tmp_path: Path) -> None:
    body = "class C {\n" + '  void f() { call("{"); }  // {\n' * 90 + "};\n"
    assert sized_file(tmp_path, body) == []


def test_long_file_is_found(tmp_path: Path) -> None:
    assert len(sized_file(tmp_path, "int x;\n" * 700)) == 1


def test_file_without_licence_is_found(tmp_path: Path) -> None:
    path = tmp_path / "src/core/a.cc"
    path.parent.mkdir(parents=True)
    path.write_text("int x;\n", encoding="utf-8")
    assert [finding.is_error for finding in lint_sizes.check_tree(tmp_path)] == [True, True]


def test_long_python_function_is_found(tmp_path: Path) -> None:
    body = "def f():\n" + "    call()\n" * 90
    path = tmp_path / "tools/a.py"
    path.parent.mkdir(parents=True)
    path.write_text(f"# SPDX-License-Identifier: BSD-3-Clause\n{body}", encoding="utf-8")
    assert [finding.is_error for finding in lint_sizes.check_tree(tmp_path)] == [True]
