"""llama.cpp by cyllama, which is a wheel."""

from __future__ import annotations

import atexit
import threading
from array import array
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.errors import ModelError
from structgen.generation.models.llamacpp import binding
from structgen.generation.models.llamacpp.binding import BATCH
from structgen.generation.models.llamacpp.logits_memory import LogitsMemory

NUL = "\0"
NULS = ("\u0100", "<0x00>")  # its token: in GPT-2's byte alphabet, in SentencePiece's


@cache
def _library() -> Any:
    """The module, with its log turned to ours, as long as Python runs: contexts log when they are freed, which at the
    end of a process is after Python's functions are gone."""
    try:
        with binding.short_waits():
            import cyllama.llama.llama_cpp as library
    except Exception as error:  # a shared library that does not fit raises whatever it likes
        raise ModelError(f"cyllama is installed and cannot be imported: {error}. Install it anew.") from error
    library.set_log_callback(binding.log)
    atexit.register(library.disable_logging)
    return library


class CyllamaVocab:
    """See ``Vocab``."""

    cuts_at_nul = True

    def __init__(self, vocab: Any) -> None:
        self._vocab = vocab
        self.size, self.bos, self.eos = int(vocab.n_vocab), int(vocab.token_bos()), int(vocab.token_eos())
        self.adds_bos = bool(vocab.get_add_bos())
        self._nul: int | None = None

    def texts(self) -> list[str]:
        """See ``Vocab.texts``."""
        return [self._vocab.get_text(token) for token in range(self.size)]

    def attributes(self) -> npt.NDArray[np.int32]:
        """See ``Vocab.attributes``."""
        return np.array([self._vocab.get_attr(token) for token in range(self.size)], np.int32)

    def ends(self) -> tuple[int, ...]:
        """See ``Vocab.ends``."""
        return tuple(token for token in range(self.size) if self._vocab.is_eog(token))

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """See ``Vocab.tokenize``. The package ends texts at a NUL: what is between these is read apart."""
        first, *remaining = text.encode(errors="replace").decode().split(NUL)
        ids = list(self._vocab.tokenize(first, add_special, True))
        for part in remaining:
            ids += [self._nul_id(), *self._vocab.tokenize(part, False, True)]
        return ids

    def _nul_id(self) -> int:
        if self._nul is None:
            texts = self.texts()
            self._nul = next((texts.index(text) for text in NULS if text in texts), None)
        if self._nul is None:
            raise ModelError("This model's vocabulary has no token for the NUL character (U+0000); leave it out.")
        return self._nul


class CyllamaFile:
    """See ``ModelFile``. Weights are always loaded: without them the package ends the process (0.2.18)."""

    def __init__(self, path: Path, gpu_layers: int | None) -> None:
        self._library = library = _library()

        class Sized(library.LlamaModel):  # type: ignore[name-defined]
            """Contexts ask models for ``n_vocab``, which these lack in 0.2.18."""

            @property
            def n_vocab(self) -> int:
                return int(self.get_vocab().n_vocab)

        library.ggml_backend_load_all()
        params = library.LlamaModelParams()
        offloads = bool(library.llama_supports_gpu_offload())
        binding.check_gpu_layers("cyllama", gpu_layers, offloads=offloads)
        if gpu_layers is not None:
            params.n_gpu_layers = gpu_layers
        try:
            model = Sized(str(path), params)
        except Exception as error:  # whatever the package raises where llama.cpp gives no model
            raise binding.cannot_load(path) from error
        self.handle, self.path = model, path
        self.vocab = CyllamaVocab(model.get_vocab())
        self.context_length = int(model.n_ctx_train)
        self.parameter_count = int(model.n_params)
        self.is_recurrent = bool(model.is_recurrent() or model.is_hybrid())
        self.is_on_processor = gpu_layers == 0 or not offloads
        self.reads_text = bool(model.has_decoder() and not model.has_encoder())
        sizes = (int(size) for size in (model.n_layer, model.n_head_kv, model.n_embd, model.n_head))
        self.token_bytes = binding.head_bytes(self.metadata, *sizes)

    def metadata(self, key: str) -> str | None:
        """See ``ModelFile.metadata``."""
        try:
            return str(self.handle.meta_val_str(key))
        except ValueError:
            return None

    def start(self, cells: int, sequences: int, threads: int, apart: bool = False) -> CyllamaContext:
        """See ``ModelFile.start``."""
        return CyllamaContext(self._library, self, cells, sequences, threads, apart)


class CyllamaContext:
    """See ``LlamaContext``."""

    def __init__(self, library: Any, file: CyllamaFile, cells: int, sequences: int, threads: int, apart: bool) -> None:
        self._width, self._threads = file.vocab.size, threads
        self._lock = threading.RLock()  # a second call beside one ends the process
        params = library.LlamaContextParams()
        most = 1 if apart else BATCH
        params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = cells, most, most, sequences
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = not apart
        if apart:
            params.flash_attn_type = binding.NO_FLASH  # its sums depend on the number of threads
        params.swa_full = params.no_perf = True
        try:
            self._context = library.LlamaContext(file.handle, params)
        except Exception as error:
            raise ModelError(
                f"llama.cpp has no memory for the keys and values of {cells} tokens; ask for fewer."
            ) from error
        self._batch = library.LlamaBatch(n_tokens=BATCH, embd=0, n_seq_max=sequences, verbose=False)
        self._memory = LogitsMemory(self._context, self._width)

    def decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[Sequence[int]],
        wanted: Sequence[bool],
    ) -> npt.NDArray[np.float32]:
        """See ``LlamaContext.decode``."""
        binding.check_threads(self._threads)
        with self._lock:
            return self._decode(tokens, positions, sequences, wanted)

    def _decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[Sequence[int]],
        wanted: Sequence[bool],
    ) -> npt.NDArray[np.float32]:
        self._batch.clear()
        for token, position, of, is_wanted in zip(tokens, positions, sequences, wanted, strict=True):
            self._batch.add(token, position, list(of), is_wanted)
        try:
            self._context.decode(self._batch)
        except (ValueError, RuntimeError) as error:
            if "slot" in str(error):  # llama_decode gave 1
                raise MemoryError(f"llama.cpp has no room for these tokens ({error})") from error
            raise ModelError(f"llama.cpp could not read {len(tokens)} tokens: {error}") from error
        view = self._memory.read(sum(wanted))
        if view is not None:
            return view.copy()
        logits = np.empty((sum(wanted), self._width), np.float32)
        read = self._context.get_logits_ith
        for index, offset in enumerate(np.flatnonzero(wanted).tolist()):
            logits[index] = np.frombuffer(array("f", read(offset)), np.float32)  # quicker than from the list itself
        self._memory.learn(logits)
        return logits

    def use_threads(self, count: int) -> None:
        """See ``LlamaContext.use_threads``."""
        self._context.set_n_threads(count, count)

    def copy(self, source: int, target: int, start: int = 0, end: int = -1) -> None:
        """See ``LlamaContext.copy``."""
        with self._lock:
            self._context.memory_seq_cp(source, target, start, end)

    def remove(self, sequence: int, start: int) -> None:
        """See ``LlamaContext.remove``."""
        with self._lock:
            is_done = self._context.memory_seq_rm(sequence, start, -1)
        if not is_done:
            raise ModelError("This model's state cannot be cut back.")
