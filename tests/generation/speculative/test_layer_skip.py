"""A model without some layers is the model whose other layers were copied."""

from __future__ import annotations

from typing import Any

import pytest

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.output import Output
from structgen.generation.models.transformers_model import TransformersModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.speculative.layer_skip import LayerSkipDrafter, skip_layers, spread
from structgen.generation.speculative.length import Fixed
from structgen.generation.speculative.speculator import Speculator
from tests.generation.decoding.plain_loop import decode as plain
from tests.generation.decoding.writing import decode

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")


def llama(layers: int) -> Any:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=layers, num_attention_heads=4
        )
    )


def gpt2(layers: int) -> Any:
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(vocab_size=50, n_embd=32, n_layer=layers, n_head=4, bos_token_id=1, eos_token_id=1)
    )


@pytest.mark.parametrize("make", [llama, gpt2])
def test_skipping_layers(make: Any) -> None:
    whole = make(5)
    short = make(3)
    state = {
        name.replace(".2.", ".1.").replace(".4.", ".2."): value
        for name, value in whole.state_dict().items()
        if ".1." not in name and ".3." not in name
    }
    short.load_state_dict(state)
    skipping, expected = skip_layers(TransformersModel(whole), [1, 3]), TransformersModel(short)
    logits, cache = skipping.prefill([[5, 6, 7]])
    right, other = expected.prefill([[5, 6, 7]])
    assert torch.allclose(logits, right, atol=1e-5)
    assert torch.allclose(skipping.forward([[8, 9]], cache), expected.forward([[8, 9]], other), atol=1e-5)
    cache.crop(4)
    other.crop(4)
    assert torch.allclose(skipping.forward([[3]], cache), expected.forward([[3]], other), atol=1e-5)
    assert not torch.allclose(TransformersModel(whole).prefill([[5, 6, 7]])[0], right, atol=1e-3)


def test_spread_keeps_the_ends() -> None:
    assert spread(30, 0.5)[0] > 0 and spread(30, 0.5)[-1] < 29 and len(spread(30, 0.5)) == 15
    assert spread(3, 0.1) == ()


@pytest.mark.full
@pytest.mark.parametrize("make", [llama, gpt2])
@pytest.mark.parametrize("rows", [1, 3])
def test_same_tokens_with_a_real_cache(make: Any, rows: int) -> None:
    """Trees, kept paths and unequal rows through a transformers model; drafts by the model itself."""
    model = TransformersModel(make(4))
    words = Vocabulary([None] + [bytes([65 + token]) for token in range(49)], eos_token_ids=0)
    prompts = [[5, 6, 7], [8], [9, 5]][:rows]

    def write(loop: Any, *extra: Any) -> list[list[int]]:
        outputs = [Output(words, None, SamplingParams(0.7, seed=row), max_new_tokens=24) for row in range(rows)]
        for _ in loop(model, prompts, outputs, *extra):
            pass
        return [output.token_ids for output in outputs]

    one = Speculator([LayerSkipDrafter(model, branches=2, stop=0.0)], Fixed(6))
    assert write(decode, one) == write(plain)
