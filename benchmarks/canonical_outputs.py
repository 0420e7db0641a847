"""Are outputs in canonical spelling the tokens that their tokenizer makes of their text?

    python benchmarks/canonical_outputs.py DATA/tokenizers --outputs 10000

Outputs of random logits (so that every token that is allowed is met), free and under constraints, by Generator with
``spelling="canonical"``, shared among: o200k and cl100k of tiktoken, the same two as Hugging Face has them (converted
by transformers), SmolLM2's tokenizer of Hugging Face and that of the built-in GGUF file. Each is encoded again by its
tokenizer. The exit code is 1 if one comes out otherwise.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # measure this checkout

import structgen
from structgen.benchmarking.vocabularies import tiktoken_encoding
from structgen.core.tokenization.reading import canonical_spelling
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import IncompleteOutputError, TokenizerError
from structgen.generation.generator import Generator
from structgen.generation.models.built_in import default_model_file
from structgen.generation.models.llamacpp import files
from structgen.generation.models.llamacpp.tokenizer import GgufTokenizer
from structgen.generation.models.tiny import TinyModel

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "age": {"type": "integer"},
        "tag": {"enum": ["a", "bc"]},
    },
    "required": ["name", "tag"],
    "additionalProperties": False,
}
CONSTRAINTS: dict[str, Any] = {
    "nothing": None,
    "object": SCHEMA,
    "expression": structgen.regex(r"[ \n]{0,3}[A-Z][a-z']{1,9}( [a-z]{1,9}){0,3}(\d{1,5})?[.!]?"),
    "choice": ["the the", "the  the", " ab\n\n", "12ab'll", "日本é👩", "don't", "1234567"],
}
SHARES = (3, 1, 3, 3)  # objects take long where each token is random: nearly all must be turned down near the end
Encode = Callable[[str], Sequence[int]]


class Wrapped:
    """What ``Generator`` asks of a tokenizer."""

    eos_token_id, chat_template = 0, None

    def __init__(self, encode: Encode, **fields: Any) -> None:
        self._encode = encode
        vars(self).update(fields)

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Ids."""
        return list(self._encode(text))


def tokenizers(folder: Path) -> Iterator[tuple[str, Callable[[], tuple[Any, Vocabulary, Encode]]]]:
    """Each tokenizer, its vocabulary, and what it makes of a text, by name; made when asked for."""
    converter: Any = importlib.import_module("transformers.convert_slow_tokenizer")

    for name in ("o200k", "cl100k"):
        described = json.loads((folder / f"{name}_base.json").read_text())

        def of_tiktoken(name: str = name) -> tuple[Any, Vocabulary, Encode]:
            encoding = tiktoken_encoding(name, folder)
            encode = encoding.encode_ordinary
            said = {word: getattr(encoding, word) for word in ("_mergeable_ranks", "_pat_str", "encode_ordinary")}
            return Wrapped(encode, **said), Vocabulary.from_tiktoken(encoding), encode

        def of_hugging_face(name: str = name, described: Any = described) -> tuple[Any, Vocabulary, Encode]:
            converted = converter.TikTokenConverter(
                str(folder / f"{name}_base.tiktoken"), pattern=described["pat_str"], extra_special_tokens=["<|end|>"]
            ).converted()
            end = converted.token_to_id("<|end|>")

            def encode(text: str) -> Sequence[int]:
                ids: Sequence[int] = converted.encode(text, add_special_tokens=False).ids
                return ids

            vocabulary = Vocabulary.from_transformers(converted, eos_token_ids=end)
            return Wrapped(encode, backend_tokenizer=converted), vocabulary, encode

        yield f"{name}, tiktoken", of_tiktoken
        yield f"{name}, Hugging Face", of_hugging_face

    def smollm2() -> tuple[Any, Vocabulary, Encode]:
        from tokenizers import Tokenizer

        backend = Tokenizer.from_file(str(Path.home() / ".cache/structgen/models/SmolLM2-135M-Instruct/tokenizer.json"))
        vocabulary = Vocabulary.from_transformers(backend, eos_token_ids=backend.token_to_id("<|im_end|>"))

        def encode(text: str) -> Sequence[int]:
            ids: Sequence[int] = backend.encode(text, add_special_tokens=False).ids
            return ids

        return Wrapped(encode, backend_tokenizer=backend), vocabulary, encode

    def built_in() -> tuple[Any, Vocabulary, Encode]:
        tokenizer = GgufTokenizer(files.open_file(default_model_file()))
        return (
            tokenizer,
            Vocabulary.from_transformers(tokenizer),
            lambda text: tokenizer.encode(text, add_special_tokens=False),
        )

    yield "SmolLM2, Hugging Face", smollm2
    yield "built-in, GGUF", built_in


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizers", type=Path, help="folder of tiktoken rank files")
    parser.add_argument("--outputs", type=int, default=10_000)
    parser.add_argument("--only", help="the tokenizers whose name holds this")
    arguments = parser.parse_args()
    every, wrong = list(tokenizers(arguments.tokenizers)), 0
    for name, make in every:
        if arguments.only and arguments.only not in name:
            continue
        began = time.process_time()
        tokenizer, vocabulary, encode = make()
        try:
            canonical_spelling(tokenizer, vocabulary)
        except TokenizerError as error:
            print(f"{name}: refused: {error}", flush=True)
            continue
        read = time.process_time() - began
        same = other = written = cut = 0
        generator = Generator(TinyModel(vocabulary.size, seed=3), tokenizer, vocabulary=vocabulary)
        rng = random.Random(7)
        for seed in range(-(-arguments.outputs // len(every))):
            kind = rng.choices(list(CONSTRAINTS), SHARES)[0]
            options: dict[str, Any] = {"temperature": 1.0, "seed": seed, "max_new_tokens": rng.choice([6, 12, 24])}
            options |= {"spelling": "canonical", "schema_in_prompt": False}
            try:
                result = generator.generate("the", CONSTRAINTS[kind], **options)
            except IncompleteOutputError:  # so few tokens hold no such text
                cut += 1
                continue
            text = vocabulary.decode(result.token_ids)
            written += len(result.token_ids)
            if list(encode(text.decode(errors="replace"))) == list(result.token_ids):
                same += 1
            else:
                other += 1
                print(f"  {name}, {kind}: {text!r}", flush=True) if other < 4 else None
        wrong += other
        spent = time.process_time() - began
        print(
            f"{name}: {same} of {same + other} the same, {written} tokens, {cut} with too small a budget; "
            f"read in {read:.1f} s, {spent:.0f} s in all",
            flush=True,
        )
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
