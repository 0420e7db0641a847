"""Truth of a formula on a whole JSON value: a plain recursive oracle that defines what formulas mean."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import islice
from typing import Any

from structgen.core.json_schema.formula import language as f
from structgen.core.json_schema.formula.values import ARRAY, NUMBER, OBJECT, STRING, canonical, exact_number, type_of

Refs = Mapping[Hashable, f.Formula]


def evaluate(
    formula: f.Formula, value: Any, refs: Refs | None = None, truths: dict[f.Formula, bool] | None = None
) -> bool:
    """Whether the parsed JSON ``value`` satisfies ``formula``; ``refs`` resolves references.

    Quadratic at worst in the value (Uniq is not) and linear in the formula, references unrolled.

    Args:
        known: what was found of parts of the formula for this value, so that those that are shared are looked at once.

    Raises:
        PatternError: a pattern that cannot be compiled.
        KeyError: a reference that ``refs`` does not hold.
    """
    match formula:
        case f.And() | f.Or() | f.One():
            truths = {} if truths is None else truths
            if formula not in truths:
                truths[formula] = _joined(formula, (evaluate(arg, value, refs, truths) for arg in formula.args))
            return truths[formula]
        case f.Not():
            return not evaluate(formula.arg, value, refs, truths)
        case f.Ref():
            assert refs is not None, "the formula refers, but no table was given"
            return evaluate(refs[formula.key], value, refs, truths)
        case f.Type():
            return bool(type_of(value) & formula.mask)
        case f.Enum():
            return canonical(value) in formula.members
        case f.Order():
            return True
        case f.MemberRecord():
            return evaluate(formula.spelled, value, refs, truths)
    return _evaluate_typed(formula, value, refs)


def _joined(formula: f.And | f.Or | f.One, truths: Iterator[bool]) -> bool:
    match formula:
        case f.And():
            return all(truths)
        case f.Or():
            return any(truths)
    return len(list(islice(filter(None, truths), 2))) == 1


def _evaluate_typed(formula: f.Formula, value: Any, refs: Refs | None) -> bool:
    """Atoms of one type, true off it."""
    bit = type_of(value)
    match formula:
        case f.Int():
            return bit != NUMBER or isinstance(value, int)
        case f.Mult() | f.Ge() | f.Gt():
            return bit != NUMBER or _evaluate_number(formula, value)
        case f.Pat() | f.Format() | f.Len() | f.Quoted() | f.Phrased():
            return bit != STRING or _evaluate_string(formula, value)
        case f.All():
            return bit != OBJECT or all(
                evaluate(formula.value, item, refs) for key, item in value.items() if evaluate(formula.keys, key, refs)
            )
        case f.Keys():
            return bit != OBJECT or len(value) >= formula.n
        case f.Idx():
            return bit != ARRAY or all(evaluate(formula.value, item, refs) for item in value[formula.lo : formula.hi])
        case f.Items():
            matching = (item for item in value if evaluate(formula.value, item, refs)) if bit == ARRAY else ()
            return bit != ARRAY or len(list(islice(matching, formula.n))) == formula.n
        case f.Uniq():
            return bit != ARRAY or len({canonical(item) for item in value}) == len(value)
    raise AssertionError(f"unknown atom {formula!r}")


def _evaluate_number(formula: f.Mult | f.Ge | f.Gt, value: Any) -> bool:
    number = exact_number(value)
    if isinstance(formula, f.Mult):
        return (number / formula.q).denominator == 1
    return number >= formula.x if isinstance(formula, f.Ge) else number > formula.x


def _evaluate_string(formula: f.Pat | f.Format | f.Len | f.Quoted | f.Phrased, value: str) -> bool:
    if isinstance(formula, f.Len):
        return len(value) >= formula.n
    if isinstance(formula, f.Quoted):
        return formula.corpus.quote(value, 0).occurrences > 0
    if isinstance(formula, f.Phrased):
        return formula.search.holds(value)
    from structgen.core.regex.dfa import accepts  # deferred: these compile kernels, and only some formulas need them

    if isinstance(formula, f.Pat):
        from structgen.core.regex.pattern import pattern_dfa

        return accepts(pattern_dfa(formula.regex), value)
    from structgen.core.regex.formats import format_dfa

    dfa = format_dfa(formula.name, formula.dialect)
    return dfa is None or accepts(dfa, value)
