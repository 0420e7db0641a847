"""Number automata against brute force: an independent grammar, exact fractions and enumeration."""

from __future__ import annotations

import math
import re
import threading
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structgen.core.engines.json.numbers.automaton import NumberAutomaton, NumberSpec, Spelling, automaton

NUMBER = re.compile(rb"(-?)(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
PREFIX = re.compile(rb"-?(0|[1-9][0-9]*)?((?<=[0-9])\.[0-9]*)?((?<=[0-9])[eE][+-]?[0-9]*)?")

F = Fraction
SATURATED = 60
SPELLINGS: tuple[Spelling, ...] = ("any", "plain", "integer", "marked")
INTEGER = frozenset({F(1)})


def steps(*texts: str) -> frozenset[Fraction]:
    return frozenset(map(Fraction, texts))


@cache
def read(text: bytes) -> tuple[Fraction, bool, bool] | None:
    """The value of a JSON number and whether it has a point and an exponent; None if the text is not one.

    Far beyond the bounds, digits and steps used here an exponent makes no difference, so that it is cut off.
    """
    match = NUMBER.fullmatch(text)
    if match is None:
        return None
    exponent = max(-SATURATED, min(SATURATED, int(match[4][1:]) if match[4] else 0))
    value = F((match[1] + match[2] + (match[3] or b"")).decode()) * F(10) ** exponent
    return value, match[3] is not None, match[4] is not None


def allowed(spec: NumberSpec, text: bytes) -> bool:
    """The definition: a JSON number, spelled as asked for, whose exact value meets every condition."""
    found = read(text)
    if found is None or (spec.max_length is not None and len(text) > spec.max_length):
        return False
    value, point, exponent = found
    if not meets(spec, value):
        return False
    if spec.spelling == "any":
        return True
    if spec.spelling == "marked":
        return point or exponent
    if spec.spelling == "integer":
        return not (point or exponent)
    return not exponent and not (point and text.endswith(b"0")) and not (only_integers(spec) and text == b"-0")


def meets(spec: NumberSpec, value: Fraction) -> bool:
    if spec.minimum is not None and (value < spec.minimum or (spec.exclusive_minimum and value == spec.minimum)):
        return False
    if spec.maximum is not None and (value > spec.maximum or (spec.exclusive_maximum and value == spec.maximum)):
        return False
    if any(value % step != 0 for step in spec.multiples) or any(value % step == 0 for step in spec.non_multiples):
        return False
    return value not in spec.excluded and (spec.values is None or value in spec.values)


def only_integers(spec: NumberSpec) -> bool:
    if spec.values is not None and all(value % 1 == 0 for value in spec.values if meets(spec, value)):
        return True
    return any(step % 1 == 0 for step in spec.multiples) or spec.multiples in (steps("0.4", "1.5"), steps("1/3"))


def walk(machine: NumberAutomaton, text: bytes) -> int | None:
    """The state after a text; None as soon as the prefix is dead."""
    if machine.is_empty:
        return None
    state: int | None = machine.start
    for byte in text:
        state = dict(machine.row(state)).get(byte) if state is not None else None
    return state


def check_all(spec: NumberSpec, alphabet: bytes, length: int) -> None:
    """Compare the automaton with the definition on every text over the alphabet up to a length."""
    machine = NumberAutomaton(spec)

    def visit(text: bytes, state: int | None) -> bool:
        """Whether the text or a longer one is allowed."""
        good = allowed(spec, text)
        assert (state is not None and machine.accepting(state)) == good, text
        row = dict(machine.row(state)) if state is not None else {}
        if state is not None:
            assert state in complete or allowed(spec, text + machine.shortest(state)), (text, machine.shortest(state))
            complete.add(state)
        if len(text) < length:
            for byte in alphabet:
                longer = text + bytes([byte])
                if PREFIX.fullmatch(longer):
                    good |= visit(longer, row.get(byte))
                else:
                    assert byte not in row, longer
        assert state is not None or not good, text
        return good

    complete: set[int] = set()
    visit(b"", None if machine.is_empty else machine.start)


EVERY = b"0123456789-+.eE"
SPECS = {
    "number": NumberSpec(),
    "integer": NumberSpec(multiples=INTEGER),
    "port": NumberSpec(F(0), maximum=F(65535), multiples=INTEGER),
    "percent": NumberSpec(F(1), maximum=F(100), multiples=INTEGER),
    "positive": NumberSpec(F(0), exclusive_minimum=True, multiples=INTEGER),
    "natural": NumberSpec(F(0), multiples=INTEGER),
    "latitude": NumberSpec(F(-90), maximum=F(90)),
    "open unit": NumberSpec(F(0), True, F(1), True),
    "narrow": NumberSpec(F("1.25"), False, F("1.3"), True),
    "crossing a power": NumberSpec(F("9.5"), True, F("10.5"), True),
    "at most": NumberSpec(maximum=F("12.5")),
    "more than": NumberSpec(F("12.5"), True),
    "cents": NumberSpec(F(0), multiples=steps("0.01")),
    "cents below one": NumberSpec(F(0), maximum=F(1), multiples=steps("0.01")),
    "sevens": NumberSpec(F(1), maximum=F(10), multiples=steps("7")),
    "two steps": NumberSpec(F(-20), maximum=F(20), multiples=steps("0.4", "1.5")),
    "hundreds": NumberSpec(F(-1000), maximum=F(1000), multiples=steps("100")),
    "eighths": NumberSpec(multiples=steps("0.125")),
    "thirds": NumberSpec(multiples=frozenset({F(1, 3)})),
    "enum": NumberSpec(values=steps("1", "10", "12", "1.5", "-3", "0", "0.05")),
    "integer enum": NumberSpec(values=steps("1", "10", "12", "105", "-3")),
    "filtered enum": NumberSpec(F(2), values=steps("1", "10", "1.5"), multiples=INTEGER),
    "excluded": NumberSpec(F(0), maximum=F(3), multiples=INTEGER, excluded=steps("0", "2", "5")),
    "all but one": NumberSpec(excluded=steps("12", "0.5")),
    "all excluded": NumberSpec(F(1), maximum=F(3), multiples=INTEGER, excluded=steps("1", "2", "3")),
    "no multiple": NumberSpec(non_multiples=steps("2", "0.5")),
    "odd": NumberSpec(F(0), maximum=F(50), multiples=INTEGER, non_multiples=steps("2", "3"), excluded=steps("1", "5")),
    "contradiction": NumberSpec(multiples=steps("4"), non_multiples=steps("2")),
    "point": NumberSpec(F("2.5"), maximum=F("2.5")),
    "empty": NumberSpec(F(2), True, F(2)),
    "zero": NumberSpec(F(0), maximum=F(0)),
    "short": NumberSpec(F(100), maximum=F(2000), multiples=INTEGER, max_length=4),
    "too short": NumberSpec(F(1000), exclusive_minimum=True, multiples=steps("13"), max_length=3),
}


@pytest.mark.first_case
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", SPECS)
def test_every_text(name: str, spelling: Spelling) -> None:
    spec = replace(SPECS[name], spelling=spelling)
    check_all(spec, EVERY, 3)
    check_all(spec, b"0125-.e", 5)


def member_test(spec: NumberSpec, prefix: int, sign: int, decades: range, inside: bool = False) -> bool:
    """Whether the spec has a member of this sign in ``[prefix, prefix + 1) * 10**n`` for an n of ``decades``.

    By the definition: looks among the multiples of a common step of all. ``inside``: the end does not count.
    """
    step = F(1, 1000)
    for multiple in spec.multiples:
        step = F(math.lcm(step.numerator, multiple.numerator), math.gcd(step.denominator, multiple.denominator))
    dense = not spec.multiples
    for decade in decades:
        low, high = prefix * F(10) ** decade, (prefix + 1) * F(10) ** decade
        low = max([low] + [abs(bound) for bound in bounds(spec, sign)[:1]])
        high = min([high] + [abs(bound) for bound in bounds(spec, sign)[1:]])
        if dense and low < high:
            return True
        start = max(1, math.ceil(low / step))
        if inside and step * start == prefix * F(10) ** decade:
            start += 1
        for count in range(start, start + 500):  # excluded values and forbidden multiples are far fewer
            if step * count > high or step * count >= (prefix + 1) * F(10) ** decade:
                break
            if meets(spec, sign * step * count):
                return True
    return False


def bounds(spec: NumberSpec, sign: int) -> tuple[Fraction, Fraction]:
    """The least and the greatest magnitude of one sign, roughly: 0 and 10**12 where there is no bound."""
    low, high = (spec.minimum, spec.maximum) if sign > 0 else (spec.maximum, spec.minimum)
    return max(F(0), sign * low if low is not None else F(0)), max(F(0), sign * high if high is not None else F(10**12))


DECIMALS = st.builds(lambda number, places: F(number, 10**places), st.integers(-999, 999), st.integers(0, 2))
STEPS = st.sampled_from([F(1), F(2), F(7), F(10), F(25), F("0.1"), F("0.01"), F("0.25"), F("1.5"), F("0.3"), F("12")])


@st.composite
def specs(draw: st.DrawFn) -> NumberSpec:
    low, high = sorted([draw(DECIMALS), draw(DECIMALS)])
    return NumberSpec(
        draw(st.sampled_from([None, low])),
        draw(st.booleans()),
        draw(st.sampled_from([None, high])),
        draw(st.booleans()),
        draw(st.frozensets(STEPS, max_size=2)),
        draw(st.one_of(st.just(frozenset[Fraction]()), st.frozensets(STEPS, max_size=2))),
        draw(st.frozensets(st.one_of(DECIMALS, st.integers(-9, 9).map(F), st.just(low), st.just(high)), max_size=4)),
    )


@pytest.mark.full
@settings(max_examples=80, deadline=None)
@given(specs(), st.integers(1, 1500), st.sampled_from([1, -1]))
def test_prefixes(spec: NumberSpec, prefix: int, sign: int) -> None:
    """A prefix of digits is alive iff some member's digits begin with it, in some decade."""
    text = (b"-" if sign < 0 else b"") + str(prefix).encode()
    state = walk(NumberAutomaton(spec), text)
    assert (state is not None) == member_test(spec, prefix, sign, range(-8, 8))


@settings(max_examples=80, deadline=None)
@given(specs(), st.integers(1, 1500), st.sampled_from([1, -1]), st.integers(0, 4))
def test_plain_prefixes(spec: NumberSpec, prefix: int, sign: int, places: int) -> None:
    """Without exponents the point is fixed once it is written (``places`` - 1 digits ago), and can only move right.

    A fraction that ends in a zero, or has no digit yet, has to go on.
    """
    spec = replace(spec, spelling="plain")
    text = str(prefix).zfill(places)
    if places:
        cut = len(text) - places + 1
        text = f"{text[:cut]}.{text[cut:]}"
    if text.startswith("00"):
        return
    state = walk(NumberAutomaton(spec), ("-" * (sign < 0) + text).encode())
    open_end = bool(places) and text[-1] in ".0"
    expected = member_test(spec, prefix, sign, range(1 - places, 2 - places) if places else range(8), open_end)
    assert (state is not None) == (expected and not (places and only_integers(spec)))


@settings(max_examples=80, deadline=None)
@given(specs(), st.data())
def test_spellings_of_values(spec: NumberSpec, data: st.DataObject) -> None:
    """Values at and around what the spec names, in random spellings, are accepted iff they are members."""
    named = [*spec.excluded, *(bound for bound in (spec.minimum, spec.maximum) if bound is not None), F(0)]
    step = data.draw(st.sampled_from([*spec.multiples, *spec.non_multiples, F(1), F("0.001")]))
    base = data.draw(st.sampled_from(named)) // step * step if data.draw(st.booleans()) else data.draw(DECIMALS)
    value = base + step * data.draw(st.integers(-3, 3))
    text = spell(value, data.draw(st.integers(-6, 6)), data.draw(st.integers(0, 4)), data.draw(st.sampled_from("eE")))
    assert read(text) == (value, b"." in text, b"e" in text.lower())
    machine = NumberAutomaton(spec)
    state = walk(machine, text)
    assert (state is not None and machine.accepting(state)) == meets(spec, value)
    assert machine.contains(value) == meets(spec, value)


def spell(value: Fraction, move: int, zeros: int, letter: str) -> bytes:
    """A spelling of a decimal with at most three places, the point moved and zeros added."""
    number = abs(value) * F(10) ** move
    places = max(zeros, 3 - move)
    digits = str(int(number * 10**places)).zfill(places + 1)
    text = digits[: len(digits) - places] + ("." + digits[len(digits) - places :] if places else "")
    return f"{'-' * (value < 0)}{text}{letter}{'+' * (move < 0)}{-move:0{zeros}}".encode()


@settings(max_examples=80, deadline=None)
@given(specs(), st.sampled_from(SPELLINGS), st.data())
def test_random_walks_can_always_be_finished(spec: NumberSpec, spelling: Spelling, data: st.DataObject) -> None:
    spec = replace(spec, spelling=spelling)
    machine, text = NumberAutomaton(spec), b""
    if machine.is_empty:
        return
    state = machine.start
    for _ in range(25):
        assert allowed(spec, text + machine.shortest(state))
        row = machine.row(state)
        if not row:
            break
        byte, state = data.draw(st.sampled_from(row))
        text += bytes([byte])


@settings(max_examples=40, deadline=None)
@given(specs(), st.sampled_from(SPELLINGS), st.integers(1, 4))
def test_length_limits(spec: NumberSpec, spelling: Spelling, limit: int) -> None:
    check_all(replace(spec, spelling=spelling, max_length=limit), b"01579-.e", limit + 1 if limit < 4 else 4)


def accepts(spec: NumberSpec, text: str) -> bool:
    machine = automaton(spec)
    state = walk(machine, text.encode())
    return state is not None and machine.accepting(state)


def test_long_numbers() -> None:
    big = NumberSpec(F(0), maximum=F(10) ** 308, multiples=INTEGER)
    assert accepts(big, "1" + "0" * 308)
    assert not accepts(big, "1" + "0" * 307 + "1")
    assert accepts(big, "1" + "0" * 3000 + "e-2692")
    assert not accepts(big, "1" + "0" * 3000 + "e-2691")
    assert accepts(big, "9" * 308) and not accepts(big, "9" * 309)
    small = NumberSpec(F(1, 10**300), exclusive_minimum=True, maximum=F(1))
    assert accepts(small, "0." + "0" * 299 + "1" + "0" * 1000 + "1")
    assert not accepts(small, "0." + "0" * 299 + "1" + "0" * 1000)
    assert accepts(small, "1" * 3000 + "e-" + "0" * 3000 + "3000")
    assert accepts(NumberSpec(multiples=steps("0.01")), "12345678" * 200 + ".99")
    assert accepts(NumberSpec(), "1e" + "9" * 3000)
    assert not accepts(NumberSpec(F(0), maximum=F(9)), "1e" + "9" * 30)


def test_large_steps() -> None:
    """Steps whose residues are too many to search: completions come from arithmetic."""
    for spelling in SPELLINGS:
        for step, low in (
            ("1234567", "0"),
            ("1234500", "5"),
            ("86400", "7"),
            ("0.1000003", "-3"),
            ("9876543210.123", "1"),
        ):
            spec = NumberSpec(F(low), True, multiples=steps(step), spelling=spelling)
            machine = NumberAutomaton(spec)
            for text in (b"", b"9", b"12", b"775"):
                state = walk(machine, text)
                assert state is not None
                assert allowed(spec, text + machine.shortest(state))
                assert walk(NumberAutomaton(replace(spec, max_length=20)), text) is not None


def test_length_limit_with_a_large_step() -> None:
    """Close to the limit only few digits still lead to a multiple."""
    spec = NumberSpec(F(1), multiples=steps("1234567"), spelling="plain", max_length=8)
    machine = NumberAutomaton(spec)
    alive = {prefix for prefix in range(10_000, 100_000, 1001) if walk(machine, str(prefix).encode()) is not None}
    starts = {str(1234567 * k)[:5] for k in range(1, 82)}
    assert alive == {prefix for prefix in range(10_000, 100_000, 1001) if str(prefix) in starts}


def test_common_specs_have_few_states() -> None:
    """All states within three digits: the bound is a little above what was measured."""
    figures = {"number": 8, "integer": 16, "natural": 16, "port": 60, "percent": 32, "latitude": 32, "cents": 16}
    for name, limit in figures.items():
        for spelling in SPELLINGS:
            machine = NumberAutomaton(replace(SPECS[name], spelling=spelling))
            layer = {machine.start}
            for _ in range(3):
                layer = {after for state in layer for byte, after in machine.row(state) if 48 <= byte < 58}
            assert len(machine) <= limit, (name, spelling)


def test_shortest_is_shortest() -> None:
    assert automaton(NumberSpec()).shortest(0) == b"0"
    assert len(automaton(NumberSpec(F(1000))).shortest(0)) == len("1e3")
    assert automaton(NumberSpec(F(1000), spelling="plain")).shortest(0) == b"1000"
    assert automaton(NumberSpec(maximum=F(-15), multiples=INTEGER, spelling="plain")).shortest(0) == b"-15"


def test_cache_and_threads() -> None:
    spec = NumberSpec(F(17), maximum=F(4242), multiples=steps("3"))
    made: list[NumberAutomaton] = []
    expected = [bool(value % 3 == 0 and 17 <= value <= 4242) for value in range(1500)]
    results: list[list[bool]] = []

    def work() -> None:
        made.append(automaton(NumberSpec(F(17), maximum=F(4242), multiples=steps("3"))))
        results.append([accepts(spec, str(value)) for value in range(1500)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(machine) for machine in made}) == 1
    assert results == [expected] * 4


def test_errors() -> None:
    with pytest.raises(ValueError, match="greater than 0"):
        NumberSpec(multiples=steps("0"))
    with pytest.raises(ValueError, match="decimal"):
        NumberSpec(F(1, 3))
    empty = NumberAutomaton(NumberSpec(F(2), maximum=F(1)))
    assert empty.is_empty and empty.row(empty.start) == [] and not empty.accepting(empty.start)
    with pytest.raises(ValueError, match="is_empty"):
        empty.shortest(empty.start)


PLAIN_AND_NOT = [
    (NumberSpec(), ["0", "-1", "1.5", "0.05", "100"], ["1.0", "0.0", "1.50", "100.000", "-0.0", "0.10", "1e2"]),
    (NumberSpec(F(1)), ["1", "1.05"], ["1.000", "23123912.000"]),
    (NumberSpec(multiples=steps("0.5")), ["0.5", "2", "12.5"], ["2.0", "0.50", "12.500"]),
    (NumberSpec(values=steps("1", "2.25", "30")), ["1", "2.25", "30"], ["1.0", "2.250", "30.0"]),
    (NumberSpec(F("-0.5"), True, excluded=steps("3")), ["52592009123007.8"], ["52592009123007.800", "3"]),
    (NumberSpec(maximum=F(1)), ["0", "-0", "0.25"], ["1.00", "0.250"]),
]


@pytest.mark.parametrize(("spec", "plain", "others"), PLAIN_AND_NOT)
def test_plain_spelling(spec: NumberSpec, plain: list[str], others: list[str]) -> None:
    spec = replace(spec, spelling="plain")
    assert [text for text in plain if not accepts(spec, text)] == []
    assert [text for text in others if accepts(spec, text)] == []


@pytest.mark.parametrize("power", [40, 300])
@pytest.mark.parametrize("step", [Fraction(1), Fraction(1, 4), Fraction(2), Fraction(5, 2)])
def test_the_shortest_non_multiple_far_above_zero(power: int, step: Fraction) -> None:
    """It has a digit for each place from its first down to one that the step does not allow, whatever the exponent."""
    found = automaton(NumberSpec(minimum=Fraction(10) ** power, non_multiples=frozenset({step})))
    text = found.shortest(found.start).decode()
    assert found.contains(Fraction(text))
    places = {Fraction(1): 1, Fraction(1, 4): 3, Fraction(2): 0, Fraction(5, 2): 2}[step]
    assert len(text.replace(".", "").split("e")[0]) in range(power, power + 2 + places)
    assert len(found) < 100 * power  # near a line, not all places of the point times all lengths
