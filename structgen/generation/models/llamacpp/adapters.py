"""LoRA adapters in GGUF files: added to the weights once, in a copy of the model's file that both packages read.

llama.cpp can add an adapter while it computes, but cyllama has no function that would have it do so, and two ways to
the same numbers would be one too many. A weight W with an adapter is W + scale · B · A, and the tensors that have one
are written with it: in float32 where they were, in half precision where they were, else as Q8_0, whose error is a small
part of what quantising to fewer bits has cost.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.cache_folder import cache_folder, is_own, make_folder
from structgen.errors import ModelError
from structgen.generation.models.llamacpp.files import check_gguf
from structgen.progress import waiting

FORMAT = 1  # of the copies; another one, where they would be written in another way
EMBEDDINGS = "token_embd.weight"  # its rows are looked up: A and B stand the other way round
LARGEST_HALF = 6e4
GLANCE = 1 << 20  # bytes of either end of the model's file that tell it from others
HEAD = 24  # bytes: magic, version, two counts
CONVERT = "llama.cpp's convert_lora_to_gguf.py makes one of a PEFT folder"
_Array = npt.NDArray[Any]
_Pairs = dict[str, dict[str, _Array]]


def with_adapter(model: Path, adapter: Path, scale: float = 1.0) -> Path:
    """The file of a model with an adapter added to its weights; made in the cache folder where it is not there yet.

    Args:
        model: a GGUF file of one part.
        adapter: a GGUF file of type adapter.
        scale: what the adapter is multiplied by, beside its own factor.

    Raises:
        ModelError: a file is missing, is none of these or does not fit the other, or the copy cannot be written.
    """
    check_gguf(model)
    check_gguf(adapter)
    folder = cache_folder() / "models"
    target = folder / f"{model.stem}-with-{adapter.stem}-{_digest(model, adapter, scale)}.gguf"
    if not is_own(target, cache_folder()):
        raise ModelError(
            f"Others can write to {target}, so nothing is read there. Remove it, or set STRUCTGEN_CACHE_DIR to a "
            "folder that only this user can write to."
        )
    if target.is_file():
        return target
    with waiting(f"adding {adapter.name} to a copy of {model.name}, once, in {target}"):
        source, added = _opened(model), _opened(adapter)
        factor = float(_value(added, "adapter.lora.alpha") or 0.0)
        tensors = _merged(source, _pairs(added, source, adapter), factor, scale, adapter)
        try:
            make_folder(folder)
            handle, name = tempfile.mkstemp(prefix=f".{model.stem}-", dir=folder)
            os.close(handle)
            work = Path(name)
            try:
                _write(source, tensors, work)
                work.replace(target)
            finally:
                work.unlink(missing_ok=True)
        except OSError as error:
            raise ModelError(
                f"Cannot write the model with its adapter, {target}: {error}. Set STRUCTGEN_CACHE_DIR to a folder with "
                "room for a copy of the model."
            ) from error
    return target


def _digest(model: Path, adapter: Path, scale: float) -> str:
    """What tells a copy from others: the whole adapter, and of the model its size and both ends."""
    digest = hashlib.blake2b(f"{FORMAT} {scale!r}".encode(), digest_size=12)
    with adapter.open("rb") as file:
        digest.update(hashlib.file_digest(file, "blake2b").digest())
    status = model.stat()
    digest.update(f"{status.st_size} {status.st_mtime_ns}".encode())
    with model.open("rb") as file:
        digest.update(file.read(GLANCE))
        file.seek(max(0, status.st_size - GLANCE))
        digest.update(file.read(GLANCE))
    return digest.hexdigest()


def _opened(path: Path) -> Any:
    try:
        from gguf import GGUFReader
    except ImportError as error:
        raise ModelError(f"LoRA adapters need the package gguf ({error.name} is missing): pip install gguf") from error
    try:
        return GGUFReader(path)
    except (ValueError, KeyError, IndexError, OSError) as error:
        raise ModelError(f"{path} cannot be read as a GGUF file: {error}. Download it again.") from error


def _value(reader: Any, key: str) -> Any:
    field = reader.get_field(key)
    return None if field is None else field.contents()


def _pairs(adapter: Any, model: Any, path: Path) -> _Pairs:
    """A and B of each tensor that has an adapter.

    Raises:
        ModelError: it is none, one of another kind, or one of another architecture.
    """
    kind = _value(adapter, "general.type"), _value(adapter, "adapter.type")
    if kind != ("adapter", "lora"):
        raise ModelError(f"{path} is no LoRA adapter: its types are {kind}, expected ('adapter', 'lora'). {CONVERT}.")
    if _value(adapter, "adapter.alora.invocation_tokens") is not None:
        raise ModelError(f"{path} is an adapter that some tokens invoke (aLoRA), which is not supported; give a LoRA.")
    architectures = _value(adapter, "general.architecture"), _value(model, "general.architecture")
    if architectures[0] != architectures[1]:
        raise ModelError(f"{path} is for models of {architectures[0]}, and the model's is {architectures[1]}.")
    if (_value(model, "split.count") or 1) > 1:
        raise ModelError(
            "The model's file has several parts; join them to one first (llama.cpp's llama-gguf-split does)."
        )
    pairs: _Pairs = {}
    for tensor in adapter.tensors:
        name, _, part = tensor.name.rpartition(".")
        if part not in ("lora_a", "lora_b"):
            raise ModelError(f"{path} has a tensor {tensor.name!r}; expected names that end in .lora_a or .lora_b.")
        pairs.setdefault(name, {})[part] = _numbers(tensor)
    tensor_names = {tensor.name for tensor in model.tensors}
    wrong = next((name for name, parts in pairs.items() if len(parts) < 2 or name not in tensor_names), None)
    if wrong is not None:
        what = (
            "has half of a pair for it" if wrong in tensor_names else "has a pair for it, and the model no such tensor"
        )
        raise ModelError(f"{path} does not fit the model: tensor {wrong!r}: the adapter {what}.")
    return pairs


def _numbers(tensor: Any) -> _Array:
    """A tensor's numbers in float32."""
    from gguf.quants import dequantize

    return np.asarray(dequantize(tensor.data, tensor.tensor_type), np.float32)


def _merged(model: Any, pairs: _Pairs, alpha: float, scale: float, path: Path) -> dict[str, tuple[_Array, Any]]:
    """The tensors that have an adapter, with it: numbers, and the type that they are written in. ``alpha``: the
    adapter's own factor, for each of its ranks; 0: one."""
    merged: dict[str, tuple[_Array, Any]] = {}
    for tensor in model.tensors:
        if tensor.name not in pairs:
            continue
        a, b = pairs[tensor.name]["lora_a"], pairs[tensor.name]["lora_b"]
        weights, rank = _numbers(tensor), b.shape[-1]
        if tensor.name == EMBEDDINGS:
            a, b = b.T, a
        if a.shape[-2] != rank or (*b.shape[:-1], a.shape[-1]) != weights.shape:
            raise ModelError(
                f"{path} does not fit the model: tensor {tensor.name!r} is {weights.shape}, the adapter's parts are "
                f"{a.shape} and {b.shape}."
            )
        added = np.float32(scale * (alpha / rank if alpha else 1.0)) * (b @ a)
        merged[tensor.name] = _stored(weights + added, tensor.tensor_type)
    return merged


def _stored(weights: _Array, kind: Any) -> tuple[_Array, Any]:
    """Numbers as they are written, and the type: as precise as those of ``kind``, see above."""
    from gguf import GGMLQuantizationType as Kind
    from gguf.quants import quantize

    if kind == Kind.F32 or float(np.abs(weights).max(initial=0)) > LARGEST_HALF:
        return weights, Kind.F32
    if kind in (Kind.F16, Kind.BF16) or weights.shape[-1] % 32:
        return weights.astype(np.float16), Kind.F16
    return quantize(weights, Kind.Q8_0), Kind.Q8_0


def _write(model: Any, tensors: Mapping[str, tuple[_Array, Any]], path: Path) -> None:
    """The model's file with other tensors: what it says of itself as it is, byte for byte."""
    align = int(model.alignment)
    with path.open("wb") as file:
        file.write(model.data[:HEAD].tobytes())
        if model.tensors:
            file.write(model.data[HEAD : model.tensors[0].field.offset].tobytes())
        offset = 0
        for tensor in model.tensors:
            data, kind = tensors.get(tensor.name, (tensor.data, tensor.tensor_type))
            name, sizes = tensor.name.encode(), [int(size) for size in tensor.shape]
            file.write(
                struct.pack(f"<Q{len(name)}sI{len(sizes)}QIQ", len(name), name, len(sizes), *sizes, kind, offset)
            )
            offset += -(-data.nbytes // align) * align
        for tensor in model.tensors:
            data, _ = tensors.get(tensor.name, (tensor.data, tensor.tensor_type))
            file.write(b"\0" * (-file.tell() % align))
            file.write(np.ascontiguousarray(data).tobytes())
        file.write(b"\0" * (-file.tell() % align))
        file.flush()
        os.fsync(file.fileno())
