# SPDX-License-Identifier: BSD-3-Clause
"""test_experiment_page.py - the page of results, complete files, and damaged ones."""

from __future__ import annotations

import errno
import io
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from built import needs_extension
from rich.console import Console

from batchplane.base import whole_file
from batchplane.base.problems import BadInput
from batchplane.base.whole_file import write_whole
from batchplane.experiments import command as command_module
from batchplane.experiments.command import ExperimentOptions, run_experiments
from batchplane.experiments.common.experiment import Experiment, Outcome, Setup, shown
from batchplane.experiments.common.page import Section, page_text
from batchplane.experiments.common.page_facts import Made, facts_of
from batchplane.experiments.common.verdict import Verdict


def quiet() -> Console:
    return Console(file=io.StringIO(), width=240)


def told(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


# --- the page -------------------------------------------------------------------------------------


class Reader(HTMLParser):
    """Words, unclosed tags, and everything that a page would load."""

    EMPTY = ("meta", "img", "br", "link")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.EMPTY:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href") and value and not value.startswith("#"):
                self.loads.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def section(**more: Any) -> Section:
    row = {"pipeline": "a<b>", "rate_pps": 12.5}
    columns = (
        ("pipeline", "<pipeline", shown),
        ("rate_pps", "rate", lambda value: f"{value:.1f}"),
    )
    verdicts = [
        Verdict("p < 5 & more", "at least 1", "2", "same", "All."),
        Verdict("ours: x", "1", "0", "different", "It is <less>."),
    ]
    outcome = Outcome([row], columns, verdicts, lambda: None)  # type: ignore[arg-type,return-value]

    def plan(_: Setup) -> Any:
        yield []

    experiment = Experiment("fig0", "a & b", plan, "fig0", ("null",), "A note.")
    return Section(experiment, outcome, more.get("setup", Setup(is_quick=True)), b"<svg/>")


def test_the_page_needs_no_other_file_and_shows_all() -> None:
    text = page_text([section()], [("machine", "<cpu>")], ["runs were disturbed"])
    reader = Reader()
    reader.feed(text)
    assert reader.open == []
    assert [load.partition(",")[0] for load in reader.loads] == ["data:image/svg+xml;base64"]
    for words in ("1 of 2 claims hold", "p < 5 & more", "It is <less>.", "a<b>", "12.5", "<cpu>",
                  "A note.", "runs were disturbed", "batchplane experiment fig0 --simulated"):  # fmt: skip
        assert words in reader.text
    assert "@media print" in text and "prefers-color-scheme: dark" in text
    assert not re.search(r"\$[a-z]", text)


def test_commands_are_one_a_way_of_running() -> None:
    measured = section(setup=Setup(is_quick=False, is_measured=True))
    text = page_text([section(), measured, section()], [])
    assert text.count("<pre>") == 2
    assert "<pre>batchplane experiment fig0 --measured --full</pre>" in text


def test_facts_name_machine_and_versions() -> None:
    facts = dict(facts_of(Made(75.2, 10, 3)))
    assert "in 1 min 15 s: 10 runs, 3 kept" in facts["made"]
    assert "cores" in facts["machine"] and "numpy" in facts["versions"]


# --- files ----------------------------------------------------------------------------------------


def no_space(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_is_whole_or_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "a.json"
    write_whole(path, "old")
    assert path.stat().st_mode & 0o777 == 0o666 & ~whole_file._umask()
    monkeypatch.setattr(whole_file.Path, "replace", no_space)
    with pytest.raises(BadInput, match=r"a\.json: cannot be written: No space left .*\(try this"):
        write_whole(path, "new", "try this")
    assert path.read_text() == "old"
    assert [each.name for each in path.parent.iterdir()] == ["a.json"]


@needs_extension
def test_a_full_disk_is_one_line_and_what_was_kept_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    options = ExperimentOptions(tmp_path / "out", jobs=1)
    real, n_files = whole_file.Path.replace, 0

    def sometimes(self: Path, target: Path) -> Path:
        nonlocal n_files
        n_files += 1
        return no_space() if n_files > 3 else real(self, target)

    monkeypatch.setattr(whole_file.Path, "replace", sometimes)
    with pytest.raises(BadInput) as error:
        run_experiments(["fig2"], options, quiet(), quiet())
    assert error.value.exit_code == 2
    (line,) = error.value.lines()
    assert "No space left" in line and "finished runs are kept" in line
    assert len(list((tmp_path / "out" / "cases").iterdir())) == 3
    monkeypatch.setattr(whole_file.Path, "replace", real)
    errors = quiet()
    assert run_experiments(["fig2"], options, quiet(), errors) == 0
    assert "5 runs, 3 kept" in told(errors)


@needs_extension
def test_a_damaged_result_is_reported_and_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    options = ExperimentOptions(tmp_path, jobs=1, report=tmp_path / "page.html")
    assert run_experiments(["fig2"], options, quiet(), quiet()) == 0
    kept = sorted((tmp_path / "cases").iterdir())
    kept[0].write_bytes(b"\xff\xfe")
    kept[1].write_text('{"result": 5}')
    errors = quiet()
    assert run_experiments(["fig2"], options, quiet(), errors) == 0
    for path in kept[:2]:
        assert f"{path} was damaged; its run was repeated" in told(errors)
    assert "2 runs, 6 kept" in told(errors)
    page = (tmp_path / "page.html").read_text()
    assert "was damaged" in page and "2 runs, 6 kept from before" in page


@needs_extension
def test_all_writes_its_page_beside_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BATCHPLANE_DAEMON", str(tmp_path / "none"))
    only = [command_module.EXPERIMENTS["fig2"]]
    monkeypatch.setattr(command_module, "find", lambda _: only)
    options = ExperimentOptions(tmp_path, is_measured=False, jobs=1)
    assert run_experiments(["all"], options, quiet(), quiet()) == 0
    assert "claims hold" in (tmp_path / "report.html").read_text()
    assert run_experiments(["fig2"], ExperimentOptions(tmp_path / "b"), quiet(), quiet()) == 0
    assert not (tmp_path / "b" / "report.html").exists()
    with pytest.raises(BadInput, match="--report: .*is a folder"):
        run_experiments(["fig2"], ExperimentOptions(report=tmp_path), quiet(), quiet())
