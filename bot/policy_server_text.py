"""What a policy says about servers outside whose tools a run may use, in sentences.

Of an address only its host is told, of a command only its name: keys stand in the rest of either
sometimes, however often people are told not to put them there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from urllib.parse import urlsplit

from bot.card_parts import one_line
from bot.duration_text import duration
from bot.terms_text import listing, people_words
from bot.typed_money import dollars
from executor.domain.policy_servers import ServerSection

_LONGEST_NAME = 120


def server_sentences(servers: Mapping[str, ServerSection]) -> Iterator[str]:
    """Say of each server where it is, what of it runs at once, and who may use it."""
    for name, server in servers.items():
        longest = duration(server.timeout_seconds)
        yield f"Server {name} is {_place(server)}; a call of it may take {longest}."
        yield f"Of {name}, {_tools(server)}"
        if server.requesters is not None:
            yield f"Only runs of {people_words(server.requesters)} may use {name}."
        if server.environment:
            yield f"{name[0].upper()}{name[1:]} is given {listing(list(server.environment))}."
        for tool, cost in server.costs.items():
            yield f"Each call of {tool} of {name} costs {dollars(cost)} of the same limits."
    if not servers:
        yield "No tools of other servers are used."


def _place(server: ServerSection) -> str:
    if server.url is not None:
        token = f" with the token in {server.token_from}" if server.token_from else ""
        return f"at {_host(server.url)}{token}"
    assert server.command is not None, "a server has a command or a url"
    program = one_line(PurePath(server.command[0]).name, _LONGEST_NAME)
    return f"started by the command {program!r}"


def _host(url: str) -> str:
    try:
        parts = urlsplit(url)
        return one_line(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", _LONGEST_NAME)
    except ValueError:
        return "an address that cannot be read"


def _tools(server: ServerSection) -> str:
    shown = "all tools" if server.tools is None else listing(list(server.tools))
    verb = "is" if server.tools is not None and len(server.tools) == 1 else "are"
    told = f"{shown} {verb} used"
    if not server.reads:
        return f"{told}, and every one asks people."
    reads = listing(list(server.reads))
    only = "only reads and runs" if len(server.reads) == 1 else "only read and run"
    others = (
        ""
        if server.tools is not None and set(server.tools) <= set(server.reads)
        else ("; everything else asks people")
    )
    return f"{told}; {reads} {only} at once{others}."
