"""Triton compiles the kernels for GPUs that are not here, and in the shape that makes them fast."""

from __future__ import annotations

import re
from typing import Any

import pytest
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from structgen.core.engines.apply.kernel import BLOCK as APPLY_BLOCK
from structgen.core.engines.apply.kernel import apply_kernel
from structgen.generation.sampling.draw_kernel import adjust_kernel, block_kernel, path_kernel, token_kernel
from structgen.generation.sampling.filter_kernel import SEGMENT, bin_kernel, candidate_kernel, filtered_kernel
from structgen.generation.sampling.kernel_parts import BLOCK

TYPES = {
    "row_stride": "i32", "mask_stride": "i32", "columns": "i32", "words": "i32", "blocks": "i32", "width": "i32",
    "count": "i32", "rows": "i32", "mask_rows": "*i32", "zero": "i32", "rates": "*fp32", "values": "*fp32",
    "sums": "*fp32", "bias": "*fp32", "factor": "*fp32", "minus": "*fp32", "min_ps": "*fp32", "uniforms": "*fp64",
    "top_ps": "*fp64", "out": "*fp64", "drawn": "*fp64", "found_logits": "*fp32",
}  # fmt: skip
"""Others are pointers to int32."""
H100, MI300 = GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64)
ALIGNED = ("logits", "row_stride", "bitmask", "masks", "mask_stride", "columns")
"""What is a multiple of 16, as with vocabularies that are."""


def assembled(
    kernel: Any,
    logits: str,
    constants: dict[str, Any],
    aligned: tuple[str, ...] = ALIGNED,
    warps: int = 4,
    target: GPUTarget = H100,
    **types: str,
) -> str:
    """The kernel in PTX, after the target's assembler has taken it."""
    names = kernel.arg_names
    given = {"logits": f"*{logits}", **TYPES, **types}
    source = ASTSource(
        fn=kernel,
        signature={name: "constexpr" if name in constants else given.get(name, "*i32") for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(names.index(name),): [["tt.divisibility", 16]] for name in aligned if name in names},
    )
    compiled = triton.compile(source, target=target, options={"enable_fp_fusion": False, "num_warps": warps})
    assert compiled.asm.get("cubin") or compiled.asm.get("hsaco")
    return str(compiled.asm.get("ptx"))


@pytest.mark.parametrize("logits", ["fp32", "fp16", "bf16"])
def test_whole_words_are_stored_wide_and_logits_never_loaded(logits: str) -> None:
    ptx = assembled(apply_kernel, logits, {"INDEXED": False, "BLOCK": APPLY_BLOCK}, mask_rows="i32")
    assert re.search(r"st\.global\.v4", ptx)
    assert set(re.findall(r"ld\.global\S*", ptx)) == {"ld.global.b32"}  # the mask's words


@pytest.mark.parametrize("logits", ["fp32", "bf16"])
@pytest.mark.parametrize("kept", [False, True])
def test_logits_are_loaded_wide_and_once(logits: str, kept: bool) -> None:
    ptx = assembled(block_kernel, logits, {"KEPT": kept, "ADJUSTED": False, "BLOCK": BLOCK})
    per_thread = BLOCK // 128 * (2 if logits == "bf16" else 4) // 16
    assert len(re.findall(r"ld\.global\.v4", ptx)) == per_thread
    assert not re.search(r"ld\.global\.b16", ptx)


def test_all_kernels_compile_where_nothing_is_aligned() -> None:
    common = {"ADJUSTED": True, "BLOCK": BLOCK}
    whole = {**common, "BLOCKS": 64}
    assembled(block_kernel, "fp16", {**common, "KEPT": True}, ())
    assembled(token_kernel, "fp16", {**whole, "KEPT": True}, ())
    assembled(bin_kernel, "fp16", whole, ())
    assembled(candidate_kernel, "fp16", {**whole, "SEGMENT": SEGMENT}, ())
    assembled(filtered_kernel, "fp16", {**whole, "SEGMENT": SEGMENT}, (), warps=16)
    assembled(apply_kernel, "fp16", {"INDEXED": True, "BLOCK": APPLY_BLOCK}, (), mask_rows="i32", indices="*i64")
    assembled(adjust_kernel, "fp16", {"SIZE": 256}, ())
    assembled(path_kernel, "fp16", {"SIZE": 32}, ())


def test_kernels_compile_for_amd() -> None:
    whole = {"ADJUSTED": False, "BLOCK": BLOCK, "BLOCKS": 64}
    assembled(apply_kernel, "bf16", {"INDEXED": False, "BLOCK": APPLY_BLOCK}, mask_rows="i32", target=MI300)
    assembled(token_kernel, "bf16", {**whole, "KEPT": False}, target=MI300)
    assembled(filtered_kernel, "bf16", {**whole, "SEGMENT": SEGMENT}, warps=16, target=MI300)
