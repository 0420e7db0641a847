"""GRPO with TRL on constrained rollouts, so that the policy which is trained is the one that wrote them.

The rollouts are masked. TRL's own log-probabilities are those of the model without masks, so they differ from what was
drawn by the mass that the masks left, at every constrained token. ``MaskedGRPOTrainer`` computes those of the masked
policy: the masks are made again from the tokens.

pip install trl; python examples/training/grpo.py [MODEL]
"""

from __future__ import annotations

import functools
import json
import sys
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from structgen import Vocabulary, json_schema, rl
from structgen.integrations.transformers import GrammarLogitsProcessor

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 99}, "ok": {"type": "boolean"}},
    "required": ["a", "ok"],
    "additionalProperties": False,
}
PROMPTS = ["A number:", "Another number:"]


class MaskedGRPOTrainer(GRPOTrainer):  # type: ignore[misc, unused-ignore]  # TRL may be absent
    """Trains the masked policy. ``constraint`` and ``vocabulary`` are set after it was made."""

    constraint: Any
    vocabulary: Vocabulary

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *args: Any, **options: Any
    ) -> tuple[Any, Any, Any]:
        """Log-probabilities of the completions under the masked policy; tokens after their ends have 0."""
        logits = model(input_ids=input_ids, attention_mask=attention_mask).logits[:, -logits_to_keep - 1 : -1]
        ids, real = input_ids[:, -logits_to_keep:], attention_mask[:, -logits_to_keep:].bool()
        masks = np.full((*ids.shape, -(-self.vocabulary.size // 32)), -1, np.int32)
        for mask, row, is_real in zip(masks, ids.tolist(), real.tolist(), strict=True):
            written = row[: sum(is_real)]  # padding is on the right
            mask[: len(written)] = rl.masks(self.constraint, self.vocabulary, written)
        logps, _ = rl.log_probs(logits / self.temperature, ids, masks)
        logps = torch.where(real, logps, 0.0)
        return logps, (-logps.detach() if options.get("compute_entropy") else None), None


def reward(completions: list[str], **_: Any) -> list[float]:
    """Large numbers."""
    return [json.loads(text)["a"] / 99 for text in completions]


def main(model: Any, tokenizer: Any, folder: str, steps: int = 2) -> tuple[MaskedGRPOTrainer, list[str]]:
    """Train a little; returns the trainer and the texts of all rollouts."""
    constraint, width = json_schema(SCHEMA), model.get_output_embeddings().weight.shape[0]
    processor = GrammarLogitsProcessor(constraint, tokenizer, width, max_new_tokens=32)
    model.generate = functools.partial(model.generate, logits_processor=[processor])
    texts: list[str] = []

    def noted(completions: list[str], **more: Any) -> list[float]:
        texts.extend(completions)
        return reward(completions, **more)

    settings = GRPOConfig(
        output_dir=folder, max_steps=steps, per_device_train_batch_size=4, num_generations=4, max_completion_length=32,
        report_to=[], save_strategy="no", logging_steps=1, use_cpu=True, temperature=0.9, top_k=0, beta=0.0,
        disable_tqdm=True,
    )  # fmt: skip
    trainer = MaskedGRPOTrainer(
        model=model, reward_funcs=noted, args=settings, processing_class=tokenizer,
        train_dataset=Dataset.from_dict({"prompt": PROMPTS * 8}),
    )  # fmt: skip
    trainer.constraint, trainer.vocabulary = constraint, processor.vocabulary
    trainer.train()
    return trainer, texts


if __name__ == "__main__":
    from transformers import AutoModelForCausalLM, AutoTokenizer

    name = (sys.argv[1:] or ["HuggingFaceTB/SmolLM2-135M-Instruct"])[0]
    _, written = main(AutoModelForCausalLM.from_pretrained(name), AutoTokenizer.from_pretrained(name), "grpo-out")
    print(*written, sep="\n")
