"""Shapes that several dialects share: calls as JSON, arguments in tags, arrays of calls."""

from __future__ import annotations

from dataclasses import replace

from structgen.core.tool_calls.patterns import (
    ARGUMENTS,
    JSON_NAME,
    KEY,
    NAME,
    SPACE,
    VALUE,
    CallId,
    Gap,
    Marker,
    Parameters,
    Pattern,
    Piece,
    ToolFormat,
)

LINE = Gap("\\n?", "\n")
NO_LINE = Gap("\\n?", "")
COMMA: Pattern = (",", SPACE)
BETWEEN: Pattern = (Gap("\\n{0,2}", "\n"),)  # calls that stand alone, without other text
_BLANK = r"[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"  # to Python's str.strip
STRIPPED = rf"{_BLANK}[\s\S]*|[\s\S]*{_BLANK}"
"""Strings that a reader takes for others that strips blanks."""
STRIPPED_OR_NULL = STRIPPED + "|[nN][uU][lL][lL]"
"""The same of a reader that takes null in any case besides."""
NINE_CHARACTERS = CallId("[a-zA-Z0-9]{9}")


def json_call(arguments: str = "arguments", name: str = "name", before: Pattern = (), after: Pattern = ()) -> Pattern:
    """A call as a JSON object."""
    return (
        *("{", *before, f'"{name}":', SPACE, JSON_NAME, *COMMA),
        *(f'"{arguments}":', SPACE, ARGUMENTS, *after, "}"),
    )


def tags(opening: tuple[str, str], closing: str, after: str = "") -> Parameters:
    """Parameters in tags, the key between the strings ``opening``."""
    pattern = (opening[0], KEY, opening[1], VALUE, closing, *((after,) if after else ()))
    return Parameters(pattern, pattern, closing.strip("\n"))


def step3(name: str, models: str, excluded: tuple[str, ...] = ()) -> ToolFormat:
    """Step3's tags. Its readers strip blanks of values, and some have no value with texts that are ``excluded``."""
    parameters = tags(('<steptml:parameter name="', '">'), "</steptml:parameter>")
    call: Pattern = (
        *(Marker("<｜tool_call_begin｜>"), "function", Marker("<｜tool_sep｜>"), '<steptml:invoke name="', NAME, '">'),
        *(replace(parameters, misread=STRIPPED, excluded=excluded), "</steptml:invoke>", Marker("<｜tool_call_end｜>")),
    )
    begin, end = (Marker("<｜tool_calls_begin｜>"),), (Marker("<｜tool_calls_end｜>"),)
    return ToolFormat(name, models, (call,), begin=begin, end=end, separator=(NO_LINE,))


def keys_and_values(line: str | Gap = "", prefix: str = "") -> Parameters:
    """GLM's parameters, whose tags are special tokens."""
    key, value = f"{prefix}arg_key>", f"{prefix}arg_value>"
    pieces: Pattern = (
        *(Marker(f"<{key}"), KEY, Marker(f"</{key}"), line),
        *(Marker(f"<{value}"), VALUE, Marker(f"</{value}"), line),
    )
    pattern = tuple(piece for piece in pieces if piece)
    return Parameters(pattern, pattern, f"</{value}")


def _typed(mark: Marker, is_string: str, blank: str) -> Pattern:
    return (
        *("<", mark, f'{blank}parameter name="', KEY, f'" string="{is_string}">'),
        *(VALUE, "</", mark, f"{blank}parameter>", "\n"),
    )


def typed_tags(name: str, models: str, block: str, blank: str = "", mark: str = "｜DSML｜") -> ToolFormat:
    """DeepSeek's tags, whose first part is one special token."""
    one = Marker(mark)
    call: Pattern = (
        *("<", one, f'{blank}invoke name="', NAME, '">\n', NO_LINE),
        Parameters(_typed(one, "true", blank), _typed(one, "false", blank), "parameter>"),
        *("</", one, f"{blank}invoke>\n"),
    )
    return ToolFormat(
        name, models, (call,), begin=("<", one, f"{blank}{block}>\n"), end=("</", one, f"{blank}{block}>")
    )


def lone(
    name: str, models: str, before: tuple[Piece, ...], after: tuple[Piece, ...], separator: Pattern = BETWEEN
) -> ToolFormat:
    """Calls as JSON objects that stand alone, between marks."""
    return ToolFormat(name, models, ((*before, *json_call(), *after),), separator=separator)


def internlm(name: str, models: str, *blank: str) -> ToolFormat:
    """InternLM's calls, with or without a blank between the marks."""
    begun: Pattern = (Marker("<|action_start|>"), *blank, Marker("<|plugin|>"), LINE)
    ends = Marker("<|action_end|>")
    calls = tuple((*begun, *json_call(word), ends) for word in ("parameters", "arguments"))
    return ToolFormat(name, models, calls, separator=BETWEEN)


def array(
    name: str,
    models: str,
    begin: str | Marker,
    end: Marker | None = None,
    call: Pattern | None = None,
    gap: Gap | None = None,
) -> ToolFormat:
    """Calls as a JSON array after ``begin``. Without ``end`` nothing can follow the calls."""
    return ToolFormat(
        name,
        models,
        (json_call() if call is None else call,),
        begin=(begin + "[",) if isinstance(begin, str) else (begin, *((gap,) if gap else ()), "["),
        end=("]",) if end is None else ("]", end),
        separator=COMMA,
        text_after=end is not None,
    )
