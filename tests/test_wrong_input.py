"""What a newcomer gets wrong: one line says what was given, what was expected and the nearest right spelling.

The command line's part of this table is ``tests/cli/test_wrong_usage.py``.
"""

# Wrong types are what is tried here.
# mypy: disable-error-code="arg-type, call-overload, list-item, call-arg, misc, dict-item"
from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pydantic
import pytest

import structgen as sg
import structgen.tools
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from tests.fakes import CharTokenizer, vocabulary

WORDS = vocabulary(eos=1)
MODEL = TinyModel(WORDS.size)
NULL = {"type": "null"}


TOOL = {"name": "weather", "parameters": {"type": "object"}}


class Person(pydantic.BaseModel):
    age: int


@dataclasses.dataclass
class Point:
    x: int


def generator(**options: Any) -> Generator:
    return Generator(MODEL, CharTokenizer(eos=1), vocabulary=WORDS, **options)


def prompt(given: Any) -> Callable[[], Any]:
    return lambda: generator().generate(given, NULL)


def constraint(given: Any) -> Callable[[], Any]:
    return lambda: generator().generate("p", given, max_new_tokens=40)


def option(**options: Any) -> Callable[[], Any]:
    return lambda: generator().generate("p", NULL, **options)


def matcher() -> Any:
    return sg.compile_regex("ab", WORDS).matcher()


CASES: dict[str, tuple[Callable[[], Any], type[sg.StructgenError], list[str]]] = {
    # prompts
    "a number as prompt": (prompt(42), sg.GenerationError, ["not 42", "role"]),
    "None as prompt": (prompt(None), sg.GenerationError, ["not None"]),
    "bytes as prompt": (prompt(b"x"), sg.GenerationError, ["not b'x'"]),
    "no messages": (prompt([]), sg.GenerationError, ["at least one"]),
    "a message without content": (prompt([{"role": "user"}]), sg.GenerationError, ["content"]),
    "strings as messages": (prompt(["hello"]), sg.GenerationError, ["not ['hello']"]),
    "one message without a list": (prompt({"role": "user", "content": "x"}), sg.GenerationError, ["[{"]),
    "half a character": (prompt("a\ud800"), sg.GenerationError, ["U+D800", "offset 1"]),
    "half a character in a message": (
        prompt([{"role": "user", "content": "\udfff"}]),
        sg.GenerationError,
        ["U+DFFF", "offset 0"],
    ),
    # constraints
    "a number as constraint": (constraint(5), sg.ConstraintError, ["Cannot read 5", "Expected"]),
    "an object as constraint": (constraint(object()), sg.ConstraintError, ["Expected a JSON Schema"]),
    "a word as constraint": (constraint("person"), sg.SchemaError, ["'person'", "as a path"]),
    "a grammar as schema": (constraint('start: "a"'), sg.SchemaError, ["as a path"]),
    "an expression as schema": (constraint("[a-z]+"), sg.SchemaError, ["not JSON", "^"]),
    "a type's name": (constraint("int"), sg.SchemaError, ["'int'"]),
    "NaN in a schema": (constraint({"const": float("nan")}), sg.SchemaError, ["NaN", "/const"]),
    "an object in a schema": (constraint({"const": object()}), sg.SchemaError, ["/const"]),
    "keys that are no strings": (constraint({1: 2}), sg.SchemaError, ["keys"]),
    "options as a dict": (lambda: sg.json_schema({}, {"unsupported": "ignore"}), sg.OptionsError, ["JsonOptions"]),
    "an unknown JsonOptions value": (lambda: sg.JsonOptions(key_order="some"), sg.OptionsError, ["declared"]),
    "no schema at that path": (lambda: sg.json_schema(Path("no.json")), sg.SchemaError, ["no.json"]),
    "a number as schema file": (lambda: sg.load_schema(5), sg.SchemaError, ["int"]),
    "lines of a number": (lambda: sg.json_lines(5), sg.ConstraintError, ["5"]),
    "an empty tag": (lambda: sg.tag_dispatch({"": NULL}), sg.ConstraintError, ["empty"]),
    "tags as a number": (lambda: sg.tag_dispatch(5), sg.ConstraintError, ["not 5"]),
    "a union of nothing": (sg.union, sg.ConstraintError, ["at least one"]),
    "a number in a concatenation": (lambda: sg.concat(5), sg.ConstraintError, ["json_schema"]),
    "a misspelt tool format": (lambda: sg.tool_call("herms", []), sg.OptionsError, ["did you mean 'hermes'"]),
    "a number as tool": (lambda: sg.tool_call("hermes", [5]), sg.ConstraintError, ["tool 0"]),
    "a choice of numbers": (lambda: sg.choice([1, 2]), sg.ConstraintError, ["texts"]),
    "a choice of nothing": (lambda: sg.choice([]), sg.ConstraintError, ["at least one"]),
    "an open group": (constraint(sg.regex("(a")), sg.PatternError, ["^"]),
    "an undefined rule": (constraint(sg.gbnf("root ::= x")), sg.GrammarError, ["line 1", "column 10", "^"]),
    "an instance for its class": (constraint(Person(age=1)), sg.ConstraintError, ["is a value", "its class, Person"]),
    "a set of options": (constraint({"a"}), sg.ConstraintError, ["Expected a JSON Schema"]),
    "a module": (constraint(sg), sg.ConstraintError, ["Expected a JSON Schema"]),
    "a list of schemas": (constraint([NULL]), sg.ConstraintError, ["strings", "enum"]),
    "a folder as schema": (constraint(Path(__file__).parent), sg.SchemaError, ["Is a directory"]),
    "an empty text as schema": (constraint(""), sg.SchemaError, ["the schema is empty"]),
    "UTF-16": (constraint("{}".encode("utf-16")), sg.SchemaError, ["looks like UTF-16"]),
    "Latin-1": (constraint('{"title": "é"}'.encode("latin-1")), sg.SchemaError, ["not UTF-8", "byte 11", "iconv"]),
    "YAML": (lambda: sg.load_schema("type: object"), sg.SchemaError, ["not JSON", "line 1, column 1", "^"]),
    "a comma too many": (constraint('{"type": "null",}'), sg.SchemaError, ["column 17"]),
    "Python types in a dict": (constraint({"age": int}), sg.SchemaError, ["/age", "pydantic model"]),
    "a class to the compiler": (lambda: sg.compile_json_schema(Person, WORDS), sg.SchemaError, ["json_schema"]),
    "Python's name of a type": (constraint({"type": "int"}), sg.SchemaError, ["/type", 'Did you mean "integer"?']),
    "a misspelt type": (constraint({"type": ["strng"]}), sg.SchemaError, ["/type/0", 'Did you mean "string"?']),
    "a type of a sort": (constraint({"type": "json_schema"}), sg.SchemaError, ['found "json_schema"']),
    "properties as a list": (constraint({"properties": ["a"]}), sg.SchemaError, ["expected an object", "/properties"]),
    "required of a member": (
        constraint({"properties": {"a": {"required": True}}}),
        sg.SchemaError,
        ["array of strings", "/properties/a"],
    ),
    "tuples of an early draft": (constraint({"items": [NULL]}), sg.SchemaError, ["prefixItems"]),
    "a bound in quotes": (constraint({"minimum": "1"}), sg.SchemaError, ["expected a number", '"1"']),
    "False in quotes": (constraint({"additionalProperties": "false"}), sg.SchemaError, ["true or false"]),
    "a negative length": (constraint({"maxLength": -1}), sg.SchemaError, ["non-negative", "-1"]),
    "an expression that does not end": (constraint({"pattern": "[a"}), sg.PatternError, ["/pattern", "^"]),
    "a reference to nothing": (constraint({"$ref": "#/$defs/x"}), sg.UnresolvableReferenceError, ["#/$defs/x", "$ref"]),
    "a document elsewhere": (constraint({"$ref": "http://a.b/c"}), sg.UnresolvableReferenceError, ["registry"]),
    "a number as regex": (constraint(sg.regex(5)), sg.ConstraintError, ["text, not int"]),
    "a back-reference": (constraint(sg.regex(r"(a)\1")), sg.PatternError, ["backreference", "^"]),
    "another syntax": (lambda: sg.compile_regex("a", WORDS, "pcre"), sg.OptionsError, ["'ecma'"]),
    "None as grammar": (lambda: sg.compile_gbnf(None, WORDS), sg.ConstraintError, ["NoneType"]),
    "an empty grammar": (lambda: sg.compile_gbnf("", WORDS), sg.GrammarError, ["empty", "'root'"]),
    "Lark's language as GBNF": (lambda: sg.compile_gbnf('start: "a"', WORDS), sg.GrammarError, ["column 6", "^"]),
    "another start": (lambda: sg.compile_gbnf('root ::= "a"', WORDS, "start"), sg.GrammarError, ["rules are root"]),
    "more lines than there may be": (
        lambda: sg.json_lines(NULL, min_lines=3, max_lines=1),
        sg.OptionsError,
        ["max_lines is 1"],
    ),
    "a schema in a union": (lambda: sg.union(NULL), sg.ConstraintError, ["json_schema(...)"]),
    "nothing joined": (sg.concat, sg.ConstraintError, ["at least one"]),
    "tags as a list": (lambda: sg.tag_dispatch(["a"]), sg.ConstraintError, ["{tag: constraint}"]),
    "None as tool format": (lambda: sg.tool_call(None, []), sg.OptionsError, ["format None", "hermes"]),
    "one tool without a list": (lambda: sg.tool_call("hermes", {"name": "f"}), sg.ConstraintError, ["list", "dict"]),
    "a tool without a name": (lambda: sg.tool_call("hermes", [{}]), sg.ConstraintError, ["tool 0", "'name'"]),
    "a negative budget of thoughts": (lambda: sg.think(NULL, max_think_tokens=-1), sg.OptionsError, ["-1"]),
    "short types of members": (
        constraint({"properties": {"age": "int"}}),
        sg.SchemaError,
        ["/properties/age", 'Did you mean {"type": "integer"}?'],
    ),
    "a type of items": (constraint({"items": "string"}), sg.SchemaError, ['Did you mean {"type": "string"}?']),
    "no type": (constraint({"type": None}), sg.SchemaError, ["a type or a non-empty array of types", "null"]),
    "a list of classes": (constraint([Person]), sg.ConstraintError, ["give list[Person]"]),
    "some types": (constraint((int, str)), sg.ConstraintError, ["give list[int | str]"]),
    "a dataclass's value": (constraint(Point(1)), sg.ConstraintError, ["is a value", "its class, Point"]),
    "a type with a bad pattern": (
        constraint(Annotated[str, pydantic.Field(pattern="(")]),
        sg.ConstraintError,
        ["as a constraint", "unclosed group"],
    ),
    "None as a choice": (lambda: sg.choice(None), sg.ConstraintError, ["texts, not None"]),
    "None in a choice to compile": (
        lambda: sg.compile_choice(["a", None], None),
        sg.ConstraintError,
        ["texts, not None"],
    ),
    "None in a choice": (lambda: sg.choice(["a", None]), sg.ConstraintError, ["texts, not None"]),
    "words for the rows of a batch": (
        lambda: generator().batch(["p", "q"], ["low", "high"]),
        sg.SchemaError,
        ["row 0", "'low'", "choice([...])"],
    ),
    "an expression that looks before the text": (
        constraint(sg.regex("(?<=a)b")),
        sg.EmptyLanguageError,
        ["'(?<=a)b'", "before or after"],
    ),
    "quotes of Python in GBNF": (constraint(sg.gbnf("root ::= 'a'")), sg.GrammarError, ["column 10", "double quotes"]),
    "an open text in GBNF": (constraint(sg.gbnf('root ::= "a')), sg.GrammarError, ["column 10", "not closed"]),
    "an open class in GBNF": (constraint(sg.gbnf("root ::= [a")), sg.GrammarError, ["column 10", "not closed"]),
    "another sign of definition": (constraint(sg.gbnf('root = "a"')), sg.GrammarError, ["column 6", "name ::= ..."]),
    "a file's name as GBNF": (constraint(sg.gbnf("some.gbnf")), sg.GrammarError, ["Path('some.gbnf')"]),
    "GBNF as Lark's language": (constraint(sg.lark('root ::= "a"')), sg.GrammarError, ["line 1", "gbnf(...)"]),
    "an expression in quotes": (constraint(sg.lark('start: r"a+"')), sg.GrammarError, ["between slashes"]),
    "a misspelt rule": (constraint(sg.lark('start: wrod\nword: "a"')), sg.GrammarError, ["Did you mean 'word'?"]),
    "a terminal that Lark has not": (
        constraint(sg.lark("start: NUM\n%import common.NUM")),
        sg.GrammarError,
        ["line 1", "'common' has no NUM"],
    ),
    "a rule in small and capital letters": (
        constraint(sg.lark('Start: "a"')),
        sg.GrammarError,
        ["small letters", "capitals"],
    ),
    "a misspelt capture": (
        constraint(sg.lark('start: word\nword: "a"', captures=["wrd"])),
        sg.OptionsError,
        ["'wrd'", "did you mean 'word'?"],
    ),
    "a capture of nothing": (
        constraint(sg.lark('start: word\nword: "a"', captures=["zzz"])),
        sg.OptionsError,
        ["'zzz'", "there are start, word, A"],
    ),
    # tools
    "a tool format of another sort": (
        lambda: sg.tool_call("openai", []),
        sg.OptionsError,
        ["'openai'", "there are hermes, llama3", "..."],
    ),
    "arguments for parameters": (
        lambda: sg.tool_call("hermes", [{"name": "f", "arguments": {}}]),
        sg.ConstraintError,
        ["'arguments'", "did you mean 'parameters'?"],
    ),
    "a class as tool": (lambda: sg.tool_call("hermes", [Person]), sg.ConstraintError, ["tool 0 is the class Person"]),
    "a tool's bare name as choice": (
        lambda: sg.tool_call("hermes", [TOOL], tool_choice="weather"),
        sg.OptionsError,
        ["did you mean {'name': 'weather'}?"],
    ),
    "Anthropic's any": (
        lambda: sg.tool_call("hermes", [TOOL], tool_choice="any"),
        sg.OptionsError,
        ["did you mean 'required'?"],
    ),
    "a misspelt tool": (
        lambda: sg.tool_call("hermes", [TOOL], tool_choice={"name": "wether"}),
        sg.ConstraintError,
        ["'wether'", "did you mean 'weather'?"],
    ),
    "a tool of another name": (
        lambda: sg.tool_call("hermes", [TOOL], tool_choice={"name": "now"}),
        sg.ConstraintError,
        ["'now'", "there are weather"],
    ),
    "a number as prompt of tools": (
        lambda: structgen.tools.run(generator(), 5, [], format="hermes"),
        sg.GenerationError,
        ["not 5"],
    ),
    # JsonOptions
    "a misspelt JsonOptions field": (
        lambda: sg.JsonOptions(white_space=2),
        sg.OptionsError,
        ["did you mean 'whitespace'?"],
    ),
    "a misspelt exact option": (lambda: sg.JsonOptions.exact(dialct="draft7"), sg.OptionsError, ["'dialect'"]),
    "a draft by another name": (lambda: sg.JsonOptions(dialect="draft-07"), sg.OptionsError, ["'draft7'"]),
    "a length in quotes": (lambda: sg.JsonOptions(max_string_length="9"), sg.OptionsError, ["'9'"]),
    "a misspelt automatic length": (
        lambda: sg.JsonOptions(max_number_length="aut"),
        sg.OptionsError,
        ["'auto'"],
    ),
    "a word as options": (lambda: sg.json_schema(NULL, "exact"), sg.OptionsError, ["JsonOptions(...)"]),
    "a dict as registry": (
        lambda: sg.compile_json_schema(NULL, WORDS, registry={}),
        sg.OptionsError,
        ["referencing"],
    ),
    # options
    "no budget at all": (option(max_new_tokens=0), sg.OptionsError, ["at least 1, not 0"]),
    "a budget in quotes": (option(max_new_tokens="5"), sg.OptionsError, ["'5'"]),
    "None as temperature": (option(temperature=None), sg.OptionsError, ["not None"]),
    "a temperature that is none": (option(temperature=float("nan")), sg.OptionsError, ["nan"]),
    "more than all of the probability": (option(top_p=2), sg.OptionsError, ["top_p", "<= 1"]),
    "no tokens to choose from": (option(top_k=0), sg.OptionsError, ["top_k", "at least 1"]),
    "a seed below 0": (option(seed=-1), sg.OptionsError, ["seed", "-1"]),
    "nothing to stop at": (option(stop=""), sg.OptionsError, ["stop", "none empty"]),
    "a misspelt place of the schema": (option(schema_in_prompt="usr"), sg.OptionsError, ['"user"', "'usr'"]),
    "a misspelt form of the schema": (option(schema_form="skelton"), sg.OptionsError, ['"skeleton"', "'skelton'"]),
    "a form in place of a place": (option(schema_in_prompt="skeleton"), sg.OptionsError, ["schema_form='skeleton'"]),
    "a form that is none": (option(schema_form=None), sg.OptionsError, ["not None"]),
    "no attempts": (option(attempts=0), sg.OptionsError, ["attempts"]),
    "a number as prediction": (option(prediction=3), sg.OptionsError, ["prediction", "3"]),
    "an order of other steps": (option(order=("top_q",)), sg.OptionsError, ["top_p", "'top_q'"]),
    "True as draft": (option(draft=True), sg.OptionsError, ["draft=True", "ngram"]),
    "a stream with attempts": (lambda: generator().stream("p", NULL, attempts=2), sg.OptionsError, ["use generate"]),
    "a text as batch": (lambda: generator().batch("p", NULL), sg.GenerationError, ["single one"]),
    "fewer constraints than prompts": (
        lambda: generator().batch(["p", "q"], [NULL]),
        sg.GenerationError,
        ["2 prompts", "1 constraints"],
    ),
    "one seed as seeds": (lambda: generator().batch(["p"], NULL, seeds=3), sg.OptionsError, ["one a prompt"]),
    "a number as progress": (
        lambda: generator().batch(["p"], NULL, progress=3),
        sg.OptionsError,
        ["progress", "function"],
    ),
    "True as progress": (lambda: generator(progress=True), sg.OptionsError, ["progress", "True"]),
    "a choice between nothing": (lambda: generator().choice("p", None), sg.GenerationError, ["list of strings"]),
    "a budget of samples as a number": (
        lambda: generator().sample("p", NULL, 1, budget=5),
        sg.OptionsError,
        ["Budget(...)"],
    ),
    "samples at temperature 0": (
        lambda: generator().sample("p", NULL, 1, temperature=0),
        sg.OptionsError,
        ["no distribution"],
    ),
    "OpenAI's max_tokens": (option(max_tokens=5), sg.OptionsError, ["'max_tokens'", "did you mean 'max_new_tokens'"]),
    "a misspelt option": (option(temprature=1), sg.OptionsError, ["did you mean 'temperature'"]),
    "an unknown option": (option(foo=1), sg.OptionsError, ["there are temperature"]),
    "a temperature in quotes": (option(temperature="0"), sg.OptionsError, ["temperature", "'0'"]),
    "bytes to stop at": (option(stop=b"x"), sg.OptionsError, ["stop", "b'x'"]),
    "bias for a word": (option(logit_bias={"a": 1}), sg.OptionsError, ["'a'"]),
    "bias for no token": (option(logit_bias={10**9: 1}), sg.OptionsError, ["1000000000"]),
    "a dict as draft": (option(draft={}), sg.OptionsError, ["draft={}", "ngram"]),
    "Instructor's retries": (option(max_retries=3), sg.OptionsError, ["'max_retries'", "use attempts"]),
    "vLLM's constraint": (option(structured_outputs={}), sg.OptionsError, ["second argument"]),
    "vLLM's parameters": (option(sampling_params=1), sg.OptionsError, ["temperature, top_p"]),
    "OpenAI's tools": (option(tools=[]), sg.OptionsError, ["tool_call(format, tools)"]),
    "the messages by name": (option(messages=[]), sg.OptionsError, ["first argument"]),
    "a least number of tokens": (option(min_tokens=3), sg.OptionsError, ["minLength"]),
    "beams": (option(num_beams=3), sg.OptionsError, ["model.generate"]),
    "log-probabilities": (option(logprobs=True), sg.OptionsError, ["result has logprob", "choice"]),
    "items of what is no list": (
        lambda: list(generator().stream_items("p", Person)),
        sg.ConstraintError,
        ["no list but Person", "list[...]"],
    ),
    "a number as content": (prompt([{"role": "user", "content": 5}]), sg.GenerationError, ["not int", "5"]),
    "a misspelt draft": (option(draft="ngrm"), sg.OptionsError, ["did you mean 'ngram'"]),
    "a misspelt draft of the generator": (
        lambda: generator(draft="recyling").generate("p", NULL),
        sg.OptionsError,
        ["did you mean 'recycling'"],
    ),
    "no constraint for samples": (lambda: generator().sample("p", None, 1), sg.GenerationError, ["generate("]),
    "so many samples": (lambda: generator().sample("p", NULL, "3"), sg.OptionsError, ["'3'"]),
    "a misspelt method": (lambda: generator().sample("p", NULL, 1, "exat"), sg.OptionsError, ["exact"]),
    "an unknown option of samples": (
        lambda: generator().sample("p", NULL, 1, max_tokens=3),
        sg.OptionsError,
        ["max_new_tokens"],
    ),
    "a choice between letters": (lambda: generator().choice("p", "yes"), sg.GenerationError, ["list of strings"]),
    "a choice between numbers": (lambda: generator().choice("p", [1]), sg.GenerationError, ["list of strings"]),
    "a choice twice the same": (lambda: generator().choice("p", ["a", "a"]), sg.GenerationError, ["different"]),
    # models
    "a model without a tokenizer": (lambda: Generator(TinyModel(9)), sg.ModelError, ["Generator(model, tokenizer)"]),
    "a name as tokenizer": (lambda: Generator(TinyModel(9), "gpt2"), sg.TokenizerError, ["str"]),
    "prompt and schema swapped": (
        lambda: sg.generate_json(NULL, "p", generator()),
        sg.GenerationError,
        ["prompt", "null"],
    ),
    "a number as model": (lambda: sg.generate_json("p", NULL, 5), sg.ModelError, ["int", "Generator"]),
    "a number as loaded model": (lambda: Generator(3), sg.ModelError, ["3 (int)", "Hugging Face"]),
    "a folder without a model": (lambda: Generator(str(Path(__file__).parent)), sg.ModelError, ["no config.json"]),
    "no such GGUF file": (lambda: Generator("no.gguf"), sg.ModelError, ["no.gguf"]),
    "an empty name": (lambda: Generator(""), sg.ModelError, ["empty"]),
    "an address as model": (lambda: Generator("https://huggingface.co/gpt2"), sg.ModelError, ["organisation/model"]),
    "a misspelt backend": (lambda: Generator(backend="llama.cpp"), sg.ModelError, ["'llamacpp'"]),
    "a name as the generator's vocabulary": (
        lambda: Generator(MODEL, CharTokenizer(eos=1), vocabulary="x"),
        sg.TokenizerError,
        ["Vocabulary"],
    ),
    "a token of Hugging Face": (
        lambda: Generator("org/model", token="x"),
        sg.OptionsError,
        ["'token'", "Generator(model, tokenizer)"],
    ),
    "four bits": (lambda: Generator("org/model", load_in_4bit=True), sg.OptionsError, ["Generator(model, tokenizer)"]),
    # vocabularies
    "tokens as text": (lambda: sg.Vocabulary(["a"], eos_token_ids=0), sg.TokenizerError, ["Token 0", "bytes"]),
    "ids by tokens": (lambda: sg.Vocabulary({b"a": 0}, eos_token_ids=0), sg.TokenizerError, ["list of bytes"]),
    "no tokens": (lambda: sg.Vocabulary(None, eos_token_ids=0), sg.TokenizerError, ["NoneType"]),
    "no end": (lambda: sg.Vocabulary([b"a"], eos_token_ids=None), sg.TokenizerError, ["eos_token_ids", "None"]),
    "an end outside": (lambda: sg.Vocabulary([b"a"], eos_token_ids=9), sg.TokenizerError, ["9", "1 ids"]),
    "a width in quotes": (
        lambda: sg.Vocabulary([b"a"], eos_token_ids=0, size="3"),
        sg.TokenizerError,
        ["'3'"],
    ),
    "None as tokenizer": (lambda: sg.Vocabulary.from_transformers(None), sg.TokenizerError, ["NoneType"]),
    # machines
    "a name as vocabulary": (lambda: sg.compile_regex("a", "gpt2"), sg.TokenizerError, ["from_transformers"]),
    "a bitmask of one dimension": (
        lambda: matcher().fill_next_token_bitmask(np.zeros(3, dtype=np.int32)),
        sg.BitmaskError,
        ["allocate_token_bitmask"],
    ),
    "a grammar for its matcher": (
        lambda: sg.fill_next_token_bitmasks([sg.compile_regex("a", WORDS)], sg.allocate_token_bitmask(1, WORDS.size)),
        sg.BitmaskError,
        ["grammar.matcher()", "CfgGrammar"],
    ),
    "no bitmask": (lambda: matcher().fill_next_token_bitmask(None), sg.BitmaskError, ["NoneType"]),
    "a row that is not there": (
        lambda: matcher().fill_next_token_bitmask(sg.allocate_token_bitmask(1, WORDS.size), 5),
        sg.BitmaskError,
        ["row 5"],
    ),
    "a negative token": (lambda: matcher().accept_token(-1), sg.TokenError, ["-1", "0 to"]),
    "a token too high": (lambda: matcher().accept_token(WORDS.size), sg.TokenError, ["out of range"]),
    "too far back": (lambda: matcher().rollback(9), sg.MatcherStateError, ["9"]),
    "a bitmask for no rows": (lambda: sg.allocate_token_bitmask(-1, 5), sg.BitmaskError, ["-1"]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_said(name: str) -> None:
    call, error, phrases = CASES[name]
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert [phrase for phrase in phrases if phrase not in message] == [], message
    assert "Traceback" not in message and len(message) < 900 and len(message.splitlines()) < 5


TOLD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "an example for a schema": ({"name": "string", "age": 36}, ["no word of it is a keyword", '{"properties": {...}}']),
    "what a schema lies in": ({"name": "x", "schema": NULL, "strict": True}, ["perhaps its member 'schema'"]),
    "a misspelt required member": (
        {"type": "object", "properties": {"name": {}}, "required": ["nmae"]},
        ["/required/0", "'nmae'", "did you mean 'name'?"],
    ),
    "a misspelt format": ({"properties": {"at": {"format": "datetime"}}}, ["/properties/at/format", "'date-time'?"]),
    "another name of a format": ({"format": "URL"}, ["'URL'", "did you mean 'uri'?"]),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_is_odd_is_told(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Schemas that are legal, and hardly what was meant: one line of the log, and an entry of the report."""
    schema, phrases = TOLD[name]
    with caplog.at_level(logging.WARNING, "structgen"):
        grammar = sg.compile_json_schema(schema, WORDS)
    (line,) = caplog.messages
    assert [phrase for phrase in phrases if phrase not in line] == [], line
    (entry,) = grammar.report.misspelt
    assert line == f"schema, at {entry.pointer or 'its root'}: {entry.reason}"


@pytest.mark.parametrize(
    "schema",
    [
        {}, {"title": "name"}, {"x-name": 1}, {"$defs": {"a": {}}}, {"const": {"name": "string"}},
        {"properties": {"name": {}, "nams2": {}}, "required": ["name", "other"]},
        {"format": "uuid4"}, {"format": "int32"}, {"format": "color"}, {"format": "uri"},
        {"properties": {"name": {}}, "required": ["surname"]},
    ],
)  # fmt: skip
def test_what_is_not_odd_is_not(schema: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    grammar = sg.compile_json_schema(schema, WORDS)
    assert caplog.messages == [] and grammar.report.misspelt == []


def test_text_for_bytes() -> None:
    with pytest.raises(TypeError, match=r"takes bytes, not str; a text is text\.encode\(\)"):
        matcher().accept_bytes("ab")


def test_names_of_the_package_are_suggested() -> None:
    with pytest.raises(AttributeError) as caught:
        sg.Genrator  # type: ignore[attr-defined] # noqa: B018
    assert caught.value.name == "Genrator" and caught.value.obj is sg


def test_there_are_many() -> None:
    assert len(CASES) >= 155
