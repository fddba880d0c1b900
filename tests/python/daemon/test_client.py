# SPDX-License-Identifier: BSD-3-Clause
"""test_client.py - the socket client and servers that answer well, in pieces, late, or not at
all."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batchplane.base.problems import RunFailed
from batchplane.daemon.client import AnswerTimeout, Client, ConnectionLost, DaemonError

Serve = Callable[[Callable[[int, bytes], list[bytes] | None]], Any]


def reply(line: bytes, result: Any = None, **more: Any) -> bytes:
    request = json.loads(line)
    return (
        json.dumps({"v": 1, "id": request["id"], "ok": True, "result": result, **more}).encode()
        + b"\n"
    )


def test_request_has_the_protocols_form(serve: Serve) -> None:
    server = serve(lambda _, line: [reply(line, {"a": 1})])
    with Client(server.path) as client:
        assert client.request("show", what="runtime") == {"a": 1}
        assert client.request("save") == {"a": 1}
    assert [json.loads(line) for line in server.requests] == [
        {"v": 1, "id": 1, "cmd": "show", "args": {"what": "runtime"}},
        {"v": 1, "id": 2, "cmd": "save", "args": {}},
    ]


def test_answers_in_pieces_and_two_at_once(serve: Serve) -> None:
    held: list[bytes] = []

    def script(number: int, line: bytes) -> list[bytes]:
        answer = reply(line, "x" * 200_000)
        if number == 0:
            early = json.dumps({"v": 1, "id": 2, "ok": True, "result": "early"}).encode() + b"\n"
            held.append(early[10:])
            return [answer[:5], answer[5:100_000], answer[100_000:] + early[:10]]
        return held

    server = serve(script)
    with Client(server.path) as client:
        assert len(client.request("show")) == 200_000
        assert client.request("show") == "early"


def test_refusals_hold_every_error(serve: Serve) -> None:
    errors = [
        {"where": "modules.ttl (x.yaml:3)", "message": "bad", "fix": "mend"},
        {"message": "worse"},
    ]
    server = serve(lambda _, line: [reply(line, ok=False, errors=errors)])
    with Client(server.path) as client, pytest.raises(DaemonError) as caught:
        client.request("set")
    assert caught.value.lines() == ["x.yaml:3: modules.ttl: bad (mend)", "worse"]
    assert caught.value.exit_code == 1


def test_late_answers_are_skipped(serve: Serve) -> None:
    def script(number: int, line: bytes) -> list[bytes]:
        if number == 0:
            return []
        late = json.dumps({"v": 1, "id": 1, "ok": True, "result": "late"}).encode() + b"\n"
        return [late + reply(line, "right")]

    server = serve(script)
    with Client(server.path) as client:
        with pytest.raises(AnswerTimeout, match="did not answer 'show' within 0.05 s"):
            client.request("show", timeout_s=0.05)
        assert client.request("hello") == "right"


def test_half_an_answer_times_out(serve: Serve) -> None:
    server = serve(lambda _, line: [reply(line)[:10]])
    with Client(server.path, timeout_s=0.05) as client, pytest.raises(AnswerTimeout):
        client.request("show")


def test_the_daemon_goes_away(serve: Serve) -> None:
    server = serve(lambda _number, _line: None)
    with (
        Client(server.path) as client,
        pytest.raises(ConnectionLost, match="closed the connection"),
    ):
        client.request("show")


def test_no_daemon(folder: Path) -> None:
    with pytest.raises(ConnectionLost, match=r"no daemon answers .*No such file"):
        Client(folder / "none.sock")


@pytest.mark.parametrize("answer", [b"not json\n", b"[1]\n", b"\xff\xfe\n"])
def test_nonsense_is_refused(serve: Serve, answer: bytes) -> None:
    server = serve(lambda _number, _line: [answer])
    with (
        Client(server.path) as client,
        pytest.raises(RunFailed, match="the daemon.s answer is not valid JSON|answered something"),
    ):
        client.request("show")


def test_a_request_that_is_too_long_is_not_sent(serve: Serve) -> None:
    server = serve(lambda _, line: [reply(line, 1)])
    with Client(server.path) as client:
        with pytest.raises(RunFailed, match="more than 1048576"):
            client.request("set", text="x" * (1 << 20))
        assert client.request("hello") == 1


def test_hello_refuses_another_version(serve: Serve) -> None:
    server = serve(lambda _, line: [reply(line, {"version": 2})])
    with Client(server.path) as client, pytest.raises(RunFailed, match="version 2 of the protocol"):
        client.hello()


def test_bulk_goes_in_pieces(serve: Serve) -> None:
    def script(_: int, line: bytes) -> list[bytes]:
        phase = json.loads(line)["args"]["phase"]
        return [
            reply(line, {"begin": {"token": 9}, "append": {}, "commit": {"count": 60_000}}[phase])
        ]

    server = serve(script)
    items = [{"prefix": "10.0.0.0/24", "gate": i} for i in range(60_000)]
    with Client(server.path) as client:
        assert client.bulk("lookup", "replace", items) == 60_000
    sent = [json.loads(line)["args"] for line in server.requests]
    assert [sent[0]["phase"], sent[-1]["phase"]] == ["begin", "commit"]
    assert [item for args in sent[1:-1] for item in args["items"]] == items
    assert len(sent) > 4 and max(map(len, server.requests)) < 1 << 20


def test_bulk_is_given_up_as_a_whole(serve: Serve) -> None:
    def script(_: int, line: bytes) -> list[bytes]:
        phase = json.loads(line)["args"]["phase"]
        if phase == "append":
            return [reply(line, ok=False, errors=[{"message": "full"}])]
        return [reply(line, {"token": 9})]

    server = serve(script)
    with Client(server.path) as client, pytest.raises(DaemonError, match="full"):
        client.bulk("lookup", "add", [1])
    assert json.loads(server.requests[-1])["args"] == {"phase": "abort", "token": 9}


def test_set_is_one_step(serve: Serve) -> None:
    server = serve(lambda _, line: [reply(line, {})])
    one, two = (
        {"what": "idle", "mode": "hold"},
        {"what": "trigger", "module": "a", "trigger_pkts": 1},
    )
    with Client(server.path) as client:
        client.set([one])
        client.set([one, two])
    assert [json.loads(line)["args"] for line in server.requests] == [
        one,
        {"what": "many", "sets": [one, two]},
    ]


def test_a_refusal_is_read_even_when_the_daemon_hung_up(tmp_path: Path) -> None:
    """The daemon's message before it closed the connection is more important than the broken
    pipe."""
    path = tmp_path / "x.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with Client(path, timeout_s=5) as client:
            server, _ = listener.accept()
            with server:
                server.sendall(b'{"id": null, "ok": false, "errors": [{"message": "too much"}]}\n')
            with pytest.raises(DaemonError, match="too much"):
                client.request("show", what="all")
