"""Written freely first, then under the constraint with the draft in sight: ``Generator.refine``.

The draft is also the prediction of the second pass: what agrees with it is read many tokens at once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, fields
from typing import Any, Generic, Literal, TypeAlias, get_args

from structgen.core.constraints.base import Constraint, T_co
from structgen.core.constraints.json import JsonSchemaConstraint, as_constraint
from structgen.core.constraints.parts import BYTES
from structgen.core.constraints.rules import has_field_regions
from structgen.core.json_spans import value_spans
from structgen.core.json_text import loads_exact
from structgen.errors import GenerationError, OptionsError, RefusedValueError
from structgen.generation.decoding.prompts import Prompt, as_messages, noted, telling
from structgen.generation.decoding.stats import GenerationStats
from structgen.generation.options import checked_settings
from structgen.generation.results import GenerationResult
from structgen.options import DEFAULT_MAX_NEW_TOKENS, check_count

DraftForm: TypeAlias = Literal["prose", "json"]
Show: TypeAlias = Literal["draft", "both", "turn"]
ASK = "Write what the text says as JSON. Use only what it says."
ASK_OTHER = "Write what the text says in the form that is asked for. Use only what it says."
DRAFT_TOKENS = 256
SHAPING = frozenset({
    "fields", "log_mass", "regions", "choose", "stop", "spelling", "guidance", "loop_guard", "heal_prompt"
})  # fmt: skip
"""Options for which an output is written, whatever the draft is."""


@dataclass(frozen=True)
class Refine:
    """How an output is drafted, and how the draft is shown.

    Attributes:
        draft: "prose": the prompt as it is, no schema and no mask; "json": asked for JSON by the schema, no mask, ended
            after the first whole value; if that satisfies the constraint, it is the answer.
        show: what the second pass sees: "draft" alone; "both": the prompt, and the draft after it; "turn": the draft as
            the model's answer.
        examples: texts with the values that they say, shown before the draft in the same form.
        max_draft_tokens: budget of the draft.
        temperature: of the draft.
        drafter: another generator, which writes it, larger perhaps; None: the same.

    Raises:
        OptionsError: a value that it cannot have.
    """

    draft: DraftForm = "prose"
    show: Show = "draft"
    examples: Sequence[tuple[str, Any]] = ()
    max_draft_tokens: int = DRAFT_TOKENS
    temperature: float = 0.0
    drafter: Any = None

    def __post_init__(self) -> None:
        for name, values in (("draft", get_args(DraftForm)), ("show", get_args(Show))):
            if getattr(self, name) not in values:
                raise OptionsError(
                    f"{name} must be one of {', '.join(values)}, not {getattr(self, name)!r:.60}", option=name
                )
        check_count("max_draft_tokens", self.max_draft_tokens)
        pairs = [each for each in self.examples if isinstance(each, Sequence) and len(each) == 2]
        if len(pairs) < len(self.examples) or not all(isinstance(text, str) for text, _ in pairs):
            raise OptionsError(
                f"examples are pairs of a text and its value, not {self.examples!r:.100}", option="examples"
            )
        if self.drafter is not None and not hasattr(self.drafter, "stream"):
            raise OptionsError(f"drafter must be a Generator, not {self.drafter!r:.100}", option="drafter")


@dataclass(frozen=True)
class RefinedResult(GenerationResult[T_co], Generic[T_co]):
    """An output that was written after a draft, with what the second pass gives.

    Attributes:
        draft: the text that was written first, or was given.
        unchanged: whether the draft has the answer's value, so that there was no second pass; ``logprob`` is then NaN.
    """

    draft: str = ""
    unchanged: bool = False


def refine(
    generator: Any, prompt: Prompt, constraint: Any, text: str | None, how: Refine | None, options: dict[str, Any]
) -> RefinedResult[Any]:
    """See ``Generator.refine``."""
    how, checked = how or Refine(), as_constraint(constraint)
    if not isinstance(how, Refine):
        raise OptionsError(f"how must be Refine(...), not {how!r:.100}", option="how", value=how)
    if checked is None:
        raise OptionsError("refine needs a constraint: free text is what generate writes", option="constraint")
    if not (text is None or isinstance(text, str)):
        raise OptionsError(f"text must be a string, not {text!r:.100}", option="text", value=text)
    as_messages(prompt)
    checked_settings(**options)
    draft = _drafted(how.drafter or generator, prompt, checked, how, options) if text is None else text
    if text is None and how.draft == "json" and not SHAPING & options.keys() and not has_field_regions(checked):
        answer = _answer_of(generator, checked, draft, options.get("max_new_tokens", DEFAULT_MAX_NEW_TOKENS))
        if answer is not None:
            return answer
    shown = second_prompt(prompt, draft, checked, how)
    predicted = _compact(draft) or draft  # spaced as outputs mostly are, so that it is followed
    result = generator.generate(shown, checked, **{"prediction": predicted, **options})
    return RefinedResult(**{each.name: getattr(result, each.name) for each in fields(GenerationResult)}, draft=draft)


def _answer_of(generator: Any, constraint: Constraint, draft: str, budget: int) -> RefinedResult[Any] | None:
    """A draft that the constraint takes, perhaps with other spaces, as the answer; None: it is none, or too long."""
    grammar = constraint.compile(BYTES)
    for text in (draft, _compact(draft)):
        matcher = grammar.matcher()
        if text is None or not (matcher.accept_bytes(text.encode()) and matcher.is_accepting()):
            continue
        tokens = tuple(generator._spell(text))
        if len(tokens) > budget or generator.vocabulary.decode(tokens) != text.encode():
            return None
        with suppress(RefusedValueError):
            return RefinedResult(
                constraint.parse(text), text, tokens, "stop", math.nan, GenerationStats(output_tokens=len(tokens)),
                draft=draft, unchanged=True,
            )  # fmt: skip
    return None


def _compact(draft: str) -> str | None:
    """JSON as Python writes it; None of what is none, has numbers that change by it, or strings that have no UTF-8."""
    try:
        text = json.dumps(json.loads(draft), ensure_ascii=False)
        text.encode()
        return text if loads_exact(text) == loads_exact(draft) else None
    except (ValueError, RecursionError, GenerationError):
        return None


def second_prompt(prompt: Prompt, draft: str, constraint: Constraint, how: Refine) -> Prompt:
    """What the second pass is asked."""
    ask = ASK if isinstance(constraint, JsonSchemaConstraint) else ASK_OTHER
    shown = "".join(f"Text: {text}\nAnswer: {_spelled(value)}\n\n" for text, value in how.examples)
    about = f"{shown}Text: {draft.strip()}\n\n{ask}"
    if how.show == "draft":
        return about
    if how.show == "turn":
        turns = [{"role": "assistant", "content": draft}, {"role": "user", "content": f"{shown}{ask}"}]
        return [*as_messages(prompt), *turns]
    if isinstance(prompt, str):
        return f"{prompt}\n\n{about}"
    return [*as_messages(prompt), {"role": "user", "content": about}]


def _drafted(drafter: Any, prompt: Prompt, constraint: Constraint, how: Refine, options: Mapping[str, Any]) -> str:
    """What the model writes freely."""
    asked, schema = prompt, None
    if how.draft == "json" and (shown := telling()) is not None:
        schema = shown.of(constraint, drafter.defaults.schema_form)
    if schema and getattr(drafter.tokenizer, "chat_template", None):
        asked = noted(as_messages(prompt), [(schema, "user")])
    elif schema:
        asked = f"{schema}\n\n{prompt}\n\n"
    kept = {name: options[name] for name in ("seed", "stop") if name in options}
    events = drafter.stream(asked, None, max_new_tokens=how.max_draft_tokens, temperature=how.temperature, **kept)
    text = ""
    with closing(events):
        for event in events:
            text = event.text
            if how.draft == "json" and (whole := first_json(text)) is not None:
                return whole
    return text


def first_json(text: str) -> str | None:
    """The first object or array of a text, once it is whole; None: there is none yet."""
    starts = [start for start in (text.find("{"), text.find("[")) if start >= 0]
    if not starts:
        return None
    data = text[min(starts) :].encode()
    spans = value_spans(data)
    return data[spans[0].begin : spans[0].end].decode() if spans and spans[0].pointer == "" else None


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
