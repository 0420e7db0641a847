"""Grammars as llguidance writes them: from text to syntax tree. (llguidance, docs/syntax.md.)"""

from __future__ import annotations

import json
import re
from typing import Any

from structgen.core.grammars.dialects.llguidance.attributes import read_attributes
from structgen.core.grammars.dialects.llguidance.parameters import read_condition, read_parameter
from structgen.core.grammars.dialects.llguidance.substrings import chunks_of
from structgen.core.grammars.dialects.llguidance.syntax import (
    Attributes,
    CharacterRange,
    Choice,
    Complement,
    Definition,
    Expression,
    Json,
    Literal,
    Many,
    Name,
    Nested,
    Option,
    Pieces,
    Reference,
    Scope,
    Series,
    Token,
    Tree,
)
from structgen.core.grammars.dialects.llguidance.terminals import COMMON
from structgen.core.grammars.dialects.llguidance.tokens import Cursor, GrammarText, LarkToken, tokens_of
from structgen.core.grammars.embedded_schema import EmbeddedSchema
from structgen.core.grammars.rust_regex import MAX_REPEAT
from structgen.options import JsonOptions, changed_options

KEY = "x-guidance"
_SEPARATORS = {"item_separator": ",", "key_separator": ":"}


def with_guidance(embedded: EmbeddedSchema, source: GrammarText, offset: int) -> EmbeddedSchema:
    """A schema without ``x-guidance``, and with the options that it asks for.

    Raises:
        GrammarError: an option that is not known, or that cannot be said here.
    """
    if not isinstance(embedded.schema, dict) or KEY not in embedded.schema:
        return embedded
    wanted = embedded.schema.pop(KEY)
    if not isinstance(wanted, dict):
        source.fail(offset, f"{KEY} is an object")
    changes: dict[str, Any] = {}
    for name, value in wanted.items():
        if name == "whitespace_flexible" and isinstance(value, bool):
            changes["whitespace"] = "any" if value else "compact"
        elif name == "lenient" and isinstance(value, bool):
            changes["unsupported"] = "ignore" if value else "error"
        elif value != _SEPARATORS.get(name, False):  # separators without blanks, and what is switched off
            source.fail(
                offset,
                f"{KEY} with {name}: {value!r} is not supported",
                'Say how JSON is spelled by x-structgen, as in {"x-structgen": {"whitespace": "single"}}.',
            )
    return EmbeddedSchema(embedded.schema, changed_options(embedded.options, changes))


_ENDS = ("newline", "|", "->", "&", "%if", ")", "]", "}", "end")
_REFUSED = {
    "%declare": "terminals without a pattern come from a callback, which no grammar can enforce; those of indentation "
    "are for the dialect 'lark' and lexer='contextual'",
    "%override": "llguidance has no %override; change the definition itself",
    "%extend": "llguidance has no %extend; add the option to the definition itself",
}
_OPTIONS = ("no_forcing", "allow_invalid_utf8", "skip_repetition")


def parse_grammar(source: GrammarText, options: JsonOptions) -> Scope:
    """Read a grammar.

    Raises:
        GrammarError: not legal, or not supported (line, column and a caret).
    """
    cursor = Cursor(source, tokens_of(source, options))
    scope = _Parser(cursor).scope()
    if not cursor.has("end"):
        cursor.unexpected("a rule, a terminal or a directive")
    return scope


class _Parser:
    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._fail = cursor.source.fail

    def scope(self) -> Scope:
        """Definitions and directives up to the end, or a closing brace."""
        scope, cursor = Scope(self._cursor.source), self._cursor
        while True:
            while cursor.take("newline"):
                pass
            if cursor.has("end", "}"):
                return scope
            if cursor.has("rule", "terminal", "!", "?"):
                self._define(scope, self._definition())
            else:
                self._directive(scope)
            if not cursor.has("newline", "end", "}"):
                cursor.unexpected("the end of the line")

    def _define(self, scope: Scope, definition: Definition) -> None:
        definitions = scope.terminals if definition.name.isupper() else scope.rules
        if definition.name in definitions:
            self._fail(definition.offset, f"{definition.name!r} is defined twice")
        definitions[definition.name] = definition

    def _definition(self) -> Definition:
        cursor = self._cursor
        while cursor.take("!", "?"):  # of the shape of Lark's trees, which there are none of
            pass
        name = cursor.take("rule", "terminal")
        if name is None:
            cursor.unexpected("the name of a rule or terminal")
        parametric = cursor.take("::") is not None
        if parametric:
            cursor.expect("_", "_, as in name::_")
        if cursor.has("{"):
            self._fail(
                cursor.token.offset, "templates are not supported, as in llguidance", "Write a rule for each use."
            )
        if cursor.has("."):
            self._fail(
                cursor.token.offset,
                "priorities are not supported, as in llguidance",
                "Leave them out: they say which of several parses counts, not which texts are allowed.",
            )
        attributes = Attributes()
        if cursor.has("["):
            if name.kind == "terminal":
                self._fail(cursor.token.offset, "terminals have no attributes", "Give them to a rule (in lower case).")
            attributes = read_attributes(cursor, name.text, self._value)
        if parametric and (name.kind == "terminal" or attributes.as_terminal):
            self._fail(
                name.offset, f"{name.text!r} has a parameter, so it must be a rule without {attributes.as_terminal}"
            )
        cursor.expect(":", "a colon")
        body = self._choice()
        return Definition(name.text, body, name.offset, parametric, attributes)

    def _directive(self, scope: Scope) -> None:
        cursor = self._cursor
        keyword = cursor.token
        if keyword.kind in _REFUSED:
            self._fail(keyword.offset, f"{keyword.kind} is not supported: {_REFUSED[keyword.kind]}")
        if cursor.take("%ignore"):
            scope.ignored.append(self._choice())
        elif cursor.take("%import"):
            self._import(scope, keyword)
        elif cursor.take("%llguidance"):
            self._set(scope, keyword)
        else:
            cursor.unexpected("a rule, a terminal or a directive")

    def _set(self, scope: Scope, keyword: LarkToken) -> None:
        """The options of ``%llguidance {...}``."""
        if not isinstance(keyword.value, dict):
            self._fail(keyword.offset, "%llguidance is followed by a JSON object")
        for name, value in keyword.value.items():
            if name not in _OPTIONS:
                self._fail(keyword.offset, f"%llguidance has no option {name!r}", f"There are {', '.join(_OPTIONS)}.")
            wanted: list[Any] = ["repeat", "once"] if name == "skip_repetition" else [True, False]
            if not any(value is w or (isinstance(w, str) and value == w) for w in wanted):
                shown = " or ".join(map(json.dumps, wanted))
                self._fail(
                    keyword.offset,
                    f"the option {name} of %llguidance is {shown}, not {json.dumps(value, default=str)[:40]}",
                )
            if value is True and name == "allow_invalid_utf8":
                self._fail(keyword.offset, "allow_invalid_utf8 is not supported: outputs are text, in UTF-8")
        scope.ignored_once = keyword.value.get("skip_repetition", "repeat") == "once" or (
            scope.ignored_once and "skip_repetition" not in keyword.value
        )

    def _import(self, scope: Scope, keyword: LarkToken) -> None:
        cursor = self._cursor
        cursor.take(".")
        library = cursor.take("rule", "terminal")
        if library is None or library.text != "common" or not cursor.take("."):
            if cursor.has("(") and library is not None and library.text == "common":
                for name in self._names():
                    self._imported(scope, name, name.text)
                return
            self._fail(keyword.offset, "only %import common.NAME is supported, as in llguidance")
        imported = cursor.take("rule", "terminal")
        if imported is None:
            cursor.unexpected("the name of a terminal of the library common")
        local = imported.text
        if cursor.take("->"):
            alias = cursor.take("rule", "terminal")
            if alias is None:
                cursor.unexpected("a name")
            local = alias.text
        self._imported(scope, imported, local)

    def _names(self) -> list[LarkToken]:
        """Names in parentheses, commas between them."""
        cursor, names = self._cursor, []
        cursor.expect("(", "an opening parenthesis")
        while True:
            name = cursor.take("rule", "terminal")
            if name is None:
                cursor.unexpected("the name of a terminal of the library common")
            names.append(name)
            if not cursor.take(","):
                cursor.expect(")", "a comma or a closing parenthesis")
                return names

    def _imported(self, scope: Scope, name: LarkToken, local: str) -> None:
        if name.text not in COMMON:
            self._fail(name.offset, f"the library common has no terminal {name.text!r}", f"It has {', '.join(COMMON)}.")
        if local in scope.terminals:
            self._fail(name.offset, f"{local!r} is defined twice")
        series = Series((Expression(COMMON[name.text], "", name.offset),), name.offset)
        scope.terminals[local] = Definition(
            local, Choice((Option((series,), None, name.offset),), name.offset), name.offset
        )

    # --- bodies ---
    def _choice(self) -> Choice:
        offset = self._cursor.token.offset
        options = [self._option()]
        while self._another():
            options.append(self._option())
        return Choice(tuple(options), offset)

    def _another(self) -> bool:
        """Take the bar before another option, which may stand on a line of its own."""
        cursor, lines = self._cursor, 0
        while cursor.following(lines) == "newline":
            lines += 1
        if cursor.following(lines) != "|":
            return False
        while not cursor.take("|"):
            cursor.take("newline")
        return True

    def _option(self) -> Option:
        cursor, offset = self._cursor, self._cursor.token.offset
        series = [self._series()]
        while cursor.take("&"):
            series.append(self._series())
        if cursor.take("->"):
            cursor.expect("rule", "a name in lower case")  # of a node of Lark's tree
        condition = read_condition(cursor) if cursor.take("%if") else None
        return Option(tuple(series), condition, offset)

    def _series(self) -> Series:
        cursor, offset = self._cursor, self._cursor.token.offset
        items: list[Tree] = []
        while not cursor.has(*_ENDS):
            items.append(self._repeated())
        return Series(tuple(items), offset)

    def _repeated(self) -> Tree:
        cursor = self._cursor
        atom = self._atom()
        offset = cursor.token.offset
        if sign := cursor.take("*", "+", "?"):
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign.kind]
            return Many(atom, low, high, offset)
        if cursor.has("~") and cursor.following(1) == "number":
            cursor.take("~")
            low = self._count()
            high = self._count() if cursor.take("..") else low
        elif cursor.has("{") and cursor.following(1) in ("number", ","):
            low, high = self._bounds()
        else:
            return atom
        if high is not None and (high < low or high == 0):
            self._fail(offset, "a repetition must go up, to at least 1")
        return Many(atom, low, high, offset)

    def _bounds(self) -> tuple[int, int | None]:
        """``{n}``, ``{n,}``, ``{,m}`` or ``{n,m}``."""
        cursor = self._cursor
        cursor.take("{")
        low = 0 if cursor.has(",") else self._count()
        high: int | None = low
        if cursor.take(","):
            high = None if cursor.has("}") else self._count()
        cursor.expect("}", "a closing brace")
        return low, high

    def _count(self) -> int:
        return self._cursor.whole_number("a number of repetitions", MAX_REPEAT)

    def _atom(self) -> Tree:
        cursor = self._cursor
        if negation := cursor.take("~"):
            return Complement(self._plain(), negation.offset)
        return self._plain()

    def _plain(self) -> Tree:
        cursor = self._cursor
        opened = cursor.take("(", "[")
        if opened is None:
            return self._value()
        body = self._choice()
        if not cursor.take(")" if opened.kind == "(" else "]"):
            if cursor.has("newline", "end"):
                self._fail(opened.offset, "this group is not closed on its line", "A line may go on with |.")
            cursor.unexpected("a closing parenthesis" if opened.kind == "(" else "a closing bracket")
        return body if opened.kind == "(" else Many(body, 0, 1, opened.offset)

    def _value(self) -> Tree:
        cursor = self._cursor
        token = cursor.take("string", "regexp", "rule", "terminal", "token", "reference", "%json", "%regex", "%lark")
        if token is None:
            cursor.unexpected("a terminal, a rule or a group")
        if token.kind == "string":
            return self._literal(token)
        if token.kind == "regexp":
            expression, _, flags = token.text[1:].rpartition("/")
            if "l" in flags:
                self._fail(token.offset, "the flag l is not supported, as in llguidance")
            return Expression(expression, flags, token.offset)
        if token.kind == "token":
            return Token(token.text, token.offset)
        if token.kind == "reference":
            if token.text[1:].isdigit():
                self._fail(token.offset, "grammars are referred to by name, not by number, as in llguidance")
            return Reference(token.text[1:], token.offset)
        if token.kind == "%json":
            return Json(with_guidance(token.value, cursor.source, token.offset), token.offset)
        if token.kind == "%regex":
            return Pieces(chunks_of(cursor.source, token), token.offset)
        if token.kind == "%lark":
            return self._nested(token)
        parameter = read_parameter(cursor) if cursor.take("::") else None
        if cursor.has("{") and cursor.following(1) not in ("number", ","):
            self._fail(
                cursor.token.offset, "templates are not supported, as in llguidance", "Write a rule for each use."
            )
        return Name(token.text, parameter, token.offset)

    def _nested(self, keyword: LarkToken) -> Nested:
        cursor = self._cursor
        cursor.expect("{", "an opening brace after %lark")
        scope = self.scope()
        if not cursor.take("}"):
            self._fail(keyword.offset, "the braces of this %lark are not closed")
        return Nested(scope, keyword.offset)

    def _literal(self, token: LarkToken) -> Literal | CharacterRange:
        cursor = self._cursor
        text, any_case = self._text(token)
        if not cursor.take(".."):
            return Literal(text, any_case, token.offset)
        last, too = self._text(cursor.expect("string", "the last character of the range"))
        if any_case or too or len(text) != 1 or len(last) != 1 or text > last:
            self._fail(token.offset, 'a range goes up from one character to another, as in "a".."z"')
        return CharacterRange(text, last, token.offset)

    def _text(self, token: LarkToken) -> tuple[str, bool]:
        """The text of a string, and whether it is in any case. Escapes are JSON's, and ``\\xHH``."""
        any_case = token.text.endswith("i")
        body = token.text[: -1 - any_case][1:]
        wrong = re.search(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})', re.sub(r"\\\\", "  ", body))
        if wrong is not None:
            self._fail(
                token.offset + 1 + wrong.start(),
                f"there is no escape {body[wrong.start() : wrong.start() + 2]!r}",
                'There are \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uHHHH and \\xHH.',
            )
        written = re.sub(r"(\\\\)|\\x(..)", lambda m: m[1] or f"\\u00{m[2]}", body)
        text: str = json.loads(f'"{written}"')
        if re.search("[\ud800-\udfff]", text):
            self._fail(token.offset, "half of a surrogate pair, which is not a character")
        return text, any_case
