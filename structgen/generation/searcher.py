"""The outputs of a generator that a method of search chooses: ``Generator.search``."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from structgen.core.constraints.base import Constraint, value_of
from structgen.core.constraints.data import substring_of
from structgen.core.constraints.json import as_constraint
from structgen.core.constraints.rules import refuse_field_regions
from structgen.core.engines.captures.capturing import captures_of, names_captures
from structgen.core.json_schema.prompt_forms import FormOption
from structgen.core.text_sets.borders import Boundary
from structgen.core.text_sets.corpus import Corpus, Quote
from structgen.errors import GenerationError, IncompleteOutputError, OptionsError, RefusedValueError
from structgen.generation.decoding.hypothesis import Hypothesis, Rules
from structgen.generation.decoding.prompts import Place, Prompt, Telling, telling
from structgen.generation.decoding.stats import GenerationStats
from structgen.generation.models.prefix_reader import PromptReader, make_reader
from structgen.generation.models.threads import turn_of
from structgen.generation.options import Spelling, check_spelling, stop_strings
from structgen.generation.prepared_model import PreparedModel, after_prompt, section_of
from structgen.generation.sampling.uniforms import seed_or_entropy
from structgen.generation.search.canonical import CanonicalFollowing
from structgen.generation.search.distortion import Distortion, distortion
from structgen.generation.search.guidance import Guidance, GuidedReader
from structgen.generation.search.method import Method
from structgen.generation.search.methods import METHODS
from structgen.generation.search.rank import RankedText, RankWalk
from structgen.generation.search.results import (
    Merged,
    RankedValue,
    Ranking,
    SearchResult,
    SearchRun,
    SearchStats,
    merged,
)
from structgen.generation.search.scores import Scoring
from structgen.generation.search.space import Space
from structgen.generation.target.results import Budget
from structgen.options import DEFAULT_MAX_NEW_TOKENS, check_count, refuse_name

RANKED_TOKENS = 4096
"""That the model reads for a ranking, if nothing else is said."""
OTHER_NAMES = {
    "num_return_sequences": "use n",
    "best_of": "use num_beams",
    "beam_width": "use num_beams",
    "beams": "use num_beams",
    "num_beam_groups": "it is an option of method='diverse'",
    "max_tokens": "use max_new_tokens",
    "top_p": "filters are for draws: method='arithmetic'",
    "top_k": "filters are for draws: method='arithmetic'",
    "temperature": "it is for draws: method='arithmetic'",
}
"""What to do, by names that other libraries have."""


class Searcher:
    """What searches for a generator: see docs/decoding.md, and `structgen.generation.search`."""

    def __init__(self, prepared: PreparedModel) -> None:
        self._prepared = prepared

    def search(
        self,
        prompt: Prompt,
        constraint: Any,
        *,
        method: str | Method = "beam",
        n: int = 1,
        max_new_tokens: int = DEFAULT_MAX_NEW_TOKENS,
        stop: str | Sequence[str] = (),
        seed: int | None = None,
        schema_in_prompt: bool | Place = True,
        schema_form: FormOption = "auto",
        guidance: Guidance | None = None,
        **options: Any,
    ) -> SearchRun[Any]:
        """See ``Generator.search``."""
        check_count("n", n)
        check_count("seed", seed, 0, optional=True)
        if not (guidance is None or isinstance(guidance, Guidance)):
            raise OptionsError(f"guidance is {guidance!r:.100}; expected Guidance(...)", option="guidance")
        searching, shown = method_of(method, options), telling(schema_in_prompt, schema_form)
        if guidance is not None and searching.needs_states:
            raise OptionsError(
                f"{_name(searching)} takes no guidance: hidden states are of one prompt", option="guidance"
            )
        checked, ids, budget = self._asked(prompt, constraint, max_new_tokens, shown)
        other = None
        if guidance is not None:
            _, other, budget = self._asked(guidance.without, constraint, budget, shown)
        return self._searched(ids, checked, searching, n, budget, stop_strings(stop), seed, guidance, other)

    def rank(
        self,
        prompt: Prompt,
        constraint: Any,
        k: int,
        *,
        model_tokens: int = RANKED_TOKENS,
        spelling: Spelling = "any",
        max_new_tokens: int = DEFAULT_MAX_NEW_TOKENS,
        schema_in_prompt: bool | Place = True,
        schema_form: FormOption = "auto",
    ) -> Ranking[Any]:
        """See ``Generator.rank``."""
        check_count("k", k)
        check_spelling(spelling)
        checked, ids, budget = self._asked(prompt, constraint, max_new_tokens, telling(schema_in_prompt, schema_form))
        prepared = self._prepared
        weigh = None if spelling == "any" else CanonicalFollowing(prepared.spelling())
        root = Hypothesis.root(Rules(prepared._compiled(checked)), budget)
        with prepared._waiting("ranking outputs"), turn_of(prepared.reader):
            reader = make_reader(prepared.model, ids, budget)
            space = Space(reader, root, Scoring(), budget=Budget(model_tokens), weigh=weigh)
            outcome = RankWalk(space, k, has_one_spelling=spelling == "canonical").outcome()
        stats = SearchStats(reader.calls, space.expansions, reader.tokens, space.seconds)
        values = [each for each in (_ranked(one, checked) for one in outcome.texts) if each is not None]
        return Ranking(values, outcome.exact, outcome.open + outcome.others, outcome.stopped_by, stats)

    def distortion(
        self,
        prompt: Prompt,
        constraint: Any,
        *,
        n: int = 100,
        max_new_tokens: int = DEFAULT_MAX_NEW_TOKENS,
        seed: int | None = None,
        schema_in_prompt: bool | Place = True,
        schema_form: FormOption = "auto",
        **options: Any,
    ) -> Distortion:
        """See ``Generator.distortion``."""
        check_count("n", n)
        check_count("seed", seed, 0, optional=True)
        params = method_of("arithmetic", options).params  # type: ignore[attr-defined]
        checked, ids, budget = self._asked(prompt, constraint, max_new_tokens, telling(schema_in_prompt, schema_form))
        root = Hypothesis.root(Rules(self._prepared._compiled(checked)), budget)
        root.check_closes()
        with self._prepared._waiting("drawing outputs"), turn_of(self._prepared.reader):
            space = Space(make_reader(self._prepared.model, ids, budget), root, Scoring("local"))
            return distortion(space, params, n, np.random.default_rng(seed_or_entropy(seed)))

    def _asked(
        self, prompt: Prompt, constraint: Any, max_new_tokens: int, shown: Telling | None
    ) -> tuple[Constraint[Any], list[int], int]:
        """The constraint, the tokens of the prompt, and the budget that the model leaves."""
        check_count("max_new_tokens", max_new_tokens)
        checked = as_constraint(constraint)
        if checked is None:
            raise GenerationError("a search needs a constraint; free text is written by generate and batch.")
        ids = self._prepared._prompt_ids(prompt, checked, shown)
        checked = after_prompt(checked, ids, self._prepared.vocabulary)
        assert checked is not None
        refuse_field_regions(checked)
        if section_of(checked) is not None:
            raise GenerationError("a search keeps no budget of thinking; leave out max_think_tokens.")
        return checked, ids, self._budget(ids, max_new_tokens)

    def _budget(self, ids: Sequence[int], max_new_tokens: int) -> int:
        limit = self._prepared.model.context_length
        budget = max_new_tokens if limit is None else min(max_new_tokens, limit - len(ids))
        if budget < 1:
            raise GenerationError(f"The prompt has {len(ids)} tokens, the model reads {limit}; shorten it.")
        return budget

    def _searched(
        self,
        ids: Sequence[int],
        constraint: Constraint[Any],
        method: Method,
        n: int,
        budget: int,
        stop: Sequence[str],
        seed: int | None,
        guidance: Guidance | None,
        other: Sequence[int] | None,
    ) -> SearchRun[Any]:
        prepared = self._prepared
        searched = method.constrained(constraint)
        root = Hypothesis.root(Rules(prepared._compiled(searched), stop), budget)
        if method.is_closed:
            root.check_closes()
        with prepared._waiting("searching for outputs"), turn_of(prepared.reader):
            reader: PromptReader = make_reader(prepared.model, ids, budget, states=method.needs_states)
            if guidance is not None and other is not None:
                reader = GuidedReader(reader, make_reader(prepared.model, other, budget), guidance.scale)
            weigh = None if guidance is None else guidance.weigh
            space = Space(reader, root, method.scoring, lambda one: _key(one, method.merge), method.limits, weigh)
            space.constraint = constraint
            outcome = method.run(space, n, np.random.default_rng(seed_or_entropy(seed)))
        if not outcome.finished and outcome.stopped_by is None:
            raise IncompleteOutputError(
                f"No output fits in {budget} tokens; raise max_new_tokens{', or change stop' if stop else ''}.",
                partial="",
            )
        keys = [_key(node.hypothesis, method.merge) for _, node in outcome.finished]
        texts = [node.hypothesis.text for _, node in outcome.finished]
        outputs = merged(outcome.finished, keys, texts) if method.merge != "none" else _apart(outcome.finished)
        stats = SearchStats(reader.calls, space.expansions, reader.tokens, space.seconds)
        results, refused = _results(outputs, constraint, n, len(ids), stats)
        return SearchRun(results, _name(method), outcome.gap, outcome.stopped_by, stats, refused)


class RankingModel(PreparedModel):
    """What a generator can say of its model's likeliest values."""

    def rank(self, prompt: Prompt, constraint: Any, k: int = 10, **options: Any) -> Ranking[Any]:
        """The ``k`` likeliest values: by the model's own probabilities, without a mask, summed over the spellings of
        each text in tokens (those of at most ``max_new_tokens``), with bounds where the search was stopped.

        Args:
            **options: ``model_tokens``: how many the model may read besides the prompt (4,096); ``spelling``: "any", or
                "canonical": a text's probability is that of the tokens that the tokenizer makes of it alone, which is
                nearly all of it, and takes fewer tokens to find; ``max_new_tokens``, ``schema_in_prompt``,
                ``schema_form`` as ``GenerationOptions`` has them.

        Raises:
            GenerationError: no constraint, or no room for the prompt. OptionsError, ConstraintError: bad arguments.
        """
        return Searcher(self).rank(prompt, constraint, k, **options)

    def extract(
        self,
        prompt: Prompt,
        text: Corpus | str | Mapping[str, str],
        *,
        min_chars: int = 1,
        max_chars: int | None = None,
        boundary: Boundary = "char",
        fold: Iterable[str] | bool = (),
        **options: Any,
    ) -> Ranking[Quote]:
        """The likeliest part of a text, with its places: ``rank`` under ``substring_of``, the best alone.

        Args:
            text, min_chars, max_chars, boundary, fold: as ``substring_of`` takes them.
            **options: ``k`` and those of ``rank``.

        Raises:
            StructGenError: as ``rank`` and ``substring_of``.
        """
        quotes = substring_of(text, min_chars=min_chars, max_chars=max_chars, boundary=boundary, fold=fold)
        return self.rank(prompt, quotes, **{"k": 1, **options})


def method_of(method: str | Method, options: dict[str, Any]) -> Method:
    """A method by its name, with its options.

    Raises:
        OptionsError: there is none such, or it has no such option.
    """
    if isinstance(method, Method):
        if options:
            raise OptionsError(
                f"{', '.join(options)}: a method that is made has its options; give its name, or leave these out",
                option=next(iter(options)),
            )
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise OptionsError(
            f"unknown method {method!r:.100}; expected one of {', '.join(METHODS)}", option="method", value=method
        )
    taken = fields(METHODS[method])
    names = [one.name for one in taken]
    for name in options:
        if name not in names:
            refuse_name(name, names, OTHER_NAMES)
    for one in taken:
        if one.default is MISSING and one.default_factory is MISSING and one.name not in options:
            raise OptionsError(f"method {method!r} needs the option {one.name}", option=one.name)
    return METHODS[method](**options)


def _name(method: Method) -> str:
    return next((name for name, kind in METHODS.items() if type(method) is kind), type(method).__name__)


def _key(hypothesis: Hypothesis, merge: str) -> Hashable:
    """What counts as one output."""
    if merge == "none":
        return hypothesis.tokens
    if merge == "value":
        try:
            return json.dumps(json.loads(hypothesis.text), sort_keys=True)
        except (ValueError, RecursionError):
            pass
    return hypothesis.data


def _ranked(one: RankedText, constraint: Constraint[Any]) -> RankedValue[Any] | None:
    text = one.node.hypothesis.text
    with suppress(RefusedValueError):
        return RankedValue(value_of(constraint, text), text, math.log(one.least), math.log(min(one.most, 1.0)))
    return None


def _apart(finished: Sequence[tuple[float, Any]]) -> list[Merged]:
    return [Merged(score, node, node.log_prob) for score, node in finished]


def _results(
    outputs: Sequence[Merged], constraint: Constraint[Any], n: int, prompt_tokens: int, stats: SearchStats
) -> tuple[list[SearchResult[Any]], int]:
    """The first ``n`` whose values the type's own validators take, and how many before these they refuse.

    Raises:
        RefusedValueError: they take none.
    """
    results, refused = list[SearchResult[Any]](), list[RefusedValueError]()
    for output in outputs:
        if len(results) == n:
            break
        try:
            results.append(_result(output, constraint, prompt_tokens, stats))
        except RefusedValueError as error:
            refused.append(error)
    if refused and not results:
        raise refused[0]
    return results, len(refused)


def _result(output: Merged, constraint: Constraint[Any], prompt_tokens: int, stats: SearchStats) -> SearchResult[Any]:
    node = output.node
    hypothesis = node.hypothesis
    grammar, data, text = hypothesis.grammar, hypothesis.data, hypothesis.text
    return SearchResult(
        value=value_of(constraint, text),
        text=text,
        token_ids=hypothesis.tokens,
        finish_reason="length" if node.is_shaped else "stop",
        logprob=node.log_local,
        stats=GenerationStats(
            prompt_tokens, len(hypothesis.tokens), target_forwards=stats.model_calls, seconds=stats.seconds
        ),
        captures=captures_of(grammar, data, is_finished=True) if names_captures(grammar) else {},
        score=output.score,
        log_prob_global=node.log_prob,
        text_logprob=output.text_logprob,
    )
