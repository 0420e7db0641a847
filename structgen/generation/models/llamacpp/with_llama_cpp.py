"""llama.cpp by llama-cpp-python: its C interface through ctypes, logits without a copy on the way."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.errors import ModelError
from structgen.generation.models.llamacpp import binding
from structgen.generation.models.llamacpp.binding import BATCH


@cache
def _library() -> Any:
    """The module of C functions, with its log turned to ours, as long as Python runs."""
    try:
        with binding.short_waits():
            import llama_cpp.llama_cpp as library
    except Exception as error:  # a shared library that does not fit raises whatever it likes
        raise ModelError(f"llama-cpp-python is installed and cannot be imported: {error}. Install it anew.") from error
    callback = library.llama_log_callback(lambda level, text, _: binding.log(level, text.decode(errors="replace")))
    library.llama_log_set(callback, ctypes.c_void_p(0))
    # It keeps the callback, which ctypes does not. At the end of the process it is called after those of contexts and
    # models, which were made later; what llama.cpp says then goes to stderr.
    weakref.finalize(library, _end_log, library, callback)
    library.llama_backend_init()
    return library


def _end_log(library: Any, callback: Any) -> None:
    library.llama_log_set(type(callback)(0), ctypes.c_void_p(0))


class LlamaCppVocab:
    """See ``Vocab``."""

    cuts_at_nul = False

    def __init__(self, library: Any, vocab: Any) -> None:
        self._library, self._vocab = library, vocab
        self.size = int(library.llama_vocab_n_tokens(vocab))
        self.adds_bos = bool(library.llama_vocab_get_add_bos(vocab))
        self.bos, self.eos = int(library.llama_vocab_bos(vocab)), int(library.llama_vocab_eos(vocab))

    def texts(self) -> list[str]:
        """See ``Vocab.texts``."""
        read = self._library.llama_vocab_get_text
        return [(read(self._vocab, token) or b"").decode(errors="replace") for token in range(self.size)]

    def attributes(self) -> npt.NDArray[np.int32]:
        """See ``Vocab.attributes``."""
        read = self._library.llama_vocab_get_attr
        return np.array([read(self._vocab, token) for token in range(self.size)], np.int32)

    def ends(self) -> tuple[int, ...]:
        """See ``Vocab.ends``."""
        return tuple(token for token in range(self.size) if self._library.llama_vocab_is_eog(self._vocab, token))

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """See ``Vocab.tokenize``."""
        data = text.encode(errors="replace")
        room = len(data) + 8
        while True:
            ids = (ctypes.c_int32 * room)()
            count = self._library.llama_tokenize(self._vocab, data, len(data), ids, room, add_special, True)
            if count >= 0:
                return ids[:count]
            room = -count


class LlamaCppFile:
    """See ``ModelFile``."""

    def __init__(self, path: Path, vocabulary_only: bool, gpu_layers: int | None) -> None:
        self._library = library = _library()
        params = library.llama_model_default_params()
        params.vocab_only = vocabulary_only
        offloads = bool(library.llama_supports_gpu_offload())
        binding.check_gpu_layers("llama-cpp-python", gpu_layers, offloads=offloads)
        if gpu_layers is not None:
            params.n_gpu_layers = gpu_layers
        model = library.llama_model_load_from_file(str(path).encode(), params)
        if not model:
            raise binding.cannot_load(path)
        self.handle, self.path = model, path
        weakref.finalize(self, _free_model, library, model, os.getpid())
        self.vocab = LlamaCppVocab(library, library.llama_model_get_vocab(model))
        self.context_length = int(library.llama_model_n_ctx_train(model))
        self.parameter_count = int(library.llama_model_n_params(model))
        self.is_recurrent = bool(library.llama_model_is_recurrent(model) or library.llama_model_is_hybrid(model))
        self.is_on_processor = gpu_layers == 0 or not offloads
        self.reads_text = bool(library.llama_model_has_decoder(model) and not library.llama_model_has_encoder(model))
        self.token_bytes = 0
        if not vocabulary_only:
            sizes = (
                int(read(model))
                for read in (
                    library.llama_model_n_layer,
                    library.llama_model_n_head_kv,
                    library.llama_model_n_embd,
                    library.llama_model_n_head,
                )
            )
            self.token_bytes = binding.head_bytes(self.metadata, *sizes)

    def metadata(self, key: str) -> str | None:
        """See ``ModelFile.metadata``."""
        room = 256
        while True:
            buffer = ctypes.create_string_buffer(room)
            count = self._library.llama_model_meta_val_str(self.handle, key.encode(), buffer, room)
            if count < 0:
                return None
            if count < room:
                return buffer.value.decode(errors="replace")
            room = count + 1

    def start(self, cells: int, sequences: int, threads: int, apart: bool = False) -> LlamaCppContext:
        """See ``ModelFile.start``."""
        return LlamaCppContext(self._library, self, cells, sequences, threads, apart)


class LlamaCppContext:
    """See ``LlamaContext``."""

    def __init__(self, library: Any, file: LlamaCppFile, cells: int, sequences: int, threads: int, apart: bool) -> None:
        self._library, self._file = library, file  # the file's weights must outlive this
        self._threads, self._lock = threads, threading.RLock()  # a second call beside one ends the process
        params = library.llama_context_default_params()
        most = 1 if apart else BATCH
        params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = cells, most, most, sequences
        params.n_threads = params.n_threads_batch = threads
        params.kv_unified = not apart
        if apart:
            params.flash_attn_type = binding.NO_FLASH  # its sums depend on the number of threads
        params.swa_full = params.no_perf = True
        self._context = library.llama_init_from_model(file.handle, params)
        if not self._context:
            raise ModelError(f"llama.cpp has no memory for the keys and values of {cells} tokens; ask for fewer.")
        self._memory = library.llama_get_memory(self._context)
        batch = self._batch = library.llama_batch_init(BATCH, 0, sequences)
        self._tokens, self._positions, self._counts = (
            np.ctypeslib.as_array(pointer, (BATCH,)) for pointer in (batch.token, batch.pos, batch.n_seq_id)
        )
        self._wanted = np.ctypeslib.as_array(batch.logits, (BATCH,))
        self._sequences = [np.ctypeslib.as_array(batch.seq_id[index], (sequences,)) for index in range(BATCH)]
        weakref.finalize(self, _free, library, self._context, batch, file.handle, self._lock, os.getpid())

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
        count = self._batch.n_tokens = len(tokens)
        self._tokens[:count], self._positions[:count], self._wanted[:count] = tokens, positions, wanted
        for index, of in enumerate(sequences):
            self._counts[index] = len(of)
            self._sequences[index][: len(of)] = of
        code = self._library.llama_decode(self._context, self._batch)
        if code == 1:
            raise MemoryError("llama.cpp has no room for these tokens")
        if code:
            raise ModelError(f"llama.cpp could not read {count} tokens (llama_decode: {code}).")
        wanted_count, width = sum(wanted), self._file.vocab.size
        if not wanted_count:
            return np.empty((0, width), np.float32)
        return np.ctypeslib.as_array(self._library.llama_get_logits(self._context), (wanted_count, width)).copy()

    def use_threads(self, count: int) -> None:
        """See ``LlamaContext.use_threads``."""
        self._library.llama_set_n_threads(self._context, count, count)

    def copy(self, source: int, target: int, start: int = 0, end: int = -1) -> None:
        """See ``LlamaContext.copy``."""
        with self._lock:
            self._library.llama_memory_seq_cp(self._memory, source, target, start, end)

    def remove(self, sequence: int, start: int) -> None:
        """See ``LlamaContext.remove``."""
        with self._lock:
            is_done = self._library.llama_memory_seq_rm(self._memory, sequence, start, -1)
        if not is_done:
            raise ModelError("This model's state cannot be cut back.")


_IN_USE: list[Any] = []  # models with which threads still read as the process ends


def _free(library: Any, context: Any, batch: Any, model: Any, lock: Any, process: int) -> None:
    """Give a context back, unless a thread reads with it while the process ends, or its threads are those of the
    process that this one was forked from. Whoever would read with it later finds the lock taken."""
    if os.getpid() == process and lock.acquire(blocking=False):
        library.llama_batch_free(batch)
        library.llama_free(context)
    else:
        _IN_USE.append(model)


def _free_model(library: Any, model: Any, process: int) -> None:
    if os.getpid() == process and not any(model is one for one in _IN_USE):
        library.llama_model_free(model)
