"""A test in which nothing can be connected to."""

from __future__ import annotations

import socket

import pytest


def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail whatever opens a connection or resolves a name."""

    def refuse(*_: object, **__: object) -> object:
        raise AssertionError("something wanted the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
