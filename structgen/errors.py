"""Every error that structgen raises, one tree.

    StructgenError
    ├── ConstraintError                 something is wrong with the constraint
    │   ├── SchemaError                 not a legal JSON Schema
    │   │   ├── UnresolvableReferenceError  a ``$ref`` leads nowhere, or only to itself
    │   │   ├── UnknownKeywordError     a word that no draft has, where the options refuse such
    │   │   ├── UnsupportedSchemaError  legal, but not covered (keyword named)
    │   │   ├── UnsatisfiableSchemaError  no JSON value satisfies it
    │   │   └── SchemaTooComplexError   a compile budget was exceeded (named if it is an option)
    │   ├── GrammarError                not a legal or supported grammar (line and column named)
    │   │   ├── EmptyLanguageError      no text is in the language
    │   │   └── GrammarTooComplexError  a compile budget was exceeded (budget named)
    │   ├── PatternError                not a legal or supported regular expression
    │   │   ├── UnsupportedPatternError legal, but not regular (backreferences)
    │   │   └── PatternTooComplexError  a compile budget was exceeded (budget named)
    │   ├── TooComplexError             the same of an automaton, before it is known what asked for it
    │   ├── UndecidedError              a question about constraints that a budget, or a keyword, has left open
    │   └── SpecificationError          data that should say a constraint says none (its place named)
    ├── OptionsError                    an option has a value that it cannot have (option named)
    ├── InputFileError                  a file of rows is not what it should be (line named)
    ├── TokenizerError                  a tokenizer or vocabulary that cannot be read
    ├── BitmaskError                    a token bitmask of the wrong dtype, shape or width
    ├── TokenError                      a token id out of range
    ├── MatcherStateError               a call that the matcher's state does not allow
    │   └── CompletionTooLongError      the constraint asks for more characters or items than are written
    ├── InternalError                   what was compiled failed its own check: a bug, to be reported
    ├── KernelError                     kernels are not compiled for this platform, and numba is not installed
    ├── ToolCallError                   a call's arguments are refused, or the function raised (tool named)
    ├── ModelError                      a language model that cannot be loaded or used
    ├── RemoteServerError               a remote server refuses a request, or is not there (``attempts`` before that)
    ├── IntegrationError                another library's interface, or setting, is not one that structgen fits
    └── GenerationError                 generation did not give a whole value
        ├── CapturesTooComplexError     the captures of a text would exceed a budget (budget named)
        ├── CancelledError              the request was withdrawn before its output was whole
        ├── RemoteOutputError           no answer of a remote server conforms (``attempts`` says what came)
        ├── QueueError                  no room for the request: the queue is full, or it has waited too long
        ├── RefusedTextError            a schema refuses a text (``reasons`` are its keywords)
        ├── RefusedValueError       the type's own validators refuse the value (``text``, ``value``)
        ├── IncompleteOutputError       the budget ran out first (``partial`` holds the text)
        └── UnsatisfiableTargetError    no text of the constraint can be written (tokens, filters or ``max_tokens``)

Messages say what was found, where, what was expected and what to do.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any


class StructgenError(Exception):
    """Base of all errors raised by structgen. They pickle with all that they carry, so that workers can raise them.

    Attributes:
        row: of a batch, which one failed, from 0; None: there is no batch.
        results: where one was raised for a batch, what all rows gave: a result, or an error.
        text: what was written, where an output is the matter: all of it, or as far as it goes.
        value: what was found, where a value is the matter: of an option, or that which validators refuse.
        pointer: where in a schema, as an RFC 6901 JSON Pointer, where a schema is the matter.
    """

    row: int | None = None
    results: Sequence[Any] = ()
    text: str | None = None
    value: Any = None
    pointer: str | None = None

    @property
    def cause(self) -> BaseException | None:
        """What this was raised from: the error of a validator, a file, another library; None: nothing."""
        return self.__cause__

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.row is None else f"row {self.row}: {text}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, _portable(self.__cause__)), self.__dict__


def _again(kind: type[StructgenError], args: tuple[Any, ...], cause: BaseException | None = None) -> StructgenError:
    """An error as it was, without making its message anew."""
    error = kind.__new__(kind)
    error.args = args
    error.__cause__ = cause
    return error


def _portable(cause: BaseException | None) -> BaseException | None:
    """A cause that can be pickled; in place of one that cannot (users' errors may hold anything) what it says."""
    try:
        pickle.loads(pickle.dumps(cause))
    except Exception:  # whatever their own methods raise
        return RuntimeError(f"{type(cause).__name__}: {cause}")
    return cause


class ConstraintError(StructgenError):
    """The constraint (schema, pattern, grammar, choice) cannot be used."""


class UndecidedError(ConstraintError):
    """A question about constraints was not decided; the message names the budget or keyword that left it open."""


Place = Sequence["str | int"]
"""Where in JSON data: keys and indices from its root."""


def dotted(path: Place) -> str:
    """``messages[0].content`` of ``("messages", 0, "content")``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def pointer_to(path: Place) -> str:
    """The JSON Pointer (RFC 6901) of a place."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


class SpecificationError(ConstraintError):
    """Data that should say a constraint (a field of a request, a cell of a file) says none.

    ``place`` is where in the data, ``pointer`` the same as an RFC 6901 JSON Pointer, ``code`` the kind of error as
    OpenAI's API names kinds.
    """

    pointer: str

    def __init__(self, message: str, path: Place = (), code: str = "invalid_value") -> None:
        self.place, self.pointer, self.code = tuple(path), pointer_to(path), code
        super().__init__(message)


class SchemaError(ConstraintError):
    """The schema is not a legal JSON Schema.

    ``pointer`` is the RFC 6901 JSON Pointer of the offending place in the schema document (with the document's URI
    in front if it is not the root document), ``keyword`` the keyword, ``hint`` what to do.
    """

    pointer: str

    def __init__(self, message: str, *, pointer: str = "", keyword: str | None = None, hint: str | None = None) -> None:
        self.message = message
        self.pointer = pointer
        self.keyword = keyword
        self.hint = hint
        super().__init__(self._text())

    def move_below(self, prefix: str) -> None:
        """Say that the schema document stands at the JSON Pointer ``prefix`` of a larger one."""
        if not self.pointer or self.pointer.startswith("/"):  # else in another document
            self.pointer = prefix + self.pointer
            self.args = (self._text(),)

    def name_owner(self, owner: str) -> None:
        """Say whose schema it is."""
        self.message = f"{owner}: {self.message}"
        self.args = (self._text(),)

    def _text(self) -> str:
        text = f"{self.message} ({_schema_place(self.pointer, self.keyword)})"
        return f"{text}. {self.hint}" if self.hint else text


def _schema_place(pointer: str, keyword: str | None) -> str:
    return f"at {pointer or 'the root'}" + (f", keyword {keyword!r}" if keyword is not None else "")


class UnresolvableReferenceError(SchemaError):
    """A reference leads nowhere, or in place only back to itself."""


class UnsupportedSchemaError(SchemaError):
    """A legal schema uses what structgen does not enforce (yet)."""


class UnknownKeywordError(SchemaError):
    """A schema has a word that is no keyword of any draft, and ``JsonOptions(unknown_keywords="refuse")`` was given."""


class UnsatisfiableSchemaError(SchemaError):
    """No JSON value satisfies the schema."""


class SchemaTooComplexError(SchemaError):
    """Compiling the schema would exceed a budget, whose value is ``limit``.

    ``budget`` is the field of ``JsonOptions`` that raises it; None: it is fixed.
    """

    def __init__(
        self,
        message: str,
        *,
        limit: int,
        budget: str | None = None,
        pointer: str = "",
        keyword: str | None = None,
    ) -> None:
        self.budget = budget
        self.limit = limit
        hint = "Simplify the schema: this limit is fixed."
        if budget is not None:
            hint = f"Raise the budget {budget} (now {limit}) or simplify."
        super().__init__(message, pointer=pointer, keyword=keyword, hint=hint)


class TooComplexError(ConstraintError):
    """Building something would exceed a budget whose value is ``limit``; ``budget`` says what is counted.

    Automata raise it. What knows the place, and the option if one raises the budget, raises the error of a schema,
    grammar or expression in its stead.
    """

    def __init__(self, message: str, *, limit: int, budget: str | None = None) -> None:
        self.message = message
        self.budget = budget
        self.limit = limit
        super().__init__(message)


class PatternError(ConstraintError):
    """A regular expression is not legal, or uses what is not supported.

    ``pattern`` is the whole expression and ``position`` the offset (code points) of the offending place. If it stands
    in a schema, ``pointer`` is the JSON Pointer of the keyword and ``keyword`` its name; else they are None.
    """

    keyword: str | None = None

    def __init__(self, message: str, *, pattern: str, position: int = 0) -> None:
        self.message = message
        self.pattern = pattern
        self.position = position
        start = max(0, position - 40)
        excerpt = pattern[start : position + 40]
        super().__init__(f"{message} at offset {position}\n  {excerpt}\n  {' ' * (position - start)}^")

    def place_in_schema(self, pointer: str, keyword: str | None, hint: str | None = None) -> None:
        """Say where in a schema the expression stands, and what to do."""
        self.pointer, self.keyword = pointer, keyword
        self.args = (f"{_schema_place(pointer, keyword)}: {self}" + (f"\n{hint}" if hint else ""),)


class UnsupportedPatternError(PatternError):
    """A legal regular expression uses what is not regular, or not supported (backreferences, atomic groups)."""


class PatternTooComplexError(PatternError):
    """Compiling the expression would exceed a budget; ``budget`` names it and ``limit`` is its value."""

    def __init__(self, message: str, *, budget: str, limit: int, pattern: str, position: int = 0) -> None:
        self.budget = budget
        self.limit = limit
        super().__init__(f"{message} (budget {budget}: {limit})", pattern=pattern, position=position)


class GrammarError(ConstraintError):
    """A grammar is not legal, or uses what is not supported.

    ``line`` and ``column`` (1-based; 0: nowhere) are of the offending place in the grammar's text ``source``, shown
    with a caret; ``hint`` says what to do.
    """

    def __init__(
        self, message: str, *, line: int = 0, column: int = 0, source: str | None = None, hint: str | None = None
    ) -> None:
        lines = source.removesuffix("\n").split("\n") if source else []  # as readers count: by line feeds alone
        if lines and line > len(lines):  # after a last line feed there is nothing to show
            line, column = len(lines), len(lines[-1]) + 1
        self.message = message
        self.line = line
        self.column = column
        self.source = source
        self.hint = hint
        text = f"{message} (line {line}, column {column})" if line else message
        if 0 < line <= len(lines):
            start = max(0, column - 60)
            text += f"\n  {lines[line - 1][start : start + 100]}\n  {' ' * (max(column, 1) - 1 - start)}^"
        super().__init__(f"{text}\n{hint}" if hint else text)


class EmptyLanguageError(GrammarError):
    """No text is in the language of the grammar."""


class GrammarTooComplexError(GrammarError):
    """Compiling the grammar would exceed a budget; ``budget`` names it and ``limit`` is its value."""

    def __init__(
        self,
        message: str,
        *,
        budget: str,
        limit: int,
        line: int = 0,
        column: int = 0,
        source: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.budget = budget
        self.limit = limit
        message = f"{message} (budget {budget}: {limit})"
        super().__init__(message, line=line, column=column, source=source, hint=hint or "Simplify the grammar.")


class GrammarWarning(UserWarning):
    """Something in a grammar has no effect, such as a rule that is never used, or was left out, such as what a
    vocabulary cannot spell byte by byte."""


class OptionsError(StructgenError, ValueError):
    """An option has a value that it cannot have; the message names the option.

    ``option`` is its name and ``value`` what was given, where it is one option that is wrong.
    """

    def __init__(self, message: str, *, option: str | None = None, value: Any = None) -> None:
        self.option = option
        self.value = value
        super().__init__(message)


class InputFileError(StructgenError):
    """A file of rows cannot be read, or a line of it is not what it should be; ``line`` counts from 1 (0: none).

    ``text`` is the line.
    """

    def __init__(self, message: str, *, line: int = 0, text: str | None = None) -> None:
        self.line = line
        self.text = text
        super().__init__(message)


class TokenizerError(StructgenError):
    """A tokenizer or vocabulary cannot be read; the message says why."""


class BitmaskError(StructgenError):
    """A token bitmask has the wrong dtype, shape, width or memory layout."""


class TokenError(StructgenError):
    """A token id lies outside the vocabulary; ``value`` is the id."""

    @classmethod
    def out_of_range(cls, token_id: int, vocab_size: int) -> TokenError:
        """The error for a token id of a vocabulary of so many tokens."""
        error = cls(f"token id {token_id} is out of range; the vocabulary has ids 0 to {vocab_size - 1}")
        error.value = token_id
        return error


class MatcherStateError(StructgenError):
    """The matcher's state does not allow this call (a rollback past the start, say)."""

    @classmethod
    def past_the_start(cls, steps: int, accepted: int) -> MatcherStateError:
        """The error for a rollback of ``steps`` after ``accepted`` steps."""
        return cls(f"cannot roll back {steps} steps; {accepted} were accepted")

    @classmethod
    def in_use(cls) -> MatcherStateError:
        """The error for a call beside another thread's."""
        return cls(
            "another thread is in a call of this matcher, which is for one thread at a time: give each thread a "
            "matcher of its own (grammar.matcher(), or matcher.fork() before the threads begin), or use a lock"
        )


class CompletionTooLongError(MatcherStateError):
    """Every text that completes the output from here has more characters, items or members than are ever written."""

    @classmethod
    def whole(cls) -> CompletionTooLongError:
        """All that is missing, put together."""
        return cls("every text that completes the output is too long to be written to the end")


class InternalError(StructgenError):
    """What was compiled failed its own check and is not handed out. The fault is structgen's."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message}. This is a bug of structgen: please report it with the constraint and options.")


class KernelError(StructgenError):
    """The kernels are not compiled for this platform or setting, and numba, which compiles them, is not installed."""


class ModelError(StructgenError):
    """A language model cannot be loaded or used."""


class RemoteServerError(StructgenError):
    """A remote server refuses a request, or cannot be reached; ``attempts`` are those before that, and it."""

    def __init__(self, message: str, *, attempts: tuple[Any, ...] = ()) -> None:
        self.attempts = attempts
        super().__init__(message)


class IntegrationError(StructgenError):
    """Another library has an interface, or was given a setting, that structgen does not fit; the message says which."""


class ToolCallError(StructgenError):
    """A tool could not be called as the model asked; ``name`` is the tool, ``value`` the arguments.

    Its arguments are refused by the function's types, the function raised (its error is the ``cause``), or there were
    more calls than allowed.
    """

    def __init__(self, message: str, *, name: str, value: Any = None) -> None:
        self.name = name
        self.value = value
        super().__init__(message)


class GenerationError(StructgenError):
    """Generation did not give a whole value; ``text`` is what was written, None if nothing was begun."""

    def __init__(self, message: str, *, text: str | None = None) -> None:
        self.text = text
        super().__init__(message)

    @property
    def reasons(self) -> Sequence[Any]:
        """The keyword occurrences of the schema that refuse the text (see `structgen.reasons`); none: not known."""
        return ()


class CancelledError(GenerationError):
    """The request was withdrawn before its output was whole."""


class MaskTimeoutError(GenerationError):
    """What the constraint allows next was not found in time."""


class QueueError(GenerationError):
    """There is no room for the request: too many wait, or it has waited for too long."""


class IncompleteOutputError(GenerationError):
    """The token budget ran out before the output could be closed, or a stop string came (``option`` is what to change:
    "max_new_tokens" or "stop"); ``partial`` (and ``text``) is the text so far."""

    def __init__(self, message: str, *, partial: str, option: str = "max_new_tokens") -> None:
        self.partial, self.option = partial, option
        super().__init__(message, text=partial)


class RemoteOutputError(GenerationError):
    """No answer of a remote server conforms.

    ``attempts`` are those of `structgen.integrations.remote`, in order; ``partial`` (and ``text``) is the part of the
    last that fits.
    """

    def __init__(self, message: str, *, attempts: tuple[Any, ...], partial: str) -> None:
        self.attempts = attempts
        self.partial = partial
        super().__init__(message, text=partial)

    @property
    def reasons(self) -> Sequence[Any]:
        """Those of the last answer, worked out when asked for."""
        return self.attempts[-1].reasons if self.attempts else ()


class RefusedTextError(GenerationError):
    """A schema refuses a text; ``reasons`` are the keyword occurrences without which it would not."""

    reasons: Sequence[Any] = ()

    def __init__(self, message: str, *, text: str, reasons: Sequence[Any]) -> None:
        self.reasons = tuple(reasons)
        super().__init__(message, text=text)


class UnsatisfiableTargetError(GenerationError):
    """The model's tokens, the filters and ``max_tokens`` leave no text of the constraint."""


class RefusedValueError(GenerationError):
    """An output satisfies the schema, but the type's own validators refuse it; what they raised is the ``cause``.

    ``text`` is the output and ``value`` its plain JSON value.
    """

    def __init__(self, message: str, *, text: str, value: Any) -> None:
        self.value = value
        super().__init__(message, text=text)


class CapturesTooComplexError(GenerationError):
    """Finding the captures of a text would exceed a budget; ``budget`` names it and ``limit`` is its value."""

    def __init__(self, message: str, *, budget: str, limit: int) -> None:
        self.budget = budget
        self.limit = limit
        super().__init__(f"{message} would exceed a budget ({budget}: {limit:,}). Find those of shorter texts.")
