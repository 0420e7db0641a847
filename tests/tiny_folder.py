"""A model of a few thousand random weights with a byte-level tokenizer, as a folder that transformers loads: for tests
whose processes load a model by its name. Its rows are read apart, as those of real models are."""

from __future__ import annotations

from pathlib import Path


def make_folder(folder: Path, scale: float = 1.0) -> Path:
    """Write the model. ``scale`` multiplies its logits: the higher, the less even the next token."""
    import tokenizers
    import torch
    import transformers

    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    names = ["<end>", *letters, *("Ġa", "er", '{"', '":', '",', "th", "in")]
    pairs = [("Ġ", "a"), ("e", "r"), ("{", '"'), ('"', ":"), ('"', ","), ("t", "h"), ("i", "n")]
    backend = tokenizers.Tokenizer(tokenizers.models.BPE({name: i for i, name in enumerate(names)}, pairs))
    backend.decoder = tokenizers.decoders.ByteLevel()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(names), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=2048, eos_token_id=0, bos_token_id=None,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).float()
    with torch.no_grad():
        model.lm_head.weight.mul_(scale * 20)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
