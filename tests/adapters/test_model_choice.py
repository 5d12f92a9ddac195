"""Which model the settings choose, and what is loaded for it."""

from __future__ import annotations

import subprocess
import sys
from typing import cast

import pytest

from executor.__main__ import _engine, _warn_of_no_price
from executor.adapters.choice import ChoiceInvalid
from executor.adapters.models.model_choice import model_from
from executor.adapters.models.remote import RemoteModel
from executor.adapters.models.scripted import ScriptedModel
from executor.config import SettingsInvalid, executor_settings
from executor.domain.secret_text import Secrets
from executor.engine.engine import Bell
from executor.store.database import Database
from tests.support.office import policy

ANTHROPIC = {"SIGNOFF_MODEL": "anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY": "sk-s3cr3t"}
OPENAI = {"SIGNOFF_MODEL": "openai:gpt-5-mini", "OPENAI_API_KEY": "sk-s3cr3t"}
AT_HOME = {"SIGNOFF_MODEL": "openai:qwen3:8b", "OPENAI_BASE_URL": "http://127.0.0.1:11434/v1"}


def problem_of(settings: dict[str, str]) -> str:
    with pytest.raises(ChoiceInvalid) as refused:
        model_from(settings, 10)
    text = str(refused.value)
    assert refused.value.problems
    assert "s3cr3t" not in text
    return text


@pytest.mark.parametrize("settings", [{}, {"SIGNOFF_MODEL": " "}, {"SIGNOFF_MODEL": "scripted"}])
def test_without_a_choice_the_model_is_the_scripted_one(settings: dict[str, str]) -> None:
    # A key that is set for other programs chooses nothing.
    model = model_from({**settings, "OPENAI_API_KEY": "sk-s3cr3t"}, 10)
    assert isinstance(model, ScriptedModel)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (ANTHROPIC, "claude-haiku-4-5"),
        (OPENAI, "gpt-5-mini"),
        (AT_HOME, "qwen3:8b"),
        ({**AT_HOME, "SIGNOFF_MODEL_STREAMED": "False"}, "qwen3:8b"),
    ],
)
def test_a_model_is_chosen_by_its_server_and_its_name(settings: dict[str, str], name: str) -> None:
    model = model_from(settings, 10)
    assert isinstance(model, RemoteModel)
    assert model.name == name


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({"SIGNOFF_MODEL": "gpt-5-mini"}, "scripted, anthropic:MODEL or openai:MODEL"),
        ({"SIGNOFF_MODEL": "openai:"}, "SIGNOFF_MODEL must be"),
        ({"SIGNOFF_MODEL": "mistral:large"}, "SIGNOFF_MODEL must be"),
        ({"OPENAI_API_KEY": ""}, "set OPENAI_API_KEY"),
        ({"OPENAI_API_KEY": "s3cr3t two words"}, "OPENAI_API_KEY must be one word"),
        ({"OPENAI_BASE_URL": "ftp://s3cr3t"}, "OPENAI_BASE_URL must be https://"),
        ({"OPENAI_BASE_URL": "https://u:s3cr3t@h"}, "OPENAI_BASE_URL takes no user"),
        ({"SIGNOFF_MODEL_STREAMED": "s3cr3t"}, "SIGNOFF_MODEL_STREAMED must be true or false"),
        ({"SIGNOFF_MODEL": "anthropic:claude-haiku-4-5"}, "set ANTHROPIC_API_KEY"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(changed: dict[str, str], wanted: str) -> None:
    assert wanted in problem_of({**OPENAI, **changed})


def test_a_missing_package_says_how_to_get_it() -> None:
    program = (
        "import sys\n"
        "sys.modules['pydantic_ai'] = None\n"
        "from executor.adapters.models.model_choice import model_from\n"
        "try:\n"
        f"    model_from({OPENAI!r}, 10)\n"
        "except ValueError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert said.startswith("ChoiceInvalid ")
    assert "pip install 'signoff[models]'" in said


def test_the_scripted_model_loads_no_provider() -> None:
    program = (
        "import sys, executor.__main__\n"
        "from executor.adapters.models.model_choice import model_from\n"
        "model_from({}, 110.0)\n"
        "slow = ('pydantic_ai', 'openai', 'anthropic', 'genai_prices')\n"
        "print([name for name in slow if name in sys.modules])\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert said == "[]\n"


def test_the_engine_waits_longer_than_the_model_for_its_server() -> None:
    settings = executor_settings({"SIGNOFF_POLICY": "p", "SIGNOFF_MODEL_TIMEOUT_SECONDS": "300"})
    # Its parts are not used here.
    engine = _engine(settings, cast(Database, None), cast(Bell, None), Secrets())
    assert settings.model_timeout_seconds == 300
    assert engine.durations.model_call_seconds > 300
    for wrong in ("0", "3601", "soon"):
        with pytest.raises(SettingsInvalid, match="SIGNOFF_MODEL_TIMEOUT_SECONDS"):
            executor_settings({"SIGNOFF_POLICY": "p", "SIGNOFF_MODEL_TIMEOUT_SECONDS": wrong})


def test_a_model_without_a_price_is_told_of_when_the_executor_starts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keys = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    model = model_from({**keys, "SIGNOFF_MODEL": "openai:llama3"}, 110.0)
    price = {"input_usd_per_million": "1", "output_usd_per_million": "2"}
    _warn_of_no_price(model, policy(prices={"llama3": price}))
    assert caplog.messages == []
    _warn_of_no_price(model, policy())
    [told] = caplog.messages
    assert '[prices."llama3"]' in told
