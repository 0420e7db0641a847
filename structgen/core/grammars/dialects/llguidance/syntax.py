"""The syntax tree of a grammar as llguidance writes it. Places are offsets in the text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from structgen.core.grammars.dialects.llguidance.parameters import Condition, Parameter
from structgen.core.grammars.dialects.llguidance.tokens import GrammarText
from structgen.core.grammars.embedded_schema import EmbeddedSchema
from structgen.core.regions import Region


class Literal(NamedTuple):
    """A text in quotes."""

    text: str
    any_case: bool
    offset: int


class CharacterRange(NamedTuple):
    """``"a".."z"``."""

    first: str
    last: str
    offset: int


class Expression(NamedTuple):
    """A regular expression between slashes, and its flags."""

    source: str
    flags: str
    offset: int


class Pieces(NamedTuple):
    """``%regex {"substring_...": ...}``: pieces that follow one another in a list."""

    chunks: tuple[str, ...]
    offset: int


class Name(NamedTuple):
    """A rule or terminal, and the parameter that a rule gets."""

    name: str
    parameter: Parameter | None
    offset: int


class Token(NamedTuple):
    """A special token as written."""

    source: str
    offset: int


class Json(NamedTuple):
    """``%json {...}``."""

    schema: EmbeddedSchema
    offset: int


class Reference(NamedTuple):
    """``@name``: another grammar."""

    name: str
    offset: int


class Nested(NamedTuple):
    """``%lark {...}``: a grammar with names of its own."""

    scope: Scope
    offset: int


class Complement(NamedTuple):
    """``~x``: the texts that are not of the body."""

    body: Tree
    offset: int


class Many(NamedTuple):
    """``low`` to ``high`` times (None: any number)."""

    body: Tree
    low: int
    high: int | None
    offset: int


class Series(NamedTuple):
    """The items one after the other."""

    items: tuple[Tree, ...]
    offset: int


class Option(NamedTuple):
    """One of several alternatives: series that all must match (``&``), and when it may be taken (``%if``)."""

    series: tuple[Series, ...]
    condition: Condition | None
    offset: int


class Choice(NamedTuple):
    """One of the options."""

    options: tuple[Option, ...]
    offset: int


Tree: TypeAlias = (
    Literal
    | CharacterRange
    | Expression
    | Pieces
    | Name
    | Token
    | Json
    | Reference
    | Nested
    | Complement
    | Many
    | Choice
)


@dataclass(frozen=True)
class Attributes:
    """What stands in brackets after a rule's name.

    Attributes:
        capture: the name under which the rule's text is captured.
        lazy: whether the text ends as soon as it can.
        ending: the terminal of ``suffix`` or ``stop``.
        is_stop: whether it is that of ``stop``.
        stop_capture: the name under which the ending's text is captured.
        max_chars: how many characters the rule's text may have, the ending not counted.
        region: how the rule's text is written.
        places: the offset of each attribute that is given.
    """

    capture: str | None = None
    lazy: bool = False
    ending: Tree | None = None
    is_stop: bool = False
    stop_capture: str | None = None
    max_chars: int | None = None
    region: Region | None = None
    places: dict[str, int] = field(default_factory=dict)

    @property
    def as_terminal(self) -> str:
        """The first attribute that makes the rule a terminal; nothing if there is none."""
        wanted = ("lazy", "suffix", "stop", "max_chars")
        return next((name for name in self.places if name in wanted), "")


@dataclass(frozen=True)
class Definition:
    """A rule or a terminal."""

    name: str
    body: Choice
    offset: int
    has_parameter: bool = False
    attributes: Attributes = field(default_factory=Attributes)


@dataclass
class Scope:
    """A grammar: what is defined in it, and what is ignored between its terminals."""

    source: GrammarText
    rules: dict[str, Definition] = field(default_factory=dict)
    terminals: dict[str, Definition] = field(default_factory=dict)
    ignored: list[Choice] = field(default_factory=list)
    ignored_once: bool = False
