# SPDX-License-Identifier: BSD-3-Clause
"""measure.py - measures module costs: runs the daemon's profiler, makes a costs document."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.problems import BadInput, Problem, RunFailed, suggestion
from ..costs.keys import cpu_name, groups_of, params_key
from ..daemon.process import find_program
from .setups import kinds_without, measured_in, setups

Progress = Callable[[int, int], None]  # done, total

_START_S = 120.0  # tables may be large


@dataclass(frozen=True)
class ProfileOptions:
    """How long to measure, and where."""

    ms_per_module: float = 300.0
    passes: int = 4
    cores: str | None = None

    @staticmethod
    def quick() -> ProfileOptions:
        """For tests and a first look: wider intervals."""
        return ProfileOptions(ms_per_module=15.0, passes=2)


def profile_pipeline(
    pipeline: Mapping[str, Any],
    modules: Sequence[str] = (),
    options: ProfileOptions | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The costs document of a canonical pipeline, or of some of its modules."""
    groups = _wanted(groups_of(pipeline["modules"]), pipeline["modules"], modules)
    document = _run(pipeline, groups, options or ProfileOptions(), progress, has_loop=True)
    return _completed(document, pipeline)


def measured_wired(
    pipeline: Mapping[str, Any],
    modules: Sequence[str],
    feeders: Mapping[str, str],
    inside: Sequence[str],
    options: ProfileOptions | None = None,
) -> dict[str, Any]:
    """The costs document of modules on real ports, each with the port that sends to it; `inside`:
    the command prefix that enters the namespace of the wires."""
    groups = [[name] for name in modules]
    options = options or ProfileOptions()
    document = _run(pipeline, groups, options, None, has_loop=False, feeders=feeders, inside=inside)
    return _completed(document, pipeline)


def profile_kinds(
    kinds: Sequence[str] = (),
    options: ProfileOptions | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The costs document of module kinds in the built-in setups; all their kinds by default."""
    of_kind = {kind: pipeline for pipeline in setups() for kind in measured_in(pipeline)}
    unknown = [kind for kind in kinds if kind not in of_kind]
    if unknown or not of_kind:
        raise BadInput([_unknown_kind(kind, of_kind) for kind in unknown] or [_NO_SETUPS])
    wanted = set(kinds) or set(of_kind)
    chosen = [pipeline for pipeline in setups() if wanted.intersection(measured_in(pipeline))]
    documents = []
    for i, pipeline in enumerate(chosen):
        groups = [[kind] for kind in measured_in(pipeline) if kind in wanted]
        part = _run(
            pipeline, groups, options or ProfileOptions(), _part(progress, i, len(chosen)), i == 0
        )
        documents.append(_completed(part, pipeline))
    merged = documents[0]
    merged["pipeline"] = ""
    merged.pop("check", None)
    for document in documents[1:]:
        merged["modules"] += document["modules"]
        merged["doubts"] += document["doubts"]
    return merged


_NO_SETUPS = Problem(
    "no module test setups found here", fix="run it in the source tree, or give --pipeline"
)


def _unknown_kind(kind: str, known: Mapping[str, Any]) -> Problem:
    why = kinds_without().get(kind)
    if why is not None:
        return Problem(f"'{kind}' is not measured: {why}", "command line")
    return Problem(
        f"there is no test setup for '{kind}'", "command line", fix=suggestion(kind, known)
    )


def _part(progress: Progress | None, part: int, parts: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, total: progress(part * total + done, parts * total)


def _wanted(
    groups: list[list[str]], modules: Mapping[str, Mapping[str, Any]], names: Sequence[str]
) -> list[list[str]]:
    """The groups of the given modules, by name or by kind."""
    if not names:
        return groups
    kinds = {str(module["kind"]) for module in modules.values()}
    problems = [
        Problem(
            f"there is no module '{name}'", "command line", fix=suggestion(name, {*modules, *kinds})
        )
        for name in names
        if name not in modules and name not in kinds
    ]
    if problems:
        raise BadInput(problems)
    return [
        group
        for group in groups
        if any(member in names or modules[member]["kind"] in names for member in group)
    ]


def _run(
    pipeline: Mapping[str, Any],
    groups: list[list[str]],
    options: ProfileOptions,
    progress: Progress | None,
    has_loop: bool,
    feeders: Mapping[str, str] | None = None,
    inside: Sequence[str] = (),
) -> dict[str, Any]:
    request = {
        "groups": groups,
        "ms_per_module": options.ms_per_module,
        "passes": options.passes,
        "loop": has_loop,
        **({"feeders": feeders} if feeders else {}),
    }
    with tempfile.TemporaryDirectory(prefix="bpp") as name:
        files = [Path(name) / "request.json", Path(name) / "pipeline.json", Path(name) / "out.json"]
        for path, content in zip(files, (request, pipeline), strict=False):
            path.write_text(json.dumps(content), encoding="utf-8")
        command = [*inside, str(find_program()), "--profile", "--profile-request", str(files[0])]
        if options.cores:
            command += ["--cores", options.cores]
        max_s = _START_S + 5 + len(groups) * options.ms_per_module / 1e3 * 2
        call_profiler([*command, str(files[1])], files[2], max_s, progress)
        try:
            document: dict[str, Any] = json.loads(files[2].read_text(encoding="utf-8"))
        except ValueError as error:
            raise RunFailed(
                f"the profiler printed something unexpected: {error}",
                "daemon and command line have different versions: make build",
            ) from error
    return document


def call_profiler(command: list[str], out: Path, max_s: float, progress: Progress | None) -> None:
    """Runs the profiler; passes on `progress I/N` lines of its stderr, keeps others for errors."""
    told: list[str] = []
    try:
        with (
            out.open("wb") as stdout,
            subprocess.Popen(
                ["timeout", f"{max_s:.0f}", *command],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
            ) as process,
        ):
            try:
                for line in process.stderr or ():
                    if line.startswith("progress "):
                        done, total = line.split()[1].split("/")
                        if progress is not None:
                            progress(int(done), int(total))
                    elif line.strip():
                        told.append(line.strip().removeprefix("error: "))
                code = process.wait()
            except BaseException:
                process.terminate()
                raise
    except OSError as error:
        raise RunFailed(f"the profiler did not start: {error}", "make build") from error
    if code == 2:
        raise BadInput([Problem(line) for line in told] or [Problem("the profiler rejected it")])
    if code != 0:
        how = f"took longer than {max_s:.0f} s" if code == 124 else f"ended with code {code}"
        raise RunFailed(f"the profiler {how}: {told[-1] if told else 'it printed nothing'}")


def _completed(document: dict[str, Any], pipeline: Mapping[str, Any]) -> dict[str, Any]:
    """Adds what the daemon does not know: the keys of parameters, and the CPU's full name."""
    document["cpu"] = cpu_name()
    for module in document["modules"]:
        spec = pipeline["modules"][module["name"]]
        module["params_key"] = params_key(str(spec["kind"]), spec.get("params", {}))
    return document
