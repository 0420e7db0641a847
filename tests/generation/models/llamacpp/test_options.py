"""Options by the names that llama.cpp's users know: each has its effect, or is refused with a typed error."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structgen import Generator
from structgen.errors import GenerationError, ModelError, OptionsError, TokenizerError
from structgen.generation.models.llamacpp.adapters import with_adapter
from structgen.generation.models.llamacpp.files import is_installed
from structgen.generation.models.llamacpp.model import load_gguf
from structgen.generation.models.tiny import TinyModel
from tests.generation.models.llamacpp.gguf_files import byte_level, llama_weights, write_llama
from tests.server.tiny import VOCABULARY, ByteTokenizer

gguf = pytest.importorskip("gguf", reason="gguf writes the files of these tests")
pytestmark = pytest.mark.skipif(not is_installed(), reason="no package brings llama.cpp")
TEMPLATE = "{% for message in messages %}[{{ message.role }}] {{ message.content }}\n{% endfor %}[assistant] "
MESSAGES: Any = [{"role": "user", "content": "Hi"}]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("structgen.generation.models.llamacpp.adapters.cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


# --- how many tokens it reads, and where its layers are ---
def test_the_length_of_a_context(tiny_file: Path) -> None:
    generator = Generator(tiny_file, n_ctx=64)
    assert generator.model.context_length == 64
    with pytest.raises(GenerationError, match="the model reads 64"):
        generator.generate("a" * 100)
    for as_trained in (None, 0, 10**6):
        assert Generator(tiny_file, n_ctx=as_trained).model.context_length == 512


def test_a_long_context_gets_its_room(tiny_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked for is allocated, beyond what is taken where nobody asks."""
    token_bytes = Generator(tiny_file).model.ragged_reader().token_bytes  # type: ignore[attr-defined]
    monkeypatch.setattr("structgen.generation.models.llamacpp.model.CACHE_BYTES", 256 * token_bytes)
    assert Generator(tiny_file).model.context_length == 256
    assert Generator(tiny_file, n_ctx=512).model.context_length == 512


def test_layers_on_accelerators(tiny_file: Path) -> None:
    for layers in (0, -1, None):
        assert Generator(tiny_file, n_gpu_layers=layers).generate("a", max_new_tokens=2).text is not None
    with pytest.raises(ModelError, match=r"n_gpu_layers=35, but .* was built without accelerators"):
        Generator(tiny_file, n_gpu_layers=35)
    with pytest.raises(OptionsError, match="device='cpu' and n_gpu_layers=35 contradict"):
        Generator(tiny_file, device="cpu", n_gpu_layers=35)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n_ctx": -1}, "n_ctx must be an integer of at least 0"),
        ({"n_ctx": 1.5}, "n_ctx must be an integer"),
        ({"n_ctx": True}, "n_ctx must be an integer"),
        ({"n_gpu_layers": -2}, "n_gpu_layers must be an integer of at least -1"),
        ({"n_gpu_layers": "all"}, "n_gpu_layers must be an integer"),
        ({"lora_scale": "2"}, "lora_scale must be a number"),
        ({"lora_scale": float("nan")}, "lora_scale must be a number"),
    ],
)
def test_wrong_values(tiny_file: Path, options: Any, said: str) -> None:
    with pytest.raises(OptionsError, match=said):
        Generator(tiny_file, **options)


@pytest.mark.parametrize(
    "options", [{"n_ctx": 64}, {"n_gpu_layers": 1}, {"lora_path": "a.gguf"}, {"lora_scale": 2.0}], ids=str
)
def test_only_llama_cpp_takes_them(tiny_file: Path, options: Any) -> None:
    (name,) = options
    with pytest.raises(OptionsError, match=rf"{name}: only llama\.cpp takes this, and transformers runs the model"):
        Generator("some/model", **options)
    with pytest.raises(OptionsError, match=r"only llama\.cpp takes this"):
        Generator(tiny_file, backend="transformers", **options)
    if name != "lora_scale":
        with pytest.raises(OptionsError, match=f"{name} is for models that are loaded by their name"):
            Generator(TinyModel(VOCABULARY.size), ByteTokenizer(), vocabulary=VOCABULARY, **options)


# --- templates ---
def test_a_chat_template_as_text_or_file(tiny_file: Path, tmp_path: Path) -> None:
    (tmp_path / "chat.jinja").write_text(TEMPLATE)
    for given in (TEMPLATE, tmp_path / "chat.jinja", str(tmp_path / "chat.jinja")):
        tokenizer = Generator(tiny_file, chat_template=given).tokenizer
        shown = tokenizer.apply_chat_template(MESSAGES, tokenize=False, add_generation_prompt=True)
        assert tokenizer.chat_template == TEMPLATE and shown == "[user] Hi\n[assistant] "
    generator = Generator(tiny_file, chat_template=TEMPLATE)
    plain = Generator(tiny_file).generate("[user] Hi\n[assistant] ", max_new_tokens=8)
    assert generator.generate(MESSAGES, max_new_tokens=8).text == plain.text


def test_templates_that_cannot_be_read(tiny_file: Path, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff{{")
    for given, kind, said in (
        ("{% for", TokenizerError, r"chat template cannot be read \(line 1\)"),
        (tmp_path / "none", ModelError, "Cannot read the chat template .*none"),
        ("none.jinja", ModelError, "Give the path of a file, or the Jinja text itself"),
        (tmp_path / "bytes", ModelError, r"is no UTF-8 \(byte 0\)"),
    ):
        with pytest.raises(kind, match=said):
            Generator(tiny_file, chat_template=given)
    with pytest.raises(OptionsError, match="set it on that one"):
        Generator(tiny_file, ByteTokenizer(), chat_template=TEMPLATE)


# --- adapters ---
RANK = 4
TARGETS = ("blk.0.attn_q.weight", "blk.1.ffn_down.weight", "output.weight")


def adapter(path: Path, pairs: dict[str, tuple[Any, Any]], alpha: float = 8.0, kind: str = "lora", **more: Any) -> Path:
    writer = gguf.GGUFWriter(path, more.get("architecture", "llama"))
    writer.add_type("adapter")
    writer.add_string("adapter.type", kind)
    writer.add_float32("adapter.lora.alpha", alpha)
    for name, (a, b) in pairs.items():
        writer.add_tensor(f"{name}.lora_a", np.ascontiguousarray(a, np.float32))
        if b is not None:
            writer.add_tensor(f"{name}.lora_b", np.ascontiguousarray(b, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def random_pairs(weights: Any, names: Any = TARGETS) -> dict[str, tuple[Any, Any]]:
    rng = np.random.default_rng(1)
    return {
        name: (rng.normal(size=(RANK, weights[name].shape[1])), rng.normal(size=(weights[name].shape[0], RANK)))
        for name in names
    }


def test_an_adapter_is_added_to_the_weights(tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a model whose weights have it: the same logits, which are not those of the model without it."""
    size = len(write_llama(tmp_path / "plain.gguf"))
    weights, scale = llama_weights(size, 0), 0.5
    pairs = random_pairs(weights)
    rows = (
        np.random.default_rng(2).normal(size=(size, RANK)),
        np.random.default_rng(3).normal(size=(weights["token_embd.weight"].shape[1], RANK)),
    )
    changed = dict(weights)
    for name, (a, b) in pairs.items():
        changed[name] = (weights[name] + scale * 8.0 / RANK * (b @ a)).astype(np.float32)
    changed["token_embd.weight"] = (weights["token_embd.weight"] + scale * 8.0 / RANK * (rows[0] @ rows[1].T)).astype(
        np.float32
    )
    given = adapter(tmp_path / "added.gguf", {**pairs, "token_embd.weight": rows})
    monkeypatch.setattr("tests.generation.models.llamacpp.gguf_files.llama_weights", lambda *_: changed)
    write_llama(tmp_path / "changed.gguf")
    prompt = [[5, 9, 40, 3]]

    def logits(name: str, **options: Any) -> Any:
        return load_gguf(tmp_path / name, package=package, threads=1, **options)[0].prefill(prompt)[0]

    found = logits("plain.gguf", lora_path=given, lora_scale=scale)
    assert np.allclose(found, logits("changed.gguf"), atol=1e-3 * np.abs(found).max())
    assert np.abs(found - logits("plain.gguf")).max() > 0.1
    assert np.allclose(logits("plain.gguf", lora_path=given, lora_scale=0.0), logits("plain.gguf"), atol=1e-4)


def test_the_copy_is_kept_and_told_apart(tiny_file: Path, tmp_path: Path, own_cache: Path) -> None:
    weights = llama_weights(len(byte_level(_NoWriter())), 0)
    given = adapter(tmp_path / "a.gguf", random_pairs(weights))
    first = with_adapter(tiny_file, given)
    written = first.stat().st_mtime_ns
    assert with_adapter(tiny_file, given) == first and first.stat().st_mtime_ns == written
    others = {
        with_adapter(tiny_file, given, 0.5),
        with_adapter(tiny_file, adapter(tmp_path / "a.gguf", random_pairs(weights), 4.0)),
    }
    assert first not in others and len(others) == 2
    assert sorted((own_cache / "models").iterdir()) == sorted({first, *others})


class _NoWriter:
    """Takes what a writer of files is told."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


@pytest.mark.full
def test_quantised_weights_keep_most_of_their_bits(built_in_file: Path, tmp_path: Path) -> None:
    """The built-in model: an adapter of zeros changes no more than other ways to sum do, another one does."""
    reader = gguf.GGUFReader(built_in_file)
    (tensor,) = (one for one in reader.tensors if one.name == "blk.0.attn_v.weight")
    inner, outer = (int(size) for size in tensor.shape)
    rng = np.random.default_rng(0)
    parts = rng.normal(size=(RANK, inner)), rng.normal(size=(outer, RANK))
    nothing = adapter(tmp_path / "none.gguf", {"blk.0.attn_v.weight": (parts[0], 0 * parts[1])})
    something = adapter(tmp_path / "some.gguf", {"blk.0.attn_v.weight": parts})

    def log_probs(given: Path | None) -> Any:
        model, _ = load_gguf(built_in_file, threads=1, context_length=256, lora_path=given)
        logits = model.prefill([[1, 4093, 198, 19556, 28, 638, 359, 346, 47]])[0][0].astype(np.float64)
        return logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()

    plain, same, other = (log_probs(given) for given in (None, nothing, something))
    # Reading the same text a token a call changes them by 0.08, measured so.
    assert np.exp(plain) @ np.abs(same - plain) < 0.2 < 0.5 < np.exp(plain) @ np.abs(other - plain)
    copy = gguf.GGUFReader(with_adapter(built_in_file, nothing))
    assert [one.name for one in copy.tensors] == [one.name for one in reader.tensors]
    for one, own in zip(copy.tensors, reader.tensors, strict=True):
        assert one.name == "blk.0.attn_v.weight" or np.array_equal(one.data, own.data)


def test_what_is_no_adapter_of_the_model(tiny_file: Path, tmp_path: Path) -> None:
    weights = llama_weights(len(byte_level(_NoWriter())), 0)
    name, shape = "blk.0.attn_q.weight", weights["blk.0.attn_q.weight"].shape
    pairs = random_pairs(weights, [name])
    wide = {name: (np.zeros((RANK, shape[1] + 32)), np.zeros((shape[0], RANK)))}
    (tmp_path / "text").write_text("not a model")
    cases = {
        "kind": (adapter(tmp_path / "1", pairs, kind="other"), "is no LoRA adapter: its types are"),
        "model": (tiny_file, "is no LoRA adapter: its types are"),
        "architecture": (
            adapter(tmp_path / "2", pairs, architecture="qwen2"),
            "is for models of qwen2, and the model's is llama",
        ),
        "unknown": (adapter(tmp_path / "3", {"blk.9.attn_q.weight": pairs[name]}), "the model no such tensor"),
        "half": (adapter(tmp_path / "4", {name: (pairs[name][0], None)}), "has half of a pair"),
        "shape": (adapter(tmp_path / "5", wide), "does not fit the model: tensor 'blk.0.attn_q.weight' is"),
        "text": (tmp_path / "text", "is no GGUF file"),
        "missing": (tmp_path / "nowhere.gguf", "Cannot read the model file .*nowhere"),
    }
    for path, said in cases.values():
        with pytest.raises(ModelError, match=said):
            Generator(tiny_file, lora_path=path)
    cut = tmp_path / "cut.gguf"
    shutil.copy(adapter(tmp_path / "6", pairs), cut)
    with cut.open("r+b") as file:
        file.truncate(cut.stat().st_size // 2)
    with pytest.raises(ModelError, match="cannot be read as a GGUF file"):
        Generator(tiny_file, lora_path=cut)
