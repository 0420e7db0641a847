"""Outputs written by the scheduler, as tests of decoders call it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from structgen.decoding.batching.inline import write
from structgen.decoding.batching.request import Request
from structgen.decoding.output import Output
from structgen.decoding.speculative.speculator import Speculator
from structgen.models.readers import ragged_reader


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
