"""The programs of examples/ run with a tiny model, and what they give is judged by others."""

from __future__ import annotations

import importlib.util
import json
import re
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import pydantic
import pytest

from structgen import Generator, Vocabulary
from structgen.generation.models.tiny import TinyModel

FOLDER = Path(__file__).parents[1] / "examples"
BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


class Bytes:
    """A tokenizer: a token a byte."""

    eos_token_id, chat_template = 256, "roles and contents, a line each"

    def apply_chat_template(self, messages: list[dict[str, str]], **options: Any) -> str:
        return "".join(f"{message['role']}: {message['content']}\n" for message in messages)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return list(text.encode())


def judge_record(module: Any, order: Any) -> None:
    assert module.Order.model_validate_json(order.model_dump_json()) == order


class Marks(HTMLParser):
    """The text of the letter, and what is marked in it for each claim; the links and their targets."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.letter, self.marked = "", defaultdict[str, str](str)
        self.links, self.ids = list[str](), set[str | None]()
        self._in_letter, self._claims = False, list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._in_letter |= given.get("class") == "letter"
        self._claims = (given["data-claims"] or "").split() if tag == "mark" else self._claims
        self.ids.add(given.get("id"))
        self.links += [(given["href"] or "")[1:]] if tag == "a" else []

    def handle_endtag(self, tag: str) -> None:
        self._in_letter &= tag != "div"
        self._claims = [] if tag == "mark" else self._claims

    def handle_data(self, data: str) -> None:
        if self._in_letter:
            self.letter += data
            for claim in self._claims:
                self.marked[claim] += data


def judge_claims(module: Any, made: Any) -> None:
    claims, page = made
    overlapping = [module.Claim(claim="<&", quote=text) for text in ("the ceiling fell", "ceiling fell onto")]
    for listed, html in ((claims, page), (overlapping, module.page(module.LETTER, overlapping))):
        marks = Marks(html)
        assert marks.letter == module.LETTER and set(marks.links) <= marks.ids
        for number, claim in enumerate(listed, 1):
            place = claim.quote.places[0]
            assert module.LETTER[place.start : place.end] == claim.quote == marks.marked[str(number)]


def judge_tools(module: Any, run: Any) -> None:
    types = pydantic.TypeAdapter(module.price)
    for made in run.calls:
        assert made.call.name == "price"
        if made.error is None:
            assert types.validate_python(made.call.arguments) == made.result
        else:
            assert not 1 <= made.call.arguments["quantity"] <= 99
    assert run.calls and "<tool_call>" not in run.answer


def judge_classes(module: Any, results: Any) -> None:
    for result in results:
        assert list(result.probs) == module.LABELS and sum(result.probs.values()) == pytest.approx(1)
        assert result.probs[result.value] == max(result.probs.values())


def judge_query(module: Any, query: str) -> None:
    lark = pytest.importorskip("lark", reason="Lark judges the query")
    lark.Lark(module.grammar(module.TABLES)).parse(query)
    database = sqlite3.connect(":memory:")
    for table, columns in module.TABLES.items():
        database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
    assert database.execute(query).fetchall() == []


def judge_stream(module: Any, seen: Any) -> None:
    partials, recipe = seen
    assert module.Recipe.model_validate(partials[-1]) == recipe
    assert len(partials) > 3


def judge_batch(module: Any, lines: Any) -> None:
    assert sorted(lines) == [0, 1, 2, 3] and "/type" in lines[2]["error"]
    for row in (0, 1, 3):
        jsonschema.validate(lines[row]["value"], module.ROWS[row][1])


def judge_fields(module: Any, parts: Any) -> None:
    found = module.MEETING.fullmatch("{day}, {hour}: {about}".format(**parts))
    assert found is not None and found.groupdict() == parts


def judge_thinking(module: Any, result: Any) -> None:
    thought, answer = re.fullmatch(r"(?s)<think>(.*?)</think>\s*(.*)", result.text).groups()  # type: ignore[union-attr]
    assert len(thought.encode()) <= 60  # a token a byte
    jsonschema.validate(json.loads(answer), module.ANSWER)


def judge_evaluation(module: Any, score: Any) -> None:
    assert score.invalid == 0 and score.valid >= 3


def judge_drafts(module: Any, results: Any) -> None:
    plain, drafted = results
    assert plain.token_ids == drafted.token_ids and drafted.stats.target_forwards <= plain.stats.target_forwards
    jsonschema.validate(json.loads(plain.text), module.SCHEMA)


def judge_samples(module: Any, counts: Any) -> None:
    for method in ("local", "exact"):
        assert counts[method].total() == 50 and set(counts[method]) <= {str(n) for n in range(1, 11)}


def judge_callers(module: Any, areas: Any) -> None:
    assert len(areas) == 3 and set(areas) <= {"login", "billing", "other"}


JUDGES: dict[str, Callable[[Any, Any], None]] = {
    "record_from_text": judge_record,
    "grounded_extraction": judge_claims,
    "tool_loop": judge_tools,
    "classification": judge_classes,
    "sql_by_grammar": judge_query,
    "streaming_partial": judge_stream,
    "batch_with_errors": judge_batch,
    "fields_by_expression": judge_fields,
    "thinking": judge_thinking,
    "evaluation": judge_evaluation,
    "drafts": judge_drafts,
    "exact_sampling": judge_samples,
    "many_callers": judge_callers,
}


def test_every_example_is_judged_and_listed() -> None:
    names = sorted(path.stem for path in FOLDER.glob("*.py"))
    assert names == sorted(JUDGES)
    text = (FOLDER / "README.md").read_text()
    assert [name for name in names if f"[{name}.py]({name}.py)" not in text] == []


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", sorted(JUDGES))
def test_example(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    specification = importlib.util.spec_from_file_location(f"examples.{name}", FOLDER / f"{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, module.__name__, module)  # where dataclasses look their types up
    specification.loader.exec_module(module)
    generator = Generator(TinyModel(257, seed=seed), Bytes(), vocabulary=BYTES)
    JUDGES[name](module, module.main(generator))
