"""A call of a model is recorded by the SHA-256 of its request, as the port gets it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, replace

from executor.engine.ports import ModelRequest


def request_digests(request: ModelRequest) -> Callable[[int], bytes]:
    """Return what names this request when it lets the model write so many tokens.

    All but that number is digested here, once: how many they are is decided under locks. Prices do
    not go to the model and are left out.
    """
    content = asdict(replace(request, prices={}))
    del content["prices"], content["max_output_tokens"]
    spelled = json.dumps(content, sort_keys=True, separators=(",", ":"))
    begun = hashlib.sha256(spelled.encode("ascii"))

    def finish(max_output_tokens: int) -> bytes:
        whole = begun.copy()
        whole.update(f"\n{max_output_tokens}".encode("ascii"))
        return whole.digest()

    return finish
