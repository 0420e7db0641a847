"""Field probabilities against enumeration: every token path, over a language that is a list of texts."""

from __future__ import annotations

import itertools
import json
import math
import random
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.core.constraints.thinking import Begin, Thinking
from structgen.errors import OptionsError
from structgen.generation.decoding import drawing
from structgen.generation.fields import layout, reading
from structgen.generation.fields.asking import Fields
from structgen.generation.fields.events import canonical, value_event
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.options import JsonOptions
from tests.fakes import CharTokenizer, vocabulary
from tests.many import cases

WORDS = ["low", "lower", "high", "hi", "", 'a"b', "é", "l", " x", "0"]
POOLS: list[list[Any]] = [[True, False], [1, 2, 3, 12, -1], [None, "no", 1], [0, 1, True, "1"], [1.5, 1, 15]]


class GreedyTokenizer:
    """The longest token that fits, again and again."""

    chat_template = None

    def __init__(self, tokens: list[bytes]) -> None:
        self._ids = {data: token for token, data in enumerate(tokens)}
        self.eos_token_id = len(tokens)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        data, ids = text.encode(), list[int]()
        while data:
            size = next(size for size in range(min(6, len(data)), 0, -1) if data[:size] in self._ids)
            ids.append(self._ids[data[:size]])
            data = data[size:]
        return ids


class Case:
    """A random schema whose documents are listed, a vocabulary with tokens that cross its borders, a random model."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        pools = [rng.sample(rng.choice([WORDS, *POOLS]), 2) for _ in range(rng.randint(1, 3))]
        pools[rng.randrange(len(pools))] = rng.sample(WORDS, rng.randint(2, 5))
        self.spacing = rng.choice(["single", "compact"])
        self.is_array = rng.random() < 0.3
        self.schema = self._schema(pools)
        self.documents = sorted({text for values in itertools.product(*pools) for text in self._texts(values)})
        self.tokens = self._vocabulary(rng)
        self.vocabulary = structgen.Vocabulary([*self.tokens, None, None], eos_token_ids=self.ends)
        self.model = TinyModel(self.vocabulary.size, seed=seed, order=3, scale=rng.choice([0.5, 2.0]))

    @property
    def ends(self) -> list[int]:
        return [len(self.tokens), len(self.tokens) + 1]

    def _schema(self, pools: list[list[Any]]) -> Any:
        if self.is_array:
            items = [{"enum": pool} for pool in pools]
            return {"type": "array", "prefixItems": items, "items": False, "minItems": len(pools)}
        members = {f"m{index}": {"enum": pool} for index, pool in enumerate(pools)}
        return {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}

    def _texts(self, values: tuple[Any, ...]) -> list[bytes]:
        """Every spacing of a document."""
        blanks = [b"", b" "] if self.spacing == "single" else [b""]
        texts = [b"[" if self.is_array else b"{"]
        for index, value in enumerate(values):
            if index:
                texts = [text + b"," + blank for text in texts for blank in blanks]
            if not self.is_array:
                texts = [text + f'"m{index}":'.encode() + blank for text in texts for blank in blanks]
            texts = [text + spelling for text in texts for spelling in _spellings(value)]
        return [text + (b"]" if self.is_array else b"}") for text in texts]

    def _vocabulary(self, rng: random.Random) -> list[bytes]:
        pieces = {bytes([byte]) for byte in range(256)}
        for _ in range(40):
            text = rng.choice(self.documents)
            begin = rng.randrange(len(text))
            pieces.add(text[begin : begin + rng.randint(2, 6)])
        return sorted(pieces)

    def write(self, seed: int) -> Any:
        generator = Generator(self.model, GreedyTokenizer(self.tokens), vocabulary=self.vocabulary)
        options = JsonOptions(whitespace=self.spacing)  # type: ignore[arg-type]
        constraint = structgen.json_schema(self.schema, options)
        return generator, generator.generate(
            "p", constraint, temperature=1.0, seed=seed, schema_in_prompt=False,
            fields=Fields(eps=0.0, model_tokens=100_000),
        )  # fmt: skip


def _spellings(value: Any) -> list[bytes]:
    """What must be escaped has several legal spellings."""
    text = json.dumps(value, ensure_ascii=False)
    return [text.encode(), text.replace('\\"', "\\u0022").encode()] if "\\" in text else [text.encode()]


def probs_after(model: TinyModel, text: list[int], size: int) -> Any:
    row = model.read_after([text])[0].astype(np.float64)[:size]
    weights = np.exp(row - row.max())
    return weights / weights.sum()


def decided(data: bytes) -> str | None:
    """The value that a text begins with, by Python's own decoder; None: more may belong to it."""
    text = data.decode(errors="replace").lstrip(" ")
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and text[end:][:1] in ("", ".", "e", "E"):
        return None
    return canonical(value)


def enumerated(case: Case, prompt: list[int], before: list[int], start: int) -> Any:
    """m, l and what goes through the gap, by going down every path of tokens."""
    head = b"".join(case.tokens[token] for token in before)
    mass: dict[str, float] = {}
    local: dict[str, float] = {}
    through = 0.0
    fixed = case.written[:start]  # type: ignore[attr-defined]
    stack: list[tuple[list[int], bytes, float, float]] = [(before, head, 1.0, 1.0)]
    while stack:
        tokens, text, p, q = stack.pop()
        probs = probs_after(case.model, [*prompt, *tokens], case.vocabulary.size)
        allowed = [
            token for token, data in enumerate(case.tokens)
            if any(document.startswith(text + data) for document in case.documents)
        ]  # fmt: skip
        kept = sum(probs[token] for token in allowed)
        for token, data in enumerate(case.tokens):
            if len(text) < start and (text + data).startswith(fixed):
                through += p * probs[token]
        for token in allowed:
            data = text + case.tokens[token]
            if not (data.startswith(fixed) or fixed.startswith(data)):
                continue
            event = decided(data[start:]) if len(data) > start else None
            if event is None:
                stack.append(([*tokens, token], data, p * probs[token], q * probs[token] / kept))
            else:
                mass[event] = mass.get(event, 0.0) + p * probs[token]
                local[event] = local.get(event, 0.0) + q * probs[token] / kept
    return mass, local, through if len(head) < start else 1.0


@pytest.mark.timeout(1800)  # of some cases there are very many paths, and the machine may be busy
@pytest.mark.parametrize("seed", cases(125, 6))
def test_sums_are_those_of_enumeration(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether what the model gave when the output was written is kept, or everything is read again."""
    checked = 0
    for number in range(4):
        case = Case(100 * seed + number)
        with monkeypatch.context() as patched:
            patched.setattr(drawing, "FEW_ALLOWED", 0)
            _, again = case.write(number)
        generator, result = case.write(number)
        assert again.text == result.text
        case.written = result.text.encode()  # type: ignore[attr-defined]
        prompt, tokens = generator._prompt_ids("p", None, None), list(result.token_ids)
        value = json.loads(result.text)
        pairs = enumerate(value) if case.is_array else value.items()
        assert list(result.fields) == [f"/{name}" for name, _ in pairs]
        for pointer, each in result.fields.items():
            start = _start(result.text, pointer, case.is_array)
            before = [*tokens]
            while sum(len(case.tokens[token]) for token in before) > start:
                before.pop()
            mass, local, through = enumerated(case, prompt, before, start)
            total, local_total = sum(mass.values()), sum(local.values())
            belief = each.value
            assert belief.slack == 0 and {canonical(option.value) for option in belief.options} == set(mass)
            for option in belief.options:
                name = canonical(option.value)
                assert abs(option.prob - mass[name] / total) < 1e-12
                assert abs(option.local - local[name] / local_total) < 1e-12
                read_again = again.fields[pointer].value.option(option.value)
                assert abs(option.prob - read_again.prob) < 1e-12 and abs(option.local - read_again.local) < 1e-12
                assert option.least <= option.prob + 1e-15 and option.prob <= option.most + 1e-15
            assert abs(belief.kept - min(1.0, total / through)) < 1e-12
            assert abs(belief.kept - again.fields[pointer].value.kept) < 1e-12
            assert each.prob == belief.option(each.written).prob
            checked += 1
    assert checked >= 4


@pytest.mark.parametrize("most", [1, 3, 8])
def test_many_fields_are_read_few_at_once(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few prefixes are kept open, each field is what it is where all are."""
    tokens = vocabulary(b"true", b"false", b'":', b"tr")
    names = [f"m{index}" for index in range(12)]
    members = {name: {"enum": [True, False, "t", "true"]} for name in names}
    schema = {"type": "object", "properties": members, "required": names, "additionalProperties": False}

    def beliefs(most: int) -> Any:
        monkeypatch.setattr(reading, "MAX_OPEN", most)
        generator = Generator(TinyModel(tokens.size, scale=1.0), CharTokenizer(), vocabulary=tokens)
        return generator.generate("p", schema, fields=True, schema_in_prompt=False, max_new_tokens=400).fields

    few, all_at_once = beliefs(most), beliefs(64)
    assert len(few) == 12 and few == all_at_once
    monkeypatch.setattr(drawing, "FEW_ALLOWED", 0)  # nothing is kept from when it was written
    assert beliefs(64).tokens >= all_at_once.tokens + 12


def _start(text: str, pointer: str, is_array: bool) -> int:
    """The byte offset after the mark before a value, by a look at the text."""
    data, name = text.encode(), pointer[1:]
    if not is_array:
        return data.index(f'"{name}":'.encode()) + len(name) + 3
    decoder, end = json.JSONDecoder(), 1
    for _ in range(int(name)):
        whole = data[end:].decode().lstrip(" ")
        lead = len(data[end:].decode()) - len(whole)
        _, length = decoder.raw_decode(whole)
        end += lead + len(whole[:length].encode()) + 1
    return end


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_at_every_eps(seed: int) -> None:
    case = Case(seed)
    generator, exact = case.write(seed)
    constraint = structgen.json_schema(case.schema, JsonOptions(whitespace=case.spacing))  # type: ignore[arg-type]
    for eps, most in ((0.3, 256), (0.02, 256), (1e-3, 256), (0.0, 1), (0.0, 7)):
        result = generator.generate(
            "p",
            constraint,
            temperature=1.0,
            seed=seed,
            schema_in_prompt=False,
            fields=Fields(eps=eps, model_tokens=most),
        )
        assert result.text == exact.text
        for pointer, each in result.fields.items():
            for option in each.value.options:
                truth = exact.fields[pointer].value.option(option.value).prob
                assert option.least - 1e-12 <= truth <= option.most + 1e-12
            assert math.isclose(sum(option.prob for option in each.value.options), 1.0)
            if most == 256:
                assert each.value.slack <= eps + 1e-12
        spent = sum(1 for _ in result.fields) * most
        assert result.fields.tokens <= spent * 16


@pytest.mark.parametrize("by", ["value", "belief"])
@pytest.mark.parametrize("seed", range(20))
def test_each_value_that_is_chosen_is_the_likeliest(seed: int, by: Any) -> None:
    case = Case(1000 + seed)
    generator = Generator(case.model, GreedyTokenizer(case.tokens), vocabulary=case.vocabulary)
    constraint = structgen.json_schema(case.schema, JsonOptions(whitespace=case.spacing))  # type: ignore[arg-type]
    asked = Fields(eps=0.0, model_tokens=100_000)
    result = generator.generate("p", constraint, schema_in_prompt=False, fields=asked, choose=by)
    assert result.text.encode() in case.documents and result.finish_reason == "stop"
    for each in result.fields.values():
        assert each.value is not None
        rating = {canonical(one.value): one.local if by == "value" else one.prob for one in each.value.options}
        assert rating[canonical(each.written)] >= max(rating.values()) - 1e-12


@pytest.mark.parametrize("options", [{"temperature": 1.0}, {"frequency_penalty": 1.0}, {"choose": "best"}])
def test_bad_ways_to_choose_are_refused(options: dict[str, Any]) -> None:
    generator = Case(0).write(0)[0]
    with pytest.raises(OptionsError, match="choose"):
        generator.generate("p", {"enum": [1, 2]}, **{"choose": "value", **options})
    with pytest.raises(OptionsError, match="of generate only"):
        generator.stream("p", {"enum": [1, 2]}, choose="value")
    with pytest.raises(OptionsError, match="of generate only"):
        generator.batch(["p"], {"enum": [1, 2]}, choose="value")


@pytest.mark.full
def test_masked_probabilities_are_the_law_of_generate() -> None:
    case = Case(4)
    generator, result = case.write(0)
    pointer = next(iter(result.fields))  # the first: nothing was chosen before it
    belief = result.fields[pointer].value
    constraint = structgen.json_schema(case.schema, JsonOptions(whitespace=case.spacing))  # type: ignore[arg-type]
    n, counts = 1500, dict[str, int]()
    prompts = ["p"] * n
    for one in generator.batch(prompts, constraint, temperature=1.0, seed=1, schema_in_prompt=False, fields=[pointer]):
        field = one.fields[pointer]
        if one.token_ids[0] == result.token_ids[0]:
            counts[canonical(field.written)] = counts.get(canonical(field.written), 0) + 1
    total = sum(counts.values())
    for option in belief.options if total > 500 else ():
        expected, seen = option.local * total, counts.get(canonical(option.value), 0)
        assert abs(seen - expected) < 5 * math.sqrt(total * option.local * (1 - option.local) + 1) + 1


@pytest.mark.parametrize(
    ("data", "event"),
    [(b' "a', None), (b' "a"', '"a"'), (b"1", None), (b"1 ", "1"), (b"1.0,", "1"), (b"1e2}", "100"), (b"-0,", "0"),
     (b"tru", None), (b"true", "true"), (b'{"b": 1, "a": [2]}', '{"a": [2], "b": 1}'), (b'{"b": "}', None),
     (rb'"\u0061"', '"a"'), (b"  ", None)],
)  # fmt: skip
def test_what_decides_a_value(data: bytes, event: str | None) -> None:
    assert value_event(data) == event


def test_equal_values_have_one_name() -> None:
    assert canonical(1) == canonical(1.0) == canonical(1e0) != canonical(True)
    assert canonical(0.1) == canonical(1e-1) and canonical(10**400) == str(10**400)[:0] + canonical(10**400)
    assert canonical({"b": 1, "a": None}) == canonical({"a": None, "b": 1.0})


BAD: list[Any] = ["label", "/label", ["label"], [1], 5, [None], {"/label": 1}, b"/a"]


@pytest.mark.parametrize("fields", BAD)
def test_bad_pointers_are_refused(fields: Any) -> None:
    generator = Generator(TinyModel(258), CharTokenizer(eos=0), vocabulary=structgen.Vocabulary([*(bytes([b]) for b in range(256)), None], eos_token_ids=256))  # fmt: skip  # noqa: E501
    with pytest.raises(OptionsError):
        generator.generate("p", {"enum": ["a", "b"]}, fields=fields)


def test_slips_are_looked_for_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller may send very many names to a schema of very many."""
    names, compared = [f"name{number}" for number in range(500)], list[int]()
    monkeypatch.setattr(layout, "get_close_matches", lambda name, others, *_: compared.append(len(others)))
    constraint = structgen.json_schema({"type": "object", "properties": {name: {"type": "boolean"} for name in names}})
    layout.layout_of(constraint, Fields(("/" + "/".join(f"x{number}" for number in range(100_000)), "/name1")))
    assert 0 < sum(compared) <= layout.MAX_COMPARED


@pytest.mark.parametrize("begin", ["may", "must", "begun"])
@pytest.mark.parametrize("value", ["</think>", '</think>{"a":1}', "<think>"])
def test_marks_of_thinking_within_values_are_none(begin: Begin, value: str) -> None:
    """Where thinking may be left out, JSON may be the first that is written."""
    schema = {"type": "object", "properties": {"m": {"const": value}, "b": {"type": "boolean"}}, "required": ["m", "b"]}
    constraint = Thinking(structgen.json_schema({**schema, "additionalProperties": False}), begin)
    tokens = vocabulary(b'{"m"', b"</think>", b"<think>")
    for seed in range(3):
        generator = Generator(TinyModel(tokens.size, seed=seed), CharTokenizer(), vocabulary=tokens)
        result = generator.generate("p", constraint, fields=True, schema_in_prompt=False, temperature=1.0, seed=seed)
        assert list(result.fields) == ["/b"] and result.fields["/b"].written == result.value["b"]


@pytest.mark.parametrize(
    "options", [{"most": 1}, {"eps": -1}, {"eps": float("nan")}, {"eps": 1}, {"model_tokens": 0}, {"eps": True}]
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionsError):
        Fields(**options)
