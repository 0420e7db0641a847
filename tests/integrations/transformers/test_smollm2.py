"""The built-in model, with its own tokenizer and settings: processor, custom_generate and our generator write alike."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from structgen.generation.models.built_in import DEFAULT_MODEL_PACKAGE
from structgen.generation.models.transformers_store import default_model_folder
from structgen.integrations.transformers import GrammarLogitsProcessor, generate

for package in ("torch", "transformers", "gguf", "accelerate", DEFAULT_MODEL_PACKAGE):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "person.json").read_text())


@pytest.mark.full
def test_three_ways_write_the_same_person() -> None:
    import torch
    import transformers

    model: Any = transformers.AutoModelForCausalLM.from_pretrained(default_model_folder(), dtype=torch.float32)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(default_model_folder())
    messages = [{"role": "user", "content": "Ada Lovelace, 36 years old, mathematician in London. As JSON."}]
    prompt: Any = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    processor = GrammarLogitsProcessor(SCHEMA, tokenizer, eos_token_ids=model.generation_config.eos_token_id)
    options: dict[str, Any] = {"max_new_tokens": 60, "do_sample": False}
    expected = model.generate(**prompt, logits_processor=[processor], **options)
    text = tokenizer.decode(expected[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True)
    jsonschema.validate(json.loads(text), SCHEMA)
    assert torch.equal(model.generate(**prompt, custom_generate=generate(SCHEMA, tokenizer), **options), expected)
    helped = model.generate(**prompt, logits_processor=[processor], prompt_lookup_num_tokens=5, **options)
    assert torch.equal(helped, expected)
