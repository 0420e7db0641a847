"""Outputs that are chosen when all are written: vLLM's ``best_of``, and ``use_beam_search`` with what belongs to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from structgen.errors import OptionsError, Place
from structgen.generation.filters.table import FILTERS
from structgen.generation.prepared_model import ANY_TEXT, section_of
from structgen.generation.search.beam import Beam
from structgen.server.errors import RequestError, as_request_error
from structgen.server.formats import PlacedConstraint
from structgen.server.inference_request import InferenceRequest
from structgen.server.openai_types import SamplingFields, StructgenExtension
from structgen.server.sequences import Beams
from structgen.server.settings import ServingSettings

FREE_TEXT = PlacedConstraint(ANY_TEXT, (), "text")
"""What beams follow where nothing is asked for."""
NOT_OF_BEAMS: dict[str, Sequence[Any]] = {
    **{one.name: (None, one.neutral, *((0, -1) if one.is_count else ())) for one in FILTERS if one.served},
    "temperature": (None, 0),
    "frequency_penalty": (None, 0),
    "presence_penalty": (None, 0),
    "repetition_penalty": (None, 1),
    "logit_bias": (None, {}),
}
"""Fields of how tokens are drawn, and the values with which they say nothing: beams are not drawn."""
ONLY_BEAMS: dict[str, Sequence[Any]] = {"length_penalty": (None, 1), "early_stopping": (None, False)}


def with_choice(work: InferenceRequest, settings: ServingSettings) -> InferenceRequest:
    """``work``, written as its request says with ``best_of`` and ``use_beam_search``.

    Raises:
        RequestError: what is asked for excludes each other, or is more than the server writes.
    """
    asked = work.asked
    if not isinstance(asked, SamplingFields):
        return work
    written = _best_of(asked, work.choices, settings)
    if asked.use_beam_search:
        return _with_beams(work, asked, written)
    for name, neutral in ONLY_BEAMS.items():
        if (value := getattr(asked, name)) not in neutral:
            raise RequestError.at((name,), f"{name} is {value}, and only beams have it; set use_beam_search")
    if written > work.choices and not work.sequence.params.temperature:
        raise RequestError.at(
            ("best_of",), f"best_of is {written}, and at temperature 0 all of them are equal; raise temperature"
        )
    return replace(work, written=written)


def _best_of(asked: SamplingFields, choices: int, settings: ServingSettings) -> int:
    written = asked.best_of or choices
    if written < choices:
        raise RequestError.at(("best_of",), f"best_of is {written}, and n, which are chosen from these, is {choices}")
    if written > settings.max_choices:
        raise RequestError.at(
            ("best_of",), f"best_of is {written}, and at most {settings.max_choices} outputs are written"
        )
    return written


def _with_beams(work: InferenceRequest, asked: SamplingFields, count: int) -> InferenceRequest:
    for name, neutral in NOT_OF_BEAMS.items():
        if (value := getattr(asked, name)) not in neutral:
            raise _excluded((name,), f"{name} is {value}, and beams are not drawn; leave it out")
    for name in ("trace", "log_mass", "fields", "spelling", "heal_prompt"):
        if getattr(asked.structgen, name) != StructgenExtension.model_fields[name].default:
            raise _excluded(("structgen", name), f"{name} is not of beams; leave it out")
    constraint = work.constraint or FREE_TEXT
    if section_of(constraint.constraint) is not None:
        raise _excluded(("use_beam_search",), "beams keep no budget of thinking; leave max_think_tokens out")
    if work.sequence.regions:
        raise _excluded(("structgen", "regions"), "beams keep no regions; leave them out")
    given = {name: value for name in ONLY_BEAMS if (value := getattr(asked, name)) is not None}
    try:
        beams = Beams(work.choices, Beam(num_beams=count, **given))
    except OptionsError as error:
        raise as_request_error(error) from None
    return replace(work, constraint=constraint, sequence=replace(work.sequence, beams=beams))


def _excluded(path: Place, message: str) -> RequestError:
    return RequestError.at(path, message, "unsupported_value")
