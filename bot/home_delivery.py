"""Shows each person's Home tab: when it is opened, and again after what they do there.

It is a view of the record as of one moment, which it names, and is not kept equal to it: whoever
opens it looks again. Nothing depends on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from weakref import WeakValueDictionary

from slack_sdk.web.async_client import AsyncWebClient

from bot import replies
from bot.cards import CardPainter
from bot.event_names import HOME_EVENT
from bot.home import MOST_OF_EACH, HomeView, home_view, refused_home
from bot.identity import IdentityWatch
from bot.kept_work import KeptWork
from bot.notice_text import refusal_text
from bot.slack_answers import LOST_CALL, trouble
from executor.domain.ids import TenantId, slack_principal
from executor.domain.payloads import JsonObject
from executor.domain.transition import Refused
from executor.engine.engine import Engine
from executor.engine.home import home_of

_log = logging.getLogger(__name__)

_SECONDS = 5.0


def opened_by(payload: JsonObject) -> str | None:
    """Read who has opened the Home tab, or ``None`` for every other event."""
    event = payload.get("event")
    if not isinstance(event, Mapping) or event.get("type") != HOME_EVENT:
        return None
    user = event.get("user")
    return user if event.get("tab") == "home" and isinstance(user, str) and user else None


class HomeDelivery:
    """Publishes Home tabs in one workspace."""

    def __init__(
        self,
        engine: Engine,
        tenant: TenantId,
        client: AsyncWebClient,
        painter: CardPainter,
        people: IdentityWatch,
        kept: KeptWork,
    ) -> None:
        self._engine = engine
        self._tenant = tenant
        self._client = client
        self._painter = painter
        self._people = people
        self._kept = kept
        # What was read earlier is never shown to a person after what was read later.
        self._one_at_a_time: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def refresh(self, user: str, note: str = "") -> None:
        """Start showing a person's tab anew; returns at once."""
        self._kept.begin(self.publish(user, note))

    async def publish(self, user: str, note: str = "") -> None:
        """Show a person's tab as it is now; ``note`` is what their last press there came to."""
        async with self._one_at_a_time.setdefault(user, asyncio.Lock()):
            view = self._painter.draw_home(await self._view(user, note))
            try:
                async with asyncio.timeout(_SECONDS):
                    await self._client.views_publish(user_id=user, view=dict(view))
            except LOST_CALL as error:
                _log.warning("a Home tab was not shown: %s", trouble(error).code)

    async def _view(self, user: str, note: str) -> HomeView:
        principal = await self._people.acting(slack_principal(self._tenant, user))
        if principal is None:
            return refused_home(replies.identity_unverified(), note)
        home = await home_of(self._engine, self._tenant, principal, most=MOST_OF_EACH)
        if isinstance(home, Refused):
            return refused_home(refusal_text(home.reason, home.detail), note)
        return home_view(home, note)
