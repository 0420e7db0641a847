"""Continuous batching with a constraint a request, against the processor in ``model.generate``."""

from __future__ import annotations

from typing import Any

import pytest

from structgen.errors import ConstraintError, IncompleteOutputError, ModelError, OptionsError
from structgen.integrations.transformers import GrammarLogitsProcessor, continuous, generate_batch
from tests.integrations.transformers.small import CASES, EOS, PAD, VOCABULARY, llama, text_of

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
if not transformers.__version__.startswith(f"{continuous.VERSION}."):
    pytest.skip(f"transformers {continuous.VERSION} is not installed", allow_module_level=True)

PROMPTS = [[byte + 3 for byte in text.encode()] for text in ("Name it:", "ab", "What then, if not that?", "ab")]
EACH = [CASES["pairs"], CASES["choice"], CASES["object"], CASES["list"]]


def small() -> Any:
    """Blocks for these few tokens; by default all memory is taken."""
    return transformers.ContinuousBatchingConfig(num_blocks=8, page_size=64, max_batch_tokens=64)


def settings(**options: Any) -> Any:
    return transformers.GenerationConfig(max_new_tokens=40, eos_token_id=list(EOS), pad_token_id=PAD, **options)


@pytest.mark.full
def test_greedy_is_what_the_processor_writes() -> None:
    constraints = [case.constraint for case in EACH]
    out = generate_batch(
        llama(), PROMPTS, constraints, VOCABULARY, generation_config=settings(do_sample=False),
        continuous_batching_config=small(),
    )  # fmt: skip
    for prompt, case, output in zip(PROMPTS, EACH, out.values(), strict=True):
        processor = GrammarLogitsProcessor(case.constraint, VOCABULARY, max_new_tokens=40)
        alone = llama().generate(
            torch.tensor([prompt]), logits_processor=[processor], max_new_tokens=40, do_sample=False
        )
        assert output.prompt_ids == prompt and case.is_valid(text_of(output.generated_tokens))
        assert text_of(output.generated_tokens) == text_of(alone[0, len(prompt) :])


@pytest.mark.full
def test_sampled_texts_are_valid_and_closed_in_time() -> None:
    out = generate_batch(
        llama(), PROMPTS, EACH[2].constraint, VOCABULARY, max_new_tokens=9, continuous_batching_config=small(),
        generation_config=settings(do_sample=True, top_k=4, temperature=1.5, num_return_sequences=2),
    )  # fmt: skip
    assert len(out) == 2 * len(PROMPTS)
    assert all(EACH[2].is_valid(text_of(output.generated_tokens)) for output in out.values())


def test_what_does_not_go_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(config: Any = None, budget: int = 40) -> Any:
        options = {"generation_config": settings(), "continuous_batching_config": config or small()}
        return generate_batch(llama(), PROMPTS, EACH[2].constraint, VOCABULARY, max_new_tokens=budget, **options)

    with pytest.raises(OptionsError, match="use_async_batching"):
        run(transformers.ContinuousBatchingConfig(use_async_batching=True))
    with pytest.raises(IncompleteOutputError, match="max_new_tokens=2"):
        run(budget=2)
    with pytest.raises(ConstraintError, match="2 constraints for 4 prompts"):
        generate_batch(llama(), PROMPTS, [None, EACH[0].constraint], VOCABULARY, generation_config=settings())
    monkeypatch.setattr(continuous, "VERSION", "5.99")
    with pytest.raises(ModelError, match=r"need transformers 5.99, not 5\.\d+"):
        run()
