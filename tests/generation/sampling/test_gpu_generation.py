"""Whole generations on a GPU: what is drawn there is what the processor's sampler draws from the same logits."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from structgen.generation.decoding import choosing
from structgen.generation.generator import Generator
from structgen.generation.sampling.host import HostSampler
from structgen.generation.speculative import verification
from tests.fakes import CharTokenizer
from tests.generation.decoding.test_devices import PEOPLE, SAMPLING, VOCABULARY, model

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def generator(**options: Any) -> Generator:
    return Generator(copy.deepcopy(model()).to("cuda"), CharTokenizer(eos=1), vocabulary=VOCABULARY, **options)


class Fetching(HostSampler):
    """The processor's sampler for logits that are on a GPU."""

    def draw(self, logits: Any, *arguments: Any, **options: Any) -> Any:
        return super().draw(logits.cpu(), *arguments, **options)


@pytest.mark.parametrize("draft", [None, "auto"])
@pytest.mark.parametrize("name", SAMPLING)
def test_a_gpu_writes_what_the_processor_would(name: str, draft: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {**SAMPLING[name], "max_new_tokens": 40}
    prompts, constraints = ["ababab", "p", "q"], [None, PEOPLE, PEOPLE]
    one = generator(draft=draft)
    batch = one.batch(prompts, constraints, **options)
    single = [one.generate(prompt, each, **options) for prompt, each in zip(prompts, constraints, strict=True)]
    fetching = Fetching()
    monkeypatch.setattr(choosing, "sampler_for", lambda logits: fetching)
    monkeypatch.setattr(verification, "sampler_for", lambda logits: fetching)
    host = generator()
    assert [r.token_ids for r in batch] == [r.token_ids for r in host.batch(prompts, constraints, **options)]
    expected = [host.generate(prompt, each, **options) for prompt, each in zip(prompts, constraints, strict=True)]
    assert [r.token_ids for r in single] == [r.token_ids for r in expected]
    assert [r.logprob for r in single] == pytest.approx([r.logprob for r in expected], abs=1e-3)


def test_a_batch_under_a_schema_is_valid() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"enum": ["ab", "bc"]}, "n": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["a", "n"],
        "additionalProperties": False,
    }
    results = generator().batch(["p", "abab", "q"] * 20, schema, temperature=1.0, seed=3, max_new_tokens=200)
    for result in results:
        value = json.loads(result.text)
        assert value["a"] in ("ab", "bc") and 0 <= value["n"] <= 99
