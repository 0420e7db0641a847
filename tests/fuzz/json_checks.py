"""JSON Schema: one schema a seed, its values in many spellings, walks, completions and other options."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

from structgen import JsonOptions, compile_json_schema
from structgen.errors import (
    CompletionTooLongError,
    SchemaTooComplexError,
    StructgenError,
    UnresolvableReferenceError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from tests.fuzz import spelling
from tests.fuzz.instances import Instances
from tests.fuzz.judge import BeyondJudgeError, Judge, read
from tests.fuzz.oracle import SecondOpinion
from tests.fuzz.schemas import HUGE, Schemas
from tests.fuzz.vocabularies import COUNT, vocabulary
from tests.fuzz.walks import Walk, Wrong, accepts
from tests.suite.respell import respelled

Case = dict[str, Any]
VALUES, SPELLINGS = 24, 8
ALPHABET = b'"{}[],:0123ab-.e\\ tfn'
REFUSED = (SchemaTooComplexError, UnresolvableReferenceError, UnsupportedSchemaError)


def unit(seed: int, tally: Counter[str]) -> list[Case]:
    """Check one schema. The cases are what failed."""
    rng = random.Random(f"json {seed}")
    schemas = Schemas(rng)
    schema, draft = schemas.root(), schemas.draft
    case: Case = {"area": "json", "draft": draft, "schema": json.dumps(schema), "vocabulary": rng.randint(0, COUNT)}
    case["formats"] = '"format"' in case["schema"]
    tally["schemas"] += 1
    try:
        grammar = _compiled(case, None)
    except REFUSED as error:
        tally[f"refused: {type(error).__name__}"] += 1
        return []
    except Exception as error:
        return [{**case, "kind": _name(error), "detail": repr(error)[:300]}]
    check = _Check(case, schema, grammar, rng, tally)
    check.second = None if case["formats"] else SecondOpinion(schema, draft)
    check.verdicts()
    if grammar is None:
        tally["unsatisfiable"] += 1
        return check.failed
    check.guarded(check.walks)
    if rng.random() < 0.35:
        check.guarded(check.options)
    return check.failed


def replay(case: Case) -> str | None:
    """What is still wrong with a case; None: nothing."""
    # A text may hold more digits than a float; values that are made up from the schema are floats.
    schema, draft = (read if "text" in case else json.loads)(case["schema"]), case["draft"]
    options = JsonOptions(**case["options"]) if case.get("options") else None
    try:
        grammar = _compiled(case, options)
    except REFUSED:
        return None
    except Exception as error:
        return _name(error)
    judge = Judge(schema, draft, case.get("formats", False))
    check = _Check(case, schema, grammar, random.Random(0), Counter())
    if "text" in case:
        text = case["text"].encode()
        try:
            value = read(text)
            valid = judge.valid(value)
        except (BeyondJudgeError, ValueError):
            return None
        if options is not None:
            return _replay_options(grammar, options, case["text"], value, valid, schema)
        taken = grammar is not None and accepts(grammar, text)
        return None if taken == valid else "refuses valid" if valid else "accepts invalid"
    return _again(case, check, options)


def _again(case: Case, check: _Check, options: JsonOptions | None) -> str | None:
    """The random checks of a case, some rounds of them."""
    grammar = check.grammar
    for number in range(case.get("rounds", 12)):
        check.rng = random.Random(f"{case.get('seed', 0)} {number}")
        if grammar is None:
            check.verdicts()
        else:
            check.guarded(check.walks if options is None else lambda: check.walk(grammar, options))
        if check.failed:
            return str(check.failed[0]["kind"])
    return None


def _replay_options(grammar: Any, options: JsonOptions, text: str, value: Any, valid: bool, schema: Any) -> str | None:
    taken = grammar is not None and accepts(grammar, text.encode())
    if not valid:
        return "writes invalid" if taken else None
    wrong = spelling.fault(text, options, schema)
    if wrong is not None:
        return f"spelling: {wrong}" if taken else None
    orders = spelling.texts(value, options, 1000) if spelling.fits(value, options) else None
    if not orders or (grammar is not None and any(accepts(grammar, order.encode()) for order in orders)):
        return None
    return "refuses all orders"


def _name(error: BaseException) -> str:
    return f"untyped {type(error).__name__}" if not isinstance(error, StructgenError) else type(error).__name__


def _compiled(case: Case, options: JsonOptions | None) -> Any:
    """The grammar, None if no value is valid."""
    draft: Any = case["draft"]
    if options is None:
        options = JsonOptions.exact(dialect=draft, assert_formats=case.get("formats", False))
    try:
        schema = (read if "text" in case else json.loads)(case["schema"])
        return compile_json_schema(schema, vocabulary(case.get("vocabulary", 0)), options)
    except UnsatisfiableSchemaError:
        return None


class _Check:
    """The checks of one schema, with what failed so far."""

    def __init__(self, case: Case, schema: Any, grammar: Any, rng: random.Random, tally: Counter[str]) -> None:
        self.case, self.schema, self.grammar, self.rng, self.tally = case, schema, grammar, rng, tally
        self.judge = Judge(schema, case["draft"], case.get("formats", False))
        self.second: SecondOpinion | None = None
        self.by_text = case["draft"] in ("draft3", "draft4") and '"integer"' in case["schema"]
        self.valid: list[Any] = []
        self.failed: list[Case] = []

    def fail(self, kind: str, **more: Any) -> None:
        self.failed.append({**self.case, "kind": kind, **more})

    def guarded(self, what: Any) -> None:
        """Run a check; what it raises is a failure."""
        try:
            what()
        except Wrong as wrong:
            text = wrong.text.decode("utf-8", "backslashreplace")
            written = wrong.kind == "writes invalid" or wrong.kind.startswith("spelling")
            self.fail(wrong.kind, detail=wrong.detail, **{"text" if written else "at": text})
        except BeyondJudgeError:
            self.tally["beyond the judge"] += 1
        except CompletionTooLongError as error:
            if any(str(size) in self.case["schema"] for size in HUGE):
                self.tally["too long to be written"] += 1
            else:
                self.fail(_name(error), detail=repr(error)[:300])
        except Exception as error:
            self.fail(_name(error), detail=repr(error)[:300])

    def verdicts(self) -> None:
        """Values in many spellings: each is accepted exactly if it is valid."""
        instances = Instances(self.rng, self.schema)
        matcher = self.grammar.matcher() if self.grammar is not None else None
        for number in range(VALUES):
            value = instances.sample()
            try:
                valid = self.judge.valid(value)
                if self.second is not None and number % 3 == 0:
                    other = self.second.valid(value)
                    if other is not None and other != valid:
                        self.fail("judges differ", value=json.dumps(value), detail=f"judge {valid}, jsonschema {other}")
            except BeyondJudgeError:
                self.tally["beyond the judge"] += 1
                continue
            if valid:
                self.valid.append(value)
            self.tally["values valid" if valid else "values invalid"] += 1
            if matcher is None:
                self.tally["texts"] += 1
                if valid:
                    self.fail("refuses valid", text=json.dumps(value))
                    return
            elif not self._spellings(matcher, value, valid):
                return

    def _spellings(self, matcher: Any, value: Any, valid: bool) -> bool:
        texts = {json.dumps(value)} | {respelled(value, self.rng) for _ in range(SPELLINGS)}
        for text in sorted(texts):
            self.tally["texts"] += 1
            if self.by_text:
                try:
                    valid = self.judge.valid(read(text))
                except BeyondJudgeError:
                    self.tally["beyond the judge"] += 1
                    continue
            data = text.encode()
            taken = matcher.accept_bytes(data)
            accepted = taken and matcher.is_accepting()
            if taken:
                matcher.rollback()
            if accepted != valid:
                kind = "refuses valid" if valid else "accepts invalid"
                self.fail(kind if accepts(self.grammar, data) != valid else "rollback", text=text)
                return False
        return True

    def judged(self, text: bytes) -> str | None:
        """What is wrong with a text that the engine wrote."""
        try:
            value = json.loads(text, object_pairs_hook=_once)
            value = read(text)
        except UnicodeDecodeError:
            return "no UTF-8"
        except BeyondJudgeError:
            return None
        except ValueError as error:
            return f"no JSON: {error}"[:40]
        try:
            return None if self.judge.valid(value) else "writes invalid"
        except BeyondJudgeError:
            self.tally["beyond the judge"] += 1
            return None

    def walks(self) -> None:
        """Random texts by masks, and one invalid text as far as it lives."""
        for _ in range(2):
            self.walk(self.grammar, None)
        self._deaths()

    def walk(self, grammar: Any, options: JsonOptions | None) -> None:
        """A random text by masks."""

        def judged(text: bytes) -> str | None:
            wrong = self.judged(text)
            if wrong is None and options is not None:
                spelled = spelling.fault(text.decode(), options, self.schema)
                return None if spelled is None else f"spelling: {spelled}"
            return wrong

        walk = Walk(grammar, self.rng, judged, ALPHABET)
        walk.run(self.rng.choice((3, 8, 20, 40)), 0.06)
        self.tally["texts"] += walk.texts
        self.tally["walks"] += 1

    def _deaths(self) -> None:
        """As far as an invalid text lives, some valid text begins like it."""
        value = Instances(self.rng, self.schema).sample()
        text = respelled(value, self.rng).encode()
        matcher = self.grammar.matcher()
        alive = next((end for end in range(len(text)) if not matcher.accept_bytes(text[end : end + 1])), len(text))
        walk = Walk(self.grammar, self.rng, self.judged, ALPHABET)
        walk.text = text[:alive]
        walk.finish(matcher)
        self.tally["texts"] += 1

    def options(self) -> None:
        """Other options: outputs respect them, and what fits them is accepted in some order of members."""
        options = spelling.random_options(self.rng, self.case["draft"], self.case["formats"])
        self.case = {**self.case, "options": {name: getattr(options, name) for name in JsonOptions.__slots__}}
        try:
            grammar = _compiled(self.case, options)
        except REFUSED as error:  # a limit of the options may leave too few distinct values, which is refused by name
            self.tally[f"refused: {type(error).__name__}"] += 1
            return
        for value in self.valid[:6]:
            orders = spelling.texts(value, options) if spelling.fits(value, options) else None
            if orders is None or (self.by_text and not self.judge.valid(read(orders[0]))):
                continue
            self.tally["texts"] += 1
            if grammar is None or not any(accepts(grammar, text.encode()) for text in orders):
                self.fail("refuses all orders", text=orders[0])
                return
        if grammar is not None:
            self.walk(grammar, options)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def case_of(seed: int, area: str) -> Case:
    """The case of a seed whose unit never came back."""
    rng = random.Random(f"json {seed}")
    schemas = Schemas(rng)
    schema = schemas.root()
    text = json.dumps(schema)
    return {
        "area": "json",
        "draft": schemas.draft,
        "schema": text,
        "vocabulary": rng.randint(0, COUNT),
        "formats": '"format"' in text,
        "rounds": 30,
    }
