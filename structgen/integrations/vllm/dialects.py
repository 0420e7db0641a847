"""Tool calls in formats for which vLLM has no structural tag: what its parsers read is what the masks let through.

vLLM asks the class of a tool parser for the name of a structural tag, and a dictionary for the builder of that name.
Classes without a name get one of ours when vLLM loads them, and the builder gives a carrier
(`structgen.integrations.carriers`). With ``VLLM_ENFORCE_STRICT_TOOL_CALLING=0`` nothing changes. Made for vLLM 0.33.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from structgen.integrations.engine_hooks import Hook, make_fitting

if TYPE_CHECKING:
    from structgen.integrations.carriers import TextPlace

_log = logging.getLogger("structgen.vllm")
PREFIX = "structgen_"
"""What the names of our structural tags begin with."""
FORMATS: dict[str, tuple[str, TextPlace]] = {
    "ApertusToolParser": ("apertus", "before"),
    "DotsToolParser": ("dots", "before"),
    "Ernie45ToolParser": ("ernie4_5", "before"),
    "Gemma4EngineToolParser": ("gemma4", "before"),
    "GigaChat3ToolParser": ("gigachat3", "before"),
    "Granite20bFCToolParser": ("granite_20b_fc", "before"),
    "GraniteEngineToolParser": ("granite3", "before"),
    "Granite4ToolParser": ("hermes", "before"),
    "HunyuanA13BToolParser": ("hunyuan_a13b", "before"),
    "HYV3ToolParser": ("hy_v3", "before"),
    "HYV4ToolParser": ("hy_v4", "before"),
    "Internlm2ToolParser": ("internlm2", "before"),
    "JambaToolParser": ("jamba", "before"),
    "K2HorizonToolParser": ("k2_horizon", "before"),
    "KimiK3ToolParser": ("kimi_k3", "before"),
    "Lfm2ToolParser": ("lfm2", "before"),
    "Llama4PythonicToolParser": ("llama4", "instead"),
    "MinimaxM3ToolParser": ("minimax_m3", "before"),
    "Olmo3PythonicToolParser": ("olmo3", "instead"),
    "PoolsideV1ToolParser": ("glm4_5", "before"),
    "PythonicToolParser": ("pythonic", "instead"),
    "SeedOssEngineToolParser": ("seed_oss", "before"),
    "Step3ToolParser": ("step3", "before"),
    "xLAMToolParser": ("xlam", "instead"),
}
"""Format and place of other text, by the class of vLLM's parser. Parsers that do not read what their models write (of
FunctionGemma numbers, of Phi-4-mini calls after a line feed) are left as they are."""
REPLACED = {"HYV4ToolParser", "KimiK3ToolParser"}
"""Classes whose own structural tag leaves the values of arguments free: it is replaced by ours."""


def loading(original: Callable[..., Any], cls: Any, name: str) -> Any:
    """Around `ToolParserManager._load_lazy_parser`: a class without a structural tag gets one of ours."""
    parser = original(cls, name)
    make_fitting(WITH_FORMATS, _log)  # late: only the front end loads parsers
    dialect = FORMATS.get(parser.__name__)
    if dialect is not None and (parser.structural_tag_model is None or parser.__name__ in REPLACED):
        _give(parser, *dialect)
    return parser


def _give(parser: Any, form: str, text: TextPlace) -> None:
    import vllm.envs as envs

    if parser.structural_tag_model is not None:  # asked for with the checkpoint's suffix, where it has one
        _register(parser.structural_tag_model, form, text)
    elif form == "hy_v3":  # its parser knows the suffix, and vLLM does not ask for it
        parser.structural_tag_model = property(lambda self: _register(PREFIX + form + self.suffix, form, text))
    else:
        parser.structural_tag_model = _register(PREFIX + form, form, text)
    if envs.VLLM_ENFORCE_STRICT_TOOL_CALLING:  # as `ToolParser.__init_subclass__` does for its own
        parser.supports_required_and_named = False


def _register(name: str, form: str, text: TextPlace) -> str:
    """Register the builder of a structural tag; its name."""
    from vllm.tool_parsers.structural_tag_registry import register_vllm_structural_tag

    suffix = name.removeprefix(PREFIX + form) if name.startswith(PREFIX) else ""
    register_vllm_structural_tag(name)(builder(form + suffix, text))
    return name


def builder(form: str, text: TextPlace) -> Callable[..., Any]:
    """The builder of a structural tag, as `register_vllm_structural_tag` takes it."""

    def build(
        tools: list[Any], builtin_tools: list[Any], tool_choice: str, reasoning: bool, token_suffix: str = ""
    ) -> Any:
        from xgrammar import StructuralTag

        from structgen.integrations.carriers import carrier  # late: workers load the plugin, too

        parallel = tool_choice != "forced"
        definitions = [tool.model_dump(mode="json", exclude_none=True) for tool in tools]
        form_of_tag = carrier(
            form + token_suffix, definitions, required=tool_choice != "auto", text=text, parallel=parallel
        )
        return StructuralTag.model_validate({"type": "structural_tag", "format": form_of_tag})

    return build


def supports(original: Callable[..., bool], structured_outputs: Any) -> bool:
    """Around `_xgrammar_supports`: vLLM asks whether a response format can stand alongside tools in one tag, and where
    it cannot, drops the tools with a line in the log. What structgen cannot read is refused when the tag is."""
    return True


WITH_FORMATS = tuple(
    Hook(
        "strict tool calls alongside a response format", module, "_xgrammar_supports", ("structured_outputs",), supports
    )
    for module in ("vllm.parser.abstract_parser", "vllm.parser.beam")
)
"""What lets `tool_choice: "auto"` stand alongside formats that XGrammar does not read."""
HOOK = Hook(
    "strict tool calls through parsers that have no structural tag",
    "vllm.tool_parsers.abstract_tool_parser.ToolParserManager",
    "_load_lazy_parser",
    ("name",),
    loading,
)
"""What gives them one, of all parsers that are loaded from then on."""
