"""Grammars: Lark's for both lexers against Lark itself, GBNF against a plain recogniser."""

from __future__ import annotations

import functools
import json
import random
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from structgen import compile_gbnf, compile_lark
from structgen.errors import ConstraintError, GrammarWarning, StructgenError
from tests.fuzz.random_grammars import Rules, derived, mutated, random_rules, recognise, to_gbnf, to_lark
from tests.fuzz.vocabularies import COUNT, vocabulary
from tests.fuzz.walks import Walk, Wrong, accepts

Case = dict[str, Any]
TEXTS = 90
LONGEST = 24  # the judges take long for more
ALPHABET = "ab1(),+if é#;x-"
LEXERS = {"lark": "dynamic", "lalr": "contextual"}


def unit(seed: int, tally: Counter[str], area: str) -> list[Case]:
    """Check one grammar of an area."""
    case, rules, start, rng = _begun(seed, area)
    tally["grammars"] += 1
    tally[f"grammars {area}"] += 1
    try:
        judge = judge_of(area, case)
    except _Refused:
        tally[f"grammars {area} that the judge refuses"] += 1
        judge = None
    try:
        grammar = compiled(area, case)
    except ConstraintError as error:
        tally[f"grammars {area} refused: {type(error).__name__}"] += 1
        return [] if judge is None else _none_valid(case, rules, start, judge, rng, tally, type(error).__name__)
    except Exception as error:
        return [{**case, "kind": f"untyped {type(error).__name__}", "detail": repr(error)[:300]}]
    if judge is None:
        return [{**case, "kind": "compiles what the judge refuses"}] if area != "gbnf" else []
    return _checked(case, rules, start, grammar, judge, rng, tally)


def _begun(seed: int, area: str) -> tuple[Case, Rules, str, random.Random]:
    """The grammar of a seed, as a case and as a tree."""
    rng = random.Random(f"{area} {seed}")
    start = "root" if area == "gbnf" else "start"
    rules = random_rules(rng, start, deterministic=area == "lalr")
    case: Case = {"vocabulary": rng.randint(0, COUNT)}
    if area == "gbnf":
        case["rules"] = json.dumps(rules)
    else:
        case["grammar"] = to_lark(rules, rng)
    return case, rules, start, rng


def case_of(seed: int, area: str) -> Case:
    """The case of a seed whose unit never came back."""
    return _begun(seed, area)[0]


def replay(case: Case) -> str | None:
    """What is still wrong with a case."""
    area = case["area"]
    try:
        judge = judge_of(area, case)
    except _Refused:
        judge = None
    try:
        grammar = compiled(area, case)
    except ConstraintError as error:
        empty = type(error).__name__ == "EmptyLanguageError"
        return "EmptyLanguageError" if empty and judge and "text" in case and judge(case["text"]) else None
    except Exception as error:
        return f"untyped {type(error).__name__}"
    if judge is None:
        return "compiles what the judge refuses" if area != "gbnf" else None
    if "text" in case:
        taken, valid = accepts(grammar, case["text"].encode()), judge(case["text"])
        return None if taken == valid else "refuses valid" if valid else "accepts invalid"
    for number in range(case.get("rounds", 12)):
        wrong = _walked(case, grammar, judge, random.Random(number), Counter())
        if wrong is not None:
            return str(wrong["kind"])
    return None


def _name(error: Exception) -> str:
    return type(error).__name__ if isinstance(error, StructgenError) else f"untyped {type(error).__name__}"


class _Refused(Exception):
    """The judge does not take the grammar."""


@functools.lru_cache(64)
def _lark(text: str, area: str) -> Any:
    import lark

    if area == "lark":
        return lark.Lark(text, parser="earley", lexer="dynamic_complete", ambiguity="forest")
    return lark.Lark(text, parser="lalr", lexer="contextual")


def judge_of(area: str, case: Case) -> Callable[[str], bool]:
    """Whether texts are of the grammar."""
    if area == "gbnf":
        rules: Rules = json.loads(case["rules"])
        return lambda text: recognise(rules, "root", text)
    import lark

    try:
        parser = _lark(case["grammar"], area)
    except (lark.exceptions.LarkError, AssertionError) as error:
        raise _Refused(str(error)) from None

    def valid(text: str) -> bool:
        try:
            parser.parse(text)
        except lark.exceptions.LarkError:
            return False
        return True

    return valid


def compiled(area: str, case: Case) -> Any:
    """The engine's grammar."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        if area == "gbnf":
            return compile_gbnf(to_gbnf(json.loads(case["rules"])), vocabulary(case["vocabulary"]))
        return compile_lark(case["grammar"], vocabulary(case["vocabulary"]), lexer=LEXERS[area])


def _texts(rules: Rules, start: str, rng: random.Random) -> list[str]:
    """Texts of the grammar, some of their neighbours, and some of no relation."""
    found = {"", *(text for _ in range(TEXTS // 2) if (text := derived(rules, start, rng)) is not None)}
    found = {text for text in found if len(text) <= LONGEST}
    near = sorted(found)
    spaced = {"".join(c + rng.choice(("", "", " ")) for c in rng.choice(near)) for _ in range(8)}
    found |= spaced | {mutated(rng, rng.choice(near), ALPHABET) for _ in range(TEXTS // 2)}
    while len(found) < TEXTS:
        found.add("".join(rng.choices(ALPHABET, k=rng.choice((1, 2, 3, 4, 6, 9)))))
    return sorted(found)


def _none_valid(
    case: Case, rules: Rules, start: str, judge: Any, rng: random.Random, tally: Counter[str], error: str
) -> list[Case]:
    """A grammar without texts has none."""
    if error != "EmptyLanguageError":
        return []
    for text in _texts(rules, start, rng)[:30]:
        tally["texts"] += 1
        if judge(text):
            return [{**case, "kind": error, "text": text}]
    return []


def _checked(
    case: Case, rules: Rules, start: str, grammar: Any, judge: Any, rng: random.Random, tally: Counter[str]
) -> list[Case]:
    failed = []
    for text in _texts(rules, start, rng):
        tally["texts"] += 1
        valid = judge(text)
        tally["texts valid" if valid else "texts invalid"] += 1
        matcher = grammar.matcher()
        taken = matcher.accept_bytes(text.encode()) and matcher.is_accepting()
        if taken != valid:
            if valid and any(matcher.stats.values()):
                tally["narrowed, and counted so"] += 1
                continue
            failed.append({**case, "kind": "refuses valid" if valid else "accepts invalid", "text": text})
            break
    for _ in range(2):
        wrong = _walked(case, grammar, judge, rng, tally)
        if wrong is not None:
            failed.append(wrong)
    return failed


def _walked(case: Case, grammar: Any, judge: Any, rng: random.Random, tally: Counter[str]) -> Case | None:
    def judged(text: bytes) -> str | None:
        if len(text) > 3 * LONGEST:
            return None
        return None if judge(text.decode()) else "writes invalid"

    walk = Walk(grammar, rng, judged, ALPHABET.encode())
    try:
        walk.run(rng.choice((2, 5, 12)), 0.1)
    except Wrong as wrong:
        text = wrong.text.decode("utf-8", "backslashreplace")
        written = wrong.kind == "writes invalid"
        return {**case, "kind": wrong.kind, "detail": wrong.detail, "text" if written else "at": text}
    except Exception as error:
        return {**case, "kind": _name(error), "detail": repr(error)[:300]}
    finally:
        tally["texts"] += walk.texts
        tally["walks"] += 1
    return None
