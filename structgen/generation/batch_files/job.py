"""How the rows of a file are written: the same in one process and in many."""

from __future__ import annotations

import hashlib
import json
from collections import abc
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice, tee
from typing import Any

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import JsonSchemaConstraint
from structgen.errors import StructgenError
from structgen.generation.batch import Outcome, beginning
from structgen.generation.batch_files.lines import LineId, PromptLine, prompt_source
from structgen.generation.decoding.healing import check_has_no_template
from structgen.generation.decoding.prompts import Prompt
from structgen.generation.generator import Generator

WINDOW = 32  # rows that are looked at ahead, so that those with a common beginning can be written together; lines wait
# for those before them, so that a run that is killed loses at most so many more


@dataclass(frozen=True)
class OutputLine:
    """A row that is done.

    Attributes:
        text: its line of the output, without the end.
        failed: whether it has an error.
        tokens: of its output.
    """

    text: str
    failed: bool
    tokens: int


@dataclass(frozen=True)
class BatchJob:
    """What is asked of all rows of a file; it pickles.

    Attributes:
        model, backend, device, dtype, draft, deterministic, n_ctx, n_gpu_layers, chat_template, lora_path, lora_scale:
            see ``Generator``.
        constraint: of rows that name none; None: free text.
        described: what ``constraint`` is, as text that is the same in another process.
        options: of generation, without ``seed``.
        seed: rows are drawn with seeds made of this one and their ids, wherever and whenever they are written.
        batch_size: rows that are written at once.
        max_prompt_length: see ``Generator``; a row whose prompt is longer fails.
    """

    model: str | None = None
    backend: str | None = None
    device: str | None = None
    dtype: str | None = None
    draft: Any = None
    constraint: Constraint | None = None
    described: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    batch_size: int = 64
    max_prompt_length: int | None = None
    deterministic: bool = False
    n_ctx: int | None = None
    n_gpu_layers: int | None = None
    chat_template: str | None = None
    lora_path: str | None = None
    lora_scale: float = 1.0

    def load(self) -> Generator:
        """The model.

        Raises:
            OptionsError: an option that does nothing with it.
        """
        generator = Generator(
            self.model,
            backend=self.backend,
            device=self.device,
            dtype=self.dtype,
            draft=self.draft,
            max_prompt_length=self.max_prompt_length,
            deterministic=self.deterministic,
            n_ctx=self.n_ctx,
            n_gpu_layers=self.n_gpu_layers,
            chat_template=self.chat_template,
            lora_path=self.lora_path,
            lora_scale=self.lora_scale,
        )
        if self.options.get("heal_prompt"):
            check_has_no_template(generator.tokenizer)
        return generator

    def line_seed(self, id: LineId) -> int:
        """The seed of a row, 64 bits."""
        digest = hashlib.blake2b(json.dumps([self.seed, id]).encode(), digest_size=8)
        return int.from_bytes(digest.digest(), "little")

    def key(self, line: PromptLine) -> str:
        """What a row's output depends on, as 16 hexadecimal digits: prompt, constraint, model, options and seed."""
        specification = line.specification
        said = (
            self.described
            if specification is None
            else [
                specification.kind,
                specification.source,
                repr(specification.options),
                *_said(specification.sources, line.prompt),
            ]
        )
        options = sorted(self.options.items())
        asked: list[Any] = [line.prompt, said, self.model, self.backend, self.dtype, options, self.seed]
        if self.deterministic:
            asked.append("deterministic")
        loaded: list[Any] = [self.n_ctx, self.chat_template, self.lora_path, self.lora_scale]
        if loaded != [None, None, None, 1.0]:  # else as in files from before there were these
            asked.append(loaded)
        return hashlib.blake2b(json.dumps(asked).encode(), digest_size=8).hexdigest()

    def head(self, line: PromptLine) -> str:
        """How the output of a line begins, whatever comes of it."""
        return _text({"id": line.id, "key": self.key(line)})[:-1]

    def lines(
        self, generator: Generator, prompt_lines: abc.Iterable[PromptLine]
    ) -> abc.Generator[OutputLine, None, None]:
        """The lines' outputs, in their order; a line's error stands in its output.

        Raises:
            Exception: of the model, or of where the lines come from.
        """
        waiting: dict[int, tuple[int, PromptLine]] = {}

        def asked() -> abc.Iterator[PromptLine]:
            for number, (index, line) in enumerate(_neighbours(prompt_lines)):
                waiting[number] = index, line
                yield line

        prompts, constraints, seeds = tee(asked(), 3)
        outcomes = generator.stream_batch(
            (line.prompt for line in prompts),
            (line.specification or self.constraint for line in constraints),
            seeds=(self.line_seed(line.id) for line in seeds),
            batch_size=self.batch_size,
            **self.options,
        )
        done: dict[int, OutputLine] = {}
        following = 0
        with closing(outcomes):
            for number, outcome in outcomes:
                index, line = waiting.pop(number)
                done[index] = self._line(line, outcome)
                while following in done:
                    yield done.pop(following)
                    following += 1

    def _line(self, line: PromptLine, outcome: Outcome) -> OutputLine:
        head = self.head(line)
        if isinstance(outcome, StructgenError):
            return OutputLine(f"{head}, {_text({'error': error_fields(outcome)})[1:]}", True, 0)
        tokens = len(outcome.token_ids)
        shown: dict[str, Any] = {"finish_reason": outcome.finish_reason, "tokens": tokens}
        if self.options.get("fields"):
            shown["fields"] = {pointer: one.as_json() for pointer, one in outcome.fields.items()}
        if self.options.get("heal_prompt"):
            shown["healed"] = None if outcome.healed is None else outcome.healed.as_fields()
        end = _text(shown)[1:]
        constraint = self.constraint if line.specification is None else line.specification.constraint
        if not isinstance(constraint, JsonSchemaConstraint):
            return OutputLine(f"{head}, {_text({'text': outcome.text})[1:-1]}, {end}", False, tokens)
        # The JSON text as it was written, in which every digit stands; line ends in it are white space.
        value = outcome.text.replace("\r", " ").replace("\n", " ")
        return OutputLine(f'{head}, "value": {value}, {end}', False, tokens)


def _neighbours(lines: abc.Iterable[PromptLine]) -> abc.Iterator[tuple[int, PromptLine]]:
    """Places and rows, those of a window whose prompts begin alike one after the other: what is common is read once."""
    numbered = enumerate(lines)
    while window := sorted(islice(numbered, WINDOW), key=lambda each: beginning(each[1].prompt)):
        yield from window


def error_fields(error: Exception) -> dict[str, Any]:
    """An error as JSON values."""
    names = ("pointer", "keyword", "line", "column", "hint", "partial")
    details = {name: value for name in names if (value := getattr(error, name, None))}
    message = str(error.args[0]) if error.args else str(error)
    return {"type": type(error).__name__, "message": message, **details}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _said(sources: Mapping[str, Any], prompt: Prompt) -> list[str]:
    """What sources are, where there are any: the hash of each. What the prompt says is not said again."""
    prompted = prompt_source(prompt)
    return [
        f"{name!r}={getattr(source, 'digest', source)!r}"
        for name, source in sorted(sources.items())
        if name not in prompted or source != prompted[name]
    ]
