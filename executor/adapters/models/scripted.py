"""A language model without key and network: deterministic rules over the real conversation.

It is what a newcomer sees work before configuring anything, so it works a ticket as an agent
should: reads before it proposes, proposes nothing while a customer waits for an answer, takes a
rejection to heart, and tells the truth at the end. Equal requests get equal replies.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from executor.adapters.models.scripted_answer import answer_to, open_questions
from executor.adapters.models.scripted_letter import addresses_in, propose
from executor.adapters.models.scripted_reading import (
    KEEP_OPEN,
    MOST_TICKETS,
    Known,
    ProposalMade,
    TicketKnown,
    codes,
    gather,
    objects_of,
    text_of,
    ticket_ids,
)
from executor.domain.payloads import JsonObject, JsonValue, canonical, storable
from executor.domain.price import CostBound
from executor.engine.ports import ModelPort, ModelReply, ModelRequest, Question, ToolCall, Usage

INPUT_MICROUSD_PER_TOKEN = 3
OUTPUT_MICROUSD_PER_TOKEN = 15

_BYTES_PER_TOKEN = 4
_MOST_READS = 5
_MOST_SEARCHES = 2
_LONGEST_EXCERPT = 160
_GOAL_WORDS = re.compile(r"[\w@.'-]+")
_NO_SEARCH_WORDS = re.compile(
    "a|about|all|an|and|answered|any|are|as|at|be|by|can|close[ds]?|closing|could|customers?|do|done"
    "|each|emails?|every|find|finished|for|from|has|her|him|his|if|in|is|its?|mail|me|my|of|off|on"
    "|one|open|our|out|please|reply|resolved|send|should|sort|that|the|their|them|then|they|this"
    "|tickets?|to|up|us|we|which|who|whose|will|with|work|would|your?",
    re.IGNORECASE,
)
_ALL = re.compile(r"\b(?:all|every|each)\b", re.IGNORECASE)


@dataclass(slots=True)
class _Plan:
    """What one reply will hold: words, and calls if anything is left to do."""

    words: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    proposals: list[JsonObject] = field(default_factory=list)
    search: str | None = None


class ScriptedModel(ModelPort):
    """The built-in model; see the module docstring."""

    @property
    def name(self) -> str:
        """The model's name, as the journal records it."""
        return "scripted-1"

    def cost_bound(self, request: ModelRequest) -> CostBound:
        """Bound what one call can cost: its input is known, and a reply is cut at its limit."""
        return CostBound(
            Decimal(_input_tokens(request) * INPUT_MICROUSD_PER_TOKEN),
            Decimal(OUTPUT_MICROUSD_PER_TOKEN),
        )

    async def reply(self, request: ModelRequest) -> ModelReply:
        """Reply from the request alone; never raises ``ModelFailed``.

        A reply that would be longer than ``max_output_tokens`` is cut and then calls no tool.
        """
        text, calls = _reply(request)
        output_tokens = _output_tokens(text, calls)
        if output_tokens > request.max_output_tokens:
            room = request.max_output_tokens * _BYTES_PER_TOKEN
            text, calls = text.encode()[:room].decode(errors="ignore"), ()
            output_tokens = _output_tokens(text, calls)
        input_tokens = _input_tokens(request)
        return ModelReply(
            text=text,
            tool_calls=calls,
            usage=Usage(input_tokens, output_tokens),
            cost_microusd=input_tokens * INPUT_MICROUSD_PER_TOKEN
            + output_tokens * OUTPUT_MICROUSD_PER_TOKEN,
        )


def _reply(request: ModelRequest) -> tuple[str, tuple[ToolCall, ...]]:
    if questions := open_questions(request.turns):
        return answer_to(questions, request.turns, gather(request.turns)), ()
    plan = _plan(request)
    asked: list[tuple[str, JsonObject]] = []
    if plan.search is not None:
        asked = [("search_tickets", {"query": plan.search})]
    elif plan.reads:
        asked = [("read_ticket", {"ticket_id": ticket_id}) for ticket_id in plan.reads]
    else:
        asked = [("propose_closing", arguments) for arguments in plan.proposals]
    available = {tool.name for tool in request.tools}
    if missing := sorted({name for name, _ in asked} - available):
        return f"I cannot go on: I was not given the tool {missing[0]}.", ()
    step = len(request.turns) + 1
    calls = tuple(
        ToolCall(f"call_{step}_{ordinal}", name, arguments)
        for ordinal, (name, arguments) in enumerate(asked, start=1)
    )
    return "\n".join(plan.words), calls


def _plan(request: ModelRequest) -> _Plan:
    known = gather(request.turns)
    plan = _Plan()
    wanted = ticket_ids(request.goal) or _found(request.goal, known, plan)
    if plan.search is not None or not wanted:
        return plan
    done: list[str] = []
    for ticket_id in wanted:
        ticket = known.tickets.get(ticket_id) or TicketKnown(ticket_id)
        _plan_ticket(ticket, addresses_in(request.goal), plan, done)
    if plan.reads:
        plan.words = [f"I read ticket {', '.join(plan.reads)} first."]
    elif not plan.proposals:
        plan.words = done
    return plan


def _found(goal: str, known: Known, plan: _Plan) -> list[str]:
    """Find the tickets of a goal that names none, or plan the search or the answer for it."""
    words = [w for w in _GOAL_WORDS.findall(goal) if not _NO_SEARCH_WORDS.fullmatch(w.strip(".'"))]
    everything = bool(_ALL.search(goal))
    queries = [" ".join(words[:6])]
    if len(words) > 1:
        queries.append(max(words, key=len))
    results = [objects_of(search, "tickets") for search in known.searches]
    found = next((tickets for tickets in results if tickets), [])
    if not found and len(results) < min(len(queries), _MOST_SEARCHES):
        if not words and not everything:
            plan.words = ["I do not know which ticket is meant. Name its number, please."]
            return []
        plan.search = queries[len(results)]
        plan.words = ["I look for the ticket."]
        return []
    still_open = [text_of(ticket, "id") for ticket in found if text_of(ticket, "status") == "open"]
    if everything or len(still_open) == 1:
        return still_open[:MOST_TICKETS]
    if not found:
        plan.words = ["I found no ticket that fits. Name its number, please."]
    elif not still_open:
        plan.words = ["Every ticket that fits is closed already, so there is nothing to propose."]
    else:
        choices = ", ".join(still_open[:MOST_TICKETS])
        plan.words = [f"Several open tickets fit: {choices}. Name the one that is meant, please."]
    return []


def _plan_ticket(ticket: TicketKnown, named: tuple[str, ...], plan: _Plan, done: list[str]) -> None:
    """Add the next step for one ticket to the plan, or the sentence that ends work on it.

    ``named`` are the addresses in the goal, which are used where the desk tells none.
    """
    ending = _ending(ticket)
    if ending is not None:
        done.append(ending)
        return
    if ticket.read is None or ticket.read_is_old:
        plan.reads.append(ticket.id)
        return
    rejections = [
        _note(proposal) for proposal in ticket.proposals if "rejected" in codes(proposal.result)
    ]
    to = () if ticket.read.has_address else named
    if not (to or ticket.read.has_address or rejections):
        done.append(
            f"The desk tells no address of ticket {ticket.id}'s customer. Ask me again and name it:"
            f" close {ticket.id} and write to …"
        )
        return
    arguments = propose(ticket.id, ticket.read, rejections, to)
    if _was_refused(ticket.proposals, arguments):
        done.append(
            f"Ticket {ticket.id} stays open: I have no better text than the one that was refused."
        )
        return
    plan.proposals.append(arguments)
    if rejections and "rejected" in codes(ticket.proposals[-1].result):
        why = f" (“{_excerpt(rejections[-1])}”)" if rejections[-1] else ""
        plan.words.append(f"I revised the email for ticket {ticket.id} after the rejection{why}.")
    elif ticket.proposals:
        plan.words.append(f"Ticket {ticket.id} had changed; I read it again and propose anew.")
    else:
        plan.words.append(f"Ticket {ticket.id} is answered; I propose to close it.")


def _ending(ticket: TicketKnown) -> str | None:
    """Say why nothing more is to be done for a ticket, or return ``None`` while something is."""
    if ticket.proposals:
        ending = _ending_of_proposal(ticket.id, ticket.proposals[-1].result)
        if ending is not None:
            return ending
    if ticket.read_error == "ticket_unknown":
        return f"There is no ticket {ticket.id}."
    if ticket.read_error:
        return f"I could not read ticket {ticket.id} ({ticket.read_error}), so I propose nothing."
    if ticket.read_is_old and ticket.reads >= _MOST_READS:
        return f"Ticket {ticket.id} keeps changing while I work, so I leave it to a person."
    if ticket.read is None or ticket.read_is_old:
        return None
    return _ending_of_read(ticket)


def _ending_of_read(ticket: TicketKnown) -> str | None:
    read = ticket.read
    assert read is not None, "only a ticket that was read is judged"
    if read.status == "closed":
        return f"Ticket {ticket.id} is closed already, so there is nothing to propose."
    if question := read.unanswered():
        return (
            f"Ticket {ticket.id} is not ready to be closed: the customer waits for an answer to "
            f"“{_excerpt(question)}”. I propose nothing until somebody has answered."
        )
    if wish := read.wish_to_keep_open():
        return f"A note says that ticket {ticket.id} shall stay open: “{_excerpt(wish)}”."
    if not read.answers():
        return f"Nobody has answered ticket {ticket.id} yet, so I propose nothing."
    return None


def _ending_of_proposal(ticket_id: str, result: JsonObject) -> str | None:
    """Say what came of the last proposal, when that is the end; read again or revise otherwise."""
    found = codes(result)
    about = f"Ticket {ticket_id}"
    if found & {"version_changed", "version_not_read"}:
        return None
    if "rejected" in found:
        note = text_of(result, "rejected_because")
        # “Do not send it to …, but to …” asks for another address, not for an end.
        if KEEP_OPEN.search(note) and "@" not in note:
            return f"{about} stays open, as the reviewer asked: “{_excerpt(note)}”."
        return None
    for code, sentence in _ENDINGS.items():
        if code in found:
            return f"{about}{sentence}"
    said = text_of(result, "message") or ", ".join(sorted(found)) or "the answer was empty"
    return f"{about} was not closed by this run: {_excerpt(said)}"


# In the order of looking: what says more comes first.
_ENDINGS = {
    "already_done": " was closed before, and its email was sent then; nothing was repeated.",
    "succeeded": " is closed, and the email was sent.",
    "partial": " was closed, but its email was not sent. A person has to decide what follows.",
    "unknown": ": it is not known whether the email was sent. A person looks into it.",
    "failed": ": nothing was done, the attempt failed. I do not try again by myself.",
    "compensated": " was closed and opened again, because its email could not be sent.",
    "left": " is closed; its email was not sent, and a person decided to leave it so.",
    "expired": ": the proposal expired. Nothing was closed or sent.",
    "withdrawn": ": the proposal was withdrawn. Nothing was closed or sent.",
    "superseded": ": another proposal took the place of mine, which did nothing.",
    "conflicts_with": ": another proposal for it is still open, so I propose nothing.",
    "ticket_closed": " was closed by somebody else meanwhile, so there is nothing to propose.",
    "ticket_unknown": " does not exist.",
    "stale": ": the proposal no longer held when it was checked again. Nothing was closed or sent.",
}


def _note(proposal: ProposalMade) -> str:
    return text_of(proposal.result, "rejected_because")


def _was_refused(proposals: Sequence[ProposalMade], arguments: JsonObject) -> bool:
    return any(
        proposal.arguments == arguments and "rejected" in codes(proposal.result)
        for proposal in proposals
    )


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_EXCERPT else f"{line[: _LONGEST_EXCERPT - 1]}…"


def _input_tokens(request: ModelRequest) -> int:
    turns: list[JsonValue] = [
        {
            "text": turn.reply.text,
            "calls": _calls(turn.reply.tool_calls),
            "results": [answer.result for answer in turn.results],
            "afterwards": [
                item.marked() if isinstance(item, Question) else item.result
                for item in turn.afterwards
            ],
        }
        for turn in request.turns
    ]
    tools: list[JsonValue] = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in request.tools
    ]
    return _tokens(canonical(storable({"goal": request.goal, "tools": tools, "turns": turns})))


def _output_tokens(text: str, calls: Sequence[ToolCall]) -> int:
    spelled = canonical(_calls(calls)) if calls else b""
    return _tokens(text.encode() + spelled)


def _calls(calls: Sequence[ToolCall]) -> list[JsonValue]:
    return [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in calls]


def _tokens(content: bytes) -> int:
    return math.ceil(len(content) / _BYTES_PER_TOKEN)
