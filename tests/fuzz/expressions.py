"""Regular expressions: Python's against ``re``, JavaScript's against a translation (and Node now and then)."""

from __future__ import annotations

import json
import random
import re
import sys
import warnings
from collections import Counter
from typing import Any

from structgen import JsonOptions, compile_json_schema, compile_regex
from structgen.errors import ConstraintError
from tests.core.regex import ecma_oracle
from tests.fuzz.ecma import searcher, to_python
from tests.fuzz.random_grammars import mutated
from tests.fuzz.vocabularies import COUNT, vocabulary
from tests.fuzz.walks import Walk, Wrong, accepts

Case = dict[str, Any]
TEXTS = 100
COMMON = [
    "a",
    "b",
    "c",
    "ab",
    "[ab]",
    "[^a]",
    ".",
    r"\w",
    r"\d",
    r"\s",
    r"\W",
    r"\D",
    r"\S",
    "[a-c]",
    "[^b-c1]",
    "1",
    " ",
    "é",
]
PYTHON = [*COMMON, r"\n", r"\Z", r"\A", r"\x41", r"[\w-]", r"\.", "😀", "ſ", "[^\\d]", r"\u00e9"]
ECMA = [*COMMON, r"\n", r"\x41", r"[\w-]", r"\/", "😀", r"\u{1F600}", r"\u00e9", "[^]", "[]", r"[\d_]", "A"]
ALPHABET = "abc1 _A\né٣😀-"
REPEATS = ["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?", "??", "{1,2}?"]


def random_pattern(rng: random.Random, syntax: str, depth: int) -> str:
    """A random expression."""
    way = rng.random()
    inner = random_pattern(rng, syntax, depth - 1) if depth else ""
    if depth == 0 or way < 0.25:
        return rng.choice(PYTHON if syntax == "python" else ECMA)
    if way < 0.5:
        return inner + random_pattern(rng, syntax, depth - 1)
    if way < 0.65:
        return f"(?:{inner}|{random_pattern(rng, syntax, depth - 1)})"
    if way < 0.83:
        return f"({rng.choice(('?:', ''))}{inner})" + rng.choice(REPEATS)
    if way < 0.93:
        before, after = rng.choice((("^", ""), ("", "$"), ("(?=", ")"), ("(?!", ")"), ("(?<=a", ")"), ("(?<!b", ")")))
        simple = rng.choice(("a", "b", "[ab]", r"\w", "."))
        return before + (simple if before.startswith("(?<") else inner) + after + rng.choice(("", "b?", "c*"))
    if syntax == "python" and way < 0.97:
        return rng.choice(("(?i:", "(?s:", "(?a:", "(?m:", "(?x:")) + inner + ")"
    return rng.choice((r"\b", r"\B", r"(?<!^a)", r"(?=b)")) + inner


def unit(seed: int, tally: Counter[str]) -> list[Case]:
    """Check one expression."""
    rng = random.Random(f"expression {seed}")
    syntax = rng.choice(("python", "python", "ecma", "json"))
    pattern = random_pattern(rng, "python" if syntax == "python" else "ecma", rng.randint(1, 4))
    case: Case = {"pattern": pattern, "syntax": syntax, "vocabulary": rng.randint(0, COUNT)}
    tally["expressions"] += 1
    judge = judge_of(case)
    try:
        grammar = compiled(case)
    except ConstraintError as error:
        tally[f"expressions refused: {type(error).__name__}"] += 1
        empty = type(error).__name__ in ("EmptyLanguageError", "UnsatisfiableSchemaError")
        if judge is None or not empty:
            return []
        grammar = None
    except Exception as error:
        return [{**case, "kind": f"untyped {type(error).__name__}", "detail": repr(error)[:300]}]
    if judge is None:
        tally["expressions that the judge refuses"] += 1
        return []
    texts = [text for text in _texts(pattern, rng) if not known_fault(case, text)]
    if rng.random() < 0.02 and syntax != "python" and ecma_oracle.node():
        texts = [text for text in texts if max(text, default="") <= "\uffff"]  # halves of pairs are not texts of ours
        found = ecma_oracle.search_all([(pattern if syntax == "json" else f"^(?:{pattern})$", texts)])[0]
        tally["expressions also judged by Node"] += 1
        if found is not None and found != [judge(text) for text in texts]:
            return [{**case, "kind": "judges differ"}]
    failed = []
    for text in texts:
        tally["texts"] += 1
        if (grammar is not None and accepts(grammar, spelled(case, text))) != judge(text):
            failed.append({**case, "kind": "refuses valid" if judge(text) else "accepts invalid", "text": text})
            break
    wrong = _walked(case, grammar, judge, rng, tally) if grammar is not None else None
    return [*failed, *([wrong] if wrong else [])]


def replay(case: Case) -> str | None:
    """What is still wrong with a case."""
    judge = judge_of(case)
    if judge is None:
        return None
    try:
        grammar = compiled(case)
    except ConstraintError as error:
        if type(error).__name__ not in ("EmptyLanguageError", "UnsatisfiableSchemaError"):
            return None
        grammar = None
    except Exception as error:
        return f"untyped {type(error).__name__}"
    if "text" in case:
        taken = grammar is not None and accepts(grammar, spelled(case, case["text"]))
        valid = judge(case["text"])
        return None if taken == valid else "refuses valid" if valid else "accepts invalid"
    for number in range(12 if grammar is not None else 0):
        wrong = _walked(case, grammar, judge, random.Random(number), Counter())
        if wrong is not None:
            return str(wrong["kind"])
    return None


def judge_of(case: Case) -> Any:
    """Whether texts match; None if the expression is not legal for the judge."""
    pattern = case["pattern"]
    matches: Any
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if case["syntax"] == "python":
                matches = re.compile(pattern).fullmatch
            elif case["syntax"] == "json":
                matches = searcher(pattern)
            else:
                matches = searcher(f"^(?:{pattern})$")
                to_python(pattern)
        except (re.error, ValueError, OverflowError):
            return None
        except Exception as error:  # of `regex`
            if type(error).__module__.startswith("regex"):
                return None
            raise
    return lambda text: matches(text) is not None


def known_fault(case: Case, text: str) -> bool:
    r"""Up to Python 3.13, ``\B`` does not hold in the empty text; the documentation of 3.14 calls that a fault."""
    return case["syntax"] == "python" and not text and r"\B" in case["pattern"] and sys.version_info < (3, 14)


def compiled(case: Case) -> Any:
    """The engine's grammar."""
    if case["syntax"] == "json":
        schema = {"type": "string", "pattern": case["pattern"]}
        return compile_json_schema(schema, vocabulary(case["vocabulary"]), JsonOptions.exact())
    return compile_regex(case["pattern"], vocabulary(case["vocabulary"]), case["syntax"])


def spelled(case: Case, text: str) -> bytes:
    """The text as the engine reads it."""
    return json.dumps(text, ensure_ascii=bool(len(text) % 2)).encode() if case["syntax"] == "json" else text.encode()


def _texts(pattern: str, rng: random.Random) -> list[str]:
    found = {"", "a", "ab", "a\n", "\n"}
    while len(found) < TEXTS // 2:
        found.add("".join(rng.choices("abc1 ", k=rng.randint(1, 7))))
    known = sorted(found)
    while len(found) < TEXTS:
        found.add(mutated(rng, rng.choice(known), ALPHABET))
    return sorted(found)


def _walked(case: Case, grammar: Any, judge: Any, rng: random.Random, tally: Counter[str]) -> Case | None:
    def judged(text: bytes) -> str | None:
        written = json.loads(text) if case["syntax"] == "json" else text.decode()
        if len(written) > 24 or known_fault(case, written):  # `re` may take for ever
            return None
        return None if judge(written) else "writes invalid"

    walk = Walk(grammar, rng, judged, ALPHABET.encode() + b'"')
    try:
        walk.run(rng.choice((2, 5, 12)), 0.1)
    except Wrong as wrong:
        text = wrong.text.decode("utf-8", "backslashreplace")
        if wrong.kind == "writes invalid":
            written = json.loads(wrong.text) if case["syntax"] == "json" else wrong.text.decode()
            return {**case, "kind": "accepts invalid", "text": written}
        return {**case, "kind": wrong.kind, "detail": wrong.detail, "at": text}
    except Exception as error:
        return {**case, "kind": f"untyped {type(error).__name__}", "detail": repr(error)[:300]}
    finally:
        tally["texts"] += walk.texts
    return None
