# SPDX-License-Identifier: BSD-3-Clause
"""The demos wait for a server by looking for a listening socket."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any, cast

from batchplane.demo.traffic import _listens

SELF = cast(Any, SimpleNamespace(pid="self"))


def test_connections_of_a_past_server_do_not_count() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = int(server.getsockname()[1])
        assert not _listens(SELF, port)
        server.listen()
        assert _listens(SELF, port)
        client = socket.create_connection(("127.0.0.1", port))
        inside, _ = server.accept()
    with client, inside:
        assert not _listens(SELF, port)
