"""Numbers of all shapes: what JSON's grammar accepts is read digit by digit, or refused by an error that says where."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Context, Decimal, localcontext
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import structgen
from structgen.core.json_prefix import loads_partial
from structgen.core.json_text import decode_exact, loads_exact
from structgen.core.tool_calls.formats import FORMATS
from structgen.core.tool_calls.values import json_text as template_text
from structgen.errors import GenerationError, SchemaError, StructgenError
from structgen.server.outputs import begun_json, json_text
from tests.core.grammars.dialects.llguidance.peers import BYTES

TOO_LARGE = "1e99999999999999999999"
NUMBERS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.sampled_from(["0", "1", "10", "123456789", "9" * 400, "9" * 5000, "1" + "0" * 5000]),
    st.sampled_from(["", ".0", ".5", "." + "0" * 400 + "1", ".1" + "0" * 5000]),
    st.just("")
    | st.builds(
        "{}{}{}".format,
        st.sampled_from(["e", "E"]),
        st.sampled_from(["", "+", "-"]),
        st.sampled_from(["0", "005", "308", "400", "9" * 9, "9" * 16, "9" * 20, "9" * 5000, "0" * 5000 + "1"]),
    ),
)
AROUND = ["{}", "[{}]", '{{"a": {}, "b": "\\"-1e99999999999999999999"}}', ' [[0, {}], "x"] ']


def exact(number: str) -> tuple[str, str, int]:
    """Sign, digits without zeros at either end, and the exponent of the last of them: by the text alone."""
    found = re.fullmatch(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?)([0-9]+))?", number)
    assert found is not None
    sign, whole, fraction, minus, exponent = (part or "" for part in found.groups())
    digits = (whole + fraction).lstrip("0")
    size = int(exponent.lstrip("0")[:4000] or "0")  # as good as any, where it is longer
    last = (-size if minus == "-" else size) - len(fraction) + len(digits) - len(digits.rstrip("0"))
    return (sign, digits.rstrip("0"), last) if digits else ("", "", 0)


def held(value: Any) -> tuple[str, str, int]:
    """The same of a number of Python."""
    sign, digits, exponent = Decimal(repr(value) if isinstance(value, float) else value).as_tuple()
    assert isinstance(exponent, int)
    shown = "".join(map(str, digits)).lstrip("0")
    last = exponent + len(shown) - len(shown.rstrip("0"))
    return ("-" if sign else "", shown.rstrip("0"), last) if shown else ("", "", 0)


def innermost(value: Any) -> Any:
    while isinstance(value, (dict, list)):
        value = value["a"] if isinstance(value, dict) else value[1] if len(value) > 1 and value[1] != "x" else value[0]
    return value


@settings(max_examples=250, deadline=None)
@given(NUMBERS, st.sampled_from(AROUND))
def test_any_number_is_read_as_it_is_or_refused(number: str, around: str) -> None:
    text = around.format(number)
    _, digits, last = exact(number)
    readable = not digits or (last > -(10**18) and last + len(digits) < 10**18)
    if not readable:
        with pytest.raises(GenerationError, match=f"at character {text.index(number)} .*exponent"):
            loads_exact(text)
        assert decode_exact(text, len(text) - len(text.lstrip())) is None
    else:
        value = loads_exact(text)
        assert held(innermost(value)) == exact(number)
        assert held(innermost(loads_exact(json_text(value)))) == exact(number)  # and can be written
        assert held(innermost(loads_exact(template_text(value)))) == exact(number)
    for end in {len(text), len(text) - 1, len(text) // 2, text.index(number) + 1}:
        begun_json(loads_partial(text[:end]))  # nothing is raised


@contextmanager
def few_digits() -> Iterator[None]:
    """As a process may have it that limits Python further."""
    most = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        with localcontext(Context(traps=[])):
            yield
    finally:
        sys.set_int_max_str_digits(most)


def test_settings_of_the_process_change_no_value() -> None:
    with few_digits():
        assert loads_exact("9" * 3000) == Decimal("9" * 3000)
        assert loads_exact("0e" + "9" * 30) == 0.0
        with pytest.raises(GenerationError, match="exponent"):
            loads_exact(TOO_LARGE)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a": -Infinity}'])
def test_constants_of_python_are_no_json(text: str) -> None:
    with pytest.raises(GenerationError, match="is no JSON"):
        loads_exact(text)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    "number", ["9" * 5000, "-1e400", "0e" + "9" * 30, TOO_LARGE], ids=["9*5000", "1e400", "0", "!"]
)
def test_arguments_of_calls(name: str, number: str) -> None:
    """In every format: read and written again, or refused by name; what is unfinished never raises."""
    parameters = {"type": "object", "properties": {"x": {"type": "number"}}}
    constraint = structgen.tool_call(name, [{"type": "function", "function": {"name": "f", "parameters": parameters}}])
    text = constraint.render([structgen.ToolCall("f", {"x": 777})]).replace("777", number)
    for end in range(0, len(text) + 1, max(1, len(text) // 50)):
        for piece in constraint.parse_partial(text[:end]):
            assert isinstance(piece, str) or begun_json(piece.arguments) is not None
    if number == TOO_LARGE:
        with pytest.raises(GenerationError, match="exponent is too large for Python"):
            constraint.parse(text)
        return
    (call,) = [piece for piece in constraint.parse(text) if isinstance(piece, structgen.ToolCall)]
    assert held(call.arguments["x"]) == exact(number)
    assert constraint.parse(constraint.render([call])) == [call]
    assert json.loads(json_text(call.arguments), parse_int=str, parse_float=str).keys() == {"x"}


@pytest.mark.parametrize("number", [TOO_LARGE, "-1e-99999999999999999999", "9" * 5000, "0e" + "9" * 30])
@pytest.mark.parametrize("keyword", ["minimum", "multipleOf", "const", "maxLength", "minItems", "default", "x-own"])
def test_numbers_of_schemas(keyword: str, number: str) -> None:
    """Whatever stands there, the schema compiles or the error is the library's."""
    schema = f'{{"{keyword}": {number}}}'
    for source in (schema, f"start: %json {schema}"):
        try:
            if source is schema:
                structgen.json_schema(schema).compile(BYTES)
            else:
                structgen.lark(source, dialect="llguidance").compile(BYTES)
        except StructgenError as error:
            assert number not in (TOO_LARGE, "-1e-99999999999999999999") or "exponent" in str(error)


HOSTILE = {
    "a pointer": lambda: structgen.json_schema(f'{{"$ref": "#/anyOf/{"9" * 5000}", "anyOf": [true]}}').compile(BYTES),
    "a pointer of other digits": lambda: structgen.json_schema('{"$ref": "#/anyOf/٠", "anyOf": [true]}').compile(BYTES),
    "a repetition": lambda: structgen.regex("a{" + "9" * 5000 + "}").compile(BYTES),
    "a repetition of a terminal": lambda: structgen.lark("start: /a{" + "9" * 5000 + "}/").compile(BYTES),
    "an option": lambda: structgen.lark(f'%llguidance {{"a": {"9" * 5000}}}\nstart: "a"').compile(BYTES),
    "a deep schema in a grammar": lambda: structgen.lark("start: %json " + "[" * 100_000).compile(BYTES),
    "NaN in a grammar": lambda: structgen.lark('start: %json {"minimum": NaN}').compile(BYTES),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_numbers_of_patterns_and_pointers_are_refused_by_name(what: str) -> None:
    with pytest.raises((StructgenError, SchemaError)):
        HOSTILE[what]()
