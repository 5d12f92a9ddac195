"""One JSON file that a part of the sandbox finds again, written whole and then put in place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.sandbox.model import Json


class KeptFile:
    """Keeps one document; without a path nothing is kept."""

    def __init__(self, path: Path | None, document: Callable[[], Json]) -> None:
        """``document`` is what stands there now."""
        self._path = path
        self._document = document

    def read(self) -> Json | None:
        """Read what was kept last; ``None`` before the first time."""
        return None if self._path is None else read_kept(self._path)

    def keep(self) -> None:
        """Write what stands there now."""
        if self._path is not None:
            write_kept(self._path, self._document())

    @contextmanager
    def together(self) -> Iterator[None]:
        """Keep everything that is done within once, at its end."""
        path, self._path = self._path, None
        try:
            yield
        finally:
            self._path = path
            self.keep()


def read_kept(file: Path) -> Json | None:
    """Read what was written last; ``None`` before the first time."""
    try:
        document: Json = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return document


def write_kept(file: Path, document: Json) -> None:
    """Write so that a crash leaves the old file or the new one."""
    unfinished = file.with_suffix(".unfinished")
    with unfinished.open("w", encoding="utf-8") as out:
        json.dump(document, out, ensure_ascii=False)
        out.flush()
        os.fsync(out.fileno())
    unfinished.replace(file)
