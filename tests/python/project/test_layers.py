# SPDX-License-Identifier: BSD-3-Clause
"""test_layers.py - the layer check finds violations, and accepts correct code."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TREE = Path(__file__).resolve().parents[3]


def load_tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, TREE / "tools" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


sys.path.insert(0, str(TREE / "tools"))  # as for a script in that folder
python_layers = load_tool("python_layers")
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
        ("src/base/a.h", '"core/packet/packet.h"'),
        ("src/base/a.h", "<rte_mbuf.h>"),
        ("src/exec/a.h", '"core/module/context.h"'),
        ("src/core/a.h", '"modules/ttl.h"'),
        ("src/core/engine/worker.h", "<rte_ring.h>"),
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
        ("src/modules/acl/a.h", '"modules/nat/napt_table.h"'),
        ("src/modules/headers/a.h", '"modules/common/tally.h"'),
        ("src/modules/ip/a.h", '"modules/golden.h"'),
        ("src/slo/model/a.h", '"slo/controllers.h"'),
        ("src/slo/optimal/a.h", '"slo/papers/controllers.h"'),
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
        ("src/core/packet/packet_pool_dpdk.cc", "<rte_mempool.h>"),
        ("src/core/packet/packet.h", "<rte_mbuf.h>"),
        ("src/modules/fib_dpdk.h", "<rte_fib.h>"),
        ("src/modules/a.h", '"core/module/module.h"'),
        ("src/modules/a_test.cc", '"ports/ring_port.h"'),
        ("src/modules/a_test.cc", '"support/harness.h"'),
        ("src/modules/a_test.cc", "<gtest/gtest.h>"),
        ("src/modules/ip/a_test.cc", '"modules/nat/napt_table.h"'),
        ("src/modules/tunnel/a.h", '"modules/session/session.h"'),
        ("src/slo/controllers.cc", '"slo/papers/controllers.h"'),
        ("src/app/a.h", '"traffic/generator.h"'),
        ("src/app/a.h", "<nlohmann/json.hpp>"),
    ],
)
def test_right_include_is_left_alone(tmp_path: Path, relative: str, include: str) -> None:
    text = f"#include {include}\nconst Register<A> kA;\n"
    assert breaches(tmp_path, relative, text) == []


def test_room_that_is_not_in_the_table_is_found(tmp_path: Path) -> None:
    found = breaches(tmp_path, "src/modules/misc/a.h", "int x;\n")
    told = "src/modules/misc/a.h:1: room modules/misc is not in ROOMS of tools/check_layers.py"
    assert found == [told]


def test_rooms_that_lead_in_a_circle_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    circle = {"modules": {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}}}
    monkeypatch.setattr(check_layers, "ROOMS", circle)
    told = "\n".join(check_layers.check_room_table())
    assert all(f"modules/{room} leads back to itself" in told for room in "abc")
    assert "modules/c may include d, no room" in told


def test_include_in_a_comment_does_not_count(tmp_path: Path) -> None:
    assert breaches(tmp_path, "src/base/a.h", '// #include "core/packet/packet.h"\n') == []


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
        ("python/batchplane/native/module.cc", "<nanobind/nanobind.h>", None),
        ("python/batchplane/native/show.cc", '"sim/simulation.h"', None),
        ("python/batchplane/native/module.cc", '"values.h"', None),
        (
            "python/batchplane/native/module.cc",
            '"core/engine/engine.h"',
            "the extension may include base, egress, exec",
        ),
        (
            "python/batchplane/native/module.cc",
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
    assert len(found) == 1 and "ask native/loader.py" in found[0]


def test_python_must_not_load_the_engine(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    found = breaches(tmp_path, "python/batchplane/a.py", "import json\nfrom ctypes import CDLL\n")
    assert len(found) == 1
    assert found[0].startswith("python/batchplane/a.py:2: ctypes")


@pytest.mark.parametrize(
    ("relative", "line", "told"),
    [
        (
            "base/a.py",
            "from ..lang.canonical import Document",
            "base may import none of the others",
        ),
        ("plan/a.py", "from ..commands import plan", "plan may import base"),
        ("plan/a.py", "from .. import experiments", "plan may import base"),
        ("sim/a.py", "import batchplane.plan.planning", "sim may import admission"),
        ("sim/a.py", "from batchplane.cli import main", "sim may import admission"),
        ("sim/a.py", "def f():\n    from ..plots.base import save", "sim may import admission"),
        (
            "lang/a.py",
            "if TYPE_CHECKING:\n    from ..show.rates import Rates",
            "lang may import base",
        ),
        ("lang/a.py", "from batchplane import Client", "imported by none of its packages"),
        ("lang/a.py", "from .. import Client", "imported by none of its packages"),
        ("sim/a.py", "from .. import _native", "ask native/loader.py"),
        ("misc/a.py", "import json", "package misc is not in MAY_IMPORT"),
    ],
)
def test_python_import_upwards_is_found(
    tmp_path: Path, relative: str, line: str, told: str
) -> None:
    (tmp_path / "src").mkdir()
    found = breaches(tmp_path, f"python/batchplane/{relative}", f"{line}\n")
    assert len(found) == 1 and told in found[0]
    at = 1 if "misc" in relative else line.count("\n") + 1
    assert found[0].startswith(f"python/batchplane/{relative}:{at}: ")


@pytest.mark.parametrize(
    ("relative", "line"),
    [
        ("plan/a.py", "from ..sim.prepare import prepare"),
        ("plan/a.py", "from . import text"),
        ("cli/a.py", "from ..experiments import command"),
        ("__init__.py", "from .daemon.client import Client"),
    ],
)
def test_python_import_downwards_is_left_alone(tmp_path: Path, relative: str, line: str) -> None:
    (tmp_path / "src").mkdir()
    assert breaches(tmp_path, f"python/batchplane/{relative}", f"{line}\n") == []


def test_python_files_that_import_each_other_are_found(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    folder = tmp_path / "python/batchplane/sim"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("from .b import x\n", encoding="utf-8")
    (folder / "b.py").write_text("def f():\n    from . import c\n", encoding="utf-8")
    found = breaches(tmp_path, "python/batchplane/sim/c.py", "from batchplane.sim.a import y\n")
    at = [f"python/batchplane/sim/{name}.py" for name in "abca"]
    assert found == [f"{at[0]}:1: its imports lead back to it: {' -> '.join(at)}"]


def test_python_packages_that_lead_in_a_circle_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = python_layers.MAY_IMPORT
    monkeypatch.setitem(table, "base", {"traces"})
    (found,) = python_layers.check_packages(tmp_path)
    assert "leads back to itself" in found and "base -> traces -> base" in found


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


@pytest.mark.parametrize(
    "line",
    [
        "const uint16_t length = net::load16(udp + 4);",
        "net::store16(to + 12, type);",
        "ip[8] -= 1;",
        "const uint8_t* ports = l4 + 2;",
        "std::memmove(pkt.data() + 4, from, n);",
        "const uint32_t src = net::load32(ip + net::kIpSrc);",
    ],
)
def test_bare_offsets_are_found(tmp_path: Path, line: str) -> None:
    found = breaches(tmp_path, "src/modules/ip/a.cc", f"{line}\n")
    assert [text for text in found if "a.cc:1: a bare offset" in text], found
    for relative in ("src/modules/ip/a_test.cc", "src/modules/ip/a_cases.cc", "src/base/a.cc"):
        assert not any("bare" in text for text in breaches(tmp_path / "x", relative, f"{line}\n"))


@pytest.mark.parametrize(
    "line",
    [
        "const uint32_t bytes = ip.header_bytes() + 8;",
        "const uint8_t* upper = bytes_of(ip) + header_bytes;  // not ip + 20",
        "header_at<net::Udp>(bytes_of(ip) + net::kIpv4Bytes).length = 8;",
    ],
)
def test_views_and_lengths_are_no_bare_offsets(tmp_path: Path, line: str) -> None:
    found = breaches(tmp_path, "src/modules/ip/a.cc", f"{line}\n")
    assert not any("bare" in text for text in found)


@pytest.mark.parametrize(
    "line",
    [
        'if (module.kind == "queue") return;',
        'port.kind = "ring";',
        'const ModuleInfo* info = find_module_kind("split");',
    ],
)
def test_kinds_that_are_named_are_found(tmp_path: Path, line: str) -> None:
    found = breaches(tmp_path, "src/app/a.cc", f"{line}\n")
    assert [text for text in found if "a.cc:1: a kind by its name" in text], found
    for relative in ("src/app/a_test.cc", "src/modules/ip/a.cc"):
        found = breaches(tmp_path / "x", relative, f"{line}\n")
        assert not any("by its name" in text for text in found)
