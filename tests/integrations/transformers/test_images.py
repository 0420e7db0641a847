"""Images: a small random model that reads pictures and text writes under the processor, whatever way it decodes."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from structgen.errors import OptionsError
from structgen.integrations.transformers import GrammarLogitsProcessor, generate
from tests.integrations.transformers.small import CASES, EOS, PAD, VOCABULARY, WIDTH, texts

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

IMAGE, PATCHES = 287, 4


@cache
def llava() -> Any:
    torch.manual_seed(2)
    text = transformers.LlamaConfig(
        vocab_size=WIDTH, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=512, eos_token_id=list(EOS), pad_token_id=PAD, bos_token_id=None,
        initializer_range=0.5,
    )  # fmt: skip
    vision = transformers.CLIPVisionConfig(
        hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, image_size=16, patch_size=8,
        projection_dim=16,
    )  # fmt: skip
    config = transformers.LlavaConfig(
        vision_config=vision, text_config=text, image_token_index=IMAGE, vision_feature_select_strategy="default",
        vision_feature_layer=-1,
    )  # fmt: skip
    made = transformers.LlavaForConditionalGeneration(config).eval()
    made.generation_config.eos_token_id, made.generation_config.pad_token_id = list(EOS), PAD
    return made


def prompts(seed: int = 0) -> dict[str, Any]:
    """Two prompts, each with a picture."""
    torch.manual_seed(seed)
    ids = torch.tensor([[*[IMAGE] * PATCHES, *(byte + 3 for byte in word)] for word in (b"What is", b"Name it")])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "pixel_values": torch.randn(2, 3, 16, 16)}


WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampled": {"do_sample": True, "top_k": 0},
    "beams": {"do_sample": False, "num_beams": 3},
    "sequences": {"do_sample": True, "num_return_sequences": 2},
}


@pytest.mark.parametrize("way", WAYS)
def test_texts_about_images_are_valid(way: str) -> None:
    for name in ("pairs", "object", "list"):
        case = CASES[name]
        inputs = prompts()
        processor = GrammarLogitsProcessor(case.constraint, VOCABULARY, WIDTH, max_new_tokens=60)
        written = llava().generate(**inputs, logits_processor=[processor], max_new_tokens=60, **WAYS[way])
        found = texts(written, inputs)
        assert len(found) == 2 * WAYS[way].get("num_return_sequences", 1)
        assert all(map(case.is_valid, found)), (name, found)


def test_what_is_written_depends_on_the_image() -> None:
    case = CASES["pairs"]
    found = []
    for seed in range(6):
        processor = GrammarLogitsProcessor(case.constraint, VOCABULARY, WIDTH)
        inputs = prompts(seed)
        found += texts(llava().generate(**inputs, logits_processor=[processor], max_new_tokens=60), inputs)
    assert len(set(found)) > 2


def test_embeddings_alone() -> None:
    """Then `generate` shows no prompt: the first call's sequences are empty."""
    case = CASES["object"]
    embedded = llava().get_input_embeddings()(prompts()["input_ids"] % IMAGE)
    processor = GrammarLogitsProcessor(case.constraint, VOCABULARY, WIDTH, max_new_tokens=60)
    written = llava().generate(inputs_embeds=embedded, logits_processor=[processor], max_new_tokens=60)
    assert all(map(case.is_valid, texts(written, {"input_ids": torch.zeros(2, 0)})))


def test_the_scheduler_refuses_images_by_name() -> None:
    with pytest.raises(OptionsError, match=r"(pixel_values|mm_encoder_outputs) is not for custom_generate"):
        llava().generate(
            **prompts(), custom_generate=generate(CASES["pairs"].constraint, VOCABULARY), max_new_tokens=20
        )
