"""Wrong grammars, and legal ones that are not supported: refused by name, at the right place."""

from __future__ import annotations

import random

import pytest

from structgen.core.compilers import compile_lark
from structgen.core.grammars.dialects.llguidance.reader import read_llguidance
from structgen.errors import ConstraintError, EmptyLanguageError, GrammarError, GrammarTooComplexError, OptionsError
from tests.core.grammars.dialects.llguidance.grammars import GRAMMARS
from tests.core.grammars.dialects.llguidance.peers import BYTES, Peer

WRONG = {
    # grammar: line, column, a part of the message
    "start: nope": (1, 8, "'nope' is not defined"),
    'start: nam\nname: "a"': (1, 8, "nearest name is 'name'"),
    'begin: "a"': (1, 1, "no rule 'start'"),
    'start "a"': (1, 7, "expected a colon, not '\"a\"'"),
    'start: "a" )': (1, 12, "expected the end of the line"),
    'start: ("a"': (1, 8, "not closed on its line"),
    'start: ["a" | "b"': (1, 8, "not closed on its line"),
    'start: "a': (1, 8, "this text is not closed"),
    "start: 'a'": (1, 8, "has no meaning here"),
    'start: "\\q"': (1, 9, "there is no escape"),
    'start: "\\ud800"': (1, 8, "half of a surrogate pair"),
    "start: /a": (1, 8, "empty or not closed"),
    "start: /(a/": (1, 9, "not closed"),
    "start: /[a/": (1, 9, "class is not closed"),
    "start: /a{,3}/": (1, 10, "a repetition is {n}"),
    "start: /(?=a)b/": (1, 9, "lookarounds"),
    "start: /a\\b/": (1, 10, "word boundaries"),
    "start: /a^b/": (1, 10, "an anchor inside"),
    "start: /(a)\\1/": (1, 12, "backreferences"),
    "start: /\\p{Foo}/": (1, 9, "no Unicode property 'Foo'"),
    "start: /\\q/": (1, 9, "no escape \\q"),
    "start: /(?a)b/": (1, 11, "the flag 'a' is not known"),
    "start: /a/l": (1, 8, "the flag l"),
    'start: "z".."a"': (1, 8, "a range goes up"),
    'start: "a"{3,2}': (1, 11, "a repetition must go up"),
    'start: "a"{0}': (1, 11, "to at least 1"),
    'start: "a"?+': (1, 12, "expected a terminal, a rule or a group, not '+'"),
    'start: ~~"a"': (1, 9, "expected a terminal, a rule or a group, not '~'"),
    'start: "a" & "b"': (1, 14, "& joins terminals"),
    'start: Foo\nFoo: "a"': (1, 8, "'Foo' is no name"),
    'start: a\na: "x"\na: "y"': (3, 1, "'a' is defined twice"),
    'start: A\nA: "x" A': (2, 1, "the terminal A refers to itself"),
    'start: A\nA: b\nb: "x"': (2, 4, "'b' is a rule"),
    "start: A\nA: <|x|>": (2, 4, "a special token stands in rules"),
    "start: A\nA: %json {}": (2, 4, "%json stands in rules"),
    "start: %json {a}": (1, 15, "%json is not followed by a JSON Schema"),
    "start: <a b>": (1, 8, "this is no special token"),
    'start: x\nx{y}: "a"': (2, 2, "templates are not supported"),
    'start: x{"a"}\nx: "a"': (1, 9, "templates are not supported"),
    'start: x\nx.2: "a"': (2, 2, "priorities are not supported"),
    "start: X\n%declare X": (2, 1, "%declare is not supported"),
    'start: "a"\n%override start: "b"': (2, 1, "%override is not supported"),
    'start: "a"\n%extend start: "b"': (2, 1, "%extend is not supported"),
    'start: "a"\n%include x': (2, 1, "there is no %include"),
    "%import common.FOO\nstart: FOO": (1, 16, "no terminal 'FOO'"),
    "%import python.NAME\nstart: NAME": (1, 1, "only %import common.NAME"),
    'start: x\nx[foo]: "a"': (2, 3, "there is no attribute 'foo'"),
    'start: x\nx[lazy, lazy]: "a"': (2, 9, "given twice"),
    'start: x\nx[suffix="a", stop="b"]: "a"': (2, 15, "one of suffix and stop"),
    'start: x\nx[stop_capture="a"]: "a"': (2, 3, "stop_capture needs suffix or stop"),
    'start: x\nx[lazy]: y\ny: "a"': (2, 10, "'y' is a rule"),
    'start: x\nX[lazy]: "a"': (2, 2, "terminals have no attributes"),
    'start: "a" @7': (1, 12, "by name, not by number"),
    'start: "a" @foo': (1, 12, "there is no grammar 'foo'"),
    'start: %lark { start: "a"': (1, 8, "braces of this %lark are not closed"),
    'start: %lark "a"': (1, 14, "an opening brace"),
    'start: %lark {\n x: "a"\n}': (1, 8, "no rule 'start'"),
    'start: %lark {\n start: Y\n}\nY: "y"': (2, 9, "'Y' is not defined"),
    'start: %regex {"substring": "a"}': (1, 8, "not 'substring'"),
    'start: %regex {"substring_chunks": "a"}': (1, 8, "substring_chunks is a list of texts"),
    'start: %regex {"substring_words": 7}': (1, 8, "substring_words is a text"),
    'start: x\nx::_: "a" %if lt(_, 1)': (1, 8, "needs a parameter"),
    'start: x::0\nx: "a"': (1, 8, "has no parameter"),
    'start: "a" %if eq(_, 0)': (1, 8, "%if asks for the parameter"),
    'start: x::0\nx::_: "a" %if near(_, 1)': (2, 15, "no condition 'near'"),
    'start: x::more(1)\nx::_: "a" x::_': (1, 11, "no function 'more'"),
    'start: x::0\nx::_: "a" x::set_bit(64)': (2, 22, "a bit goes from 0 to 63"),
    'start: x::0\nx::_: "a" %if eq([3:1], 1)': (2, 18, "must go up"),
    'start: "a"\n%ignore x\nx: "b"': (2, 9, "'x' is a rule"),
    "": (1, 1, "no rule 'start'"),
}
"""Refused by llguidance as well, but for what `ONLY_HERE` holds."""

UNSUPPORTED = {
    'start: %json {"x-guidance": {"item_separator": ", "}}': (1, 8, "x-guidance with item_separator: ', ' is not"),
    'start: item T\nitem: "a" l? | "b"\nl[lazy]: /[a-w]*;/\nT: /[a-w;]*/': (1, 13, "depends on what comes before it"),
    "start: x | %json {}\nx[lazy]: /[{a]*;/": (1, 12, "may begin where %json does"),
    'start: x\nx[max_tokens=0]: "a"': (2, 14, "max_tokens cannot be 0"),
    'start: x\nx[temperature=-1]: "a"': (2, 15, "temperature cannot be -1"),
    'start: x "b"\nx[stop=""]: "a"': (2, 8, "an empty stop is not supported"),
    'start: x "b"\nx[suffix=""]: "a"': (2, 10, "an empty suffix is not supported"),
    '%llguidance {"allow_invalid_utf8": true}\nstart: "a"': (1, 1, "allow_invalid_utf8 is not supported"),
    '%llguidance {"lexer": 1}\nstart: "a"': (1, 1, "no option 'lexer'"),
    "start: /\\p{age=3.0}/": (1, 9, "no Unicode property 'age=3.0'"),
    'start: x::0\nx::_: "a" x::incr(_) | ""': (2, 11, "its parameters make too many rules"),
    "start: x\nx[capture, suffix=/ax|xy|z/]: /a?/": (2, 1, "cannot be told apart"),
}
ONLY_HERE = {'start: x\nx[lazy, lazy]: "a"'}


@pytest.mark.parametrize("source", [*WRONG, *UNSUPPORTED])
def test_the_place_is_named(source: str) -> None:
    line, column, message = {**WRONG, **UNSUPPORTED}[source]
    with pytest.raises(GrammarError) as caught:
        read_llguidance(source)
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)
    assert message in str(caught.value), str(caught.value)


@pytest.mark.parametrize("source", [source for source in WRONG if source not in ONLY_HERE])
def test_llguidance_refuses_it_too(source: str) -> None:
    pytest.importorskip("llguidance")
    assert Peer().error(source)


@pytest.mark.parametrize("source", ['start: A\nA: "a" & "b"', 'start: a\na: a "x"', "start: /[a&&b]/"])
def test_no_text(source: str) -> None:
    with pytest.raises(EmptyLanguageError):
        compile_lark(source, BYTES, dialect="llguidance")


@pytest.mark.full
def test_what_is_too_much() -> None:
    for source in (
        "start: /(a|b)*a(a|b){40}/",
        "start: /a{100000}/",
        'start: %regex {"substring_chars": "' + "ab" * 200_000 + '"}',
    ):
        with pytest.raises(GrammarTooComplexError):
            read_llguidance(source)
    doubled = "start: A0\n" + "".join(f"A{i}: A{i + 1} A{i + 1}\n" for i in range(60))
    with pytest.raises(GrammarTooComplexError):
        read_llguidance(f'{doubled}A60: "a"')
    read_llguidance(f'{doubled}A60: ""')  # which is as small as it looks
    with pytest.raises(GrammarTooComplexError, match="nested too deeply"):
        read_llguidance("start: " + "(" * 5000 + '"a"' + ")" * 5000)


def test_options_of_the_compiler() -> None:
    with pytest.raises(OptionsError, match="dialect must be 'lark' or 'llguidance'"):
        compile_lark('start: "a"', BYTES, dialect="other")  # type: ignore[arg-type]
    with pytest.raises(OptionsError, match="grammars are for the dialect"):
        compile_lark('start: "a"', BYTES, grammars={"x": 'start: "a"'})
    with pytest.raises(OptionsError, match="is for lexer='dynamic'"):
        compile_lark('start: "a"', BYTES, lexer="contextual", dialect="llguidance")


@pytest.mark.parametrize("source", ['start: "a"{2,3}', 'start: a-b\na-b: "x"', 'start: x\nx[lazy]: "a"', "start: @x"])
def test_the_default_dialect_is_larks(source: str) -> None:
    pytest.importorskip("lark")
    with pytest.raises(GrammarError):
        compile_lark(source, BYTES)


def test_warnings() -> None:
    read = read_llguidance('start: /".*?"/\nunused: "a"')
    assert any("'unused' is never used (line 2)" in warning for warning in read.warnings)
    assert any("laziness in the regular expression" in warning for warning in read.warnings)


PIECES = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "|",
    "&",
    "~",
    "*",
    "+",
    "?",
    '"',
    "/",
    "\\",
    "\n",
    " ",
    "-",
    ":",
    "::",
    "_",
    "@x",
    "<a>",
]
PIECES += [
    "%json {}",
    "%lark {\n",
    '%regex {"substring_chars": "ab"}',
    "[lazy]",
    '[suffix="a"]',
    "{2,3}",
    "~2",
    "..",
    '"a"',
    "A",
]
PIECES += ["b", "start", "%if true", "\\d", "é", "[^a]", "(?i)", "$", "^", "\ud800", "\0", "%ignore", "%llguidance {"]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_written_is_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        text = rng.choice(list(GRAMMARS.values()))
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice([*PIECES, ""]) + text[at + rng.randrange(2) :]
        try:
            read_llguidance(text)
        except ConstraintError as error:
            assert not isinstance(error, GrammarError) or error.line > 0, (text, error)
