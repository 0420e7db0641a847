"""A GGUF file as a ``LanguageModel``."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.errors import ModelError
from structgen.generation.models.capabilities import ModelCapabilities
from structgen.generation.models.llamacpp import binding
from structgen.generation.models.llamacpp.binding import ModelFile
from structgen.generation.models.llamacpp.files import open_file
from structgen.generation.models.llamacpp.sequences import NO_TREES, LlamaCppReader
from structgen.generation.models.llamacpp.threads import TimedContext
from structgen.generation.models.llamacpp.tokenizer import GgufTokenizer
from structgen.generation.models.model_runner import NO_DRAFTS, Part

CACHE_BYTES = 1 << 30  # of keys and values, where nothing else is asked for
CONTEXTS = 2  # whole contexts that there is room for, within that
UNKNOWN_CONTEXT = 2048  # tokens, where the file does not say what it was trained on
RECURRENT_SEQUENCES = 32  # each has a state of its own, however short
APART_SEQUENCES, LEAST_APART = 8, 4  # where each has room for a whole context; where the room is short
GLANCE = 1 << 20  # bytes of either end of a file that its fingerprint looks at
# What a call for so many tokens costs, in calls for one: llama.cpp multiplies quantised weights with one token after
# the other, so that all but the reading of the weights is paid for each (measured: SmolLM2-135M in Q4_1, one thread).
STEP_COSTS = ((1, 1.0), (2, 1.5), (4, 2.4), (8, 4.3), (16, 8.4), (32, 16.0))
SAMPLING_KEYS = {
    "temperature": "temp",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "repetition_penalty": "penalty_repeat",
}  # of ``general.sampling``
NUMBER = re.compile(r"\d+(\.\d+)?")
_PAGE = 256  # llama.cpp's cells come in such numbers


class LlamaCppCache:
    """Sequences of a reader as a ``TreeCache``: they are read together, and given back when this is no longer used."""

    def __init__(self, reader: LlamaCppReader, sequences: list[int]) -> None:
        self._reader, self.sequences = reader, sequences

    @property
    def length(self) -> int:
        """Tokens of the longest sequence."""
        return max(map(self._reader.length, self.sequences))

    def crop(self, length: int) -> None:
        """Forget the last ``self.length - length`` tokens of every sequence."""
        surplus = self.length - length
        for sequence in self.sequences:
            self._reader.crop(sequence, self._reader.length(sequence) - surplus)

    def select(self, sequences: Sequence[int]) -> None:
        """Keep these sequences only, in this order; one that is named twice is copied."""
        chosen: list[int] = []
        for index in sequences:
            sequence = self.sequences[index]
            chosen.append(self._reader.fork(sequence) if sequence in chosen else sequence)
        for sequence in set(self.sequences) - set(chosen):
            self._reader.drop(sequence)
        self.sequences = chosen

    def keep(self, kept: Sequence[Sequence[int]]) -> None:
        """See ``TreeCache.keep``."""
        for sequence, indices in zip(self.sequences, kept, strict=True):
            self._reader.keep(sequence, indices)

    def __del__(self) -> None:
        for sequence in self.sequences:
            self._reader.drop(sequence)


class LlamaCppModel:
    """A GGUF file that llama.cpp reads, with weights as they are quantised.

    llama.cpp multiplies quantised weights with activations that it rounds to 8 bits, so that a sum in another order
    shows: logits after the same text differ by up to 3 per cent of the largest between one call for n tokens and n
    calls, and by what is read beside them (measured on Q4_1; 0.05 per cent with weights in float32). Tokens whose
    logits are that close can come out differently, unless the model is ``deterministic``.

    Args:
        file: loaded, with its weights.
        name: of what it was loaded from.
        context_length: the most tokens of a text, at most as trained; None: as trained, as far as ``cache_bytes`` go.
        cache_bytes: what keys and values of all sequences and prefixes may take; None: 1 GiB, or more where
            ``context_length`` asks for it. They are allocated at once.
        threads: of every call; None: as many as pay, found by timing the calls, at most one a core.
        deterministic: whether every token is read in a call of its own, so that its logits depend on the tokens before
            it only, bit for bit, whatever is read beside it. Prompts take about three times as long, many sequences as
            long as one after the other, and there are no drafts. Every sequence has room for a whole context.

    Raises:
        ModelError: the file is no causal language model, or there is no memory.
    """

    def __init__(
        self,
        file: ModelFile,
        name: Path,
        *,
        context_length: int | None = None,
        cache_bytes: int | None = None,
        threads: int | None = None,
        deterministic: bool = False,
    ) -> None:
        if not file.reads_text:
            raise ModelError(f"{name} has an encoder; give a file of a causal language model.")
        self._file, self._name = file, name
        self.vocab_size = file.vocab.size
        self.deterministic = deterministic
        self.context_length, cells, sequences = self._room(context_length, cache_bytes)
        most = threads or binding.default_threads()
        context = file.start(cells, sequences, most, deterministic)
        if threads is None and most > 1 and file.is_on_processor:
            context = TimedContext(context, most)
        self._sequences = LlamaCppReader(
            context, cells, sequences, file.token_bytes, crops=not file.is_recurrent, apart=deterministic
        )
        self.eos_token_ids = file.vocab.ends()

    def _room(self, context_length: int | None, cache_bytes: int | None) -> tuple[int, int, int]:
        """Tokens of a text, cells and sequences.

        Raises:
            ModelError: so many do not fit.
        """
        file, contexts = self._file, 2 if self.deterministic else 1
        trained = file.context_length or UNKNOWN_CONTEXT
        room = (cache_bytes or CACHE_BYTES) // max(1, file.token_bytes) // _PAGE * _PAGE
        wanted = trained if context_length is None else min(context_length, trained)
        if cache_bytes is None and context_length is not None:
            room = max(room, contexts * _paged(wanted))
        if room < contexts * _PAGE or (context_length is not None and contexts * _paged(wanted) > _paged(room)):
            least = contexts * _paged(wanted) if self.deterministic else max(wanted, _PAGE)
            raise ModelError(
                f"The keys and values of {least} tokens take {least * file.token_bytes} bytes, more than "
                f"cache_bytes={cache_bytes or CACHE_BYTES}; raise it, or lower context_length."
            )
        if not self.deterministic:
            length = min(wanted, room)
            cells = room if cache_bytes else min(room, _paged(CONTEXTS * length))
            return length, cells, RECURRENT_SEQUENCES if file.is_recurrent else binding.SEQUENCES
        if context_length is None:
            wanted = min(wanted, max(_PAGE, room // LEAST_APART // _PAGE * _PAGE))
        most = binding.SEQUENCES if cache_bytes else APART_SEQUENCES
        sequences = min(most, room // _paged(wanted))
        return wanted, sequences * _paged(wanted), sequences

    @property
    def capabilities(self) -> ModelCapabilities:
        """What it can do."""
        return ModelCapabilities(
            forward_tree=self.forward_tree,
            why_no_trees=NO_DRAFTS if self.deterministic else NO_TREES if self._file.is_recurrent else None,
            ragged_reader=self.ragged_reader,
            deterministic=self.deterministic,
            step_costs=STEP_COSTS,
            fingerprint=self.fingerprint,
            parameter_count=self._file.parameter_count,
            sampling_settings=self._sampling_settings(),
            eos_token_ids=self.eos_token_ids,
        )

    def _sampling_settings(self) -> dict[str, float]:
        """How its authors have tokens drawn, as far as the file says so (``general.sampling.*``)."""
        settings = {name: self._file.metadata(f"general.sampling.{key}") for name, key in SAMPLING_KEYS.items()}
        return {name: float(value) for name, value in settings.items() if value is not None and NUMBER.fullmatch(value)}

    def fingerprint(self) -> str:
        """A digest of the file's size and both its ends: the same in every process."""
        size = self._name.stat().st_size
        digest = hashlib.blake2b(f"gguf {size}".encode(), digest_size=16)
        with self._name.open("rb") as file:
            digest.update(file.read(GLANCE))
            file.seek(max(0, size - GLANCE))
            digest.update(file.read(GLANCE))
        return digest.hexdigest()

    def ragged_reader(self) -> LlamaCppReader:
        """See ``RaggedLanguageModel.ragged_reader``."""
        return self._sequences

    def prefill(self, prompts: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.float32], LlamaCppCache]:
        """See ``LanguageModel.prefill``.

        Raises:
            ModelError: a prompt is empty. MemoryError: there is no room.
        """
        if not prompts or not all(prompts):
            raise ModelError(
                "The model needs at least one prompt token in every sequence; give a prompt that is not empty."
            )
        cache = LlamaCppCache(self._sequences, [])
        for _ in prompts:
            cache.sequences.append(self._sequences.open(())[0])
        parts = [Part(sequence, list(prompt)) for sequence, prompt in zip(cache.sequences, prompts, strict=True)]
        logits: npt.NDArray[np.float32] = self._sequences.read(parts).logits
        return logits, cache

    def forward(self, token_ids: Sequence[Sequence[int]], cache: LlamaCppCache) -> npt.NDArray[np.float32]:
        """See ``LanguageModel.forward``."""
        return self._append(
            [Part(sequence, list(ids), None, False) for sequence, ids in zip(cache.sequences, token_ids, strict=True)]
        )

    def forward_tree(
        self, token_ids: Sequence[Sequence[int]], parents: Sequence[Sequence[int]], cache: LlamaCppCache
    ) -> npt.NDArray[np.float32]:
        """See ``TreeLanguageModel.forward_tree``."""
        sequences = zip(cache.sequences, token_ids, parents, strict=True)
        return self._append([Part(sequence, list(ids), list(above), False) for sequence, ids, above in sequences])

    def _append(self, parts: Sequence[Part]) -> npt.NDArray[np.float32]:
        """One call: logits [sequences, n, V]."""
        reading, width = self._sequences.read(parts), max(len(part.tokens) for part in parts)
        logits = np.zeros((len(parts), width, self.vocab_size), np.float32)
        for sequence, (start, part) in enumerate(zip(reading.starts, parts, strict=True)):
            logits[sequence, : len(part.tokens)] = reading.logits[start : start + len(part.tokens)]
        return logits


def _paged(tokens: int) -> int:
    """As many cells as llama.cpp takes for so many tokens."""
    return -(-tokens // _PAGE) * _PAGE


def load_gguf(
    path: str | os.PathLike[str],
    *,
    device: str | None = None,
    package: str | None = None,
    n_gpu_layers: int | None = None,
    lora_path: str | os.PathLike[str] | None = None,
    lora_scale: float = 1.0,
    **options: Any,
) -> tuple[LlamaCppModel, GgufTokenizer]:
    """Load a GGUF file with llama.cpp: ``Generator(*load_gguf("model.gguf", context_length=4096))``.

    Args:
        path: of the file; of one in several parts, the first.
        device: "cpu": nothing on accelerators; None: as the package was built.
        package: "llama_cpp" or "cyllama"; None: the first that is installed.
        n_gpu_layers: layers on accelerators; -1: as many as can be; None: as the package was built.
        lora_path: a LoRA adapter, a GGUF file too, that is added to the weights (see ``with_adapter``), times
            ``lora_scale``.
        **options: ``context_length``, ``cache_bytes``, ``threads``, ``deterministic``; see ``LlamaCppModel``.

    Raises:
        ModelError: what is missing or wrong, and what to do.
    """
    path = Path(path)
    if lora_path is not None:
        from structgen.generation.models.llamacpp.adapters import with_adapter

        path = with_adapter(path, Path(lora_path), lora_scale)
    file = open_file(path, device=device, package=package, gpu_layers=n_gpu_layers)
    return LlamaCppModel(file, path, **options), GgufTokenizer(file)
