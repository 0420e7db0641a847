"""structgen's backend under SGLang's registry, manager and sampling batch, against structgen's own matchers."""

from __future__ import annotations

import ast
import json
import random
import sys
import time
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

import jsonschema
import numpy as np
import pytest

pytest.importorskip("sglang", reason="SGLang is not here; `make test-engines` fetches it")

import sglang.srt
import torch
from sglang.srt.arg_groups.choices import GRAMMAR_BACKEND_CHOICES
from sglang.srt.constrained.base_grammar_backend import (
    GRAMMAR_BACKEND_REGISTRY,
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    InvalidGrammarObject,
    get_vocab_mask_buffer,
)
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend, ReasonerGrammarObject

from structgen.errors import IntegrationError
from structgen.integrations.engine_requests import engine_vocabulary
from structgen.integrations.sglang import backend as module
from structgen.integrations.sglang import hooks, plugin
from structgen.integrations.sglang.backend import MAX_KEPT, SglangBackend, SglangGrammarObject
from tests.integrations.engine_world import (
    LOGITS,
    compiled,
    draft,
    mask_of,
    random_request,
    special_id,
    tokenizer,
    unpacked,
)
from tests.integrations.sglang.world import ENDS, Engine, create, masked

pytestmark = pytest.mark.usefixtures("sglang_with_plugins")


def vocabulary() -> Any:
    return engine_vocabulary(tokenizer(), LOGITS, [special_id(name) for name in ENDS])


def test_sglang_finds_it() -> None:
    plugin.register()  # again
    assert GRAMMAR_BACKEND_CHOICES.count("structgen") == 1 and "structgen" in GRAMMAR_BACKEND_REGISTRY
    assert isinstance(create(), SglangBackend)


@pytest.mark.parametrize("seed", range(80))
def test_masks_of_a_batch_are_those_of_the_matchers(seed: int) -> None:
    """Random requests through the manager, their masks applied to logits by SGLang, beside rows without grammar."""
    rng = random.Random(seed)
    engine = Engine()
    pairs: list[tuple[Any, Any]] = []
    for number in range(4):
        kind, value, constraint = random_request(1000 * seed + number)
        if kind == "choice":
            continue
        request = engine.ask(kind, value)
        grammar = compiled(constraint, vocabulary())
        assert (request.error is None) == (grammar is not None), (kind, value, request.error)
        if grammar is None:
            assert isinstance(request.grammar, InvalidGrammarObject)
        else:
            pairs.append((request.grammar, grammar.matcher()))
    while len(pairs) and not all(matcher.is_terminated() for _, matcher in pairs):
        rows = [*(grammar for grammar, _ in pairs), None]
        logits = masked(rows, torch.zeros(len(rows), LOGITS))
        assert (logits[-1] == 0).all()
        for row, (grammar, matcher) in enumerate(pairs):
            if matcher.is_terminated():
                assert (logits[row] == 0).all()
                continue
            mask = mask_of(matcher)
            assert (torch.isfinite(logits[row]).numpy() == mask).all()
            wrong = int(rng.choice(np.flatnonzero(~mask).tolist()))
            with pytest.raises(ValueError, match="does not allow"):
                grammar.accept_token(wrong)
            allowed: list[int] = np.flatnonzero(mask).tolist()
            ending = [token for token in allowed if token in special()]
            token = rng.choice(ending if ending and rng.random() < 0.3 else allowed)
            grammar.accept_token(token)
            assert matcher.accept_token(token) and grammar.current_token == token
            assert grammar.is_terminated() == matcher.is_terminated()
        if rng.random() < 0.05:
            return


def special() -> set[int]:
    return {special_id(name) for name in ENDS}


@pytest.mark.parametrize("seed", range(40))
def test_rollbacks_and_copies(seed: int) -> None:
    """Random accepts and rollbacks, also over the end; copies are at the start."""
    rng = random.Random(seed)
    grammar, number = None, seed
    while grammar is None:
        kind, value, constraint = random_request(number)
        grammar = compiled(constraint, vocabulary()) if kind != "choice" else None
        number += 1000
    ours = Engine().ask(kind, value).grammar
    kept: list[int] = []
    for _ in range(40):
        matcher = grammar.matcher()
        behind = 0
        for token in kept:
            behind += matcher.is_terminated()
            assert matcher.is_terminated() or matcher.accept_token(token)
        if kept and rng.random() < 0.3:
            count = rng.randint(1, len(kept))
            ours.rollback(count)
            del kept[-count:]
            continue
        if matcher.is_terminated():
            ours.accept_token(5)
            kept.append(5)
            continue
        for token in draft(rng, matcher, 2):
            if matcher.is_terminated() or not matcher.accept_token(token):
                break
            ours.accept_token(token)
            kept.append(token)
        mask = ours.allocate_vocab_mask(LOGITS, 1, "cpu")
        ours.fill_vocab_mask(mask, 0)
        assert (unpacked(mask[0]) == (mask_of(matcher) if not matcher.is_terminated() else True)).all()
        fresh = ours.copy()
        fresh.fill_vocab_mask(mask, 0)
        assert (unpacked(mask[0]) == mask_of(grammar.matcher())).all()
        assert fresh.grammar_stats.is_cache_hit and fresh.grammar_stats is not ours.grammar_stats


def functions_of(path: str, *names: str) -> dict[str, Any]:
    """Functions of a module of SGLang that imports what a GPU needs; they themselves need torch alone."""
    source = (Path(sglang.srt.__path__[0]) / path).read_text("utf-8")
    found = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name in names]
    world: dict[str, Any] = {
        "torch": torch, "time": time, "Optional": Optional, "List": list, "Tuple": tuple, "Req": Any,
        "BaseGrammarObject": BaseGrammarObject, "TREE_TRAVERSE_TIME_THRESHOLD": 1e9,
    }  # fmt: skip
    exec(compile(ast.Module(list(found), []), path, "exec"), world)
    return world


def random_links(rng: random.Random, count: int) -> tuple[list[int], list[int]]:
    """Children and siblings of a draft tree."""
    children, siblings = [-1] * count, [-1] * count
    last: dict[int, int] = {}
    for node in range(1, count):
        parent = rng.randrange(node)
        if parent in last:
            siblings[last[parent]] = node
        else:
            children[parent] = node
        last[parent] = node
    return children, siblings


TREE_KINDS = (
    ("regex", "(ab|ac|b[0-9]+)*"), ("json", '{"type": "array", "items": {"type": "integer"}}'), ("regex", "[ab]+c?"),
    ("json", '{"type": "string"}'), None, ("regex", "a|b"),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_draft_trees(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One walk for the trees of a batch gives the masks of SGLang's own; rows without a grammar of ours among them."""
    world = functions_of("speculative/spec_utils.py", "traverse_tree", "generate_token_bitmask")
    monkeypatch.setitem(sys.modules, "sglang.srt.speculative.spec_utils", SimpleNamespace(**world))
    rng, engine = random.Random(seed), Engine()
    kinds = [TREE_KINDS[number % len(TREE_KINDS)] for number in range(7)]
    limits = [rng.choice([3, 4000]) for _ in kinds]  # near its end a budget narrows masks
    requests = [
        SimpleNamespace(grammar=kind and engine.ask(*kind, max_new_tokens=most).grammar)
        for kind, most in zip(kinds, limits, strict=True)
    ]
    if seed % 3 == 0:
        requests[-1].grammar.accept_token(special_id("<|end|>"))
    count = rng.randint(1, 9)
    links = [random_links(rng, count) for _ in kinds]
    texts = [*'abc01[],"', *(["<|end|>"] if seed % 2 else [])]
    ids = [special_id(text) if text in ENDS else tokenizer().encode(text)[0] for text in texts]
    ids += [LOGITS + 5] if seed % 4 == 1 else []
    trees = (
        torch.tensor([children for children, _ in links]),
        torch.tensor([siblings for _, siblings in links]),
        torch.tensor([[rng.choice(ids) for _ in range(count)] for _ in kinds]),
    )
    wanted, grammar = world["generate_token_bitmask"](requests, *trees, LOGITS)
    found, ours = hooks.walking(world["generate_token_bitmask"], requests, *trees, LOGITS)
    assert (found.numpy() == wanted.numpy()).all() and ours is grammar


@pytest.mark.parametrize("budget", [8, 12, 20])
def test_outputs_are_closed_within_their_budget(budget: int) -> None:
    """Random tokens of the masks: whole and valid by python-jsonschema; cut where the request says so."""
    schema = {"type": "array", "minItems": 1, "items": {"type": "string"}}
    engine = Engine()
    for seed in range(10):
        rng = random.Random(seed)
        request = engine.ask("json", json.dumps(schema), max_new_tokens=budget)
        mask = request.grammar.allocate_vocab_mask(LOGITS, 1, "cpu")
        while not request.grammar.is_terminated():
            request.grammar.fill_vocab_mask(mask, 0)
            allowed = np.flatnonzero(unpacked(mask[0])).tolist()
            token = rng.choice([token for token in allowed if token != special_id("<|end|>")] or allowed)
            request.output_ids.append(token)
            request.grammar.accept_token(token)
        assert len(request.output_ids) <= budget
        text = tokenizer().decode(request.output_ids, skip_special_tokens=True)
        jsonschema.validate(json.loads(text), schema)
    asked = {"max_new_tokens": budget, "custom_params": {"on_budget": "cut"}}
    assert engine.ask("json", json.dumps(schema), **asked).grammar.request.budget is None
    asked["custom_params"] = {"on_budget": "stretch"}
    assert "on_budget" in str(engine.ask("json", json.dumps(schema), **asked).error)


@pytest.mark.parametrize("kind, value, start, forced", [
    ("json", json.dumps({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
                         "additionalProperties": False}), "", '{"name":'),
    ("regex", "abc10(x|y)", "ab", "c10"),
    ("regex", "[ab]+", "a", ""),
    ("grammar", 'root ::= "é" [a-z]', "", "é"),
], ids=str)  # fmt: skip
def test_jump_forward(kind: str, value: str, start: str, forced: str) -> None:
    """As SGLang's scheduler did it: forced text, the whole text cut into tokens anew, and the state behind these."""
    ours = Engine().ask(kind, value).grammar
    old = [tokenizer().encode(character)[0] for character in start]  # in other tokens than the tokenizer's
    for token in old:
        ours.accept_token(token)
    helper = ours.try_jump_forward(tokenizer())
    if not forced:
        assert helper is None
        return
    text, state = ours.jump_forward_str_state(helper)
    assert text == forced
    new = tokenizer().encode(start + text)
    ours.jump_and_retokenize(old, new, state)
    plain = Engine().ask(kind, value).grammar
    for token in new:
        plain.accept_token(token)
    masks = [grammar.allocate_vocab_mask(LOGITS, 1, "cpu") for grammar in (ours, plain)]
    ours.fill_vocab_mask(masks[0], 0)
    plain.fill_vocab_mask(masks[1], 0)
    assert (masks[0] == masks[1]).all()
    wrong = tokenizer().encode("~")
    with pytest.raises(ValueError, match="does not allow"):
        ours.jump_and_retokenize(new, [*new[:-1], *wrong], state)
    ours.fill_vocab_mask(masks[0], 0)
    assert (masks[0] == masks[1]).all()


def test_the_constraint_begins_behind_the_thinking() -> None:
    """With a reasoning parser SGLang's own wrapper stands around the backend, and its cache ends too."""
    engine = Engine(reasoning_parser="qwen3")
    assert isinstance(engine.backend, ReasonerGrammarBackend)
    grammar = engine.ask("regex", "[ab]+", require_reasoning=True).grammar
    assert isinstance(grammar, ReasonerGrammarObject)
    for token in [*tokenizer().encode("zz"), special_id("</think>")]:
        logits = masked([grammar], torch.zeros(1, LOGITS))
        assert torch.isfinite(logits).all()
        grammar.accept_token(token)
    logits = masked([grammar], torch.zeros(1, LOGITS))
    assert set(torch.isfinite(logits[0]).nonzero()[:, 0].tolist()) == {
        token for token, text in enumerate(vocabulary().tokens) if text and set(text) <= set(b"ab")
    }
    grammar.accept_token(tokenizer().encode("a")[0])
    grammar.rollback(2)
    assert torch.isfinite(masked([grammar], torch.zeros(1, LOGITS))).all()
    for number in range(MAX_KEPT + 40):
        engine.ask("regex", f"a{{{number}}}b", require_reasoning=True)
    assert len(engine.backend.cache) <= MAX_KEPT


def test_the_cache_ends_and_hits_are_copies() -> None:
    engine = Engine()
    first = engine.ask("regex", "ab*").grammar
    first.accept_token(tokenizer().encode("a")[0])
    again = engine.ask("regex", "ab*")
    assert again.grammar is not first and again.grammar.grammar_stats.is_cache_hit
    assert not again.grammar.request.matcher.is_accepting()
    for number in range(MAX_KEPT + 40):
        engine.ask("regex", f"a{{{number}}}b")
        engine.ask("regex", "ab*")
    assert len(engine.backend.cache) == MAX_KEPT and ("regex", "ab*") in engine.backend.cache
    engine.manager.clear()
    assert not engine.backend.cache


REFUSED = [
    ("json", '{"type": "intger"}', "at /type"),
    ("json", "{", "no JSON"),
    ("json", "/etc/passwd", "a schema is an object"),
    ("regex", "(ab", "offset"),
    ("grammar", 'root ::= "a" missing', "missing"),
    ("structural_tag", '{"structures": [{"begin": "<a>", "end": "</a>"}], "triggers": ["<b"]}', "no trigger"),
]


@pytest.mark.parametrize("kind, value, message", REFUSED, ids=str)
def test_what_is_wrong_aborts_the_request_alone(kind: str, value: str, message: str) -> None:
    """It is told with our message, and kept, so that it is told at once the next time."""
    engine = Engine()
    for _ in range(2):
        request = engine.ask(kind, value)
        assert isinstance(request.grammar, InvalidGrammarObject)
        assert request.error is not None and message in request.error
    direct: Any = engine.backend.get_cached_or_future_value(("full_assistant_ebnf", "root ::= nothing"), False)[0]
    assert isinstance(direct, Future) and isinstance(direct.result(), InvalidGrammarObject)


def test_settings_of_the_server() -> None:
    schema = json.dumps({"const": {"a": 1}})

    def takes(text: str, **arguments: Any) -> bool:
        grammar = Engine(**arguments).ask("json", schema).grammar
        return bool(grammar.request.accept_all(tokenizer().encode(text)))

    assert takes('{"a": 1}') and not takes('{"a"  :  1}')
    assert not takes('{"a": 1}', constrained_json_disable_any_whitespace=True)
    assert takes('{"a":1}', constrained_json_disable_any_whitespace=True)
    assert takes('{"a"  :  1}', constrained_json_max_whitespace_cnt=2)
    assert not takes('{"a"   :  1}', constrained_json_max_whitespace_cnt=2)
    with pytest.raises(IntegrationError, match="constrained_json_whitespace_pattern"):
        create(constrained_json_whitespace_pattern=" ?")
    any_json = Engine().ask("json", "$$ANY$$").grammar
    assert any_json.request.accept_all(tokenizer().encode('[1, {"a": null}]'))


def test_a_batch_in_one_call_and_reusable_buffers() -> None:
    """Unlisted rows stay; grammars behind SGLang's wrapper may be among the others; a buffer is registered once."""
    engine = Engine()
    grammars = [engine.ask("regex", f"[a-{letter}]").grammar for letter in "bcde"]
    wrapped = Engine(reasoning_parser="qwen3").ask("regex", "[ab]").grammar
    mask = grammars[0].allocate_vocab_mask(LOGITS, 9, "cpu")
    for rows in (list(enumerate(grammars, 2)), [*enumerate(grammars, 2), (7, wrapped)]):
        grammars[0].reset_vocab_mask(mask)
        grammars[0].fill_vocab_mask_batched([GrammarRow(row, grammar) for row, grammar in rows], mask)
        alone = grammars[0].allocate_vocab_mask(LOGITS, 9, "cpu")
        for row, grammar in rows:
            grammar.fill_vocab_mask(alone, row)
        assert (mask == alone).all() and (mask[[0, 1, 6, 8]] == -1).all()
    buffer = engine.backend.initialize_vocab_mask_buffer("test", LOGITS, 4, "cpu")
    assert engine.backend.initialize_vocab_mask_buffer("test", LOGITS, 4, "cpu") is buffer
    assert get_vocab_mask_buffer("test", 3).shape == (3, LOGITS // 32)


def test_strict_thinking_filters_tokens() -> None:
    mask = SglangBackend.allocate_vocab_mask(LOGITS, 2, "cpu")
    SglangBackend.set_token_filter(mask, [3, 70], 1, is_allowed=True)
    assert set(np.flatnonzero(unpacked(mask[1]))) == {3, 70} and unpacked(mask[0]).all()


def test_signatures_are_sglangs() -> None:
    """Of every method that its classes declare, but those that the base class does right."""
    import inspect

    kept = {"maybe_init_reasoning", "finished"}
    for ours, theirs in ((SglangGrammarObject, BaseGrammarObject), (SglangBackend, BaseGrammarBackend)):
        assert issubclass(ours, theirs)
        for name, method in vars(theirs).items():
            if name.startswith("_") or not callable(getattr(theirs, name)) or name in kept or name not in vars(ours):
                continue
            wanted, own = (
                [p for p in inspect.signature(f).parameters if p != "self"]
                for f in (getattr(theirs, name), getattr(ours, name))
            )
            assert own == wanted, (name, method)
    assert module.check_interface() == ""
    declared = {name for name in vars(BaseGrammarObject) if not name.startswith("_")}
    assert declared - set(vars(SglangGrammarObject)) == kept


def test_another_interface_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def copy(self: Any, deep: bool) -> None: ...

    with monkeypatch.context() as patch:
        patch.setattr(BaseGrammarObject, "copy", copy)
        with pytest.raises(
            IntegrationError, match=r"made for SGLang 0\.5\.23; SGLang 0\.5\.23 .*copy takes \['deep'\]"
        ):
            create()
    monkeypatch.delattr("sglang.srt.arg_groups.choices.add_grammar_backend_choices")
    with pytest.raises(IntegrationError, match="another interface"):
        plugin.register()
