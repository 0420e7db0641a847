"""Tool calls in formats for which SGLang has no structural tag, by its own hooks. Made for SGLang 0.5.23.

SGLang asks `FunctionCallParser.get_structure_constraint` for a constraint; for detectors without a tag it gives the
schema of a JSON array in place of the model's own format, or nothing. Where structgen is the grammar backend, it
gives a carrier (`structgen.integrations.carriers`) instead, and the detector reads what it always reads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from structgen.integrations.engine_hooks import Hook

if TYPE_CHECKING:
    from structgen.integrations.carriers import TextPlace

FORMATS: dict[str, tuple[str, TextPlace]] = {
    "Apertus2509Detector": ("apertus", "before"),
    "CohereCommand4Detector": ("cohere", "before"),
    "DotsToolDetector": ("dots", "before"),
    "Gemma4Detector": ("gemma4", "before"),
    "GigaChat35Detector": ("gigachat3_5", "before"),
    "GigaChat3Detector": ("gigachat3", "before"),
    "Glm4MoeDetector": ("glm4_5", "before"),
    "HunyuanDetector": ("hy_v3", "before"),
    "IQuestQ1Detector": ("iquest_q1", "before"),
    "InternlmDetector": ("intern_s1", "before"),
    "K2V3Detector": ("k2_horizon", "before"),
    "KimiK3Detector": ("kimi_k3", "before"),
    "Lfm2Detector": ("lfm2", "before"),
    "Ling3Detector": ("glm4_7", "before"),
    "MiMoDetector": ("mimo", "before"),
    "MinimaxM2Detector": ("minimax_m2", "before"),
    "MinimaxM3Detector": ("minimax_m3", "before"),
    "PoolsideV1Detector": ("glm4_5", "before"),
    "PythonicDetector": ("pythonic", "instead"),
    "Spark25Detector": ("glm4_7", "before"),
    "Step3Detector": ("step3_plain", "before"),
}
"""Format and place of other text, by the class of SGLang's detector."""


def structure_constraint(
    original: Callable[..., Any],
    parser: Any,
    tool_choice: Any,
    parallel_tool_calls: bool = True,
    thinking_mode: bool = False,
) -> Any:
    """Around `FunctionCallParser.get_structure_constraint`: kind and value of the constraint of a request, or None."""
    dialect = _dialect(parser.detector) if is_backend() else None
    is_named = not isinstance(tool_choice, str) and tool_choice is not None
    asked = tool_choice == "required" or is_named or (tool_choice == "auto" and _is_strict(parser))
    if dialect is None or not asked or not parser.tools:
        return original(parser, tool_choice, parallel_tool_calls=parallel_tool_calls, thinking_mode=thinking_mode)
    tools = [tool for tool in parser.structural_tag_tools() if not is_named or _is_meant(tool, tool_choice)]
    parser.detector.parses_required_natively = lambda: True  # the detector reads the calls, not a reader of JSON
    return "structural_tag", _tag(dialect, tools, tool_choice != "auto", parallel_tool_calls and not is_named)


def _dialect(detector: Any) -> tuple[str, TextPlace] | None:
    """Format and place of other text of a detector; Hunyuan's marks are those of the tokenizer."""
    dialect = FORMATS.get(type(detector).__name__)
    if dialect is None or dialect[0] != "hy_v3":
        return dialect
    _, colon, suffix = detector.bot_token.strip("<>").partition(":")
    return ("hy_v3" if detector._has_tool_sep else "hy_v4") + colon + suffix, dialect[1]


def _tag(dialect: tuple[str, TextPlace], tools: list[Any], required: bool, parallel: bool) -> Any:
    from xgrammar import StructuralTag

    from structgen.integrations.carriers import carrier

    definitions = [tool.model_dump(mode="json", exclude_none=True) for tool in tools]
    form = carrier(dialect[0], definitions, required=required, text=dialect[1], parallel=parallel)
    return StructuralTag.model_validate({"type": "structural_tag", "format": form})


def is_backend() -> bool:
    """Whether this server's grammar backend is structgen's."""
    try:
        from sglang.srt.runtime_context import get_server_args
    except ImportError:
        return False
    try:
        return getattr(get_server_args(), "grammar_backend", None) == "structgen"
    except Exception:  # no server was configured in this process
        return False


def _is_strict(parser: Any) -> bool:
    from sglang.srt.environ import ToolStrictLevel

    strict = any(tool.function.strict for tool in parser.tools)
    return strict or bool(parser.tool_strict_level >= ToolStrictLevel.FUNCTION)


def _is_meant(tool: Any, choice: Any) -> bool:
    return bool(tool.function.name == choice.function.name)


HOOK = Hook(
    "strict tool calls through detectors that have no structural tag",
    "sglang.srt.function_call.function_call_parser.FunctionCallParser",
    "get_structure_constraint",
    ("tool_choice", "parallel_tool_calls", "thinking_mode"),
    structure_constraint,
)
"""What gives them one."""
