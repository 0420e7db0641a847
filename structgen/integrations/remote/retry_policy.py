"""What to ask a server next, and what its answers come to: no I/O, so that both clients share it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import json_schema
from structgen.core.json_text import loads_exact
from structgen.core.tool_calls.values import json_text
from structgen.errors import GenerationError, RemoteOutputError, RemoteServerError
from structgen.generation.decoding.prompts import Prompt, Telling, as_messages, noted
from structgen.generation.decoding.refusals import Refusal, reason_of
from structgen.integrations.remote.checking import TextCheck, check_of, found_within
from structgen.integrations.remote.request_formats import (
    CONTINUE,
    NOT_HANDED_ON,
    PROMPT,
    Form,
    ServerKnowledge,
    forms_of,
    is_for_good,
    refuses,
)
from structgen.integrations.remote.results import Attempt, Outcome, RemoteResult, total


class Asking:
    """One output: asked for until an answer conforms. Driven by a client: `request`, then what came of it.

    Args:
        prompt: a string, or chat messages.
        constraint: what the answer must be; None: any text.
        server: what is known of the server; mutated.
        fields: of the request: the model, sampling, and whatever else it takes.
        max_attempts: answers to ask for; refusals of a form are not counted.
        max_new_tokens: the budget of each answer; None: the server's.
        telling: how the prompt speaks of the constraint; None: not at all.

    Raises:
        ConstraintError: the constraint cannot be compiled.
        GenerationError: bad messages.
    """

    def __init__(
        self,
        prompt: Prompt,
        constraint: Constraint | None,
        server: ServerKnowledge,
        fields: Mapping[str, Any],
        max_attempts: int,
        max_new_tokens: int | None,
        telling: Telling | None,
    ) -> None:
        self.constraint = constraint
        self.attempts: list[Attempt] = []
        self.result: RemoteResult | None = None
        self._server, self._fields = server, fields
        self._left, self._max_new_tokens = max_attempts, max_new_tokens
        self._grammar = None if constraint is None else check_of(constraint)
        self._prompt, self._telling = as_messages(prompt), telling
        usable = (form for form in forms_of(constraint, server.target) if form.name not in server.unknown)
        self._forms = [form for form in usable if form.field not in server.ignored]
        self._refusal = Refusal("", "")  # the last answer, and what is wrong with it
        self._extra: list[dict[str, Any]] = []  # messages about the last answer
        self._start = ""  # what the next answer continues
        self._form = self._forms[0]
        self.check: TextCheck | None = None
        self._raw = ""

    # --- towards the server ---
    def _messages(self) -> list[dict[str, Any]]:
        """The prompt, with what it says of the constraint: of the shape that is asked for."""
        telling, lowered = self._telling, self._form.lowered
        if self.constraint is None or telling is None:
            return self._prompt
        asked = json_schema(lowered.sent) if lowered is not None and lowered.is_mapped else self.constraint
        note = telling.of(asked, "schema")
        return noted([dict(message) for message in self._prompt], [(note, telling.role)] if note else [])

    def request(self) -> dict[str, Any]:
        """The arguments of the next ``chat.completions.create``; begins an attempt."""
        form_fields = self._form.fields
        extra = {**(self._fields.get("extra_body") or {}), **form_fields.get("extra_body", {})}
        fields = {name: value for name, value in self._fields.items() if name not in NOT_HANDED_ON}
        asked = {**fields, **form_fields, "messages": [*self._messages(), *self._extra]}
        if self._max_new_tokens is not None:
            asked[self._server.budget_field] = self._max_new_tokens
        if extra:
            asked["extra_body"] = extra
        self._raw = ""
        self.check = None if self._grammar is None or self._form.is_mapped else TextCheck(self._grammar)
        if self.check is not None:
            self.check.feed(self._start)
        return asked

    @property
    def kept(self) -> str:
        """The text that the answer of this attempt continues."""
        return self._start

    # --- from the server ---
    def feed(self, text: str) -> str:
        """Take a piece of the answer; gives what of it fits. Once `is_wrong`, what follows need not be read."""
        self._raw += text
        if self._form.is_mapped:  # what it means shows once it is whole
            return ""
        return text if self.check is None else self.check.feed(text)

    @property
    def is_wrong(self) -> bool:
        """Whether the answer has a byte that does not fit."""
        return self.check is not None and bool(self.check.wrong)

    def finish(self, finish_reason: str | None, usage: Mapping[str, int], refusal: str | None = None) -> None:
        """The answer is over, or was stopped: it conforms, and there is a `result`; or the next attempt is prepared.

        Raises:
            RemoteOutputError: it was the last attempt.
        """
        attempt = Attempt(
            self._form.name, "conforms", self._raw, None, None, len(self._start), finish_reason, dict(usage)
        )
        self._left -= 1
        if self._form.is_mapped and not refusal:
            self._map_back()
        text, reason = self._judged(refusal)
        value: Any = text
        if reason is None and self.constraint is not None:
            try:
                value = self.constraint.parse(text)
            except GenerationError as error:  # of validators of a type, which no grammar has
                reason = reason_of(error)
        self._learn(text)
        if reason is None:
            self.attempts.append(attempt)
            done = tuple(self.attempts)
            self.result = RemoteResult(value, text, finish_reason, total(done), done)
        else:
            self._failed(attempt, reason)

    def refused(self, status: int, message: str) -> None:
        """The server answered with an error; prepares the next form, if the error is of this one.

        Raises:
            RemoteServerError: it is of something else, or no form is left.
        """
        form, shown = self._form, f"{status}: {message[:500]}"
        is_of_request = status in (400, 422, 501)
        self.attempts.append(Attempt(form.name, "refused", reason=shown))
        if is_of_request and self._server.budget_field == "max_tokens" and "max_completion_tokens" in message:
            self._server.budget_field = "max_completion_tokens"
        elif is_of_request and form.name == CONTINUE:
            self._server.continues = False
            self._ask_anew()
        elif is_of_request and form.name != PROMPT and refuses(form, message):
            if is_for_good(message):
                self._server.unknown.add(form.name)
            self._forms = self._forms[1:]
            self._form = self._forms[0]
        else:
            raise RemoteServerError(f"the server refused the request, {shown}", attempts=tuple(self.attempts))

    # --- judging ---
    def _map_back(self) -> None:
        """Check what an answer in the provider's shape means; one that is no JSON is checked as it is."""
        assert self._form.lowered is not None and self._grammar is not None
        with suppress(GenerationError, TypeError, ValueError):
            self._raw = json_text(self._form.lowered.back(loads_exact(self._raw)))
        self.check = TextCheck(self._grammar)
        self.check.feed(self._raw)

    def _judged(self, refusal: str | None) -> tuple[str, str | None]:
        """The text that conforms, or what is wrong."""
        whole, check = self._start + self._raw, self.check
        if refusal:
            return "", f"the model refused: {refusal[:200]}"
        if check is None or self._grammar is None or self.constraint is None:
            return whole, None
        if not check.wrong and check.is_whole():
            return whole, None
        answered = found_within(self.constraint, self._grammar, self._raw if check.wrong else whole)
        if answered is not None:
            return answered, None
        if check.wrong:
            wrong = check.wrong[:40].decode(errors="replace")
            before = f"after {check.text[-40:]!r}" if check.fitting else "at its beginning"
            return "", f"{before} (byte {len(check.fitting)}) stands {wrong!r}; expected {check.expected()}"
        return "", f"it ends before it is whole; expected {check.expected()}"

    def _learn(self, answered: str) -> None:
        """What this answer says about the server."""
        check, form = self.check, self._form
        if check is None or not check.wrong:
            return
        if form.name == CONTINUE:
            if answered:  # it began anew
                self._server.continues = False
        elif form.name != PROMPT:
            # It took a form, and what it wrote does not even begin as asked: nothing was done with the form. Where the
            # beginning fits, it may only enforce less than was asked for; then the next answer is asked for as before.
            if not check.fitting.strip():
                self._server.ignored.add(form.field)
            if not check.fitting.strip() or any(a.form == form.name and a.outcome == "violates" for a in self.attempts):
                self._forms = [other for other in self._forms if other.field != form.field]

    def _failed(self, attempt: Attempt, reason: str) -> None:
        """Prepare the next attempt.

        Raises:
            RemoteOutputError: there is none.
        """
        check = self.check
        good = "" if check is None else check.text
        is_cut = check is not None and not check.wrong and not check.is_whole()
        position = None if check is None else len(check.fitting)
        outcome: Outcome = "truncated" if is_cut else "violates"
        is_wrong = check is not None and bool(check.wrong)
        judged = (self.constraint, self._start + self._raw) if is_wrong and self.constraint is not None else None
        self.attempts.append(replace(attempt, outcome=outcome, reason=reason, position=position, _judged=judged))
        if self._left <= 0:
            done = tuple(self.attempts)
            count = sum(each.outcome != "refused" for each in done)
            raise RemoteOutputError(
                f"none of {count} answers of the server conforms; of the last, {reason}", attempts=done, partial=good
            )
        self._refusal = Refusal(self._start + self._raw, reason)
        goes_on = attempt.form != CONTINUE or good != self._start
        may_go_on = (
            self._server.continues
            and goes_on
            and not self._form.is_mapped
            and (is_cut or (check is not None and bool(check.wrong)))
        )
        if may_go_on and good.strip():
            self._start, self._extra = good, [{"role": "assistant", "content": good}]
            fields = {"extra_body": {"continue_final_message": True, "add_generation_prompt": False}}
            self._form = Form(CONTINUE, "continue_final_message", fields)
        else:
            self._ask_anew()

    def _ask_anew(self) -> None:
        """The next answer is written from the beginning, by what was wrong with the last."""
        self._start, self._form = "", self._forms[0]
        self._extra = self._refusal.messages()


def usage_of(given: Any) -> dict[str, int]:
    """The counts that a server reports."""
    names: Sequence[str] = ("prompt_tokens", "completion_tokens", "total_tokens")
    counts = {name: getattr(given, name, None) for name in names}
    return {name: count for name, count in counts.items() if isinstance(count, int)}
