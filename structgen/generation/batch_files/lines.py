"""The rows of a file: JSON lines, or CSV with a head line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from structgen.core.constraints.specs import DEFAULT_OPTIONS, FILE_KINDS, ConstraintSpec, checked_source
from structgen.core.json_text import NamedTwiceError, named_once
from structgen.core.text_sets.opening import PROMPT
from structgen.errors import InputFileError, SpecificationError
from structgen.generation.decoding.prompts import Prompt
from structgen.options import JsonOptions

LineId: TypeAlias = "str | int"
MAX_NAMED = 10  # lines that one error names
MAX_CELL = 1 << 27  # characters; Python's own limit, 131,072, is less than a document
MAX_LINE = 1 << 27
"""Bytes of a line, of rows or of an output: what is longer is no line of a batch, and its end may never come."""


@dataclass(frozen=True)
class PromptLine:
    """A row that is to be written.

    Attributes:
        line: of the file, from 1; where the row begins.
        id: its own, or its number in the file, from 1.
        prompt: a text, or messages.
        specification: of its own constraint; None: it names none.
        sources: its own, by name.
    """

    line: int
    id: LineId
    prompt: Prompt
    specification: ConstraintSpec | None
    sources: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PromptFile:
    """A file of rows, read anew each time: its content may be larger than memory.

    Args:
        name: how it is called in errors.
        open: opens it, binary.
        is_csv: else JSON lines.
        options: of schemas.
        sources: what names of sources in schemas stand for, by name, where the row gives no other.
        schema: of rows that name no constraint, where it names what they may have of their own: the prompt, sources.

    A row has a ``prompt`` (text) or ``messages`` (a list), and if it likes an ``id`` (text or integer) and a constraint
    of its own: ``schema`` (JSON, or its text), ``lark``, ``gbnf``, ``ebnf`` (XGrammar's), ``regex``, or ``choice`` (a
    list of texts). In CSV, lists and schemas are JSON text, and an empty cell says nothing. Other columns are left
    alone.
    """

    name: str
    open: Callable[[], BinaryIO]
    is_csv: bool = False
    options: JsonOptions = DEFAULT_OPTIONS
    sources: Mapping[str, Any] = field(default_factory=dict)
    schema: Any = None

    @classmethod
    def at(cls, path: Path, options: JsonOptions = DEFAULT_OPTIONS) -> PromptFile:
        """A file, which is CSV if its name ends so. It is read more than once, so it is no pipe."""

        def opened() -> BinaryIO:
            if path.exists() and not path.is_file() and not path.is_dir():
                raise OSError("it is no regular file (pipe lines in, and name the file -)")
            return path.open("rb")

        return cls(str(path), opened, path.suffix.lower() == ".csv", options)

    @classmethod
    def of(cls, name: str, data: bytes, options: JsonOptions = DEFAULT_OPTIONS) -> PromptFile:
        """Bytes of JSON lines."""
        return cls(name, lambda: io.BytesIO(data), False, options)

    def check(self) -> int:
        """How many rows there are.

        Raises:
            InputFileError: the file cannot be read, or lines of it are wrong: the first of them are named.
        """
        wrong: list[InputFileError] = []
        count = 0
        seen: dict[LineId, int] = {}

        def refuse(error: InputFileError) -> None:
            nonlocal count
            count += 1
            if count <= MAX_NAMED:  # a file may have more wrong lines than memory holds
                wrong.append(error)

        for line in self._prompt_lines(refuse):
            if line.id in seen:
                refuse(InputFileError(f"id {line.id!r:.100} stands in line {seen[line.id]} already", line=line.line))
            seen.setdefault(line.id, line.line)
        if wrong:
            places = [f"{self.name}, line {error.line}: {error}" for error in wrong]
            more = [f"and {count - MAX_NAMED} more lines"] if count > MAX_NAMED else []
            raise InputFileError("\n".join([*places, *more]), line=wrong[0].line, text=wrong[0].text)
        return len(seen)

    def __iter__(self) -> Iterator[PromptLine]:
        def refuse(error: InputFileError) -> None:
            raise InputFileError(f"{self.name}, line {error.line}: {error}", line=error.line, text=error.text)

        return self._prompt_lines(refuse)

    def _prompt_lines(self, refuse: Callable[[InputFileError], None]) -> Iterator[PromptLine]:
        """The rows that are right; ``refuse`` is told of the others."""
        try:
            with self.open() as file:
                records = _csv_records(file) if self.is_csv else _json_records(file)
                for number, (line, record) in enumerate(records, 1):
                    try:
                        if isinstance(record, InputFileError):
                            raise record
                        yield self._with_constraint(_prompt_line(line, number, record, self.is_csv, self.options))
                    except InputFileError as error:
                        error.line = line
                        refuse(error)
        except OSError as error:
            raise InputFileError(f"Cannot read {self.name}: {error.strerror or error}") from error

    def _with_constraint(self, line: PromptLine) -> PromptLine:
        """The row with what all rows have."""
        specification = line.specification
        if specification is None and self.schema is not None:
            sources = {**prompt_source(line.prompt), **line.sources}
            specification = ConstraintSpec("schema", self.schema, self.options, sources=sources)
        if specification is None or not self.sources:
            return line if specification is line.specification else replace(line, specification=specification)
        return replace(line, specification=replace(specification, sources={**self.sources, **specification.sources}))


Record: TypeAlias = "Mapping[str, Any] | InputFileError"


def _json_records(file: BinaryIO) -> Iterator[tuple[int, Record]]:
    """Line and object of each line that is not blank."""
    for number, text in enumerate(_lines(file), 1):
        if isinstance(text, InputFileError):
            yield number, text
        elif text.strip():
            yield number, _json_object(text)


def _json_object(text: str) -> Record:
    try:
        record = json.loads(text, object_pairs_hook=named_once)
    except json.JSONDecodeError as error:
        return InputFileError(f"no JSON: {error.msg} at column {error.colno}", text=text)
    except (ValueError, RecursionError) as error:  # digits, depth
        return InputFileError(f"JSON that cannot be read: {error}", text=text)
    if not isinstance(record, dict):
        return InputFileError(f'expected an object like {{"prompt": "..."}}, found {text.strip():.40}', text=text)
    return record


def _csv_records(file: BinaryIO) -> Iterator[tuple[int, Record]]:
    """First line and cells of each record."""

    def lines() -> Iterator[str]:
        for text in _lines(file):
            if isinstance(text, InputFileError):
                raise text
            yield text

    csv.field_size_limit(max(MAX_CELL, csv.field_size_limit()))
    reader = csv.reader(lines(), strict=True)
    head: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except (csv.Error, InputFileError) as error:  # what follows has no beginning
            yield line, InputFileError(f"no CSV: {error}" if isinstance(error, csv.Error) else str(error))
            return
        if cells is None:
            return
        if not cells:
            continue
        if head is None:
            head = [cell.strip() for cell in cells]
            twice = next((name for name in head if head.count(name) > 1), None)
            if twice is not None:
                yield line, InputFileError(f"the column {twice!r} is there twice")
                return
        elif len(cells) != len(head):
            yield line, InputFileError(f"{len(cells)} cells, but the head line names {len(head)} columns")
        else:
            yield line, dict(zip(head, cells, strict=True))


def _lines(file: BinaryIO) -> Iterator[str | InputFileError]:
    """Each line with its end, without a byte order mark; none after one that is too long."""
    for number, data in enumerate(iter(partial(file.readline, MAX_LINE + 1), b"")):
        if len(data) > MAX_LINE:
            yield InputFileError(f"a line of more than {MAX_LINE:,} bytes; what follows is not looked at")
            return
        try:
            yield data.decode("utf-8-sig" if not number else "utf-8")
        except UnicodeDecodeError as error:
            fault = f"byte 0x{data[error.start]:02x} at offset {error.start} of the line"
            yield InputFileError(f"no UTF-8: {fault} ({error.reason})")


def _prompt_line(line: int, number: int, record: Mapping[str, Any], is_csv: bool, options: JsonOptions) -> PromptLine:
    """The row that a record is; an InputFileError says what is wrong with it."""
    cells = {name: value for name, value in record.items() if value is not None and not (is_csv and value == "")}
    if is_csv and "messages" in cells:
        cells["messages"] = _cell("messages", cells["messages"])
    id = cells.get("id", number)
    if not isinstance(id, (str, int)) or isinstance(id, bool):
        raise InputFileError(f"an id is a text or an integer, not {id!r:.40}")
    given = [name for name in ("prompt", "messages") if name in cells]
    if len(given) != 1:
        raise InputFileError(f"expected either prompt or messages, found {' and '.join(given) or _found(record)}")
    prompt = cells[given[0]]
    if not isinstance(prompt, str if given == ["prompt"] else list):
        what = "a text" if given == ["prompt"] else "a list of messages"
        raise InputFileError(f"{given[0]} is {what}, not {prompt!r:.40}")
    kinds = [kind for kind in FILE_KINDS if kind in cells]
    if len(kinds) > 1:
        raise InputFileError(f"one constraint a line, found {' and '.join(kinds)}")
    specification, sources = None, _own_sources(cells.get("sources"), is_csv)
    if kinds:
        source = _source(kinds[0], cells[kinds[0]], is_csv)
        specification = ConstraintSpec(kinds[0], source, options, sources={**prompt_source(prompt), **sources})
    return PromptLine(line, id, prompt, specification, sources)


def _own_sources(value: Any, is_csv: bool) -> dict[str, Any]:
    """What names of sources in the schema of a row stand for, as its cell ``sources`` says."""
    given = _cell("sources", value) if is_csv and value is not None else {} if value is None else value
    if not isinstance(given, dict):
        raise InputFileError(f"sources are texts or lists of names, by name, not {given!r:.40}")
    return given


def prompt_source(prompt: Prompt) -> dict[str, Any]:
    """The source that is what the prompt says; none where it says nothing."""
    texts = {"": prompt} if isinstance(prompt, str) else _message_texts(prompt)
    texts = {name: text for name, text in texts.items() if text}
    return {PROMPT: texts} if texts else {}


def _message_texts(messages: Sequence[Any]) -> dict[str, str]:
    contents = [message.get("content") if isinstance(message, Mapping) else None for message in messages]
    return {f"messages[{number}]": text for number, text in enumerate(contents) if isinstance(text, str)}


def _source(kind: str, value: Any, is_csv: bool) -> str:
    """See ``ConstraintSpec.source``."""
    if kind == "choice":
        value = _cell(kind, value) if is_csv else value
    try:
        source = checked_source(kind, value)
    except SpecificationError as error:
        raise InputFileError(str(error)) from None
    if kind == "schema" and isinstance(source, str):
        _check_names(source)
    return source if isinstance(source, str) else json.dumps(source)


def _check_names(text: str) -> None:
    """Refuse the text of a schema in which an object has a name twice; what else is wrong is told with its place."""
    try:
        json.loads(text, object_pairs_hook=named_once)
    except NamedTwiceError as error:
        raise InputFileError(f"schema cannot be read: {error}") from None
    except (ValueError, RecursionError):
        return


def _cell(name: str, text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=named_once)
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"{name} is JSON text, not {text!r:.40}: {error}") from error


def _found(record: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, list(record)[:6])) or "nothing"
