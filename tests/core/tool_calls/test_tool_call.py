"""The constraint: choices, free text, special tokens, unfinished text, and what is refused by name."""

from __future__ import annotations

import pickle
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structgen
from structgen import (
    ConstraintError,
    GenerationError,
    JsonOptions,
    OptionsError,
    SchemaError,
    SchemaTooComplexError,
    ToolCall,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
    Vocabulary,
    tool_call,
)
from structgen.core.tool_calls.formats import ALIASES, FORMATS, format_named
from structgen.core.tool_calls.patterns import written
from tests.core.constraints.test_composed import Uniform
from tests.core.tool_calls.vocabularies import BYTES, accepts, chat_vocabulary
from tests.fakes import CharTokenizer

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": CITY}},
    {"name": "now"},
    {"type": "function", "name": "get", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}},
]
WEATHER = ToolCall("get_weather", {"city": "Bonn"})
NOW = ToolCall("now", {})


def takes(constraint: structgen.ToolCalls, text: str) -> bool:
    """Whether the grammar takes a text, and then the parser, too."""
    taken = accepts(constraint.compile(BYTES), BYTES, text, random.Random(0))
    if taken:
        constraint.parse(text)
    return taken


DSML = ("deepseek_v3_2", "deepseek_v4", "deepseek_v4_1", "gigachat3_5")


@pytest.mark.first_case
@pytest.mark.parametrize("name", FORMATS)
def test_choices_and_free_text(name: str) -> None:
    before = "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant" if name == "harmony" else "Let me see. "
    final = "<|channel|>final<|message|>Done." if name == "harmony" else "Done."
    every = tool_call(name, TOOLS)
    channel = FORMATS[name].channel
    if channel is not None:
        final = every.render(["Done."])
        assert every.parse(final) == ["Done."] == every.parse(written(channel.begin) + final + written(channel.last))
        assert not takes(every, "Done.")
    empty = "" if channel is None else written(channel.end)
    one, two = every.render([WEATHER]), every.render([WEATHER, NOW])
    if not FORMATS[name].trigger:  # calls at the very start only
        with pytest.raises(ConstraintError, match="cannot be written"):
            every.render([before, WEATHER])
    text_first = every.render([before, WEATHER]) if FORMATS[name].trigger else one
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {one, two, text_first, final}),
        ({"tool_choice": "required"}, {one, two}),
        ({"tool_choice": "required", "free_text": "before"}, {one, two, text_first}),
        ({"tool_choice": "none"}, {final}),
        ({"tool_choice": {"name": "get_weather"}}, {one}),
        ({"tool_choice": {"type": "function", "function": {"name": "now"}}}, set()),
        ({"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "now"}]}}, {final}),
        ({"parallel_tool_calls": False}, {one, text_first, final}),
        ({"parallel_tool_calls": False, "tool_choice": "required"}, {one}),
        ({"free_text": "none"}, {one, two, empty}),
        ({"free_text": "before"}, {one, two, text_first, final}),
    ]
    for arguments, expected in cases:
        constraint = tool_call(name, TOOLS, **arguments)
        for text in (one, two, text_first, final, empty):
            if text or name != "harmony":
                is_text = text in expected or (text == empty and final in expected)
                assert takes(constraint, text) == is_text, (arguments, text)
                if text != empty and not is_text and text != final and "free_text" not in arguments:
                    with pytest.raises(GenerationError):
                        constraint.parse(text)
    after = tool_call(name, TOOLS).render([WEATHER]) + " There."
    assert takes(every, after) == (FORMATS[name].text_after and name != "harmony")


@pytest.mark.parametrize("name", FORMATS)
def test_special_tokens(name: str) -> None:
    """Marks that the vocabulary has as tokens are these tokens; nothing spells them."""
    vocabulary = chat_vocabulary(name)
    constraint = tool_call(name, TOOLS)
    grammar = constraint.compile(vocabulary)
    text = constraint.render([WEATHER])
    assert accepts(grammar, vocabulary, text, random.Random(1))
    for mark in FORMATS[name].markers():
        if mark in text:
            matcher = grammar.matcher()
            assert not (matcher.accept_bytes(text.encode()) and matcher.is_accepting()), "spelled in text"
    if FORMATS[name].markers() and name not in ("harmony", "llama3"):
        matcher = grammar.matcher()
        channel = FORMATS[name].channel
        mark = FORMATS[name].markers()[0] if channel is None else written(channel.end[:1])
        assert not matcher.accept_bytes(f"Now {mark}".encode())
        token = vocabulary.special_tokens[mark]
        assert matcher.accept_bytes(b"Now <" if name in DSML else b"Now ") and matcher.accept_token(token)
    # An added token that is no special one has text of its own, and is that token all the same.
    spelled = [mark.encode() for mark in vocabulary.special_tokens]
    tokens = [token or None for token in vocabulary.tokens[: vocabulary.size - len(spelled)]] + spelled
    added = Vocabulary(tokens, eos_token_ids=256, special_tokens=vocabulary.special_tokens)
    assert accepts(constraint.compile(added), added, text, random.Random(2))


def test_the_end_of_a_call_that_is_an_end_of_sequence() -> None:
    """Harmony's <|call|> ends the output where the model has it as one."""
    names = {
        mark: 257 + number
        for number, mark in enumerate([*FORMATS["harmony"].markers(), "<|call|>", "<|start|>", "<|end|>"])
    }
    vocabulary = Vocabulary(
        [bytes([byte]) for byte in range(256)] + [None] * (1 + len(names)),
        eos_token_ids=[256, names["<|call|>"]],
        special_token_ids=list(names.values()),
        special_tokens=names,
    )
    constraint = tool_call("gpt_oss", TOOLS, tool_choice="required")
    matcher = constraint.compile(vocabulary).matcher()
    for piece in ("<|channel|>", b"commentary to=functions.now ", "<|constrain|>", b"json", "<|message|>", b"{}"):
        assert matcher.accept_bytes(piece) if isinstance(piece, bytes) else matcher.accept_token(names[piece])
    assert matcher.is_accepting() and matcher.accept_token(names["<|call|>"])
    text = "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}"
    assert constraint.parse(text) == [NOW] == constraint.parse(text + "<|call|>")


def test_values_that_may_be_strings_or_not() -> None:
    """Text that reads as another type that the schema allows is that; other text is the string."""
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null", "integer"]},
            "b": {"type": ["string", "array"]},
            "c": {"type": ["integer", "boolean"]},
            "d": {},
        },
    }
    constraint = tool_call("mimo", [{"name": "f", "parameters": schema}], tool_choice="required")

    def read(key: str, text: str) -> Any:
        output = f"<tool_call><function=f><parameter={key}>{text}</parameter></function></tool_call>"
        if not takes(constraint, output):
            return "refused"
        call = constraint.parse(output)[0]
        assert isinstance(call, ToolCall)
        return call.arguments[key]

    for key, text, value in [
        ("a", "null", None),
        ("a", "nul", "nul"),
        ("a", "12", 12),
        ("a", "1.5", "refused"),  # a number that is no integer, and so no string either
        ("a", "true", "true"),
        ("a", "[1]", "[1]"),
        ("a", "", ""),
        ("b", "[1]", [1]),
        ("b", "[1", "refused"),
        ("b", "12", "12"),
        ("c", "12", 12),
        ("c", "true", True),
        ("c", "yes", "refused"),
        ("d", '{"x": "</parameter>"}', {"x": "</parameter>"}),
        ("d", "so", "so"),
        ("d", '"so"', '"so"'),
    ]:
        assert read(key, text) == value, (key, text)
    # In DeepSeek's dialect the tag says what it is.
    typed = tool_call("deepseek_v3_2", [{"name": "f", "parameters": schema}])
    for value in ("12", 12, "null", None, "[1"):
        assert typed.parse(typed.render([ToolCall("f", {"d": value})])) == [ToolCall("f", {"d": value})]


@pytest.mark.parametrize("name", ["dots", "step3", "step3_plain"])
def test_strings_that_a_reader_would_strip_are_not_written(name: str) -> None:
    """Of every character that `str.strip` takes, at either end; inside they stay."""
    parameters = {"type": "object", "properties": {"s": {"type": "string", "minLength": 2}}, "required": ["s"]}
    constraint = tool_call(name, [{"type": "function", "function": {"name": "f", "parameters": parameters}}])
    grammar, rng = constraint.compile(BYTES), random.Random(0)
    written = constraint.render([ToolCall("f", {"s": "a.b"})])
    blanks = [chr(code) for code in range(0x3001) if not chr(code).strip()]
    assert len(blanks) > 20
    for blank in blanks:
        assert accepts(grammar, BYTES, written.replace("a.b", f"a{blank}b"), rng), blank
        for text in (f"{blank}a", f"a{blank}", f"{blank}ab"):
            assert not accepts(grammar, BYTES, written.replace("a.b", text), rng), (blank, text)
            with pytest.raises(ConstraintError, match="cannot be written"):
                constraint.render([ToolCall("f", {"s": text})])


@pytest.mark.parametrize("name", FORMATS)
def test_half_of_a_surrogate_pair_is_not_written(name: str) -> None:
    parameters = {"type": "object", "properties": {"s": {"type": "string"}}}
    with pytest.raises(ConstraintError, match="surrogate"):
        tool_call(name, [{"name": "f", "parameters": parameters}]).render([ToolCall("f", {"s": "a\ud83d"})])


def test_arguments_that_are_not_declared() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    call = [ToolCall("f", {"a": "x", "b": 1})]
    for name in ("qwen3_coder", "hermes"):
        text = tool_call(name, [{"name": "f", "parameters": {"type": "object"}}]).render(call)
        assert not takes(tool_call(name, [{"name": "f", "parameters": schema}]), text)
        assert takes(tool_call(name, [{"name": "f", "parameters": schema}], json_options=JsonOptions()), text)
        said = {**schema, "additionalProperties": {"type": "integer"}}
        assert takes(tool_call(name, [{"name": "f", "parameters": said}]), text)
        assert not takes(tool_call(name, [{"name": "f", "parameters": {**said, "maxProperties": 1}}]), text)


def test_unfinished_calls() -> None:
    constraint = tool_call("qwen3_coder", TOOLS)
    text = constraint.render(["Hm. ", WEATHER, NOW])
    seen = [constraint.parse_partial(text[:end]) for end in range(len(text) + 1)]
    assert seen[0] == [] and seen[-1] == ["Hm. ", WEATHER, NOW]
    assert ["Hm. ", ToolCall("get_weather", {})] in seen and ["Hm. ", ToolCall("get_weather", {"city": "Bo"})] in seen
    mixed = tool_call("mimo", [{"name": "f", "parameters": {"properties": {"a": {"type": ["string", "null"]}}}}])
    begun = "<tool_call><function=f><parameter=a>"
    assert mixed.parse_partial(begun + "nu") == [ToolCall("f", {})]
    assert mixed.parse_partial(begun + "nux") == [ToolCall("f", {"a": "nux"})]
    assert mixed.parse_partial(begun + "nux</para") == [ToolCall("f", {"a": "nux"})]


@pytest.mark.parametrize("name", FORMATS)
def test_instructions(name: str) -> None:
    instruction = tool_call(name, TOOLS, parallel_tool_calls=False).instruction()
    assert (
        instruction
        and '"get_weather"' in instruction
        and '"city"' in instruction
        and FORMATS[name].trigger in instruction
        and "one" in instruction
    )
    assert tool_call(name, TOOLS, tool_choice="none").instruction() is None


def test_a_generator_writes_calls() -> None:
    words = Vocabulary([None] + [bytes([byte]) for byte in range(128)], eos_token_ids=0)
    generator = structgen.Generator(Uniform(words.size), CharTokenizer(eos=1), vocabulary=words)
    for name in ("qwen3_coder", "hermes", "cohere"):
        constraint = tool_call(name, TOOLS, tool_choice={"name": "get_weather"}, parallel_tool_calls=False)
        result = generator.generate("Go", constraint, max_new_tokens=250, temperature=1.0, seed=1)
        (call,) = result.value
        assert not isinstance(call, str)
        assert call.name == "get_weather" and isinstance(call.arguments["city"], str)
        events = list(generator.stream("Go", constraint, max_new_tokens=200))
        assert events[-1].result is not None and events[-1].partial == events[-1].result.value


def test_constraints_are_values() -> None:
    constraint = tool_call("glm4_5", TOOLS)
    other = pickle.loads(pickle.dumps(constraint))
    assert other == constraint and other.compile(BYTES) is constraint.compile(BYTES)
    assert tool_call("glm4_5", TOOLS[:1]).compile(BYTES) is not constraint.compile(BYTES)
    assert all(format_named(alias) is FORMATS[name] for alias, name in ALIASES.items())


def test_the_documentation_lists_all_formats() -> None:
    page = (Path(__file__).parents[3] / "docs" / "tools.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)`(.*?) \|", page, re.MULTILINE))
    assert set(FORMATS) <= set(rows)
    for alias, name in ALIASES.items():
        assert f"`{alias}`" in rows[name]


def test_bad_arguments() -> None:
    with pytest.raises(OptionsError, match="did you mean 'qwen3_coder'"):
        tool_call("qwen3_code", TOOLS)
    with pytest.raises(OptionsError, match="no tool call format"):
        tool_call(3, TOOLS)  # type: ignore[arg-type]
    for tools, message in [
        ({"name": "f"}, "a list"),
        ("f", "a list"),
        ([1], "tool 0 is int"),
        ([{"parameters": {}}], "no name"),
        ([{"type": "function", "function": {"name": ""}}], "no name"),
        ([{"type": "function", "function": 1}], "'function' of tool 0"),
        ([{"type": "web_search"}], "only functions"),
        ([{"name": "f"}, {"name": "f"}], "two tools are called 'f'"),
        ([{"name": "f", "strict": "yes"}], "'strict'"),
        ([], "no tools"),
    ]:
        with pytest.raises(ConstraintError, match=message):
            tool_call("hermes", tools)
    for choice in ("always", 1, {"type": "function"}, {"type": "allowed_tools", "mode": "none", "tools": []}):
        with pytest.raises(OptionsError, match="tool_choice"):
            tool_call("hermes", TOOLS, tool_choice=choice)
    with pytest.raises(ConstraintError, match="did you mean 'get_weather'"):
        tool_call("hermes", TOOLS, tool_choice={"name": "get_wether"})
    with pytest.raises(OptionsError, match="free_text"):
        tool_call("hermes", TOOLS, free_text="after")  # type: ignore[arg-type]
    with pytest.raises(OptionsError):
        tool_call("hermes", TOOLS, json_options={})  # type: ignore[arg-type]


def test_names_that_a_format_cannot_write() -> None:
    for name in FORMATS:
        in_json = name in ("hermes", "llama3", "smollm2", "mistral", "cohere", "apertus")
        if in_json:
            odd = ToolCall('say "hi"', {})
            constraint = tool_call(name, [{"name": odd.name}])
            assert [(c.name, c.arguments) for c in constraint.parse(constraint.render([odd]))] == [(odd.name, {})]  # type: ignore[union-attr]
        if FORMATS[name].names is None:
            tool_call(name, [{"name": "Ns.do-it_2"}])
    for name, tool in [
        ("qwen3_coder", "a>b"),
        ("kimi_k2", "a:b"),
        ("glm4_5", "a\nb"),
        ("glm4_7", "a<b"),
        ("harmony", "a b"),
        ("pythonic", "a-b"),
        ("lfm2", "class"),
        ("gemma4", "a{b"),
    ]:
        with pytest.raises(ConstraintError, match="cannot be written in the format"):
            tool_call(name, [{"name": tool}])
    with pytest.raises(ConstraintError, match="surrogate"):
        tool_call("hermes", [{"name": "\ud800"}])


def test_one_bad_schema_among_many_is_named() -> None:
    tools: list[dict[str, Any]] = [{"name": f"f{number}", "parameters": {"type": "object"}} for number in range(50)]
    tools[30]["parameters"] = {"type": "objekt"}
    with pytest.raises(SchemaError, match=r"^the tool 'f30': expected one of .* \(at /30/parameters/type,"):
        tool_call("hermes", tools)


def test_schemas_that_are_refused() -> None:
    """With a pointer into the list of tools."""

    def refused(kind: type[SchemaError], pointer: str, schema: Any, name: str = "qwen3_coder", **options: Any) -> None:
        tools = [{"name": "other"}, {"type": "function", "function": {"name": "f", "parameters": schema, **options}}]
        with pytest.raises(kind) as caught:
            tool_call(name, tools).compile(BYTES)
        assert caught.value.pointer == "/1/function/parameters" + pointer, caught.value
        assert caught.value.pointer in str(caught.value)

    def of(**properties: Any) -> dict[str, Any]:
        return {"type": "object", "properties": properties}

    refused(SchemaError, "/properties/a/type", of(a={"type": "text"}), "hermes")
    refused(SchemaError, "", [1])
    refused(SchemaError, "", True)
    refused(UnsatisfiableSchemaError, "", {"type": "string"})
    refused(UnsupportedSchemaError, "/properties/a>b", of(**{"a>b": {}}))
    refused(UnsupportedSchemaError, "/properties/", of(**{"": {}}))
    refused(UnsupportedSchemaError, "/properties/a~1b ", of(**{"a/b ": {}}))
    refused(UnsupportedSchemaError, "/properties/a", of(a={"enum": ["1", 1]}))
    refused(UnsupportedSchemaError, "/properties/a", of(a={"enum": ["x</parameter>", "y"]}))
    # Which case it is, is not known where the text is read.
    cases = [{**of(a={"const": a}, b={"const": b}), "required": ["a", "b"]} for a, b in (("1", "x"), (1, "y"))]
    refused(UnsupportedSchemaError, "/anyOf/0/properties/a", {"anyOf": cases})
    pairs = {"type": "string", "pattern": "^(?:ab)*$", "maxLength": 15_000}
    refused(SchemaTooComplexError, "/properties/a", of(a=pairs))
    many = of(**{f"a{number}": {"type": "integer"} for number in range(14)})
    with pytest.raises(SchemaTooComplexError, match="any order"):
        tool_call(
            "qwen3_coder", [{"name": "f", "parameters": many}], json_options=JsonOptions(key_order="any")
        ).compile(BYTES)
    # What cannot be told apart in tags can in JSON, and where the tag says it.
    for name in ("hermes", "deepseek_v3_2"):
        constraint = tool_call(name, [{"name": "f", "parameters": of(a={"enum": ["1", 1]})}])
        assert takes(constraint, constraint.render([ToolCall("f", {"a": "1"})]))
    # strict: false leaves out what is not supported.
    odd = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {}, "not": {"uniqueItems": True}, "maxItems": 5}},
    }
    refused(UnsupportedSchemaError, "/properties/a/not", odd, "hermes")
    tool_call("hermes", [{"name": "f", "parameters": odd, "strict": False}]).compile(BYTES)


EXCLUDING: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {}, "b": {}},
    "required": ["a", "b"],
    "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
    "additionalProperties": False,
}
FINE = {"name": "fine", "parameters": CITY}
NEVER = {"type": "function", "function": {"name": "never", "parameters": EXCLUDING}}


@pytest.mark.parametrize("name", ["hermes", "qwen3_coder", "llama3"])
def test_a_tool_without_possible_arguments(name: str, caplog: pytest.LogCaptureFixture) -> None:
    tools = [
        FINE,
        NEVER,
        {"name": "nor", "parameters": {"type": "object", "properties": {"x": False}, "required": ["x"]}},
    ]
    with pytest.raises(UnsatisfiableSchemaError, match=r"'never' has no possible arguments.*nor have 'nor'") as caught:
        structgen.tool_call(name, tools)
    assert caught.value.pointer.startswith("/1/function/parameters") and 'on_impossible="skip"' in str(caught.value)
    constraint = structgen.tool_call(name, tools, on_impossible="skip")
    assert [tool.name for tool in constraint.calls.tools] == ["fine"]
    assert [tool.name for tool in constraint.skipped] == ["never", "nor"]
    assert [tool.pointer.split("/")[1] for tool in constraint.skipped] == ["1", "2"]
    assert all("no possible arguments" in tool.reason for tool in constraint.skipped)
    assert len(caplog.messages) == 2 and "'never'" in caplog.messages[0]
    alone = structgen.tool_call(name, [FINE])
    call = alone.render([ToolCall("fine", {"city": "Bonn"})])
    assert takes(constraint, call) and constraint.parse(call) == alone.parse(call)
    assert constraint.content_key() == alone.content_key()


def test_what_on_impossible_does_not_skip() -> None:
    """A call that must be made of what cannot be called, and schemas that are wrong in other ways."""
    for choice in ("required", {"name": "never"}):
        with pytest.raises(UnsatisfiableSchemaError, match="'never'"):
            structgen.tool_call("hermes", [NEVER], tool_choice=choice, on_impossible="skip")
    required = structgen.tool_call("hermes", [FINE, NEVER], tool_choice="required", on_impossible="skip")
    assert required.calls.required and [tool.name for tool in required.calls.tools] == ["fine"]
    with pytest.raises(SchemaError, match="typ"):
        structgen.tool_call("hermes", [{"name": "x", "parameters": {"type": "typ"}}], on_impossible="skip")
    with pytest.raises(OptionsError, match="on_impossible"):
        structgen.tool_call("hermes", [FINE], on_impossible="drop")  # type: ignore[arg-type]
    with pytest.raises(ConstraintError, match="there is no tool"):
        structgen.tool_call("hermes", [FINE, NEVER], tool_choice={"name": "nothing"}, on_impossible="skip")


def test_only_impossible_tools_leave_text() -> None:
    constraint = structgen.tool_call("hermes", [NEVER], on_impossible="skip")
    assert takes(constraint, "Just text.") and not takes(constraint, '<tool_call>\n{"name": "never"')


def test_arguments_that_a_format_cannot_write_are_skipped_too() -> None:
    """At least 3 of endlessly many names: JSON writes them, a format with an element for each argument does not."""
    many = {
        "name": "many",
        "parameters": {"type": "object", "minProperties": 3, "additionalProperties": {"type": "null"}},
    }
    options = structgen.JsonOptions()
    kept = structgen.tool_call("hermes", [FINE, many], on_impossible="skip", json_options=options)
    assert not kept.skipped
    try:
        structgen.tool_call("qwen3_coder", [FINE, many], json_options=options).compile(BYTES)
    except UnsatisfiableSchemaError as error:
        assert "'many' has no possible arguments" in str(error)
        skipped = structgen.tool_call("qwen3_coder", [FINE, many], on_impossible="skip", json_options=options)
        assert [tool.name for tool in skipped.skipped] == ["many"]
        skipped.compile(BYTES)
    else:
        pytest.fail("the format can write them")


def test_calls_that_cannot_be_written() -> None:
    constraint = tool_call("qwen3_coder", TOOLS)
    for call in (
        ToolCall("unknown", {}),
        ToolCall("get_weather", {"city": "a</parameter>b"}),
        ToolCall("get_weather", {"city": {1, 2}}),
        ToolCall("get_weather", {"city": float("nan")}),
        ToolCall("get", {"n": "12"}),
        ToolCall("get", {" n": 1}),
    ):
        with pytest.raises(ConstraintError, match=r"cannot be written|no tool|no JSON"):
            constraint.render([call])


@pytest.mark.full
def test_masks_and_steps_agree() -> None:
    """Over a vocabulary with tokens that cross the ends of arguments."""
    for name in ("qwen3_coder", "glm4_5", "hermes", "deepseek_v3_2"):
        vocabulary = chat_vocabulary(name)
        grammar = tool_call(name, TOOLS).compile(vocabulary)
        rng = random.Random(name)
        matcher = grammar.matcher()
        bitmask = np.zeros((1, -(-vocabulary.size // 32)), np.int32)
        for _ in range(60):
            matcher.fill_next_token_bitmask(bitmask)
            allowed = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[: vocabulary.size].astype(bool)
            for token in range(vocabulary.size):
                twin = matcher.fork()
                assert twin.accept_token(token) == allowed[token], (name, token)
            token = rng.choice(np.flatnonzero(allowed).tolist())
            if token in vocabulary.eos_token_ids:
                break
            matcher.accept_token(token)
