"""Every error of the tree, raised as it is raised: what it carries, and what its message says.

A class that has no row here fails the test, so that whoever adds one says what a program gets from it.
"""

from __future__ import annotations

import inspect
import os
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pydantic
import pytest

import structgen as sg
import structgen.tools
from structgen import errors
from structgen.core.answers.refused_texts import TextAndConstraint
from structgen.core.constraints.specs import ConstraintSpec
from structgen.core.engines.captures import chart
from structgen.core.regex import dfa
from structgen.core.vocabulary.vocabulary import TextVocabulary
from structgen.generation.batch_files.lines import PromptFile
from structgen.generation.decoding.output import Output
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.request import Request
from structgen.generation.scheduler.scheduler import Scheduler
from tests.fakes import CharTokenizer, vocabulary

BYTES = TextVocabulary()
WORDS = vocabulary(eos=1)


class Adult(pydantic.BaseModel):
    age: int

    @pydantic.field_validator("age")
    @classmethod
    def at_least_18(cls, age: int) -> int:
        if age < 18:
            raise ValueError("too young")
        return age


@dataclass
class Row:
    """How an error comes about, and what is known of it then. ``carries``: values of attributes; ``is_set``: those that
    are not None; ``says``: pieces of the message; ``cause``: the type of what it was raised from."""

    cause_it: Callable[[], Any]
    says: list[str]
    carries: dict[str, Any] = field(default_factory=dict)
    is_set: list[str] = field(default_factory=list)
    cause: type[BaseException] | None = None


def generator() -> sg.Generator:
    return sg.Generator(TinyModel(WORDS.size), CharTokenizer(eos=1), vocabulary=WORDS)


def compiled(schema: Any, **options: Any) -> Callable[[], Any]:
    return lambda: sg.compile_json_schema(schema, BYTES, sg.JsonOptions(**options))


def of_text(matcher: Any, text: bytes) -> Any:
    assert matcher.accept_bytes(text)
    return matcher


def scheduled(error: str) -> Callable[[], Any]:
    """An error of a scheduler, which is an event's: raised here as callers see it."""

    def cause() -> None:
        clock = [0.0]
        scheduler = Scheduler(generator().reader, SchedulerLimits(sequences=1, waiting=2), clock=lambda: clock[0])
        first = scheduler.submit(Request([2], Output(WORDS, None, SamplingParams(), max_new_tokens=50)))
        scheduler.step()
        output = Output(WORDS, None, SamplingParams(), max_new_tokens=50)
        second = scheduler.submit(Request([2], output, queue_seconds=1.0))
        if error == "queue":
            clock[0] = 2.0
        else:
            scheduler.cancel(first)
        scheduler.step()
        raise (second if error == "queue" else first).error or AssertionError("nothing was wrong")

    return cause


def too_late() -> None:
    output = Output(WORDS, None, SamplingParams(), max_new_tokens=5)
    scheduler = Scheduler(generator().reader)
    handle = scheduler.submit(Request([2], output))
    scheduler.step()
    from structgen.generation.scheduler.sequence_tasks import _too_late

    scheduler._fail(handle, errors.MaskTimeoutError(_too_late(handle, 0.5)))
    assert handle.error is not None
    raise handle.error


def no_server() -> None:
    openai = pytest.importorskip("openai", reason="the client that cannot connect")
    from structgen.integrations.remote import RemoteGenerator

    client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key="none", max_retries=0)
    RemoteGenerator(client=client).generate("p", {"type": "null"})


def no_answer() -> None:
    pytest.importorskip("openai", reason="the client of the server")
    from structgen.integrations.remote import RemoteGenerator
    from tests.integrations.remote.servers import ScriptedServer, in_turn

    with ScriptedServer(in_turn("no", "never", "[1, ")) as server:
        RemoteGenerator(server.url).generate("p", {"type": "array"}, max_attempts=3)


def no_numba() -> None:
    from structgen.core.kernels import functions, loading

    before, jit = functions.has_compiler, os.environ.get("STRUCTGEN_JIT")
    functions.has_compiler = lambda: False
    os.environ["STRUCTGEN_JIT"] = "1"
    try:
        loading.kernel.__wrapped__("tokens")
    finally:
        functions.has_compiler = before
        os.environ.pop("STRUCTGEN_JIT")
        if jit is not None:
            os.environ["STRUCTGEN_JIT"] = jit


def captures() -> None:
    before, chart.MAX_STEPS = chart.MAX_STEPS, 1000
    try:
        sg.lark('start: s\ns: s s | "x"', captures=["s"]).captures("x" * 200)
    finally:
        chart.MAX_STEPS = before


def weather(days: int) -> str:
    raise OSError(f"no data for {days} days")


PERSN = {"type": "object", "properties": {"a": {"type": "persn"}}}
TABLE: dict[str, Row] = {
    "StructgenError": Row(lambda: _raise(errors.StructgenError("the base of all")), ["base"]),
    "ConstraintError": Row(lambda: sg.json_schema(object()), ["object object", "Expected", "Literal"], cause=Exception),
    "SchemaError": Row(
        compiled(PERSN), ['"persn"', "/properties/a/type"], {"pointer": "/properties/a/type", "keyword": "type"}
    ),
    "UnresolvableReferenceError": Row(
        compiled({"items": {"$ref": "#/$defs/no"}}), ["#/$defs/no", "/items"], {"pointer": "/items/$ref"}
    ),
    "UnsupportedSchemaError": Row(
        compiled({"type": "array", "not": {"uniqueItems": True}, "maxItems": 3}),
        ["uniqueItems", "unsupported"],
        is_set=["pointer", "hint"],
    ),
    "UnknownKeywordError": Row(
        compiled({"items": {"typ": "null"}}, unknown_keywords="refuse"),
        ["'type'", "/items/typ", "unknown_keywords"],
        {"pointer": "/items/typ", "keyword": "typ"},
        ["hint"],
    ),
    "UnsatisfiableSchemaError": Row(
        compiled({"type": "integer", "minimum": 3, "maximum": 2}), ["no"], is_set=["pointer"]
    ),
    "SpecificationError": Row(
        lambda: ConstraintSpec("structural_tag", {"format": {"type": "tag", "begin": 1}}).constraint,
        ["begins or ends a tag", "string or a token"],
        {"place": ("format", "begin"), "pointer": "/format/begin", "code": "invalid_value"},
    ),
    "SchemaTooComplexError": Row(
        compiled({"type": "object"}, max_steps=1), ["max_steps", "Raise"], {"budget": "max_steps", "limit": 1}
    ),
    "PatternError": Row(
        lambda: sg.compile_regex("a(b", BYTES), ["offset", "^"], {"pattern": "a(b", "pointer": None}, ["position"]
    ),
    "UnsupportedPatternError": Row(
        lambda: sg.compile_regex(r"(a)\1", BYTES), ["offset", "^"], {"pattern": r"(a)\1"}, ["position"]
    ),
    "PatternTooComplexError": Row(
        lambda: sg.compile_regex("(a|b)*a(a|b){30}", BYTES),
        ["automaton states"],
        {"budget": "automaton states"},
        ["limit"],
    ),
    "GrammarError": Row(
        lambda: sg.compile_gbnf('root ::= "a" (\n', BYTES), ["line 1", "^"], {"line": 1}, ["column", "source"]
    ),
    "EmptyLanguageError": Row(lambda: sg.compile_gbnf('root ::= "b" []', BYTES), ["root"]),
    "GrammarTooComplexError": Row(
        lambda: sg.compile_lark("start: A\nA: /(a|b)*a(a|b){40}/\n", BYTES),
        ["automaton states", "line 2", "^"],
        {"line": 2, "budget": "automaton states"},
        ["limit", "column"],
    ),
    "TooComplexError": Row(
        lambda: dfa.from_strings(["abcdefgh"], max_states=5), ["5"], {"budget": "automaton states", "limit": 5}
    ),
    "UndecidedError": Row(
        lambda: sg.is_subset({"type": "string", "pattern": r"^(a+)\1$"}, {"minLength": 2}), ["not decided", "regular"]
    ),
    "OptionsError": Row(
        lambda: sg.JsonOptions(key_order="some"),  # type: ignore[arg-type]
        ["'some'", "'declared'"],
        {"option": "key_order", "value": "some"},
    ),
    "InputFileError": Row(
        lambda: PromptFile.of("rows", b'{"prompt": "a"}\n{"pro').check(),
        ["rows, line 2", "JSON"],
        {"line": 2, "text": '{"pro'},
    ),
    "TokenizerError": Row(lambda: sg.Generator(TinyModel(9), "gpt2"), ["str"]),
    "BitmaskError": Row(
        lambda: sg.compile_regex("a", WORDS).matcher().fill_next_token_bitmask(np.zeros((1, 1), dtype=np.float32)),
        ["float32", "int32"],
    ),
    "TokenError": Row(
        lambda: sg.compile_regex("a", WORDS).matcher().accept_token(10**6), ["1000000", "ids 0 to"], {"value": 10**6}
    ),
    "MatcherStateError": Row(lambda: sg.compile_regex("a", WORDS).matcher().rollback(1), ["1 step", "0 were accepted"]),
    "CompletionTooLongError": Row(
        lambda: (
            compiled({"type": "object", "required": ["a"], "minProperties": 1 << 20})().matcher().shortest_completion()
        ),
        ["too long"],
    ),
    "InternalError": Row(lambda: _raise(errors.InternalError("state 7 has no way out")), ["state 7", "report"]),
    "ToolCallError": Row(
        lambda: sg.tools.tool(weather).call({"days": 2}),
        ["weather", "OSError", "no data"],
        {"name": "weather", "value": {"days": 2}},
        cause=OSError,
    ),
    "KernelError": Row(no_numba, ["STRUCTGEN_JIT=1", "pip install 'structgen-lm[jit]'"]),
    "ModelError": Row(lambda: sg.Generator(TinyModel(9)), ["Generator(model, tokenizer)"]),
    "RemoteServerError": Row(no_server, ["127.0.0.1"], is_set=["attempts"], cause=Exception),
    "IntegrationError": Row(lambda: _missing_openai(), ["openai", "pip install"], cause=ImportError),
    "GenerationError": Row(
        lambda: sg.json_schema({"type": "array"}).parse("[1, "), ["no JSON", "[1, "], {"text": "[1, "}, cause=ValueError
    ),
    "CapturesTooComplexError": Row(captures, ["budget", "1,000"], {"limit": 1000}, ["budget"]),
    "CancelledError": Row(scheduled("cancel"), ["withdrawn"], is_set=["text"]),
    "MaskTimeoutError": Row(too_late, ["max_mask_seconds"], is_set=["text"]),
    "QueueError": Row(scheduled("queue"), ["1 seconds", "again later"], {"text": ""}),
    "IncompleteOutputError": Row(
        lambda: generator().generate(
            "p", {"type": "array", "minItems": 9, "items": {"const": "abc"}}, max_new_tokens=20
        ),
        ["max_new_tokens", "tokens are left"],
        is_set=["partial", "text"],
    ),
    "RemoteOutputError": Row(no_answer, ["none of 3 answers"], is_set=["attempts", "partial", "text"]),
    "RefusedTextError": Row(
        lambda: TextAndConstraint(sg.json_schema({"maximum": 3}), "4").compile(BYTES),
        ["refuses the text: /maximum"],
        {"text": "4"},
        ["reasons"],
    ),
    "RefusedValueError": Row(
        lambda: sg.json_schema(Adult).parse('{"age": 3}'),
        ["too young", '{"age": 3}'],
        {"text": '{"age": 3}', "value": {"age": 3}},
        cause=pydantic.ValidationError,
    ),
    "UnsatisfiableTargetError": Row(
        lambda: generator().sample("p", sg.regex("[ab]{9}"), 1, max_new_tokens=3), ["max_tokens=3"]
    ),
}


def _raise(error: Exception) -> None:
    raise error


def _missing_openai() -> None:
    import sys

    from structgen.integrations.remote import RemoteGenerator

    before = sys.modules.get("openai")
    sys.modules["openai"] = None  # type: ignore[assignment]
    try:
        RemoteGenerator()
    finally:
        del sys.modules["openai"]
        if before is not None:
            sys.modules["openai"] = before


def test_the_table_is_the_tree() -> None:
    kinds = {
        name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, errors.StructgenError)
    }
    assert kinds == set(TABLE)


@pytest.mark.parametrize("name", sorted(TABLE))
def test_what_an_error_carries_and_says(name: str) -> None:
    row = TABLE[name]
    with pytest.raises(getattr(errors, name)) as caught:
        row.cause_it()
    error = caught.value
    assert type(error).__name__ == name
    message = str(error)
    assert [piece for piece in row.says if piece not in message] == [], message
    assert {key: getattr(error, key) for key in row.carries} == row.carries
    assert [key for key in row.is_set if getattr(error, key) is None] == []
    assert error.row is None and (row.cause is None or isinstance(error.cause, row.cause))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == message
    assert repr(vars(again)) == repr(vars(error))
    assert (again.cause is None) == (error.cause is None)
    if error.cause is not None:
        assert str(error.cause) in str(again.cause)


def test_a_cause_that_cannot_be_sent_is_told() -> None:
    class Local(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__(f"{a} of {b}")

    try:
        raise errors.GenerationError("It failed.") from Local(1, 2)
    except errors.GenerationError as error:
        again = pickle.loads(pickle.dumps(error))
    assert str(again.cause) == "Local: 1 of 2"


def test_the_row_of_a_batch_is_carried() -> None:
    with pytest.raises(sg.SchemaError) as caught:
        generator().batch(["a", "b"], [{"type": "null"}, PERSN], max_new_tokens=9)
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.row == 1 and error.pointer == "/properties/a/type" and str(error).startswith("row 1: ")
    assert error.results[0].value is None and isinstance(error.results[1], sg.SchemaError)
