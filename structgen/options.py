"""How constraints are read and how their text may be spelled: frozen, hashable values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from numbers import Integral
from typing import Any, Literal, NoReturn

from structgen.errors import OptionsError

DEFAULT_MAX_NEW_TOKENS = 512
"""The budget of outputs for which none is given."""

NEAR = 0.75  # likeness of names (difflib's ratio) from which on one may be a slip for the other
MIN_BEGINNING = 4  # letters of a name that may stand for a longer one
MOST_SHOWN = 40  # names that are listed where none is near
DIALECTS = ("draft3", "draft4", "draft6", "draft7", "draft2019-09", "draft2020-12")
Dialect = Literal["draft3", "draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"]


@dataclass(frozen=True, slots=True)
class JsonOptions:
    """Choices that JSON Schema leaves open. The default is what suits generation; ``exact()`` is the whole language.

    Attributes:
        dialect: used where a schema has no ``$schema``.
        key_order: "declared": members in the order of ``properties``, undeclared ones last; "any": any order.
        whitespace: "single": at most one space after ``,`` and ``:``; "compact": none; "any": whatever JSON allows,
            runs of at most ``max_whitespace_run`` bytes; an integer n: newline and n spaces a level, as
            ``json.dumps(indent=n)`` writes.
        max_whitespace_run: longest run of whitespace bytes in mode "any"; None is no limit.
        string_escapes: "minimal": only what must be escaped (``\\"``, ``\\\\`` and control characters, each in any of
            its legal spellings); "any": every legal spelling of every character.
        number_spellings: "plain": no exponent and no redundant fraction (no fraction that ends in a zero, so a whole
            number has none); "any": every legal spelling.
        additional_members: "schema": members that a schema does not declare are allowed as the specification has it;
            "closed": a schema that declares members is read as if ``unevaluatedProperties: false`` stood beside them
            (members that it requires count as declared); the report names each such place.
        assert_formats: whether the standard formats are enforced (else annotations, as the specification's default).
        unsupported: "error" raises on what is not covered; "ignore" skips it and lists it on the report.
        unknown_keywords: words that no draft has, which the specification allows and nobody enforces; "report": those
            that are one slip from a keyword (``minLenght``) are on the report and in the log; "refuse": all are
            refused, but for extensions (``x-...``) and the annotations of OpenAPI.
        max_string_length: longest string value in code points where the schema sets no smaller limit, enumerated values
            included, keys not; None: no limit.
        max_number_length: longest number in bytes; None: no limit; "auto": no limit, but plain numbers of which the
            schema allows endlessly many, so that a model could write digits without end, have at most ``OPEN_DIGITS``
            before the point and as many after it, beyond those of the limits and steps that the schema sets.
        max_items: most items of a list for which the schema sets no limit; a list that must be longer is as long as it
            must be. None (default): no limit.
        distinct_items: lists of which no two items may be equal: "schema" (default): those of which the schema says so;
            "strings": those of strings and nothing else, too; "all": all. A list that must have more items than there
            are different values, or of which this is not known, is left as it is, and so are tuples.
        max_alternatives: budget: alternatives of one value node after expansion to disjunctive normal form.
        max_automaton_states: budget: states of one string automaton.
        max_steps: budget: steps of compiling one schema, of about a microsecond each.
        max_goals: budget: value nodes (distinct compiled values) of one schema.

    Raises:
        OptionsError: a field has a value that it cannot have.
    """

    dialect: Dialect = "draft2020-12"
    key_order: Literal["declared", "any"] = "declared"
    whitespace: Literal["single", "compact", "any"] | int = "single"
    max_whitespace_run: int | None = 16
    string_escapes: Literal["minimal", "any"] = "minimal"
    number_spellings: Literal["plain", "any"] = "plain"
    additional_members: Literal["schema", "closed"] = "schema"
    assert_formats: bool = True
    unsupported: Literal["error", "ignore"] = "error"
    unknown_keywords: Literal["report", "refuse"] = "report"
    max_string_length: int | None = None
    max_number_length: int | Literal["auto"] | None = "auto"
    max_items: int | None = None
    distinct_items: Literal["schema", "strings", "all"] = "schema"
    max_alternatives: int = 4_096
    max_automaton_states: int = 20_000
    max_goals: int = 100_000
    max_steps: int = 10_000_000

    def __new__(cls, *_: Any, **options: Any) -> JsonOptions:
        """Refuse names that are no fields."""
        for name in options:
            if name not in cls.__dataclass_fields__:
                refuse_name(name, list(cls.__dataclass_fields__))
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for name, values in _CHOICES.items():
            value = getattr(self, name)
            if not (isinstance(value, str) and value in values):
                _refuse(name, value, f"one of {', '.join(map(repr, values))}")
        indent = _is_count(self.whitespace) and 0 <= int(self.whitespace) <= MAX_INDENT
        if not indent and self.whitespace not in _WHITESPACE:
            modes = ", ".join(map(repr, _WHITESPACE))
            _refuse("whitespace", self.whitespace, f"one of {modes}, or spaces a level, 0 to {MAX_INDENT}")
        if not isinstance(self.assert_formats, bool):
            _refuse("assert_formats", self.assert_formats, "True or False")
        for name, least in _LIMITS.items():
            value = getattr(self, name)
            others = ("auto", None) if name == "max_number_length" else (None,)
            if value not in others and not (_is_count(value) and value >= least):
                auto = "'auto', " if len(others) > 1 else ""
                _refuse(name, value, f"an integer of at least {least}, {auto}or None for no limit")
        for name in _BUDGETS:
            value = getattr(self, name)
            if not (_is_count(value) and value >= 1):
                _refuse(name, value, "an integer of at least 1")

    @classmethod
    def exact(cls, **changes: object) -> JsonOptions:
        """Accept every legal spelling of every valid document: any key order, whitespace, escapes and exponents."""
        options: dict[str, object] = {
            "key_order": "any",
            "whitespace": "any",
            "max_whitespace_run": None,
            "string_escapes": "any",
            "number_spellings": "any",
            "max_number_length": None,
        }
        return cls(**{**options, **changes})  # type: ignore[arg-type]


def changed_options(options: JsonOptions, changes: Any) -> JsonOptions:
    """The options with other values of the fields that ``changes``, a mapping, names.

    Raises:
        OptionsError: no mapping, a name that is no field (with the nearest that is), or a value that cannot be.
    """
    if not isinstance(changes, Mapping):
        raise OptionsError(f"options are names and values, not {changes!r:.100}", value=changes)
    names = [field.name for field in fields(JsonOptions)]
    for name in changes:
        if name not in names:
            refuse_name(name, names)
    return replace(options, **changes)


def near_name(name: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant: some slips away, or begun alike; None: none is near."""
    plain = {_plain(one): one for one in reversed(list(names))}
    plain_name = _plain(name)
    near = get_close_matches(plain_name, list(plain), 1, NEAR)
    if not near and len(plain_name) >= MIN_BEGINNING:
        near = [one for one in plain if one.startswith(plain_name)][-1:]
    return plain[near[0]] if near else None


def near_or_known(name: Any, known_names: Iterable[str], most: int = MOST_SHOWN) -> str:
    """What to say where a name is not among those that are known: the nearest, or what there is, ``most`` of it."""
    names = list(known_names)
    near = near_name(str(name), names)
    if near:
        return f"did you mean {near!r}?"
    more = " ..." if len(names) > most else ""
    return f"there are {', '.join(names[:most])}{more}" if names else "there are none"


def _plain(name: str) -> str:
    """A name without what is often written in another way: case, and signs where there are letters."""
    return "".join(filter(str.isalnum, name)).lower() or name


def refuse_name(name: Any, names: Sequence[str], hints: Mapping[str, str] | None = None) -> NoReturn:
    """Refuse an option that does not exist, with what stands in for it, or the nearest one that does.

    Args:
        hints: what to do, by names that other libraries have.

    Raises:
        OptionsError: always.
    """
    remaining = (hints or {}).get(name) or near_or_known(name, names)
    raise OptionsError(f"there is no option {name!r}; {remaining}", option=str(name))


def checked_options(options: Any) -> JsonOptions:
    """The options given to a function, or the default for None.

    Raises:
        OptionsError: it is something else.
    """
    if options is None:
        return JsonOptions()
    if not isinstance(options, JsonOptions):
        raise OptionsError(
            f"options is {options!r:.100} ({type(options).__name__}); expected JsonOptions(...) or None",
            option="options",
            value=options,
        )
    return options


def check_count(name: str, value: Any, least: int = 1, *, optional: bool = False) -> None:
    """Refuse what is no whole number (Python's or numpy's) of at least ``least``; with ``optional``, None is taken.

    Raises:
        OptionsError: the name, what was found and what is expected.
    """
    if optional and value is None:
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        more = ", or None" if optional else ""
        raise OptionsError(
            f"{name} must be an integer of at least {least}{more}, not {value!r:.100}", option=name, value=value
        )


def as_number(value: Any) -> float:
    """What is some kind of number (of Python, numpy or torch) as a float; NaN: it is none, or no float holds it."""
    try:
        return float(value) if hasattr(value, "__float__") else math.nan
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return math.nan


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Refuse an argument that is none of these strings.

    Raises:
        OptionsError: the name, what was found and what is expected.
    """
    if not isinstance(value, str) or value not in choices:
        raise OptionsError(
            f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r:.100}", option=name, value=value
        )


OPEN_DIGITS = 40
"""Digits on each side of the point of numbers that the schema does not bound, by default: 128-bit integers have 39,
decimal128 has 34 in all, a float needs 17."""
# A deeper indentation is a mistake: each level of nesting costs that many bytes a line.
MAX_INDENT = 100
_WHITESPACE = ("single", "compact", "any")
_CHOICES: dict[str, tuple[str, ...]] = {
    "dialect": DIALECTS,
    "key_order": ("declared", "any"),
    "string_escapes": ("minimal", "any"),
    "number_spellings": ("plain", "any"),
    "additional_members": ("schema", "closed"),
    "distinct_items": ("schema", "strings", "all"),
    "unsupported": ("error", "ignore"),
    "unknown_keywords": ("report", "refuse"),
}
# Least sensible values: no whitespace and the empty string are legal, a number has at least one byte.
_LIMITS = {"max_whitespace_run": 0, "max_string_length": 0, "max_number_length": 1, "max_items": 0}
_BUDGETS = ("max_alternatives", "max_automaton_states", "max_goals", "max_steps")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refuse(name: str, value: Any, expected: str) -> NoReturn:
    raise OptionsError(f"JsonOptions.{name} is {value!r:.100}; expected {expected}", option=name, value=value)
