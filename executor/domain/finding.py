"""What a reading of an outside ticket found of an earlier change of ours."""

from __future__ import annotations

from enum import StrEnum


class Finding(StrEnum):
    """Stands in the evidence as ``finding``.

    Only where the capability is ``conditional`` does ``moved`` prove that the change was not made
    and never will be, and does ``unchanged`` allow the same request with the same stamp once more.
    """

    MARKER = "marker"
    MOVED = "moved"
    UNCHANGED = "unchanged"
    UNREAD = "unread"
