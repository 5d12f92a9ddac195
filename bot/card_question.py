"""Questions to the agent: what a card says of them, and the message that tells an answer. Pure.

What people and the agent wrote is untrusted and stands in literal text alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.card_parts import Item, Literal, Piece, Words, excerpt, moment, one_line, paragraph, person
from bot.reason_text import sentence
from bot.visible import END
from executor.domain.ids import operation_label
from executor.domain.transition import Reason
from executor.engine.card_record import OperationRecord
from executor.engine.question_record import QuestionRecord

MOST_QUESTIONS = 2
"""Questions that a card shows; the newest ones."""

_LONGEST_ON_A_CARD = 160
_LONGEST_QUESTION = 1_200
_LONGEST_ANSWER = 6_000
_WHY_NOT = {
    Reason.BUDGET_LIMIT: "the run's money for its language model is used up.",
    Reason.MODEL_FAILED: "the language model could not be reached. Ask again later.",
    Reason.MODEL_SILENT: "the agent said nothing.",
    Reason.QUESTION_OVERTAKEN: "it was decided or replaced first.",
    Reason.STEP_LIMIT: "the run has used up its steps.",
}


def asked_about(record: OperationRecord) -> tuple[Item, ...]:
    """Say on a card what people have asked about it lately, and what became of that."""
    shown = record.questions[-MOST_QUESTIONS:]
    if not shown:
        return ()
    items: list[Item] = []
    left_out = len(record.questions) - len(shown)
    for question in shown:
        earlier = f" ({left_out} asked before)" if left_out and not items else ""
        items += [
            paragraph("Asked by ", person(question.asked_by, record.tenant_id), f"{earlier}:"),
            Literal(one_line(question.question, _LONGEST_ON_A_CARD)),
            paragraph(_came_to(question)),
        ]
    return tuple(items)


@dataclass(frozen=True, slots=True)
class AnswerView:
    """Everything that the template of an answer puts into blocks."""

    asked: Item
    question: Literal
    told: Item
    answer: Literal | None


def answer_view(record: QuestionRecord) -> AnswerView:
    """Show a question that was closed, with its answer where there is one."""
    by: list[Piece | str] = [
        Words(f"About {operation_label(record.operation)}, ", bold=True),
        person(record.asked_by, record.tenant_id),
        " asked at ",
        moment(record.asked_at),
        ":",
    ]
    question = excerpt(record.question, _LONGEST_QUESTION)
    if record.answer is None:
        return AnswerView(paragraph(*by), question, paragraph(_came_to(record)), None)
    told = paragraph(Words("The agent's answer, which nobody has checked:", bold=True))
    text = excerpt(record.answer, _LONGEST_ANSWER - len(END)).text + END
    return AnswerView(paragraph(*by), question, told, Literal(text))


def answer_text(record: QuestionRecord) -> str:
    """Say in one line what the message is, where blocks cannot be shown."""
    said = "The agent answered" if record.answer is not None else "The agent did not answer"
    return f"{said} a question about {operation_label(record.operation)}"


def _came_to(question: QuestionRecord) -> str:
    if question.answer is not None:
        return "Answered by the agent, in the thread."
    if question.unanswered is None:
        return "Not answered yet; deciding need not wait for it."
    why = _WHY_NOT.get(question.unanswered) or sentence(question.unanswered, {})
    return f"Not answered: {why}"
