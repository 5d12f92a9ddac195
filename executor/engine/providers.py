"""Everything outside at which a worker changes something: mail, the desk, servers of tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import assert_never

from executor.domain.declaration import Declaration
from executor.domain.effect import EffectKind
from executor.domain.policy_servers import ServerSection
from executor.domain.ticket import BUILTIN_DESK
from executor.engine.desk_port import TicketDesk
from executor.engine.ports import MailPort
from executor.engine.tool_port import ToolServer, ToolServers, declared, server_of

NO_SERVERS: Mapping[str, ServerSection] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Account:
    """Who takes one kind of effects: what is recorded with each attempt, and its bound."""

    name: str
    declaration: Declaration
    longest_request_seconds: float


@dataclass(frozen=True, slots=True)
class Providers:
    """The outside of one worker; without a ``desk`` the tickets are those of the built-in one.

    Which servers of tools there are stands in the policy; ``tools`` reaches them.
    """

    mail: MailPort
    desk: TicketDesk | None = None
    tools: ToolServers | None = None

    @property
    def desk_name(self) -> str:
        """Name of the desk that tickets are read from, as it stands in intents."""
        return BUILTIN_DESK if self.desk is None else self.desk.name

    def account_for(
        self,
        kind: EffectKind,
        provider: str,
        servers: Mapping[str, ServerSection] = NO_SERVERS,
    ) -> Account | None:
        """Return who takes effects of this kind now; ``None``: nobody outside does.

        ``provider`` is whom the effect names: of the policy's ``servers`` there are several.
        """
        match kind:
            case EffectKind.EMAIL_SEND:
                mail = self.mail
                return Account(mail.provider, mail.declaration, mail.longest_request_seconds)
            case EffectKind.TICKET_NOTE | EffectKind.TICKET_CLOSE | EffectKind.TICKET_REOPEN:
                desk = self.desk
                if desk is None:
                    return None
                return Account(desk.name, desk.declaration, desk.longest_request_seconds)
            case EffectKind.TOOL_CALL:
                server = self.server(provider, servers)
                if server is None:
                    return None
                return Account(provider, declared(server.name), server.longest_request_seconds)
            case EffectKind.BUDGET_RAISE:
                return None
            case _:
                assert_never(kind)

    def server(self, provider: str, servers: Mapping[str, ServerSection]) -> ToolServer | None:
        """Return the server that an effect names; ``None``: the policy does not name it now."""
        name = server_of(provider)
        section = servers.get(name)
        if self.tools is None or section is None:
            return None
        return self.tools.named(name, section)
