"""The tokenizer in a GGUF file: ids by llama.cpp itself, what each spells, and the chat template.

Bytes are read off the texts in the file, as llama.cpp's own ``llama_token_to_piece`` does (which cyllama gives as text,
so that half a character is lost).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from structgen.core.tokenization.canonical import BytePairEncoding
from structgen.core.vocabulary.tokenizer_json import byte_level_speller, byte_of_piece, spell_sentencepiece
from structgen.core.vocabulary.transformers_reader import TokenizerContents
from structgen.errors import TokenizerError
from structgen.generation.models.llamacpp.binding import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    ModelFile,
)
from structgen.generation.models.llamacpp.chat_template import ChatTemplate
from structgen.generation.models.llamacpp.spelling import encoding_of

SENTENCEPIECE = ("llama", "t5")  # tokenizer.ggml.model: BPE by scores, unigram
BYTE_LEVEL = ("gpt2",)
REFUSED = {
    "bert": "WordPiece, whose tokens do not keep all bytes of a text",
    "rwkv": "RWKV's trie, whose tokens are escaped in a way of their own",
    "plamo2": "PLaMo-2's, which structgen has not learned to read",
}


class GgufTokenizer:
    """What ``Generator`` and the server use of a tokenizer, with the names that transformers gives it.

    Attributes:
        chat_template: source of the template; None: the file has none.
        eos_token_id: None where there is none.
    """

    def __init__(self, file: ModelFile) -> None:
        self._file, self._vocab = file, file.vocab
        self.chat_template = file.metadata("tokenizer.chat_template")
        self.eos_token_id = self._vocab.eos if self._vocab.eos >= 0 else None

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The ids of a text, in which names of special tokens are these; with what a text begins with, if asked for."""
        return self._vocab.tokenize(text, add_special=add_special_tokens)

    def decode(self, token_ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """The text of ids; special ones are shown by their names, or left out."""
        contents = self.contents()
        return b"".join(
            (b"" if skip_special_tokens else self._texts[token].encode())
            if token in contents.special_token_ids
            else contents.tokens[token] or b""
            for token in token_ids
        ).decode(errors="replace")

    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, Any]],
        tools: Sequence[Any] | None = None,
        *,
        tokenize: bool = True,
        add_generation_prompt: bool = False,
        **fields: Any,
    ) -> str | list[int]:
        """The conversation as the model's template writes it, as text or (``tokenize``) ids.

        Raises:
            TokenizerError: there is no template. Whatever the template raises.
        """
        if self.chat_template is None:
            raise TokenizerError("The model file has no chat template; give the prompt as one string.")
        text = self._template.render(conversation, tools=tools, add_generation_prompt=add_generation_prompt, **fields)
        return self.encode(text, add_special_tokens=False) if tokenize else text

    def contents(self) -> TokenizerContents:
        """See ``read_tokenizer``, which asks for this.

        Raises:
            TokenizerError: the kind of vocabulary cannot be read, and why.
        """
        return self._contents

    def byte_pair_encoding(self) -> BytePairEncoding:
        """See ``SaysEncoding``.

        Raises:
            TokenizerError: see ``encoding_of``; so ModelError.
        """
        return encoding_of(self._file, self._texts, self._vocab.attributes().tolist())

    @cached_property
    def _texts(self) -> list[str]:
        return self._vocab.texts()

    @cached_property
    def _template(self) -> ChatTemplate:
        texts = self._texts
        named = {"bos_token": self._vocab.bos, "eos_token": self._vocab.eos}
        return ChatTemplate(
            str(self.chat_template), {name: texts[token] for name, token in named.items() if token >= 0}
        )

    @cached_property
    def _contents(self) -> TokenizerContents:
        spell = _speller(self._file.metadata("tokenizer.ggml.model"))
        tokens: list[bytes | None] = []
        special: set[int] = set()
        names: dict[str, int] = {}
        for token, (text, attributes) in enumerate(zip(self._texts, self._vocab.attributes().tolist(), strict=True)):
            if attributes & (CONTROL | UNKNOWN):
                special.add(token)
            if attributes & (CONTROL | USER_DEFINED):
                names.setdefault(text, token)
            tokens.append(spell(text, attributes))
        ends = self._vocab.ends()
        return TokenizerContents(tokens, special | set(ends), set(ends), names)


def _speller(kind: str | None) -> Callable[[str, int], bytes | None]:
    """The function from text and attributes of an id to its bytes.

    Raises:
        TokenizerError: no such function is known.
    """
    if kind not in (*SENTENCEPIECE, *BYTE_LEVEL):
        what = REFUSED.get(str(kind), "which structgen does not know")
        raise TokenizerError(
            f"The model file has a tokenizer of kind {kind!r} ({what}); expected "
            f"{', '.join((*BYTE_LEVEL, *SENTENCEPIECE))}. Use another model, or give the bytes of each id "
            "yourself: Generator(model, vocabulary=Vocabulary(...))"
        )
    spell_text = byte_level_speller() if kind in BYTE_LEVEL else spell_sentencepiece

    def spell(text: str, attributes: int) -> bytes | None:
        if attributes & (CONTROL | UNKNOWN | UNUSED):
            return None
        if attributes & USER_DEFINED:
            return text.encode()
        if attributes & BYTE:
            byte = byte_of_piece(text)
            return None if byte is None else bytes([byte])
        return spell_text(text) if attributes & NORMAL else None

    return spell
