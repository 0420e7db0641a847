"""The vocabulary itself, and tiktoken encodings; transformers tokenizers have their own test files."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structgen.core.vocabulary import vocabulary as vocabulary_module
from structgen.core.vocabulary.trie import Trie, build_trie
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import TokenizerError

TEXTS = [
    "",
    '{"name": "Ada", "tags": [1, 2.5e-3, null]}\n',
    "  two spaces,\ttabs\r\nand\n\n\nlines   ",
    "naïve Ünïcödé Ελλάδα 日本語のテキスト हिन्दी עברית",
    "👩‍👩‍👧‍👦 \U0001f3f4\U000e0067 \ufeff \u0000 \x7f \u2581 ▁▁",
    "def f(x):\n    return x ** 2  # comment",
]


def data_folder() -> Path:
    folder = Path(os.environ.get("STRUCTGEN_DATA") or Path(__file__).parents[4] / "shared" / "data")
    if not (folder / "tokenizers").is_dir():
        pytest.skip("no data: set STRUCTGEN_DATA to a folder that holds tokenizers/o200k_base.tiktoken")
    return folder


def test_flat_arrays_spell_the_tokens() -> None:
    vocabulary = Vocabulary(
        [b"ab", b"<eos>", None, b"", b"c", b"<pad>"], eos_token_ids=1, special_token_ids=[5], size=8
    )
    assert vocabulary.size == 8
    assert vocabulary.tokens == (b"ab", b"", b"", b"", b"c", b"", b"", b"")
    assert vocabulary.eos_token_ids == (1,)
    assert vocabulary.special_token_ids == (1, 5)
    assert vocabulary.token_bytes.tobytes() == b"abc" and vocabulary.token_bytes.dtype == np.uint8
    assert (
        vocabulary.token_offsets.tolist() == [0, 2, 2, 2, 2, 3, 3, 3, 3] and vocabulary.token_offsets.dtype == np.int32
    )
    assert vocabulary.decode([0, 4, 1, 0]) == b"abcab"


def test_several_ends_and_several_ids_of_one_spelling() -> None:
    vocabulary = Vocabulary([b"a", None, b"a", None, b"a"], eos_token_ids=[3, 1, 3])
    assert vocabulary.eos_token_ids == vocabulary.special_token_ids == (1, 3)
    assert vocabulary.trie.token.tolist() == [0]
    assert vocabulary.trie.next_same.tolist() == [2, -1, 4, -1, -1]


def test_missing_bytes_are_those_of_utf8_without_a_token() -> None:
    every = [bytes([i]) for i in range(256)]
    assert Vocabulary([*every, None], eos_token_ids=256).missing_bytes == ()
    assert Vocabulary([*every[:0xC0], *every[0xC3:0xF4], None], eos_token_ids=241).missing_bytes == (0xC2, 0xF4)


def test_vocabularies_are_equal_by_content() -> None:
    base = Vocabulary([b"ab", b"c", None, None], eos_token_ids=2)
    assert base == Vocabulary([b"ab", b"c", b"ignored"], eos_token_ids=[2], size=4)
    assert hash(base) == hash(Vocabulary([b"ab", b"c", None, None], eos_token_ids=2))
    others = [
        Vocabulary([b"a", b"bc", None, None], eos_token_ids=2),
        Vocabulary([b"ab", b"c", None, None], eos_token_ids=3),
        Vocabulary([b"ab", b"c", None, None], eos_token_ids=[2, 3]),
        Vocabulary([b"ab", b"c", None, None], eos_token_ids=2, special_token_ids=[3]),
        Vocabulary([b"ab", b"c", None], eos_token_ids=2),
    ]
    assert len({base, *others}) == len({v.digest for v in (base, *others)}) == 6
    assert base != "base"


def test_a_vocabulary_cannot_be_changed() -> None:
    vocabulary = Vocabulary([b"a", None], eos_token_ids=1)
    with pytest.raises(AttributeError):
        vocabulary.size = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tokens": [b"a"], "eos_token_ids": []}, "No end-of-sequence token"),
        ({"tokens": [b"a"], "eos_token_ids": 1}, "eos_token_ids holds 1, outside the vocabulary of 1 ids"),
        ({"tokens": [b"a"], "eos_token_ids": -1}, "eos_token_ids holds -1"),
        ({"tokens": [b"a"], "eos_token_ids": 0, "special_token_ids": [7]}, "special_token_ids holds 7"),
        ({"tokens": [b"a", b"b"], "eos_token_ids": 0, "size": 1}, "size is 1, but there are 2 tokens"),
        ({"tokens": ["a"], "eos_token_ids": 0}, "Token 0 is str 'a', expected bytes or None"),
        ({"tokens": [b"a", b"b"], "eos_token_ids": True}, "eos_token_ids holds True"),
        ({"tokens": [b"a"], "eos_token_ids": b"\0"}, "eos_token_ids holds b'.x00'"),
        ({"tokens": [b"a"], "eos_token_ids": 0, "special_tokens": {"": 0}}, "special_tokens names a token ''"),
        ({"tokens": [b"a"], "eos_token_ids": 0, "special_tokens": {1: 0}}, "special_tokens names a token 1"),
    ],
)
def test_errors(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        Vocabulary(**arguments)


def test_the_trie_is_kept_in_the_cache_folder(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [b"ab", b"a", None, b"b"]
    built = Vocabulary(tokens, eos_token_ids=2).trie
    (path,) = cache_folder.rglob("*.npz")

    with monkeypatch.context() as patch:
        patch.setattr(vocabulary_module, "build_trie", None)  # a second vocabulary must not build it
        read = Vocabulary(tokens, eos_token_ids=2).trie
    for name, array in built.arrays().items():
        np.testing.assert_array_equal(read.arrays()[name], array, strict=True)

    path.write_bytes(b"damaged")
    assert len(Vocabulary(tokens, eos_token_ids=2).trie) == len(built)
    assert path.read_bytes() != b"damaged"  # written anew


def test_threads_share_one_trie(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def build(*arguments: Any) -> Trie:
        calls.append(arguments)
        return build_trie(*arguments)

    monkeypatch.setattr(vocabulary_module, "build_trie", build)
    vocabulary = Vocabulary([b"a", None], eos_token_ids=1)
    tries: list[object] = []
    threads = [threading.Thread(target=lambda: tries.append(vocabulary.trie)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1 and len(set(map(id, tries))) == 1


def small_encoding(**changes: Any) -> Any:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([i]): i for i in range(256)} | {b"he": 256, b"ll": 257, b"hell": 258}
    arguments: dict[str, Any] = {
        "pat_str": r"\s+|\S+",
        "mergeable_ranks": ranks,
        "special_tokens": {"<|endoftext|>": 261, "<|pad|>": 263},
    }
    return tiktoken.Encoding("small", **{**arguments, **changes})


def test_from_tiktoken_small() -> None:
    encoding = small_encoding()
    vocabulary = Vocabulary.from_tiktoken(encoding, size=300)
    assert vocabulary.size == 300
    assert vocabulary.eos_token_ids == (261,) and vocabulary.special_token_ids == (261, 263)
    assert [vocabulary.tokens[i] for i in (256, 258, 259, 261, 262, 263, 299)] == [b"he", b"hell", *[b""] * 5]
    assert Vocabulary.from_tiktoken(encoding, eos_token_ids=[261, 263]).eos_token_ids == (261, 263)
    for text in TEXTS:
        assert vocabulary.decode(encoding.encode(text)) == text.encode()


def test_from_tiktoken_without_an_end() -> None:
    encoding = small_encoding(special_tokens={"<|stop|>": 259})
    with pytest.raises(TokenizerError, match="pass eos_token_ids"):
        Vocabulary.from_tiktoken(encoding)
    assert Vocabulary.from_tiktoken(encoding, eos_token_ids=259).eos_token_ids == (259,)


@pytest.mark.full
def test_from_tiktoken_o200k() -> None:
    tiktoken = pytest.importorskip("tiktoken")
    folder = data_folder() / "tokenizers"
    about = json.loads((folder / "o200k_base.json").read_text())
    lines = (line.split() for line in (folder / "o200k_base.tiktoken").read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    encoding = tiktoken.Encoding(
        "o200k_base", pat_str=about["pat_str"], mergeable_ranks=ranks, special_tokens=about["special_tokens"]
    )
    vocabulary = Vocabulary.from_tiktoken(encoding)
    assert vocabulary.size == 200_019 and vocabulary.missing_bytes == ()
    assert vocabulary.eos_token_ids == (199_999,) and vocabulary.special_token_ids == (199_999, 200_018)
    assert len(vocabulary.trie) == 421_660 and vocabulary.trie.max_depth == 128
    assert len({prefix for token in ranks for prefix in (token[: i + 1] for i in range(len(token)))}) == 421_660
    for text in TEXTS:
        assert vocabulary.decode(encoding.encode(text)) == text.encode()


def test_import_is_light() -> None:
    program = (
        "import sys; import structgen.core.vocabulary.vocabulary, structgen.core.vocabulary.transformers_reader;"
        "print(sorted({'torch', 'transformers', 'tiktoken', 'tokenizers', 'lark'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
