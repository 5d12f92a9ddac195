"""B195: no log line holds a secret, whoever wrote it and at whatever level."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from bot.redaction import RedactingFormatter

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
TOKEN = "xoxb-12345-67890-AbCdEf"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(RedactingFormatter(logging.Formatter("%(name)s: %(message)s"), [SECRET]))
    loggers = [logging.getLogger(n) for n in ("slack_sdk.test", "slack_bolt.test", "aio", "bot.x")]
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


def test_what_the_slack_libraries_say_is_left_out(log: io.StringIO) -> None:
    logging.getLogger("slack_sdk.test").debug("Sending a request - json: %s", "Dear Pat")
    logging.getLogger("slack_bolt.test").warning("Unhandled request (%s)", "Dear Pat")
    said = log.getvalue()
    assert "Dear Pat" not in said
    assert said.count("left out") == 2


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
