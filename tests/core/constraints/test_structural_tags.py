"""Structural tags against XGrammar, whose language they are: walks of each are texts of the other."""

from __future__ import annotations

import json
import random
import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from structgen.core.constraints.specs import ConstraintSpec
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import SpecificationError, UnsupportedSchemaError
from structgen.integrations.engine_requests import special_names
from structgen.options import JsonOptions

SPECIAL = ["<|call|>", "<|end|>", "[TOOL]"]
EOS = 256 + len(SPECIAL)
VOCABULARY = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), *([None] * len(SPECIAL)), None],
    eos_token_ids=EOS,
    special_token_ids=range(256, 256 + len(SPECIAL)),
    special_tokens={name: 256 + number for number, name in enumerate(SPECIAL)},
)
JSON = {"type": "json_schema", "json_schema": {
    "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False,
}}  # fmt: skip
AB = {"type": "regex", "pattern": "[ab]{1,2}"}


PLAIN = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=256)
OPTIONS = JsonOptions(whitespace="any", max_whitespace_run=None)


def const(text: str) -> dict[str, Any]:
    return {"type": "const_string", "value": text}


def tag(begin: Any, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


TRIGGERED = {"type": "triggered_tags", "triggers": ["<f"], "tags": [tag("<f1>", AB, "</f>")]}
SEPARATED = {"type": "tags_with_separator", "tags": [tag("(", AB, ")")], "separator": ","}
FORMATS: dict[str, dict[str, Any]] = {
    "const": const("hello"),
    "json": JSON,
    "regex": AB,
    "grammar": {"type": "grammar", "grammar": 'root ::= "x" [0-9]+'},
    "sequence": {"type": "sequence", "elements": [const("<"), AB, const(">")]},
    "or": {"type": "or", "elements": [const("yes"), AB, JSON]},
    "tag": tag("<t>", JSON, "</t>"),
    "tag with text": tag("<t>", {"type": "any_text"}, "</t>"),
    "ends": tag("<t>", AB, ["</t>", "!"]),
    "optional": {"type": "optional", "content": AB},
    "star": {"type": "sequence", "elements": [{"type": "star", "content": const("ab")}, const(".")]},
    "plus": {"type": "sequence", "elements": [{"type": "plus", "content": const("ab")}, const(".")]},
    "repeat": {"type": "repeat", "min": 1, "max": 3, "content": tag("(", AB, ")")},
    "triggered": {**TRIGGERED, "tags": [tag("<f1>", AB, "</f>"), tag("<f2>", JSON, "</f>")]},
    "triggered, once": {**TRIGGERED, "stop_after_first": True},
    "triggered, at least one": {**TRIGGERED, "at_least_one": True},
    "triggered, exactly one": {**TRIGGERED, "at_least_one": True, "stop_after_first": True},
    "separated": {**SEPARATED, "tags": [tag("(", AB, ")"), tag("[", JSON, "]")], "separator": ", "},
    "separated, some": {**SEPARATED, "at_least_one": True},
    "separated, one": {**SEPARATED, "at_least_one": True, "stop_after_first": True},
}  # fmt: skip


def ours(format: Any, vocabulary: Vocabulary = VOCABULARY) -> Any:
    value = json.dumps({"type": "structural_tag", "format": format})
    return ConstraintSpec("structural_tag", value, OPTIONS, special_names(vocabulary)).compile(vocabulary)


def theirs(format: Any) -> Any:
    xgrammar = pytest.importorskip("xgrammar")
    words = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    info = xgrammar.TokenizerInfo(words, xgrammar.VocabType.RAW, vocab_size=len(words), stop_token_ids=[256])
    compiler = xgrammar.GrammarCompiler(info)
    return xgrammar, compiler.compile_structural_tag(json.dumps({"type": "structural_tag", "format": format}))


@pytest.mark.parametrize("name", FORMATS)
def test_texts_are_xgrammars(name: str) -> None:
    compare(FORMATS[name], random.Random(name))


MODELS = ["llama", "kimi", "deepseek_r1", "deepseek_v3_1", "qwen_3", "harmony", "exaone"]
"""Those whose calls have arguments in JSON; vLLM and SGLang ask for these with strict tools."""


@pytest.mark.parametrize("reasoning", ["enabled", "disabled"])
@pytest.mark.parametrize("tool_choice", ["auto", "required"])
@pytest.mark.parametrize("model", MODELS)
def test_tool_calls_of_models(model: str, tool_choice: Any, reasoning: Any) -> None:
    """As XGrammar asks for them."""
    xgrammar = pytest.importorskip("xgrammar")
    function = {"name": "f", "parameters": JSON["json_schema"]}
    tools = [{"type": "function", "function": function}]
    asked = xgrammar.get_model_structural_tag(model, tools, tool_choice, reasoning)
    compare(json.loads(asked.model_dump_json(exclude_none=True))["format"], random.Random(model), 10)


def compare(format: Any, rng: random.Random, walks: int = 60) -> None:
    """Masks along random walks, of printable ASCII and the end."""
    grammar = ours(format, PLAIN)
    xgrammar, compiled = theirs(format)
    peer_mask = xgrammar.allocate_token_bitmask(1, PLAIN.size)
    mask = allocate_token_bitmask(1, PLAIN.size)
    likely = [ord(c) for c in '<>/f12t()[]ab"{}: 0x,.yes!|']
    for _ in range(walks):
        matcher, peer = grammar.matcher(), xgrammar.GrammarMatcher(compiled)
        text = b""
        for _ in range(80):
            matcher.fill_next_token_bitmask(mask)
            peer.fill_next_token_bitmask(peer_mask)
            own = np.unpackbits(mask[0].view(np.uint8), bitorder="little").astype(bool)
            other = np.unpackbits(peer_mask[0].numpy().view(np.uint8), bitorder="little").astype(bool)
            plain = [*range(32, 127), 256]  # what is no ASCII, and where JSON's spaces may be, is told elsewhere
            differing = [t for t in plain if own[t] != other[t] and t != 32]
            assert not differing, (text, [chr(t) if t < 256 else "end" for t in differing], own[differing[0]])
            allowed = [t for t in plain if own[t] and other[t]]
            chosen = [t for t in allowed if t in likely or t == 256] or allowed
            token = rng.choice(chosen or np.flatnonzero(own & other).tolist())
            assert matcher.accept_token(token) and peer.accept_token(token)
            if token == 256:
                break
            text += bytes([token])


def test_names_of_special_tokens_are_these_tokens() -> None:
    """In every place where a string stands; and tokens by id."""
    call, end, tool = (256 + number for number in range(3))

    def takes(format: Any, *pieces: Any) -> bool:
        tokens = [token for piece in pieces for token in (piece.encode() if isinstance(piece, str) else [piece])]
        matcher = ours(format).matcher()
        return all(matcher.accept_token(token) for token in tokens) and matcher.is_accepting()

    harmony = tag("<|call|>to=f ", AB, "<|end|>")
    assert takes(harmony, call, "to=f ab", end) and not takes(harmony, "<|call|>to=f ab<|end|>")
    triggered = {
        "type": "triggered_tags",
        "triggers": ["<|call|>"],
        "tags": [harmony, tag("<|call|>to=g ", JSON, "<|end|>")],
    }
    assert takes(triggered, "free text ", call, "to=g ", '{"a": 1}', end, " and more")
    assert not takes(triggered, call, "to=h")
    bracket = {"type": "triggered_tags", "triggers": ["[TOOL]"], "tags": [tag("[TOOL]x", AB, ";")]}
    assert takes(bracket, "free ", tool, "xab;") and not takes(bracket, "[TOOL]y")
    assert takes({"type": "sequence", "elements": [const("[TOOL]x"), AB]}, tool, "xab")
    by_id = tag({"type": "token", "token": call}, AB, {"type": "token", "token": "<|end|>"})
    assert takes(by_id, call, "a", end)


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string", "maxLength": 9}, "n": {"type": "integer"}, "l": {"type": "array"}},
    "required": ["a"],
    "additionalProperties": False,
}
DEEP = {
    "type": "object",
    "properties": {
        "a": {"type": "string"},
        "o": {
            "type": "object",
            "properties": {"l": {"type": "array", "items": {"type": "integer"}}},
            "required": ["l"],
            "additionalProperties": False,
        },
    },
    "required": ["a"],
    "additionalProperties": False,
}
LINES = {"type": "json_schema", "json_schema": SCHEMA, "style": "qwen_xml"}


def style(name: str, schema: Any = SCHEMA, **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": schema, "style": name, **more}


def split(text: str) -> list[int]:
    """A text as a model writes it: names as special tokens."""
    found: list[int] = []
    for piece in re.split("(<.call.>|<.end.>|\\[TOOL\\])", text):
        found += [256 + SPECIAL.index(piece)] if piece in SPECIAL else piece.encode()
    return found


ANY = {"type": "any_text"}
TEXTS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "names in expressions": (
        {"type": "regex", "pattern": r"^[^<]*<\|end\|>|(?:\[TOOL\]){1,2}x$"},
        ["ab<|end|>", "<|end|>", "[TOOL]x"],
        ["ab", "<", "x"],
    ),
    "names in EBNF": (
        {
            "type": "grammar",
            "grammar": 'root ::= "a<|end|>" b\nb ::= "\\x5bTOOL]" | TagDispatch(("<|call|>", c))\nc ::= "c"',
        },
        ["a<|end|>[TOOL]", "a<|end|>x <y<|call|>c"],
        ["a<|end|><|call|>"],
    ),
    "names in Lark": (
        {"type": "grammar", "grammar": 'start: "a<|end|>" /b+/ "[TOOL]"'},
        ["a<|end|>bb[TOOL]"],
        ["a<|end|>[TOOL]"],
    ),
    "one call": (
        {**TRIGGERED, "at_least_one": True, "stop_after_first": True, "excludes": ["no"]},
        ["<f1>a</f>"],
        ["x<f1>a</f>"],
    ),
    "line feeds are excluded": ({"type": "any_text", "excludes": ["<x>\n", "/"]}, ["<x>", "a\nb"], ["<x>\n", "a/b"]),
    "characters": (tag("<", {"type": "any_text", "max_chars": 3}, ">"), ["<>", "<äöü>"], ["<abcd>"]),
    "tokens in free text": (
        {"type": "any_text", "excludes": ["<|call|>x", "no"]},
        ["a<|call|>b<|call|>"],
        ["<|call|>x", "no", "<|end|>"],
    ),
    "triggers behind text": (
        {"type": "triggered_tags", "triggers": ["<<|call|>f"], "tags": [tag("<<|call|>f>", AB, "</<|call|>f>")]},
        ["a < b<<|call|>f>ab</<|call|>f> < c"],
        ["a<<|call|>g", "<|call|>"],
    ),
    "triggers among tokens": (
        {
            "type": "triggered_tags",
            "triggers": ["<|call|>f"],
            "tags": [tag("<|call|>f>", AB, "<|end|>")],
            "excludes": ["<|call|>g"],
        },
        ["a<|call|>x<|call|>f>ab<|end|>b<|call|>"],
        ["<|call|>g", "<|call|>f<", "<|end|>"],
    ),
    "dispatch": (
        {"type": "dispatch", "rules": [["<t", AB]], "excludes": ["no"]},
        ["", "x<ta<tb y"],
        ["<tx", "no"],
    ),
    "dispatch once": ({"type": "dispatch", "rules": [["<t", AB]], "loop": False}, ["", "x", "x<tab"], ["<tax", "<tx"]),
    "token": ({"type": "token", "token": "<|call|>"}, ["<|call|>"], ["", "<|end|>"]),
    "any token but": (
        {
            "type": "sequence",
            "elements": [
                {"type": "exclude_token", "exclude_tokens": ["<|end|>"]},
                {"type": "any_tokens", "exclude_tokens": [256]},
            ],
        },
        ["a", "<|call|><|end|>b", "ab[TOOL]"],
        ["", "<|end|>", "a<|call|>"],
    ),
    "any tokens to the end": (
        tag("<", {"type": "any_tokens"}, {"type": "token", "token": "<|end|>"}),
        ["<a<|call|><|end|>"],
        ["<<|end|>b"],
    ),
    "token triggers": (
        {
            "type": "token_triggered_tags",
            "trigger_tokens": [256],
            "exclude_tokens": ["[TOOL]"],
            "tags": [tag({"type": "token", "token": "<|call|>"}, AB, "!")],
        },
        ["", "x<|end|><|call|>a!y<|call|>b!"],
        ["[TOOL]", "<|call|>x"],
    ),
    "token triggers, one": (
        {
            "type": "token_triggered_tags",
            "trigger_tokens": [256],
            "at_least_one": True,
            "stop_after_first": True,
            "tags": [tag({"type": "token", "token": "<|call|>"}, AB, "!")],
        },
        ["<|call|>a!"],
        ["", "x<|call|>a!", "<|call|>a!x"],
    ),
    "token dispatch": (
        {"type": "token_dispatch", "rules": [["<|call|>", AB]], "loop": False},
        ["x<|end|>", "x<|call|>ab"],
        ["<|call|>x"],
    ),
    "Qwen's lines": (
        tag("<f>\n", LINES, "\n</f>"),
        [
            "<f>\n<parameter=a>\nx\n</parameter>\n</f>",
            "<f>\n<parameter=a>\n\n\n\n</parameter>\n<parameter=n>\n3\n</parameter>\n</f>",
        ],
        [
            "<f>\n<parameter=a>x</parameter>\n</f>",
            "<f>\n<parameter=n>\n3\n</parameter>\n</f>",
            "<f>\n</f>",
            '<f>\n<parameter=a>\nx\n</parameter>\n<parameter=l>\n["</parameter>"]\n</parameter>\n</f>',
            "<f>\n<parameter=a>\n</parameter>\n</f>",
            "<f>\n<parameter=a>\n0123456789\n</parameter>\n</f>",
        ],
    ),
    "no arguments in lines": (
        tag("<f>\n", {**LINES, "json_schema": {"type": "object", "additionalProperties": False}}, "\n</f>"),
        ["<f>\n</f>", "<f>\n\n</f>"],
        ["<f></f>"],
    ),
    "MiMo's": (
        tag("<f>", LINES, "</f>"),
        ["<f><parameter=a>x</parameter><parameter=n>3</parameter></f>"],
        ["<f></f>"],
    ),
    "old name": ({"type": "qwen_xml_parameter", "json_schema": SCHEMA}, ["<parameter=a></parameter>"], [""]),
    "MiniMax's": (
        style("minimax_xml"),
        ['<parameter name="a">x</parameter>\n'],
        ['<parameter name="n">3</parameter>\n'],
    ),
    "DeepSeek's": (
        style("deepseek_xml"),
        [
            '<｜DSML｜parameter name="a" string="true">3</｜DSML｜parameter>\n'
            '<｜DSML｜parameter name="n" string="false">3</｜DSML｜parameter>\n'
        ],
        ['<｜DSML｜parameter name="a" string="false">3</｜DSML｜parameter>\n'],
    ),
    "DeepSeek's with blanks": (
        style("deepseek_v4_1_xml"),
        ['<｜DSML｜ parameter name="a" string="true">3</｜DSML｜ parameter>\n'],
        [""],
    ),
    "GLM's": (
        style("glm_xml"),
        [
            "<arg_key>a</arg_key><arg_value>x</arg_value><arg_key>n</arg_key><arg_value>3</arg_value>",
            "\n<arg_key>a</arg_key>\n<arg_value>x</arg_value>\n",
        ],
        ["<arg_key>n</arg_key><arg_value>3</arg_value>"],
    ),
    "Kimi's": (
        style("kimi_k3_xml"),
        [
            '<|open|>argument key="a" type="string"<|sep|>3<|close|>argument<|sep|>'
            '<|open|>argument key="l" type="array"<|sep|>[1]<|close|>argument<|sep|>'
        ],
        ['<|open|>argument key="a" type="number"<|sep|>3<|close|>argument<|sep|>'],
    ),
    "Cohere's": (
        tag("<f>", style("cohere_xml", DEEP), "</f>"),
        [
            '<f><cofl:value name="a" type="raw">3</cofl:value></f>',
            '<f>\n<cofl:value name="a" type="raw">x</cofl:value><cofl:value name="o" type="dict"><cofl:value name="l" '
            'type="list"><cofl:value type="json">3</cofl:value></cofl:value></cofl:value></f>',
        ],
        [
            '<f><cofl:value name="a" type="json">3</cofl:value></f>',
            '<f><cofl:value name="a" type="raw">x</cofl:value><cofl:value name="b" type="raw">x</cofl:value></f>',
            '<f><cofl:value name="a" type="raw">x</cofl:value><cofl:value name="o" type="dict"></cofl:value></f>',
        ],
    ),
    "MiniMax M3's": (
        style("minimax_m3_xml", DEEP),
        [
            "]<]minimax[>[<a>3]<]minimax[>[</a>",
            "]<]minimax[>[<a>x]<]minimax[>[</a>]<]minimax[>[<o>]<]minimax[>[<l>]<]minimax[>[<item>3]<]minimax[>[</item>"
            "]<]minimax[>[</l>]<]minimax[>[</o>",
        ],
        ["]<]minimax[>[<a>x]<]minimax[>[</a>]<]minimax[>[<b>x]<]minimax[>[</b>", "]<]minimax[>[<o>]<]minimax[>[</o>"],
    ),
    "a value": (
        tag("<v>", style("qwen_xml", {"type": "string"}), "</v>"),
        ["<v></v>", "<v>a</parameter></v>"],
        ["<v></v></v>"],
    ),
    "a value by reference": (
        tag(
            "<v>",
            style(
                "qwen_xml",
                {"type": ["integer", "array"], "items": {"$ref": "#/$defs/s"}, "$defs": {"s": {"const": "a"}}},
            ),
            "</v>",
        ),
        ["<v>3</v>", '<v>["a"]</v>'],
        ["<v>x</v>", '<v>["b"]</v>'],
    ),
    "listed strings that name tokens": (
        tag("<v>", style("qwen_xml", {"enum": ["a<|call|>", "b"]}), "</v>"),
        ["<v>a<|call|></v>", "<v>b</v>"],
        ["<v>a</v>"],
    ),
    "any order": (
        tag("<f>", {**LINES, "any_order": True}, "</f>"),
        ["<f><parameter=n>3</parameter><parameter=a>x</parameter></f>"],
        ["<f><parameter=n>3</parameter></f>"],
    ),
    "no whitespace": (style("json", max_whitespace_cnt=0), ['{"a":"b"}'], ['{"a": "b"}']),
    "whitespace": (style("json", max_whitespace_cnt=2), ['{"a":  "b" }'], ['{"a":   "b"}']),
    "JSON without": (
        style("json", excludes=["no", "<|"]),
        ['{"a":"n o","l":["x"]}'],
        ['{"a":"no"}', '{"a":"","l":[{"no":1}]}', '{"a":"","l":[["<|"]]}'],
    ),
    "arguments without": (
        style("minimax_xml", excludes=["no"]),
        ['<parameter name="a">n</parameter>\n'],
        [
            '<parameter name="a">no</parameter>\n',
            '<parameter name="a"></parameter>\n<parameter name="l">["no"]</parameter>\n',
        ],
    ),
}
"""Formats, and texts that are and are not theirs, in which names are special tokens."""


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    format, good, bad = TEXTS[name]
    grammar = ours(format)

    def takes(text: str) -> bool:
        matcher = grammar.matcher()
        return all(matcher.accept_token(token) for token in split(text)) and matcher.is_accepting()

    assert all(map(takes, good)), [text for text in good if not takes(text)]
    assert not any(map(takes, bad)), [text for text in bad if takes(text)]
    for text in good:  # no token is spelled where it is meant
        if name not in ("any token but", "token triggers", "token dispatch", "tokens in free text") and any(
            word in text for word in SPECIAL
        ):
            matcher = grammar.matcher()
            assert not (matcher.accept_bytes(text.encode()) and matcher.is_accepting()), text


STRING: Any = {"type": "string"}
NESTED: Any = {"type": "array", "items": {"$ref": "#"}}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (NESTED, ["[]", "[[],[[]]]"], ['[{"value":[]}]', "[1]"]),
        ({"anyOf": [{"type": "null"}, NESTED]}, ["[null,[]]"], ["[1]"]),
        ({**NESTED, "items": {"$ref": "#/text"}, "text": STRING}, ['["x"]'], ["[1]"]),
        ({"$ref": "#/$defs/text", "$defs": {"text": STRING}}, ["x"], []),
        ({"allOf": [{"anyOf": [{"$ref": "#a"}, {"$ref": "#/allOf/1"}]}, {**STRING, "$anchor": "a"}]}, ["x"], []),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "maxItems": 0,
          "definitions": {"a": {"type": "array", "items": {"$ref": "#/definitions/a"}}}}, ["[[]]"], ["[1]"]),
        ({"$schema": "http://json-schema.org/draft-04/schema#", **NESTED}, ["[[]]"], ["[1]"]),
    ],
)  # fmt: skip
def test_values_in_a_style_and_references_in_their_schemas(schema: Any, good: list[str], bad: list[str]) -> None:
    grammar = ours(tag("<v>", style("qwen_xml", schema), "</v>"))
    for text in (*good, *bad):
        matcher = grammar.matcher()
        assert (matcher.accept_bytes(f"<v>{text}</v>".encode()) and matcher.is_accepting()) == (text in good), text


def test_grammars_and_expressions_of_requests_name_tokens_too() -> None:
    """GLM's grammar in SGLang comes as one of its own, not in a tag."""
    for kind, source in (("grammar", 'root ::= "x<|end|>"'), ("regex", r"x<\|end\|>")):
        matcher = ConstraintSpec(kind, source, OPTIONS, special_names(VOCABULARY)).compile(VOCABULARY).matcher()
        assert matcher.accept_token(ord("x")) and matcher.accept_token(257) and matcher.is_accepting()


@pytest.mark.parametrize("source", [
    'start: %json {"const": "<|end|>"} "<|end|>"',
    'start: "\\"" %regex {"substring_chars": "<|end|>"} "\\"" "<|end|>"',
    'start: x "<|end|>"\nx[suffix="<|end|>\\""]: /"/',
], ids=str)  # fmt: skip
def test_strings_of_json_and_attributes_in_a_grammar_are_no_tokens(source: str) -> None:
    """The text of each is '"<|end|>"', spelled, and then the token."""
    format = {"type": "grammar", "grammar": source}
    matcher = ours(format).matcher()
    assert matcher.accept_bytes(b'"<|end|>"') and not matcher.copy().accept_bytes(b"<|end|>")
    assert matcher.accept_token(257) and matcher.is_accepting()


@pytest.mark.parametrize("format", [
    style("cohere_xml", {"type": "string"}),
    style("minimax_m3_xml", excludes=["a"]),
], ids=["a value", "excludes"])  # fmt: skip
def test_what_a_style_cannot_write_is_refused(format: Any) -> None:
    with pytest.raises(UnsupportedSchemaError, match="style of a structural tag"):
        ours(format)


def takes(grammar: Any, text: str) -> bool:
    matcher = grammar.matcher()
    return bool(matcher.accept_bytes(text.encode()) and matcher.is_accepting())


IN_T = {"type": "triggered_tags", "triggers": ["b"], "tags": [tag("b", const("c"), "b")]}
ANY = {"type": "any_text"}
TOKENS = {"type": "token_triggered_tags", "trigger_tokens": ["<T>"], "tags": [
    tag({"type": "token", "token": "<T>"}, const("a"), "")
]}  # fmt: skip


@pytest.mark.parametrize("content", [
    IN_T, {**IN_T, "stop_after_first": True}, {"type": "star", "content": ANY}, {"type": "plus", "content": ANY},
    {"type": "repeat", "content": ANY, "min": 1, "max": 2}, {"type": "sequence", "elements": [ANY, const("b")]},
    {"type": "or", "elements": [const("b"), IN_T]}, {"type": "sequence", "elements": [const("b"), IN_T]},
    {"type": "sequence", "elements": [IN_T, const("a")]},
], ids=str)  # fmt: skip
def test_text_in_a_tag_does_not_hold_what_ends_the_tag(content: Any) -> None:
    """The free text is any of 'a', and of 'c' that is no end; the tags 'bcb' hold a 'c' of their own."""
    grammar = ours(tag("a", content, "c"))
    texts = ["".join(letters) for length in range(1, 6) for letters in product("abc", repeat=length)]
    taken = [text for text in texts if takes(grammar, text)]
    assert taken and all(text.replace("bcb", "").count("c") == 1 for text in taken)


def test_tokens_in_a_tag_are_none_that_end_the_tag() -> None:
    words = [*(bytes([byte]) for byte in range(256)), None, None, None]
    names = {"<T>": 257, "<W>": 258}
    vocabulary = Vocabulary(words, eos_token_ids=256, special_token_ids=[257, 258], special_tokens=names)
    for content in (TOKENS, {"type": "plus", "content": {"type": "any_tokens"}}):
        matcher = ours(tag("a", content, {"type": "token", "token": "<W>"}), vocabulary).matcher()
        assert matcher.accept_bytes(b"ax") and matcher.accept_token(258) and matcher.is_accepting()
        assert not matcher.copy().accept_token(258) and not matcher.accept_bytes(b"x")


def test_nothing_can_be_repeated_no_times() -> None:
    grammar = ours({"type": "repeat", "content": const("a"), "min": 0, "max": 0})
    assert takes(grammar, "") and not takes(grammar, "a")


TAG = "/format"


@pytest.mark.parametrize("format, where", [
    ({"type": "json_schema", "json_schema": {}, "style": "my_xml"}, "/style"),
    ({"type": "json_schema", "json_schema": {}, "max_whitespace_cnt": -1}, "/max_whitespace_cnt"),
    ({"type": "json_schema", "json_schema": {}, "excludes": ['"']}, "/excludes"),
    ({"type": "dispatch", "rules": []}, "/rules"),
    ({"type": "token_dispatch", "rules": [["<|none|>", AB]]}, "/rules/0/0"),
    ({"type": "any_tokens", "exclude_tokens": ["<|none|>"]}, "/exclude_tokens/0"),
    ({"type": "repeat", "content": AB, "min": 2, "max": 1}, ""),
    ({"type": "repeat", "content": AB, "min": True, "max": 2}, "/min"),
    ({"type": "any_text", "max_chars": 100_000}, "/max_chars"),
    ({"type": "any_text", "excludes": [""]}, "/excludes"),
    ({"type": "any_text", "max_tokens": 3}, "/max_tokens"),
    ({"type": "sequence", "elements": [{"type": "x"}]}, "/elements/0"),
    (tag("<a>", AB, []), "/end"),
    (tag({"type": "token", "token": "<|none|>"}, AB, "x"), "/begin"),
    ({**TRIGGERED, "tags": [tag("<a>", AB, "x")]}, "/tags/0"),
    ([], ""),
], ids=str)  # fmt: skip
def test_what_is_not_supported_is_told_with_its_place(format: Any, where: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        ours(format)
    assert caught.value.pointer == TAG + where
