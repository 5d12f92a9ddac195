"""The commands of ``signoff``: each puts its parts together, as ``python -m bot`` does for the bot.

What a command needs is imported when it runs, so that help costs nothing.
"""

from __future__ import annotations
