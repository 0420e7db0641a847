"""What is used of llama.cpp, whichever Python package brings it, and what all of them share: its log, its errors."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from structgen.errors import ModelError
from structgen.generation.models.threads import threads_in_use

INSTALL = "pip install 'structgen-lm[llamacpp]'"
BATCH = 512  # tokens of one call of llama.cpp
SEQUENCES = 256  # LLAMA_MAX_SEQ
NO_FLASH = 0  # LLAMA_FLASH_ATTN_TYPE_DISABLED
WAIT_POLICY, SPINS = "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"
SPIN_COUNT = 4000  # looks of 10 to 20 ns
_LEVELS = {1: logging.DEBUG, 2: logging.DEBUG, 3: logging.INFO, 4: logging.WARNING}  # enum ggml_log_level

_LOGGER = logging.getLogger(__name__)
_LOGGER.addHandler(logging.NullHandler())  # warnings of llama.cpp are not for users who did not ask for a log
_LAST_ERRORS: deque[str] = deque(maxlen=4)

# enum llama_token_attr
UNKNOWN, UNUSED, NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 2, 4, 8, 16, 32


class Vocab(Protocol):
    """``llama_vocab``: ids as llama.cpp sees them.

    Attributes:
        size: how many ids.
        adds_bos: whether texts begin with ``bos``.
        bos, eos: ids; -1: there is none.
        cuts_at_nul: whether what is between NULs is read apart.
    """

    size: int
    adds_bos: bool
    bos: int
    eos: int
    cuts_at_nul: bool

    def texts(self) -> list[str]:
        """The text of each id as the file has it."""
        ...

    def attributes(self) -> npt.NDArray[np.int32]:
        """``llama_token_attr`` of each id."""
        ...

    def ends(self) -> tuple[int, ...]:
        """All ids that end a generation (end of sequence, of turn, of message), ascending."""
        ...

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """The ids of a text, names of special tokens read as these; ``add_special``: with what texts begin with."""
        ...


class ModelFile(Protocol):
    """``llama_model``: a file that is loaded.

    Attributes:
        path: what was loaded; of a file in several parts, the first.
        context_length: tokens that it was trained on; 0: not known.
        token_bytes: of the keys and values of a token, in half precision.
        parameter_count: how many numbers its weights are.
        is_recurrent: whether it has states that cannot be cut back (recurrent and hybrid models).
        reads_text: whether it is a causal model (and no encoder).
        is_on_processor: whether nothing of it is on an accelerator.
    """

    path: Path
    context_length: int
    token_bytes: int
    parameter_count: int
    is_recurrent: bool
    reads_text: bool
    is_on_processor: bool

    @property
    def vocab(self) -> Vocab:
        """Its vocabulary."""
        ...

    def metadata(self, key: str) -> str | None:
        """A value of the file by its key; None: there is none. Arrays have none."""
        ...

    def start(self, cells: int, sequences: int, threads: int, apart: bool = False) -> LlamaContext:
        """A context with room for the keys and values of ``cells`` tokens, shared by ``sequences``; ``apart``: each of
        them has its own part, in which its tokens lie in their order, and one token is read a call.

        Raises:
            ModelError: there is no memory for it.
        """
        ...


class LlamaContext(Protocol):
    """``llama_context``: what was read. Sequences are numbers from 0 on; a token may be of several."""

    def decode(
        self,
        tokens: Sequence[int],
        positions: Sequence[int],
        sequences: Sequence[Sequence[int]],
        wanted: Sequence[bool],
    ) -> npt.NDArray[np.float32]:
        """Read at most ``BATCH`` tokens: logits [N, V] after those that are wanted, in memory of their own.

        Raises:
            MemoryError: no room. ModelError: llama.cpp failed.
        """
        ...

    def copy(self, source: int, target: int, start: int = 0, end: int = -1) -> None:
        """Let the tokens of a sequence from position ``start`` to ``end`` (-1: all) be of another one too, which must
        have none of them yet. Of sequences that are apart, all."""
        ...

    def remove(self, sequence: int, start: int) -> None:
        """Take a sequence's tokens from position ``start`` on out of it."""
        ...

    def use_threads(self, count: int) -> None:
        """Have this number of threads from the next call on."""
        ...


@contextmanager
def short_waits() -> Iterator[None]:
    """While a package is imported: its threads shall look only briefly for what they wait for, then sleep.

    libgomp reads it once, as it is loaded. By itself it looks for some milliseconds: where other work shares the cores,
    those that wait then take the time of the ones that they wait for (measured: twenty times slower). To sleep at once
    costs more than most waits take (measured: a third of the speed).
    """
    if WAIT_POLICY in os.environ or SPINS in os.environ:
        yield
        return
    os.environ[SPINS] = str(SPIN_COUNT)
    try:
        yield
    finally:
        os.environ.pop(SPINS, None)


def forget_errors() -> None:
    """What llama.cpp says from now on is of the next file."""
    _LAST_ERRORS.clear()


def log(level: int, text: str) -> None:
    """What llama.cpp says, to ``logging``."""
    text = text.strip()
    if not text.strip("."):  # progress
        return
    if level == 4:
        _LAST_ERRORS.append(text)
    _LOGGER.log(_LEVELS.get(level, logging.DEBUG), "%s", text)


def cannot_load(path: Path) -> ModelError:
    """That llama.cpp did not load a file, with its own words."""
    said = [text.partition(": ")[2] for text in _LAST_ERRORS]  # after the names of its functions
    return ModelError(
        f"llama.cpp cannot load {path}: {'; '.join(said[:2]) or 'it gives no reason'}. Download the file again if it "
        "may be cut off, or update the package if the model is newer."
    )


def default_threads() -> int:
    """As many as there are cores for this process, at most 16; of many cores half are taken to be siblings."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(16, count if count <= 4 else count // 2))


def check_threads(threads: int) -> None:
    """What comes before a call that reads with so many threads.

    Raises:
        ModelError: they are not there, see ``threads_in_use``.
    """
    if threads > 1:
        threads_in_use("llama.cpp")


def check_gpu_layers(package: str, layers: int | None, *, offloads: bool) -> None:
    """Refuse a number of layers for accelerators where a package has none; -1, as many as there are, is none then.

    Raises:
        ModelError: it has none.
    """
    if layers is not None and layers > 0 and not offloads:
        raise ModelError(
            f"n_gpu_layers={layers}, but {package} was built without accelerators. Leave n_gpu_layers out, give -1 (as "
            "many as can be), or install a build for yours: llama-cpp-python has them for CUDA, Metal and Vulkan."
        )


def head_bytes(metadata: Any, layers: int, key_heads: int, width: int, heads: int) -> int:
    """Bytes of the keys and values of a token in half precision, by the file's own sizes of heads."""
    architecture = metadata("general.architecture")
    sizes = [metadata(f"{architecture}.attention.{part}_length") for part in ("key", "value")]
    each = sum(int(size) if size else width // max(1, heads) for size in sizes)
    return 2 * layers * key_heads * each
