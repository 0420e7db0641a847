"""Records what llama.cpp takes and refuses of `llama_cpp_grammars`, in ``tests/core/grammars/data/llama_cpp.json``.

The library proposes texts, llama.cpp adds those of its own walks and judges all (which cyllama can, beside it)::

    python -m tests.core.grammars.peers.record_llama_cpp propose > texts.json
    python -m venv venv && venv/bin/pip install cyllama==0.2.18 gguf
    PYTHONPATH=. venv/bin/python -m tests.core.grammars.peers.record_llama_cpp judge texts.json

llama.cpp asks its grammars about tokens when it samples, so there is a model, of one random layer, whose tokens are
bytes. A byte is allowed if it is sampled where its logit is raised beyond all others.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.core.grammars.peers.llama_cpp_grammars import GRAMMARS
from tests.core.grammars.peers.walks import accepts, texts

RECORD = Path(__file__).parents[1] / "data" / "llama_cpp.json"
FIRST, END, TOKENS = 3, 2, 259  # <unk> <s> </s>, then the bytes


def propose() -> dict[str, list[str]]:
    """Texts of this library's walks."""
    from structgen.core.compilers import compile_gbnf
    from structgen.core.vocabulary.vocabulary import Vocabulary
    from tests.core.grammars.peers.walks import Ours

    vocabulary = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
    found = {}
    for name, (source, words) in GRAMMARS.items():
        grammar = compile_gbnf(source, vocabulary)
        found[name] = texts([lambda grammar=grammar: Ours(grammar)], words, random.Random(name), walks=12)  # type: ignore[misc]
    return found


def judge(proposed: dict[str, list[str]]) -> dict[str, Any]:
    """The same texts and those of llama.cpp's walks, as it judges them."""
    record: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        llama = _Llama(Path(folder) / "tiny.gguf")
        for name, (source, words) in GRAMMARS.items():

            def start(source: str = source) -> _Theirs:
                return _Theirs(llama, source)

            asked = {*proposed[name], *texts([start], words, random.Random(name), walks=6)}
            asked = {text for text in asked if "\0" not in text}  # which llama.cpp never takes
            taken = {text for text in asked if accepts(start, text)}
            record[name] = {"source": source, "accepted": sorted(taken), "refused": sorted(asked - taken)}
    return {
        "made_by": "tests/core/grammars/peers/record_llama_cpp.py, cyllama 0.2.18, llama.cpp b9190",
        "grammars": record,
    }


class _Llama:
    """A context with logits, and the module."""

    def __init__(self, path: Path) -> None:
        from cyllama.llama import llama_cpp

        _write_model(path)
        llama_cpp.disable_logging()
        self.module: Any = llama_cpp
        self.model = llama_cpp.LlamaModel(str(path), llama_cpp.LlamaModelParams(), verbose=False)
        params = llama_cpp.LlamaContextParams()
        params.n_ctx = params.n_batch = 64
        self.context = llama_cpp.LlamaContext(self.model, params, verbose=False)
        self.context.decode(llama_cpp.llama_batch_get_one([1]))
        self.vocabulary = self.model.get_vocab()


class _Theirs:
    """A grammar sampler of llama.cpp as a reader."""

    def __init__(self, llama: _Llama, source: str) -> None:
        self._llama = llama
        self._sampler = llama.module.LlamaSampler(llama.module.LlamaSamplerChainParams())
        self._sampler.add_grammar(llama.vocabulary, source, "root")

    def _takes(self, token: int) -> bool:
        sampler = self._sampler.clone()
        sampler.add_logit_bias(TOKENS, [(token, 1000.0)])
        sampler.add_greedy()
        return bool(sampler.sample(self._llama.context, -1) == token)

    def allowed(self) -> list[int]:
        """See Reader."""
        return [byte for byte in range(256) if self._takes(FIRST + byte)]

    def accept(self, byte: int) -> bool:
        """See Reader."""
        if not self._takes(FIRST + byte):
            return False
        self._sampler.accept(FIRST + byte)
        return True

    def ends(self) -> bool:
        """See Reader."""
        return self._takes(END)

    def rest(self) -> bytes:
        """See Reader: it knows none."""
        return b""


def _write_model(path: Path) -> None:
    """A model of one layer whose tokens are bytes."""
    import gguf

    width = 32
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_block_count(1)
    writer.add_context_length(4096)
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(width)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(TOKENS)
    writer.add_rope_dimension_count(width // 2)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256))])
    writer.add_token_scores([0.0] * TOKENS)
    writer.add_token_types([2, 3, 3] + [6] * 256)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(END)
    writer.add_unk_token_id(0)
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd": (TOKENS, width),
        "output": (TOKENS, width),
        "output_norm": (width,),
    }
    square = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    shapes |= {f"blk.0.{name}": (width, width) for name in square}
    shapes |= {f"blk.0.{name}": (width,) for name in ("attn_norm", "ffn_norm")}
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", rng.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    if sys.argv[1] == "propose":
        print(json.dumps(propose(), ensure_ascii=False))
    else:
        found = judge(json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")))
        RECORD.parent.mkdir(exist_ok=True)
        RECORD.write_text(json.dumps(found, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
