"""Several samples, one answer: ``Generator.vote``."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Literal, TypeAlias, get_args

from structgen.core.constraints.base import Constraint, T_co, value_of
from structgen.core.constraints.json import JsonSchemaConstraint, as_constraint
from structgen.core.constraints.thinking import Thinking
from structgen.core.json_text import loads_exact
from structgen.errors import IncompleteOutputError, OptionsError, StructgenError
from structgen.generation.consensus import By, Consensus, Utility, consensus
from structgen.generation.decoding.prompts import Prompt
from structgen.generation.fields.events import canonical
from structgen.generation.results import GenerationResult
from structgen.options import JsonOptions, check_choice, check_count

Draw: TypeAlias = Literal["iid", "distinct"]


@dataclass(frozen=True)
class VoteResult(Consensus[T_co], Generic[T_co]):
    """One answer from several outputs; ``value`` is what the constraint makes of ``text``.

    Attributes:
        text: of the answer, without thinking; that of a result, or of what the fields say together.
        results: the outputs that have voted.
        weights: of each: 1; of draws that are distinct, in proportion to the model's own probabilities.
        failed: outputs that were not written whole, or whose values the type's own validators refuse.
    """

    text: str = ""
    results: tuple[GenerationResult[Any], ...] = ()
    weights: tuple[float, ...] = ()
    failed: int = 0


def vote(
    generator: Any, prompt: Prompt, constraint: Any, n: int, by: By, draw: Draw, utility: Utility | None,
    options: dict[str, Any],
) -> VoteResult[Any]:  # fmt: skip
    """See ``Generator.vote``."""
    check_count("n", n)
    check_choice("draw", draw, get_args(Draw))
    check_choice("by", by, get_args(By))  # before anything is drawn
    if not (utility is None or callable(utility)):
        raise OptionsError(f"utility must be a function of two values, not {utility!r:.80}", option="utility")
    checked = as_constraint(constraint)
    answered = checked.answer if isinstance(checked, Thinking) else checked
    if checked is None or answered is None:
        raise OptionsError("a vote needs a constraint: free texts are hardly ever equal", option="constraint")
    drawn = _distinct if draw == "distinct" else _independent
    results, weights, failed = drawn(generator, prompt, checked, n, options)
    texts = [checked.answer_in(each.text) if isinstance(checked, Thinking) else each.text for each in results]
    values = [loads_exact(each) if isinstance(answered, JsonSchemaConstraint) else each for each in texts]
    chosen = consensus(values, weights, by=by, utility=utility, accepts=_acceptor(generator, answered))
    text = _text_of(chosen.value, values, texts)
    parts = {each.name: getattr(chosen, each.name) for each in fields(Consensus)}
    parts["value"] = value_of(answered, text)
    return VoteResult(**parts, text=text, results=tuple(results), weights=tuple(weights), failed=failed)


_Drawn: TypeAlias = "tuple[list[GenerationResult[Any]], list[float], int]"


def _independent(generator: Any, prompt: Prompt, constraint: Constraint, n: int, options: dict[str, Any]) -> _Drawn:
    asked = {"temperature": 1.0, **options}
    outcomes = generator.batch([prompt] * n, constraint, return_exceptions=True, **asked)
    results = [each for each in outcomes if isinstance(each, GenerationResult)]
    if not results:
        raise next(each for each in outcomes if isinstance(each, StructgenError))
    return results, [1.0] * len(results), n - len(results)


def _distinct(generator: Any, prompt: Prompt, constraint: Constraint, n: int, options: dict[str, Any]) -> _Drawn:
    run = generator.search(prompt, constraint, method="gumbel", n=n, **options)
    if not run.results:
        raise IncompleteOutputError(
            f"The budget ({run.stopped_by}) ended the search for distinct outputs before one was whole; give a larger "
            "budget=Budget(...), or draw='iid'.",
            partial="",
        )
    highest = max(result.log_prob_global for result in run.results)
    return list(run.results), [math.exp(result.log_prob_global - highest) for result in run.results], run.refused


def _acceptor(generator: Any, constraint: Constraint) -> Callable[[Any], bool]:
    """Whether the constraint, and the type's own validators, take a JSON value in any spelling."""
    spelled = constraint
    if isinstance(constraint, JsonSchemaConstraint):
        spelling = {each.name: getattr(JsonOptions.exact(), each.name) for each in fields(JsonOptions)}
        changes = {name: value for name, value in spelling.items() if value != getattr(JsonOptions(), name)}
        spelled = replace(constraint, options=replace(constraint.options, **changes))

    def accepts(value: Any) -> bool:
        text, matcher = _json(value), spelled.compile(generator.vocabulary).matcher()
        try:
            constraint.parse(text)
        except StructgenError:
            return False
        return bool(matcher.accept_bytes(text.encode()) and matcher.is_accepting())

    return accepts


def _text_of(value: Any, values: list[Any], texts: list[str]) -> str:
    """The first of the texts that has a value; else what spells it."""
    name = canonical(value)
    equal = (text for text, each in zip(texts, values, strict=True) if canonical(each) == name)
    return next(equal, None) or _json(value)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:  # a number that no float is
        return canonical(value)
