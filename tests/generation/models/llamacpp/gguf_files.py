"""Small GGUF files with random weights, written with the gguf package: of a Llama that transformers computes too, of a
Mamba, and of tokenizers of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from structgen.core.vocabulary.tokenizer_json import byte_alphabet

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)  # enum llama_token_type, as files have it
LAYERS, WIDTH, HEADS, KEY_HEADS, INNER, CONTEXT = 2, 64, 4, 2, 96, 512
END, START = 0, 1


def byte_level(writer: Any, template: str | None = None) -> list[str]:
    """GPT-2's alphabet, some merges, a special token, a user's token; the tokens in order."""
    tokens = ["<|end|>", "<|start|>", *byte_alphabet(), "ab", "er", "Ġt", "<tool>"]
    types = [CONTROL, CONTROL, *[NORMAL] * 256, NORMAL, NORMAL, NORMAL, USER_DEFINED]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_merges(["a b", "e r", "Ġ t"])
    _add(writer, tokens, types, template)
    return tokens


def with_merges(
    writer: Any, merges: Iterable[tuple[str, str]], pre: str, added: Mapping[str, int], unmade: Iterable[str] = ()
) -> list[str]:
    """A byte-level vocabulary with these merges, cut by a pretokenizer of llama.cpp, and ``added`` tokens with their
    types, some of which may be made by merges, or bytes, and tokens that are ``unmade``; the tokens in order."""
    merges = list(merges)
    pieces = list(dict.fromkeys([*byte_alphabet(), *(one + two for one, two in merges)]))
    tokens = list(dict.fromkeys(["<|end|>", "<|start|>", *pieces, *unmade, *added]))
    types = {"<|end|>": CONTROL, "<|start|>": CONTROL, **added}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_merges([f"{one} {two}" for one, two in merges])
    _add(writer, tokens, [types.get(token, NORMAL) for token in tokens], None)
    return tokens


def sentencepiece(writer: Any, kind: str = "llama") -> list[str]:
    """Pieces with scores, bytes, an unknown token and an unused one; the tokens in order."""
    pieces = ["▁the", "▁", "é", "▁▁", "a", "b", "ab", "▁été", "</s>x"]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *pieces, "<tool>", "[unused]"]
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(pieces), USER_DEFINED, UNUSED]
    writer.add_tokenizer_model(kind)
    writer.add_token_scores([-float(place) for place in range(len(tokens))])
    _add(writer, tokens, types, None, end=2, start=1)
    return tokens


def _add(writer: Any, tokens: list[str], types: list[int], template: str | None, end: int = END, start: int = START):
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_eos_token_id(end)
    writer.add_bos_token_id(start)
    writer.add_add_bos_token(False)
    if template is not None:
        writer.add_chat_template(template)


def write_llama(
    path: Path,
    tokenizer: Any = byte_level,
    *,
    seed: int = 0,
    context: int = CONTEXT,
    settings: Mapping[str, float] = MappingProxyType({}),
) -> list[str]:
    """A Llama in float32 with random weights; the tokens in order. ``as_transformers`` is the same model. ``settings``:
    further numbers of the file, by their keys."""
    import gguf

    writer = gguf.GGUFWriter(path, "llama")
    tokens = tokenizer(writer)
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KEY_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    for key, value in settings.items():
        if isinstance(value, int):
            writer.add_int32(key, value)
        else:
            writer.add_float32(key, value)
    for name, weights in llama_weights(len(tokens), seed).items():
        writer.add_tensor(name, weights)
    _write(writer)
    return tokens


def llama_weights(size: int, seed: int) -> dict[str, np.ndarray]:
    """Weights by the names in GGUF files; those of queries and keys in the order of llama.cpp's rotary embedding."""
    rng = np.random.default_rng(seed)

    def made(*shape: int) -> np.ndarray:
        return rng.normal(scale=1.5 / np.sqrt(shape[-1]), size=shape).astype(np.float32)

    head = WIDTH // HEADS
    weights = {"token_embd.weight": made(size, WIDTH), "output.weight": 4 * made(size, WIDTH)}
    weights["output_norm.weight"] = np.ones(WIDTH, np.float32)
    for layer in range(LAYERS):
        weights |= {
            f"blk.{layer}.attn_norm.weight": np.ones(WIDTH, np.float32),
            f"blk.{layer}.ffn_norm.weight": np.ones(WIDTH, np.float32),
            f"blk.{layer}.attn_q.weight": made(HEADS * head, WIDTH),
            f"blk.{layer}.attn_k.weight": made(KEY_HEADS * head, WIDTH),
            f"blk.{layer}.attn_v.weight": made(KEY_HEADS * head, WIDTH),
            f"blk.{layer}.attn_output.weight": made(WIDTH, WIDTH),
            f"blk.{layer}.ffn_gate.weight": made(INNER, WIDTH),
            f"blk.{layer}.ffn_up.weight": made(INNER, WIDTH),
            f"blk.{layer}.ffn_down.weight": made(WIDTH, INNER),
        }
    return weights


def as_transformers(size: int, seed: int = 0) -> Any:
    """The model of ``write_llama`` as a transformers model."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=size, hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=KEY_HEADS, max_position_embeddings=CONTEXT,
        rms_norm_eps=1e-5, tie_word_embeddings=False,
    )  # fmt: skip
    names = {
        "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    }  # fmt: skip
    plain = {"token_embd": "model.embed_tokens", "output": "lm_head", "output_norm": "model.norm"}
    state = {}
    for name, weights in llama_weights(size, seed).items():
        if name.startswith("blk."):
            _, layer, part, _ = name.split(".")
            heads = {"attn_q": HEADS, "attn_k": KEY_HEADS}.get(part)
            if heads is not None:  # pairs beside each other -> halves (the other way round of convert_hf_to_gguf)
                weights = weights.reshape(heads, -1, 2, WIDTH).swapaxes(1, 2).reshape(weights.shape)
            state[f"model.layers.{layer}.{names[part]}.weight"] = torch.tensor(weights)
        else:
            state[f"{plain[name.removesuffix('.weight')]}.weight"] = torch.tensor(weights)
    model = LlamaForCausalLM(config)
    model.load_state_dict(state)
    return model.eval()


def write_mamba(path: Path) -> list[str]:
    """A Mamba with random weights: its state cannot be cut back."""
    import gguf

    inner, state, rank, taps = 2 * WIDTH, 8, 4, 4
    rng = np.random.default_rng(0)

    def made(*shape: int) -> np.ndarray:
        return rng.normal(scale=1 / np.sqrt(shape[-1]), size=shape).astype(np.float32)

    writer = gguf.GGUFWriter(path, "mamba")
    tokens = byte_level(writer)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_ssm_conv_kernel(taps)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(state)
    writer.add_ssm_time_step_rank(rank)
    writer.add_layer_norm_rms_eps(1e-5)
    weights = {"token_embd.weight": made(len(tokens), WIDTH), "output_norm.weight": np.ones(WIDTH, np.float32)}
    for layer in range(LAYERS):
        weights |= {
            f"blk.{layer}.attn_norm.weight": np.ones(WIDTH, np.float32),
            f"blk.{layer}.ssm_in.weight": made(2 * inner, WIDTH),
            f"blk.{layer}.ssm_conv1d.weight": made(inner, taps),
            f"blk.{layer}.ssm_conv1d.bias": np.zeros(inner, np.float32),
            f"blk.{layer}.ssm_x.weight": made(rank + 2 * state, inner),
            f"blk.{layer}.ssm_dt.weight": made(inner, rank),
            f"blk.{layer}.ssm_dt.bias": np.zeros(inner, np.float32),
            f"blk.{layer}.ssm_a": -np.exp(rng.normal(size=(inner, state))).astype(np.float32),
            f"blk.{layer}.ssm_d": np.ones(inner, np.float32),
            f"blk.{layer}.ssm_out.weight": made(WIDTH, inner),
        }
    for name, weight in weights.items():
        writer.add_tensor(name, weight)
    _write(writer)
    return tokens


def _write(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
