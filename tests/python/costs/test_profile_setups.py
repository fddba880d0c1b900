# SPDX-License-Identifier: BSD-3-Clause
"""test_profile_setups.py - each module kind has a small pipeline in which it is measured, or a
reason why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from built import needs_daemon

from batchplane.base.problems import BadInput
from batchplane.daemon.process import find_program
from batchplane.lang.kinds import load_kinds
from batchplane.lang.load import load_pipeline
from batchplane.native.check import check_document
from batchplane.profile import setups
from batchplane.profile.measure import profile_kinds

SETUP = "modules: {in: {kind: source}, ttl: {kind: ttl}, out: {kind: sink}}\nconnect: [in -> ttl -> out]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The test's own tree of setups."""
    monkeypatch.setattr(setups, "folder", lambda: tmp_path)
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    for cached in (setups.files, setups.setups, setups.kinds_without):
        cached.cache_clear()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@needs_daemon
def test_every_kind_has_a_setup_or_says_why_not() -> None:
    kinds = set(load_kinds(find_program()).modules)
    measured = {kind for setup in setups.setups() for kind in setups.measured_in(setup)}
    excused = set(setups.kinds_without())
    missing = sorted(kinds - measured - excused)
    assert not missing, f"no x_profile.yaml measures {missing}: docs/adding-a-module.md"
    assert excused <= kinds - measured, "a reason that holds no longer"
    assert measured <= kinds, "a set-up of a kind that is no more"


@needs_daemon
@pytest.mark.parametrize("path", setups.files(), ids=lambda path: path.stem)
def test_setups_are_good_pipelines(path: Path) -> None:
    kinds = load_kinds(find_program())
    document = load_pipeline(str(path), kinds=kinds)
    problems = check_document(document, kinds)
    # A module may be measured where it is of no use, such as a pace without a calendar.
    assert [problem.line() for problem in problems if not problem.is_warning] == []


def test_a_file_is_found_by_its_name_and_measures_what_is_called_as_its_kind(folder: Path) -> None:
    write(folder / "modules" / "ip" / "ttl_profile.yaml", SETUP)
    (setup,) = setups.setups()
    assert setups.measured_in(setup) == ["ttl"]


def test_two_files_may_not_measure_one_kind(folder: Path) -> None:
    write(folder / "modules" / "ip" / "ttl_profile.yaml", SETUP)
    write(folder / "modules" / "l2" / "other_profile.yaml", SETUP)
    with pytest.raises(BadInput) as caught:
        setups.setups()
    assert "'ttl' is measured in ttl_profile.yaml already" in str(caught.value)


def test_a_kind_without_a_setup_is_refused_with_its_reason(folder: Path) -> None:
    write(folder / "ip" / "ttl_profile.yaml", "# without wonder: it costs nothing\n" + SETUP)
    with pytest.raises(BadInput) as caught:
        profile_kinds(("wonder",))
    assert "'wonder' is not measured: it costs nothing" in str(caught.value)


def test_where_there_are_no_setups_it_says_what_to_do(folder: Path) -> None:
    assert list(folder.iterdir()) == []
    with pytest.raises(BadInput) as caught:
        profile_kinds()
    assert "run it in the source tree, or give --pipeline" in str(caught.value)
