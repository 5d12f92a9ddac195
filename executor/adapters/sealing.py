"""Seals secrets with Fernet (AES-128-CBC and HMAC-SHA256; cryptography.io, Fernet, 2026)."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class FernetSealer:
    """Seals with the first key and unseals with any: a new key goes before the old one."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._fernet = MultiFernet([Fernet(key) for key in keys])

    def seal(self, secret: str) -> str:
        """Return the secret so that only ``unseal`` can read it."""
        return self._fernet.encrypt(secret.encode()).decode()

    def unseal(self, sealed: str) -> str | None:
        """Return the secret, or ``None`` where none of the keys sealed it."""
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None


def new_key() -> str:
    """Make a key for ``SIGNOFF_SEALING_KEY``."""
    return Fernet.generate_key().decode()


def is_key(text: str) -> bool:
    """Say whether this is a key: 32 bytes in URL-safe base64."""
    try:
        Fernet(text)
    except ValueError:
        return False
    return True
