"""What all commands share: consoles, reading files, errors to exit codes, a vocabulary without a model."""

from __future__ import annotations

import codecs
import dataclasses
import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import typer
from typer.core import TyperGroup

from structgen.cli.consoles import WaitLine, err
from structgen.errors import (
    GenerationError,
    IncompleteOutputError,
    StructgenError,
)
from structgen.progress import report_progress

if TYPE_CHECKING:
    from structgen.core.vocabulary.vocabulary import Vocabulary
    from structgen.generation.results import GenerationResult

INVALID = 1
BAD_INPUT = 2
INCOMPLETE = 3
"""Exit codes: judged invalid or not covered; not usable as it was given; a budget ran out or a row failed."""


class BadInput(Exception):
    """What the user gave cannot be used; the message says why."""


@contextmanager
def exit_codes(as_json: bool = False) -> Iterator[None]:
    """Tell what takes long, and turn errors into one readable message and an exit code."""
    try:
        with report_progress(None if as_json else WaitLine()):
            yield
    except GenerationError as error:
        fail(error, INCOMPLETE, as_json)
    except (StructgenError, BadInput, ValueError) as error:
        fail(error, BAD_INPUT, as_json)
    except BrokenPipeError:
        raise  # who reads has had enough; typer ends quietly
    except OSError as error:
        file_named = f"{error.filename}: " if error.filename else ""
        fail(BadInput(f"{file_named}{error.strerror or error}"), BAD_INPUT, as_json)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def fail(error: Exception, code: int, as_json: bool) -> NoReturn:
    """Report an error (as JSON for scripts) on standard error, and exit."""
    if as_json:
        from structgen.generation.batch_files.job import error_fields

        print_json({"error": error_fields(error)}, sys.stderr)
    else:
        err.print(f"[bold red]{type(error).__name__}[/]:", end=" ")
        err.print(str(error), markup=False, soft_wrap=True)
        if isinstance(error, IncompleteOutputError) and error.partial:
            err.print(f"The text so far: {error.partial}", markup=False, soft_wrap=True)
    raise typer.Exit(code)


def write_any_text() -> None:
    """Have standard output and error show as escapes what their encoding lacks (ASCII terminals)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class JsonErrors(TyperGroup):
    """Commands whose usage errors (an unknown option, a missing argument) are JSON too where ``--json`` was given."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """See click."""
        json_errors = standalone_mode and "--json" in (sys.argv[1:] if args is None else args)
        try:
            code = super().main(
                args, prog_name, complete_var, standalone_mode and not json_errors, windows_expand_args, **extra
            )
            return sys.exit(code) if json_errors else code
        except Exception as error:
            if not (json_errors and hasattr(error, "format_message")):  # click's, of which typer may have a copy
                raise
            print_json({"error": {"type": type(error).__name__, "message": error.format_message()}}, sys.stderr)
            sys.exit(BAD_INPUT)


def print_json(value: Any, stream: TextIO | None = None) -> None:
    """One JSON document on standard output (or another stream), a single line: in UTF-8, or in ASCII where that cannot
    be written."""
    stream = stream or sys.stdout
    is_unicode = codecs.lookup(stream.encoding or "ascii").name.startswith("utf")
    stream.write(json.dumps(value, ensure_ascii=not is_unicode, default=str) + "\n")
    stream.flush()


MAX_FILE = 1 << 28
"""Bytes of a file that is read whole: what is longer, or has no end, is none that a command is about."""


def read_bytes(path: str, most: int = MAX_FILE) -> bytes:
    """What a file holds, or standard input for ``-``.

    Raises:
        BadInput: it cannot be read, or holds more than ``most`` bytes.
    """
    try:
        if path == "-":
            data = sys.stdin.buffer.read(most + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(most + 1)
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {error.strerror or error}") from error
    if len(data) > most:
        raise BadInput(f"{path} holds more than {most:,} bytes, which are not read whole.")
    return data


def read_text(path: str) -> str:
    """The UTF-8 text of a file, or of standard input for ``-``.

    Raises:
        BadInput: it cannot be read, is too long, or is not UTF-8 (the byte offset is named).
    """
    data = read_bytes(path)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path} is not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start} ({error.reason}). "
            "Convert the file, for example with: iconv -t UTF-8"
        ) from error


@lru_cache(maxsize=1)
def byte_vocabulary() -> Vocabulary:
    """All 256 bytes and an end of sequence: enough to judge schemas and texts without a model, with the names of
    special tokens as text."""
    from structgen.core.vocabulary.vocabulary import TextVocabulary

    return TextVocabulary()


def summary(result: GenerationResult) -> str:
    """One line on how an output came about."""
    stats = result.stats
    rate = stats.output_tokens / stats.seconds if stats.seconds else 0.0
    parts = [
        f"{stats.output_tokens} tokens in {stats.seconds:.1f} s ({rate:.0f}/s)",
        f"{stats.target_forwards} model calls",
        f"{stats.forced_tokens} forced",
        *([f"{sum(stats.accepted.values())} of {sum(stats.drafted.values())} drafts right"] if stats.drafted else []),
        f"masks {1e3 * stats.mask_seconds / max(1, stats.output_tokens):.2f} ms a token",
        f"finished: {result.finish_reason}",
    ]
    return ", ".join(parts)


def result_dict(result: GenerationResult) -> dict[str, Any]:
    """A result as JSON values."""
    return {
        "value": result.value,
        "text": result.text,
        "finish_reason": result.finish_reason,
        "logprob": result.logprob,
        "stats": dataclasses.asdict(result.stats),
        **({} if result.healed is None else {"healed": result.healed.as_fields()}),
    }
