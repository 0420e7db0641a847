"""The training example with TRL and a tiny model: rollouts satisfy the schema, ratios of policy to sampler are 1."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("trl", reason="trl is not installed (pip install trl)")

PATH = Path(__file__).parents[1] / "examples" / "training" / "grpo.py"


def example() -> Any:
    specification = importlib.util.spec_from_file_location("grpo", PATH)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[module.__name__] = module  # where datasets look functions up
    specification.loader.exec_module(module)
    return module


def tiny() -> Any:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=288, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
            num_key_value_heads=2, max_position_embeddings=512, eos_token_id=0, pad_token_id=2, bos_token_id=None,
            initializer_range=0.5,
        )
    )  # fmt: skip


@pytest.mark.full
def test_the_policy_that_is_trained_is_the_one_that_wrote(tmp_path: Path) -> None:
    from tests.integrations.transformers.small import tokenizer

    module, model = example(), tiny()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    trainer, texts = module.main(model, tokenizer(), str(tmp_path))
    assert len(texts) == 8
    for text in texts:
        jsonschema.validate(json.loads(text), module.SCHEMA)
    assert any(not torch.equal(*pair) for pair in zip(before, model.parameters(), strict=True))

    inputs = tokenizer()(module.PROMPTS[:1], return_tensors="pt")
    plain = {name: inputs[name] for name in ("input_ids", "attention_mask")}
    model.eval()
    for seed in range(4):
        torch.manual_seed(seed)
        out = model.generate(
            **plain, do_sample=True, temperature=0.9, top_k=0, max_new_tokens=32, return_dict_in_generate=True,
            output_scores=True,
        )  # fmt: skip
        written = out.sequences[:, plain["input_ids"].shape[1] :]
        drawn = torch.stack(out.scores, dim=1).log_softmax(-1).gather(2, written[..., None])[..., 0]
        with torch.no_grad():
            ours, _, _ = trainer._get_per_token_logps_and_entropies(
                model, out.sequences, torch.ones_like(out.sequences), written.shape[1]
            )
            logits = model(out.sequences).logits[:, -written.shape[1] - 1 : -1] / 0.9
        theirs = logits.log_softmax(-1).gather(2, written[..., None])[..., 0]
        assert torch.allclose(ours, drawn, atol=1e-4)
        assert not torch.allclose(theirs, drawn, atol=1e-2), "without masks the ratio is the mass that they left"
