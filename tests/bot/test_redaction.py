"""B195: no log line holds a secret, whoever wrote it and at whatever level."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from executor.engine.redaction import RedactingFormatter

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
TOKEN = "xoxb-12345-67890-AbCdEf"
QUOTING = (
    "slack_sdk.test",
    "slack_bolt.test",
    "openai._base_client",
    "anthropic._base_client",
    "pydantic_ai",
    "mcp.client.stdio",
    "httpx2",
    "httpcore2.http11",
)


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(RedactingFormatter(logging.Formatter("%(name)s: %(message)s"), [SECRET]))
    loggers = [logging.getLogger(n) for n in (*QUOTING, "aio", "bot.x", "openair.x")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
    yield written
    for logger in loggers:
        logger.removeHandler(handler)


@pytest.mark.parametrize(
    "line",
    [
        f"token={TOKEN}",
        "xapp-1-A0-123-abcdef is the app's",
        "xoxe.xoxp-1-abc xoxp-9-9-9",
        f"{{'Authorization': 'Bearer {TOKEN}'}}",
        "Authorization: Bearer opaque.value+/=",
        f"the secret is {SECRET}!",
        '"response_url": "https://hooks.slack.com/actions/T1/2/abc"',
        "GET https://hooks.slack.com/commands/T1/2/zzz",
    ],
)
def test_a_secret_is_hidden_wherever_it_stands(log: io.StringIO, line: str) -> None:
    logging.getLogger("aio").debug("%s", line)
    logging.getLogger("bot.x").error(line.replace("%", "%%"))
    said = log.getvalue()
    for secret in (TOKEN, SECRET, "xapp-1", "xoxp-", "opaque.value", 'abc"', "/zzz"):
        assert secret not in said
    assert "[hidden]" in said


@pytest.mark.parametrize("library", QUOTING)
def test_what_libraries_say_that_quote_requests_is_left_out(log: io.StringIO, library: str) -> None:
    logging.getLogger(library).debug("Request options: %s", {"json": "Dear Pat"})
    logging.getLogger(library).warning("Unhandled request (%s)", "Dear Pat")
    logging.getLogger("openair.x").warning("another name that only begins alike")
    said = log.getvalue()
    assert "Dear Pat" not in said
    assert said.count("left out") == 2
    assert "only begins alike" in said


def test_a_traceback_keeps_its_frames_and_loses_its_words(log: io.StringIO) -> None:
    try:
        try:
            raise KeyError("Dear Pat")
        except KeyError as error:
            raise ValueError(f"{TOKEN} Dear Pat") from error
    except ValueError:
        logging.getLogger("bot.x").exception("it failed")
    said = log.getvalue()
    assert "Dear Pat" not in said.replace('KeyError("Dear Pat")', "").replace('Dear Pat")', "")
    assert TOKEN not in said
    assert "test_redaction.py" in said
    assert "builtins.ValueError" in said
    assert "builtins.KeyError" in said
