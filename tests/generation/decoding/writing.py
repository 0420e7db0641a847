"""Outputs written by the scheduler, as tests of decoders call it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from structgen.generation.decoding.output import Output
from structgen.generation.models.runner_factory import ragged_reader
from structgen.generation.scheduler.inline import write
from structgen.generation.scheduler.request import Request
from structgen.generation.speculative.speculator import Speculator


def decode(
    model: Any,
    prompts: Sequence[Sequence[int]],
    outputs: Sequence[Output],
    speculator: Speculator | None = None,
    *,
    overlapped: bool = False,
) -> Iterator[Any]:
    """Write all outputs to their ends, yielding after every step."""
    requests = [Request(prompt, output, speculator) for prompt, output in zip(prompts, outputs, strict=True)]
    return write(ragged_reader(model), requests, overlapped=overlapped)
