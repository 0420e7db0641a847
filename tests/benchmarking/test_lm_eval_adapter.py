"""The adapter for lm-evaluation-harness, over the interface that lm_eval 0.4 calls (the package itself is optional)."""

from __future__ import annotations

import json
import math
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_bench import VOCABULARY, load

SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


class Request:
    """What the adapter reads of lm_eval's Instance."""

    def __init__(self, *args: Any, doc: dict[str, Any] | None = None) -> None:
        self.args, self.doc = args, doc


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The adapter over the real package if it is there, else over two stand-ins for what it takes from it."""
    try:
        import lm_eval.api.model  # noqa: F401
    except ImportError:
        model: Any = types.ModuleType("lm_eval.api.model")
        registry: Any = types.ModuleType("lm_eval.api.registry")
        model.LM = type("LM", (), {"__init__": lambda self: None})
        registry.register_model = lambda name: lambda cls: cls
        for name, module in (("lm_eval.api.model", model), ("lm_eval.api.registry", registry)):
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setitem(sys.modules, "lm_eval", types.ModuleType("lm_eval"))
        monkeypatch.setitem(sys.modules, "lm_eval.api", types.ModuleType("lm_eval.api"))
    monkeypatch.delitem(sys.modules, "structgen.benchmarking.lm_eval_adapter", raising=False)
    from structgen.benchmarking.lm_eval_adapter import StructgenLM

    return StructgenLM(generator=load(), max_gen_toks=20)


def test_generation_under_the_documents_schema(adapter: Any) -> None:
    in_document = Request("p", {"until": ["e"]}, doc={"json_schema": json.dumps(SCHEMA)})
    in_arguments = Request("p", {"json_schema": {"const": 12}})
    free = Request("p", {"max_gen_toks": 7, "until": []}, doc={})
    refused = Request("p", {"json_schema": {"pattern": "(a)\\1", "type": "string"}})
    too_small = Request("p", {"json_schema": {"const": "x" * 50}})
    texts = adapter.generate_until([in_document, in_arguments, free, refused, too_small])
    assert json.loads(texts[0])["ok"] in (True, False), "a stop string does not cut constrained text"
    assert texts[1:2] + texts[3:] == ["12", "", ""]
    assert 0 < len(texts[2]) <= 7 * 4


def test_log_likelihoods(adapter: Any) -> None:
    """By the definition: a softmax of the model's logits after each prefix."""
    text, start = list(b"ab cd"), 2

    def log_prob(place: int) -> float:
        logits = adapter.generator.model.prefill([text[:place]])[0][0][: VOCABULARY.size].astype(float)
        return float(logits[text[place]] - np.logaddexp.reduce(logits))

    (total, greedy), (empty, _) = adapter.loglikelihood([Request("ab", " cd"), Request("ab", "")])
    assert total == pytest.approx(sum(log_prob(place) for place in range(start, len(text))), abs=1e-4)
    assert greedy is False and empty == 0.0
    (rolling,) = adapter.loglikelihood_rolling([Request("ab cd")])
    assert rolling == pytest.approx(sum(log_prob(place) for place in range(1, len(text))), abs=1e-4)
    assert math.isfinite(rolling)


def test_the_tasks_scores() -> None:
    from structgen.benchmarking.lm_eval_tasks import scoring

    doc = {"json_schema": json.dumps(SCHEMA)}
    assert scoring.process_results(doc, [' {"ok": true}\n']) == {"valid": 1.0, "json": 1.0}
    assert scoring.process_results(doc, ["{}"]) == {"valid": 0.0, "json": 1.0}
    assert scoring.process_results(doc, ["Sure!"]) == {"valid": 0.0, "json": 0.0}
    folder = Path(scoring.__file__).parent
    for path in folder.glob("[!_]*.yaml"):
        assert "include: _jsonschemabench.yaml" in path.read_text(), path
