"""The states of a number that is being written, and what may follow each of them.

A state is the least that decides how the text may go on; two texts with the same continuations get the same state
wherever that is cheap to see. Everything that can no longer matter is dropped or saturated:

========== =========================================================================================
Start      nothing, or only the minus sign, is written
Zero       only zeros (``0``, ``0.``, ``0.00``)
Digits     a significand to which nonzero digits may still be added
Tail       a number to which only zeros may be added; what counts is the set of exponents left
Exponent   ``e`` is written, the sign perhaps, no digit
Power      digits of the exponent are written
End        nothing may follow
========== =========================================================================================

Only live states are made: from each of them some text is accepted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from structgen.core.engines.json.numbers.sets import EVERY, ROOT, Intervals, Magnitudes, NumberSteps, clip, moved
from structgen.core.engines.json.numbers.spec import NOTHING, NumberSpec, magnitudes

__all__ = ["NumberReader", "State"]

INTEGER, ZERO, POINT, FRACTION = range(4)
"""Where the digits stand: in the integer part, after its single zero, at the point, in the fraction.

Without exponents a fraction does not end in a zero, so after such a zero the number must go on as at the point: POINT.
"""

MAX_KNOWN = 1_000
"""States after digits with residues that a reader keeps."""

NO_EXPONENT: Intervals = ((0, 0),)
NATURAL: Intervals = ((0, math.inf),)
_DIGITS = [b"%d" % digit for digit in range(10)]


class Start(NamedTuple):
    """Nothing is written (sign 1) or the minus sign (-1)."""

    sign: int
    kind: str = "start"


class Zero(NamedTuple):
    """Zeros only; ``fraction`` of them after the point."""

    side: int
    phase: int
    fraction: int
    kind: str = "zero"


class Digits(NamedTuple):
    """A significand that may get further nonzero digits.

    ``landmark`` is where it lies among the landmarks, ``point`` its point, ``fraction`` the number of digits after the
    point, ``residue`` its residue and ``least`` the least exponent with which it is a multiple of each step. Fields
    that cannot matter are 0 (or a value that stands for all that act alike).
    """

    side: int
    phase: int
    landmark: int
    point: int
    fraction: int
    residue: int
    least: tuple[float, ...]
    kind: str = "digits"


class Tail(NamedTuple):
    """A number that only zeros may lengthen, with the exponents that make it a member. ``zero``: it is 0 with any."""

    phase: int
    exponents: Intervals
    zero: bool = False
    kind: str = "tail"


class Exponent(NamedTuple):
    """``e`` is written; with ``signed`` the sign too, and ``exponents`` are absolute values."""

    exponents: Intervals
    signed: bool
    zero: bool = False
    kind: str = "exponent"


class Power(NamedTuple):
    """The digits ``power`` of an exponent, which has to become one of ``exponents`` >= 0."""

    power: int
    exponents: Intervals
    zero: bool = False
    kind: str = "power"


class End(NamedTuple):
    """The number is complete."""

    kind: str = "end"


State: TypeAlias = Start | Zero | Digits | Tail | Exponent | Power | End
Moves: TypeAlias = Iterator[tuple[bytes, State | None]]


class NumberReader:
    """Gives, for a `NumberSpec` without ``max_length``, the live states and their successors. Immutable."""

    def __init__(self, spec: NumberSpec) -> None:
        self.plain = spec.spelling in ("plain", "integer")  # no exponents, no redundant fractions
        self.marked = spec.spelling == "marked"
        self.steps = NumberSteps(spec if spec.values is None else NumberSpec())
        members = [NOTHING if self.steps.never else magnitudes(spec, sign) for sign in (1, -1)]
        self.sides = [Magnitudes(one, self.steps) for one in dict.fromkeys(members)]
        self._side = {1: 0, -1: len(self.sides) - 1}
        self.has_zero = spec.contains(Fraction(0))
        self.has_minus_zero = self.has_zero and not (spec.spelling == "plain" and spec.integer_only)
        self._last = POINT if self.plain else FRACTION  # the phase after a zero of the fraction
        self.crowded = self.steps.step is not None
        self._fresh = self.steps.thresholds(0) if self.steps.modulus == 1 else None
        self._known: dict[tuple[int, ...], State | None] = {}
        self.start = Start(1) if self.has_zero or any(map(self._has_members, self.sides)) else None

    def moves(self, state: State) -> list[tuple[bytes, State]]:
        """The live successors of a state, each with the bytes that lead to it."""
        targets = _MOVES[state.kind](self, state)
        return [(symbols, after) for symbols, after in targets if after is not None]

    def accepts(self, state: State) -> bool:
        """Whether the number may end here."""
        if isinstance(state, Zero | Tail | Digits):
            ends = state.phase == FRACTION or (state.phase != POINT and not self.marked)
            return ends and _has(self._exponents(state), 0)
        if isinstance(state, Power):
            return _has(state.exponents, state.power)
        return isinstance(state, End)

    def suffix(self, state: State) -> bytes | None:
        """Where residues make for many states: digits and point that lead to a member by some exponent (or by none)."""
        if not isinstance(state, Digits) or self.steps.step is None:
            return None
        members, point = self.sides[state.side], state.point
        last = point if self.plain and state.phase != INTEGER else math.inf
        first = point if self.plain else -math.inf
        member = members.find(state.landmark, state.residue, point + state.fraction, first, last)
        if members.members.values is not None or member is None:
            return None
        if state.phase != INTEGER or not self.plain:
            return (member[1].rstrip("0") if self.plain else member[1]).encode()
        count = member[0] - point
        whole, remaining = member[1][:count].ljust(count, "0"), member[1][count:].rstrip("0")
        return (whole + (f".{remaining}" if remaining else "")).encode()

    def known(self, _: State) -> bytes | None:
        """A completion that needs no search: none here."""
        return None

    def inner(self, state: State) -> tuple[State, bool]:
        """The state, and whether numbers have no exponents."""
        return state, self.plain

    def is_endless(self, state: State) -> bool:
        """Whether the digits written so far are a member with endlessly many exponents: so many values follow."""
        match state:
            case Tail(_, exponents, zero) | Exponent(exponents, _, zero) | Power(_, exponents, zero):
                return not zero and not _is_bounded(exponents)
            case Digits():
                return not _is_bounded(self._exponents(state))
        return False

    def missing(self, state: State) -> int:
        """A lower bound of the bytes still needed: digits to a least member, to a multiple or to a non-multiple."""
        if not self.crowded and not self.plain:
            return self._missing_digits(state)
        needed = self._missing_plain(state) if self.plain else 0
        if not self.crowded or not isinstance(state, Digits) or self._exponents(state):
            return needed
        count, power, divisor = 1, 10, self.steps.odd
        while (-state.residue * power - 1) % divisor + 1 >= power:
            count, power = count + 1, power * 10
        return max(count, needed)

    def _missing_plain(self, state: State) -> int:
        """Without exponents: digits before the point that the least member has, and after it for forbidden steps."""
        if not isinstance(state, Start | Zero | Digits):
            return 0
        whole: float = 0
        if isinstance(state, Start) and not self.has_zero:
            sides = self.sides if state.sign > 0 else [self.sides[self._side[state.sign]]]
            whole = min(side.low_point for side in sides if self._has_members(side))
        elif isinstance(state, Digits) and state.phase == INTEGER:
            whole = self.sides[state.side].low_point - state.point
        if not -math.inf < self.steps.last < 0:
            return int(max(0, whole))
        written = 0 if isinstance(state, Start) else state.fraction
        point = isinstance(state, Start) or state.phase in (INTEGER, ZERO)
        return int(max(0, whole) + max(0, -self.steps.last - written) + point)

    def _missing_digits(self, state: State) -> int:
        """Digits from the first, which lies as high as the least member's, down to one that no forbidden step allows.

        A non-multiple of 1 above 1e300 has 302 digits, whatever its exponent; and a point or an exponent, too.
        """
        if self.steps.last == math.inf or not isinstance(state, Start | Zero | Digits):
            return 0
        sides, digits = self.sides, 0
        if isinstance(state, Start):
            sides = [self.sides[self._side[state.sign]]] if state.sign < 0 else self.sides
        if isinstance(state, Start | Zero):
            if self.has_zero:
                return 0
        elif state.landmark < ROOT and not self.sides[state.side].bounded:
            return 0
        else:
            sides, digits = [self.sides[state.side]], state.point + state.fraction
        least = min(side.low_point for side in sides if self._has_members(side))
        if least == -math.inf:
            return 0
        whole = isinstance(state, Start) or state.phase in (INTEGER, ZERO)
        return int(max(0, least - self.steps.last - digits)) + (1 if whole and self.steps.last < 0 else 0)

    def _exponents(self, state: Zero | Tail | Digits) -> Intervals:
        """The exponents with which the digits written so far are a member."""
        if isinstance(state, Tail):
            return state.exponents
        if isinstance(state, Zero):
            return self._zero_exponents()
        return self._stops(state.side, state.phase, state.landmark, state.point, state.least)

    def _zero_exponents(self) -> Intervals:
        if not self.has_zero:
            return ()
        return NO_EXPONENT if self.plain else EVERY

    def _stops(self, side: int, phase: int, landmark: int, point: int, least: tuple[float, ...]) -> Intervals:
        low, high = self.steps.limits(least) if least else (-math.inf, math.inf)
        if self.plain:
            low, high = max(low, 0), min(high, self._most(phase))
        return moved(self.sides[side].place(landmark).ends, -point, low, high)

    @staticmethod
    def _most(phase: int) -> float:
        """In plain spelling only further zeros of the integer part can take the place of an exponent."""
        return math.inf if phase == INTEGER else 0

    @staticmethod
    def _has_members(members: Magnitudes) -> bool:
        return members.grows(ROOT, 0, 0, -math.inf, math.inf)

    # --- making states -----------------------------------------------------------------------------------------------

    def _tail(self, phase: int, exponents: Intervals, zero: bool = False) -> State | None:
        if self.plain:
            exponents = clip(exponents, 0, self._most(phase)) if phase != POINT else ()
        if not exponents:
            return None
        if self.plain and (phase != INTEGER or exponents[-1][1] < 1):
            return End()
        return Tail(phase, exponents, zero)

    def _zero(self, side: int, phase: int, fraction: int) -> State | None:
        members = self.sides[side]
        if not self.steps.items:
            fraction = int(min(fraction, self._zeros_that_matter(members)))
        limit = -fraction if self.plain else math.inf
        if members.grows(ROOT, 0, 0, -math.inf, limit):
            return Zero(side, phase, fraction)
        return self._tail(phase, self._zero_exponents(), True)

    def _zeros_that_matter(self, members: Magnitudes) -> float:
        """The number of zeros after the point from which on all landmarks lie above (without steps)."""
        if members.least_point == math.inf:
            return 0
        return max(0, 1 - members.least_point) if self.plain else math.inf

    def _digits(
        self, side: int, phase: int, landmark: int, point: int, fraction: int, residue: int, least: tuple[float, ...]
    ) -> State | None:
        """The canonical state of a significand, or None if it cannot become a member."""
        members = self.sides[side]
        first, last = -math.inf, math.inf
        if self.plain:
            landmark, point = self._settle(members, phase, landmark, point)
            least = tuple([min(max(one, 0), 1 + self._most(phase)) for one in least])
            first, last = point, point + self._most(phase)
        elif landmark < ROOT and not members.bounded:
            point = 0
        if members.grows(landmark, residue, point + fraction, first, last):
            return Digits(side, phase, landmark, point, fraction, residue, least)
        return self._tail(phase, self._stops(side, phase, landmark, point, least))

    def _settle(self, members: Magnitudes, phase: int, landmark: int, point: int) -> tuple[int, int]:
        """Without exponents: drop comparisons that the digits before the point have decided."""
        here = members.place(landmark)
        if landmark >= ROOT:
            if any(mark.point >= point if phase == INTEGER else mark.point == point for mark in here.here):
                return landmark, point
            landmark = here.off
            here = members.place(landmark)
        if phase != INTEGER:
            return (3, int(members.free_point)) if here.low <= point <= here.high else (landmark, point)
        if point > members.low_point:
            landmark |= 1
        if members.high_point == math.inf:
            point = min(point, int(members.low_point) + 1 if members.low_point != -math.inf else 0)
        return landmark, point

    # --- what may follow ---------------------------------------------------------------------------------------------

    def _after_start(self, state: Start) -> Moves:
        if state.sign > 0:
            minus = self._has_members(self.sides[self._side[-1]]) or self.has_minus_zero
            yield b"-", Start(-1) if minus else None
        side = self._side[state.sign]
        zero = self._zero(side, ZERO, 0)
        if state.sign > 0 or self.has_minus_zero or not isinstance(zero, End):
            yield b"0", zero
        yield from self._nonzero(side, INTEGER, ROOT, 1, 0, 0)

    def _after_zero(self, state: Zero) -> Moves:
        side, phase, fraction, _ = state
        if phase == ZERO:
            yield b".", self._zero(side, POINT, 0)
        else:
            yield b"0", self._zero(side, self._last, fraction + 1)
            yield from self._nonzero(side, FRACTION, ROOT, -fraction, fraction + 1 if self.steps.items else 0, 0)
        yield self._to_exponent(phase, self._zero_exponents(), True)

    def _after_digits(self, state: Digits) -> Moves:
        side, phase, landmark, point, fraction, residue, least, _ = state
        after_zero = self.sides[side].after(landmark).moves[0]
        residue = residue * 10 % self.steps.modulus
        if phase == INTEGER:
            yield b"0", self._digits(side, phase, after_zero, point + 1, 0, residue, tuple([x - 1 for x in least]))
            yield from self._nonzero(side, phase, landmark, point + 1, 0, residue)
            yield b".", self._digits(side, POINT, landmark, point, 0, state.residue, least)
        else:
            fraction = fraction + 1 if self.steps.items else 0
            yield b"0", self._digits(side, self._last, after_zero, point, fraction, residue, least)
            yield from self._nonzero(side, FRACTION, landmark, point, fraction, residue)
        yield self._to_exponent(phase, self._exponents(state))

    def _nonzero(self, side: int, phase: int, landmark: int, point: int, fraction: int, residue: int) -> Moves:
        """The states after each digit 1 to 9; the arguments are those of the state after it, but for the digit."""
        here, fresh, modulus = self.sides[side].after(landmark), self._fresh, self.steps.modulus
        if fresh is not None:
            least = tuple([one + fraction for one in fresh])
            for digits, after in here.groups:
                yield digits, self._digits(side, phase, after, point, fraction, 0, least)
            return
        for digit in range(1, 10):
            yield (
                _DIGITS[digit],
                self._residual(side, phase, here.moves[digit], point, fraction, (residue + digit) % modulus),
            )

    def _residual(self, side: int, phase: int, landmark: int, point: int, fraction: int, residue: int) -> State | None:
        """`_digits` after a digit that is not 0, where residues matter; kept, since many states lead to the same."""
        key = (side, phase, landmark, point, fraction, residue)
        if key not in self._known:
            if len(self._known) > MAX_KNOWN:
                self._known.clear()
            least = tuple([one + fraction for one in self.steps.thresholds(residue)])
            self._known[key] = self._digits(side, phase, landmark, point, fraction, residue, least)
        return self._known[key]

    def _after_tail(self, state: Tail) -> Moves:
        phase, exponents, zero, _ = state
        if phase == INTEGER:
            yield b"0", self._tail(INTEGER, moved(exponents, -1, -math.inf, math.inf))
        elif phase != ZERO:
            yield b"0", self._tail(FRACTION, exponents, zero)
        if phase in (INTEGER, ZERO) and not self.plain:
            yield b".", self._tail(POINT, exponents, zero)
        yield self._to_exponent(phase, exponents, zero)

    def _to_exponent(self, phase: int, exponents: Intervals, zero: bool = False) -> tuple[bytes, State | None]:
        possible = exponents and phase != POINT and not self.plain
        return b"eE", Exponent(exponents, False, zero) if possible else None

    def _after_exponent(self, state: Exponent) -> Moves:
        positive = clip(state.exponents, 0, math.inf)
        if not state.signed:
            negative = tuple((-high, -low) for low, high in reversed(clip(state.exponents, -math.inf, 0)))
            yield b"+", Exponent(positive, True, state.zero) if positive else None
            yield b"-", Exponent(negative, True, state.zero) if negative else None
        yield from self._powers(0, positive, state.zero)

    def _after_power(self, state: Power) -> Moves:
        yield from self._powers(state.power * 10, state.exponents, state.zero)

    @staticmethod
    def _powers(base: int, exponents: Intervals, zero: bool) -> Moves:
        if base == 0 and exponents == NATURAL:
            yield b"0123456789", Power(0, NATURAL, zero)
            return
        for digit in range(10):
            yield _DIGITS[digit], _power(base + digit, exponents, zero)

    def _after_end(self, _: End) -> Moves:
        yield from ()


def _is_bounded(intervals: Intervals) -> bool:
    return not intervals or (intervals[0][0] > -math.inf and intervals[-1][1] < math.inf)


def _has(intervals: Intervals, number: int) -> bool:
    return any(low <= number <= high for low, high in intervals)


def _power(power: int, exponents: Intervals, zero: bool) -> State | None:
    """The canonical state after the digits ``power`` of an exponent."""
    left = clip(exponents, power, math.inf)
    if not left:
        return None
    if power == 0:
        return Power(0, left, zero)
    if len(left) == 1 and left[0] == (power, math.inf):
        return Power(0, NATURAL, zero)
    if left[-1][1] < 10 * power:
        return End() if left[0][0] == power else None
    low, high = power, power
    while low <= left[-1][1]:
        if clip(left, low, high):
            return Power(power, left, zero)
        low, high = 10 * low, 10 * high + 9
    return None


_MOVES: dict[str, Callable[[NumberReader, Any], Moves]] = {
    "start": NumberReader._after_start,
    "zero": NumberReader._after_zero,
    "digits": NumberReader._after_digits,
    "tail": NumberReader._after_tail,
    "exponent": NumberReader._after_exponent,
    "power": NumberReader._after_power,
    "end": NumberReader._after_end,
}
