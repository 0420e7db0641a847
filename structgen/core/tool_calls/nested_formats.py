"""How arguments are written where they are no JSON: as in Python, and as Gemma, Cohere and MiniMax M3 have them."""

from __future__ import annotations

from keyword import kwlist

from structgen.core.tool_calls.patterns import (
    KEY,
    SPACE,
    SPELLED_KEY,
    VALUE,
    Forms,
    Marker,
    NestedArguments,
    Pattern,
    Piece,
    Quotes,
    ValueSpelling,
)

_SPACES = "\\x00-\\x20\\x7f-\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
_BARE = f"[^{_SPACES}:,{{}}\\x5b\\x5d<>\"'()|]+"
IDENTIFIER = "[A-Za-z_][A-Za-z0-9_]*"


def _bracketed(*before: Piece) -> Forms:
    """Values after ``before``, objects in braces and arrays in brackets."""
    return Forms((*before, VALUE), (*before, VALUE), (*before, "{", VALUE, "}"), (*before, "[", VALUE, "]"))


def _python(null: str, true: str, false: str) -> NestedArguments:
    return NestedArguments(
        argument=_bracketed(KEY, "="),
        member=_bracketed(SPELLED_KEY, ":", SPACE),
        item=_bracketed(),
        spelled=ValueSpelling((Quotes('"', escaped=True), Quotes("'", escaped=True)), null, true, false),
        names=IDENTIFIER,
        separator=(",", SPACE),
        reserved=frozenset(kwlist),
    )


PYTHON = _python("None", "True", "False")
"""``a="x", b=None, c={"k": [1]}``"""
PYTHON_WITH_JSON = _python("null", "true", "false")
"""The same with the constants of JSON, as Olmo 3 writes them."""


def gemma(mark: str) -> NestedArguments:
    """``a:<|"|>x<|"|>,b:{k:[1]}``: names as they are, and strings as they are between marks."""
    return NestedArguments(
        argument=_bracketed(KEY, ":"),
        member=_bracketed(KEY, ":"),
        item=_bracketed(),
        spelled=ValueSpelling((Quotes(Marker(mark)),)),
        names=f"{_BARE}(?:[ ]{_BARE})*",
        separator=(",",),
    )


def _cofl(*name: Piece) -> Forms:
    def tag(kind: str) -> Pattern:
        return "<cofl:value", *name, f' type="{kind}">', VALUE, "</cofl:value>"

    return Forms(tag("raw"), tag("json"), tag("dict"), tag("list"))


COFL = NestedArguments(
    argument=_cofl(' name="', KEY, '"'),
    member=_cofl(' name="', KEY, '"'),
    item=_cofl(),
    spelled=ValueSpelling(),
    names='[^\\x00\\n"&<>]+',
    closing="</cofl:value>",
)
"""Tags that say what their values are."""
NAMESPACE = "]<]minimax[>["


def _element(name: Piece) -> Forms:
    pattern: Pattern = (NAMESPACE, "<", name, ">", VALUE, NAMESPACE, "</", name, ">")
    return Forms(pattern, pattern, pattern, pattern)


MINIMAX_M3 = NestedArguments(
    argument=_element(KEY),
    member=_element(KEY),
    item=_element("item"),
    spelled=ValueSpelling(),
    names="[^ \\t\\r\\n<>/\\x5b\\x5d][^\\n<>\\x5b\\x5d]*",
    closing=NAMESPACE,
)
"""Elements whose values are told by the schema."""
