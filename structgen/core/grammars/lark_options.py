"""What users of Lark write in its words, and how the same is said here: options of its constructor, indentation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from structgen.errors import OptionsError
from structgen.options import refuse_name

INDENTATION = (
    'Indentation is for lexer="contextual", of a grammar that declares its two terminals and has a newline _NL or '
    "_NEWLINE:\n"
    '  lark(text, lexer="contextual"), and in the text\n'
    "  block: _NL _INDENT statement+ _DEDENT\n"
    "  _NL: /(\\r?\\n[\\t ]*)+/\n"
    "  %declare _INDENT _DEDENT"
)
"""How a grammar of indented blocks is written, as docs/grammars.md says."""
CALLBACKS = "Terminals of a callback cannot be enforced; give it a pattern."
_PARSERS = 'lexer="contextual" takes what parser="lalr" takes; lexer="dynamic", the default, what parser="earley" does'
_TREES = "it is about Lark's trees, and an output is text: leave it, and parse the output with Lark"
_OWN = "leave it: what it changes in Lark does not change which texts there are"
_HINTS = {
    "parser": _PARSERS,
    "postlex": INDENTATION,
    "indenter": INDENTATION,
    "g_regex_flags": "write flags in the terminals: /[a-z]+/i",
    "regex": "terminals are read as by Python's module re",
    "import_paths": "give the grammar as a file (pathlib.Path): it imports what lies beside it",
    "source_path": "give the grammar as a file (pathlib.Path): it imports what lies beside it",
    **dict.fromkeys(
        ("ambiguity", "maybe_placeholders", "keep_all_tokens", "propagate_positions", "transformer", "tree_class"),
        _TREES,
    ),
    **dict.fromkeys(("strict", "debug", "cache", "cache_grammar", "ordered_sets", "priority", "use_bytes"), _OWN),
    **dict.fromkeys(("edit_terminals", "lexer_callbacks"), "write the terminals as they are to be"),
}
_LEXERS = {
    "dynamic_complete": 'lexer="dynamic" is it',
    "basic": _PARSERS,
    "standard": _PARSERS,
    "auto": _PARSERS,
    "lalr": _PARSERS,
    "earley": _PARSERS,
}
_BLOCKS = re.compile(r"\b_?(?:IN|DE)DENT\b")


def refuse_lark_options(given: Mapping[str, Any], names: tuple[str, ...]) -> NoReturn:
    """Refuse options that the function does not have, with what says the same where Lark has them.

    Raises:
        OptionsError: always.
    """
    name = next(iter(given))
    refuse_name(name, names, _HINTS)


def refuse_lexer(lexer: Any) -> NoReturn:
    """Refuse what is no lexer, with the one that is meant.

    Raises:
        OptionsError: always.
    """
    hint = _LEXERS.get(lexer) if isinstance(lexer, str) else None
    if hint is None and "indent" in f"{lexer!r} {type(lexer).__mro__ if not isinstance(lexer, str) else ''}".lower():
        hint = INDENTATION
    raise OptionsError(
        f"lexer must be 'dynamic' or 'contextual', not {lexer!r:.100}" + (f"; {hint}" if hint else ""),
        option="lexer",
        value=lexer,
    )


def about_indentation(message: str) -> str | None:
    """The hint for an error of a grammar that is about the terminals of indentation; None: it is not."""
    return INDENTATION if _BLOCKS.search(message) else None
