"""PostgreSQL never runs as root: root lends its data folder to a system user without a login.

Only search permission is added on the way to the data and the program files (``o+x``): who knows a
name there may go through, nobody may list.
"""

from __future__ import annotations

import logging
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_log = logging.getLogger(__name__)
_NAME = "signoff-postgres"


class NoServiceUser(Exception):
    """Root has no user to run PostgreSQL as; the message says what to do."""


class ProcessArguments(TypedDict, total=False):
    """What ``subprocess`` needs to run a program as another user."""

    user: int
    group: int
    extra_groups: Sequence[int]


@dataclass(frozen=True)
class ServiceUser:
    """The user that PostgreSQL runs as; ``is_other`` unless that is the user of this process."""

    uid: int
    gid: int
    is_other: bool

    def process_arguments(self) -> ProcessArguments:
        if not self.is_other:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, folder: Path) -> None:
        """Give ``folder`` and what is in it to this user, if another owns it."""
        if not self.is_other or folder.stat().st_uid == self.uid:
            return
        for parent, folders, files in os.walk(folder):
            for name in [*folders, *files]:
                os.chown(os.path.join(parent, name), self.uid, self.gid, follow_symlinks=False)
        # The folder itself last, so that an interrupted change is done again.
        os.chown(folder, self.uid, self.gid)


def service_user(reachable: Iterable[Path]) -> ServiceUser:
    """Return the user to run PostgreSQL as, who can pass to each of the ``reachable`` paths.

    That is the current user, unless it is root. Raises ``NoServiceUser``.
    """
    if os.geteuid() != 0:
        return ServiceUser(os.geteuid(), os.getegid(), is_other=False)
    entry = _entry()
    user = ServiceUser(entry.pw_uid, entry.pw_gid, is_other=True)
    for path in reachable:
        for folder in path.resolve().parents:
            mode = stat.S_IMODE(folder.stat().st_mode)
            if not mode & stat.S_IXOTH and folder.stat().st_uid != user.uid:
                _log.warning("%s may now be searched by others, so that %s passes", folder, _NAME)
                folder.chmod(mode | stat.S_IXOTH)
    return user


def _entry() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(_NAME)
    except KeyError:
        pass
    program = shutil.which("useradd")
    problem = "useradd is not installed"
    if program is not None:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [program, "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", _NAME],
            capture_output=True,
            text=True,
            check=False,
        )
        problem = done.stderr.strip()
    try:
        # Another process may have made it meanwhile.
        return pwd.getpwnam(_NAME)
    except KeyError:
        raise NoServiceUser(
            f"PostgreSQL does not run as root and the user {_NAME} cannot be made ({problem}): "
            "run as an ordinary user, make that user yourself, or set DATABASE_URL"
        ) from None
