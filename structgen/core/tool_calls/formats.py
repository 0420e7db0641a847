"""The table of dialects: how models write tool calls, as their published chat templates and model cards show it."""

from __future__ import annotations

import re
from dataclasses import replace

from structgen.core.tool_calls.format_shapes import (
    BETWEEN,
    COMMA,
    LINE,
    NINE_CHARACTERS,
    NO_LINE,
    STRIPPED_OR_NULL,
    array,
    internlm,
    json_call,
    keys_and_values,
    lone,
    step3,
    tags,
    typed_tags,
)
from structgen.core.tool_calls.nested_formats import (
    COFL,
    IDENTIFIER,
    MINIMAX_M3,
    NAMESPACE,
    PYTHON,
    PYTHON_WITH_JSON,
    gemma,
)
from structgen.core.tool_calls.patterns import (
    ARGUMENTS,
    CHANNELS,
    JSON_NAME,
    KEY,
    NAME,
    SPACE,
    TYPE,
    VALUE,
    CallId,
    Channel,
    Gap,
    Marker,
    Parameters,
    Pattern,
    Piece,
    ToolFormat,
    WithId,
)
from structgen.errors import OptionsError
from structgen.options import near_or_known

OPEN, CLOSE, SEP = Marker("<|open|>"), Marker("<|close|>"), Marker("<|sep|>")
_TABLE: list[ToolFormat] = [
    ToolFormat(
        "hermes",
        "Hermes 2 Pro and later, Qwen2.5, Qwen3, SmolLM3, Granite 4",
        ((Marker("<tool_call>"), LINE, *json_call(), LINE, Marker("</tool_call>")),),
        separator=BETWEEN,
    ),
    ToolFormat(
        "llama3",
        "Llama 3.1, 3.2, 3.3",
        (json_call("parameters"),),
        begin=(Marker("<|python_tag|>"),),
        separator=(";", SPACE),
        bare=("", ""),
        text_after=False,
    ),
    ToolFormat(
        "qwen3_coder",
        "Qwen3-Coder, Qwen3.5 and later, Step 3.5, Nemotron 3",
        (
            (
                *(Marker("<tool_call>"), "\n<function=", NAME, ">\n"),
                tags(("<parameter=", ">\n"), "\n</parameter>", "\n"),
                *("</function>\n", Marker("</tool_call>")),
            ),
        ),
        separator=BETWEEN,
    ),
    ToolFormat(
        "mimo",
        "MiMo-V2",
        (
            (
                *(Marker("<tool_call>"), "<function=", NAME, ">"),
                tags(("<parameter=", ">"), "</parameter>"),
                *("</function>", Marker("</tool_call>")),
            ),
        ),
        separator=BETWEEN,
    ),
    ToolFormat(
        "seed_oss",
        "Seed-OSS",
        (
            (
                *(Marker("<seed:tool_call>"), "\n<function=", NAME, ">\n"),
                tags(("<parameter=", ">"), "</parameter>", "\n"),
                *("</function>\n", Marker("</seed:tool_call>")),
            ),
        ),
        separator=BETWEEN,
    ),
    ToolFormat(
        "minimax_m2",
        "MiniMax-M2",
        (('<invoke name="', NAME, '">\n', tags(('<parameter name="', '">'), "</parameter>", "\n"), "</invoke>\n"),),
        begin=(Marker("<minimax:tool_call>"), "\n"),
        end=(Marker("</minimax:tool_call>"),),
    ),
    ToolFormat(
        "dots",
        "dots",
        (
            (
                *('<invoke name="', NAME, '">\n'),
                replace(tags(('<parameter name="', '">'), "</parameter>", "\n"), misread=STRIPPED_OR_NULL),
                "</invoke>\n",
            ),
        ),
        begin=(Marker("<dots_function_call>"), "\n"),
        end=(Marker("</dots_function_call>"),),
    ),
    ToolFormat(
        "minimax_m1",
        "MiniMax-M1",
        ((*json_call(), "\n"),),
        begin=(Marker("<tool_calls>"), "\n"),
        end=(Marker("</tool_calls>"),),
    ),
    ToolFormat(
        "mistral_v11",
        "Mistral from tokenizer v11: Small 3.2, Devstral, Magistral, Large 3",
        ((Marker("[TOOL_CALLS]"), NAME, WithId((Marker("[CALL_ID]"), NINE_CHARACTERS)), Marker("[ARGS]"), ARGUMENTS),),
    ),
    array("smollm2", "SmolLM2", Marker("<tool_call>"), Marker("</tool_call>"), (NO_LINE, *json_call(), NO_LINE)),
    array("hunyuan_a13b", "Hunyuan-A13B", Marker("<tool_calls>"), Marker("</tool_calls>")),
    array("nemotron", "Nemotron Nano v2, Super v1.5", Marker("<TOOLCALL>"), Marker("</TOOLCALL>")),
    array("granite3", "Granite 3", Marker("<|tool_call|>")),
    array("phi4_mini", "Phi-4-mini", "functools"),
    array(
        "apertus",
        "Apertus",
        Marker("<|tools_prefix|>"),
        Marker("<|tools_suffix|>"),
        ("{", JSON_NAME, ":", SPACE, ARGUMENTS, "}"),
    ),
    array(
        "mistral",
        "Mistral before tokenizer v11: 7B v0.3, Nemo, Large 2, Small 3.1",
        Marker("[TOOL_CALLS]"),
        None,
        json_call(after=(WithId((*COMMA, '"id":', SPACE, '"', NINE_CHARACTERS, '"')),)),
        SPACE,
    ),
    ToolFormat("gigachat3", "GigaChat 3.1", ((Marker("<|function_call|>"), *json_call()),), text_after=False),
    ToolFormat(
        "gigachat3_0",
        "GigaChat 3.0",
        ((Marker("<|message_sep|>"), "\n\nfunction call", Marker("<|role_sep|>"), "\n", *json_call()),),
        text_after=False,
    ),
    ToolFormat("granite_20b_fc", "Granite-20B-FunctionCalling", ((Marker("<function_call>"), SPACE, *json_call()),)),
    internlm("internlm2", "InternLM2, InternLM2.5"),
    internlm("intern_s1", "Intern-S1", " "),
    ToolFormat(
        "deepseek_v3",
        "DeepSeek-V3, R1",
        (
            (
                *(Marker("<｜tool▁call▁begin｜>"), "function", Marker("<｜tool▁sep｜>"), NAME, "\n```json\n"),
                *(ARGUMENTS, "\n```", Marker("<｜tool▁call▁end｜>")),
            ),
        ),
        begin=(Marker("<｜tool▁calls▁begin｜>"),),
        end=(Marker("<｜tool▁calls▁end｜>"),),
        separator=(LINE,),
    ),
    ToolFormat(
        "deepseek_v3_1",
        "DeepSeek-V3.1, V3.2-Exp",
        ((Marker("<｜tool▁call▁begin｜>"), NAME, Marker("<｜tool▁sep｜>"), ARGUMENTS, Marker("<｜tool▁call▁end｜>")),),
        begin=(Marker("<｜tool▁calls▁begin｜>"),),
        end=(Marker("<｜tool▁calls▁end｜>"),),
    ),
    typed_tags("deepseek_v3_2", "DeepSeek-V3.2", "function_calls"),
    typed_tags("deepseek_v4", "DeepSeek-V4", "tool_calls"),
    typed_tags("deepseek_v4_1", "DeepSeek-V4.1", "calls", " "),
    typed_tags("gigachat3_5", "GigaChat 3.5", "tool_calls", mark="｜GCML｜"),
    ToolFormat(
        "glm4_5",
        "GLM-4.5, GLM-4.6",
        ((Marker("<tool_call>"), NAME, "\n", keys_and_values("\n"), Marker("</tool_call>")),),
        separator=BETWEEN,
    ),
    ToolFormat(
        "glm4_7",
        "GLM-4.7, GLM-5, Ling 3, Poolside, Spark 2.5",
        ((Marker("<tool_call>"), NAME, keys_and_values(), Marker("</tool_call>")),),
        separator=BETWEEN,
    ),
    ToolFormat(
        "k2_horizon",
        "K2 Horizon",
        ((Marker("<ifm|tool_call>"), NAME, NO_LINE, keys_and_values(NO_LINE, "ifm|"), Marker("</ifm|tool_call>")),),
        begin=(Marker("<ifm|tool_calls>"), NO_LINE),
        end=(NO_LINE, Marker("</ifm|tool_calls>")),
        separator=(NO_LINE,),
    ),
    ToolFormat(
        "iquest_q1",
        "IQuest Q1",
        ((Marker("<iquest_tool_call>"), NAME, keys_and_values(), Marker("</iquest_tool_call>")),),
        separator=BETWEEN,
    ),
    ToolFormat(
        "kimi_k2",
        "Kimi K2, K2.5",
        (
            (
                *(
                    Marker("<|tool_call_begin|>"),
                    "functions.",
                    NAME,
                    ":",
                    CallId("[0-9]{1,6}", "functions.{name}:{id}"),
                ),
                *(Marker("<|tool_call_argument_begin|>"), ARGUMENTS, Marker("<|tool_call_end|>")),
            ),
        ),
        begin=(Marker("<|tool_calls_section_begin|>"),),
        end=(Marker("<|tool_calls_section_end|>"),),
    ),
    ToolFormat(
        "kimi_k3",
        "Kimi K3",
        (
            (
                *(OPEN, 'call tool="', NAME, '" index="', CallId("[0-9]{1,6}", first=1), '"', SEP),
                Parameters(
                    (OPEN, 'argument key="', KEY, '" type="string"', SEP, VALUE, CLOSE, "argument", SEP),
                    (OPEN, 'argument key="', KEY, '" type="', TYPE, '"', SEP, VALUE, CLOSE, "argument", SEP),
                    "<|close|>argument<|sep|>",
                ),
                *(CLOSE, "call", SEP),
            ),
        ),
        begin=(OPEN, "tools", SEP),
        end=(CLOSE, "tools", SEP),
        text_after=False,
        channel=Channel((OPEN, "response", SEP), (CLOSE, "response", SEP), (CLOSE, "message", SEP)),
    ),
    ToolFormat(
        "cohere",
        "Command R7B, Command A",
        (
            (
                Gap("(?:\\n[ ]{4})?", "\n    "),
                *json_call(
                    "parameters", "tool_name", ('"tool_call_id":', SPACE, '"', CallId("[0-9]{1,6}"), '"', *COMMA)
                ),
            ),
        ),
        begin=(Marker("<|START_ACTION|>"), "["),
        separator=COMMA[:1],
        end=(LINE, "]", Marker("<|END_ACTION|>")),
    ),
    lone("exaone4", "EXAONE 4", (Marker("<tool_call>"), NO_LINE), (NO_LINE, Marker("</tool_call>"))),
    lone("ernie4_5", "ERNIE 4.5", (Marker("<tool_call>"), LINE), (LINE, Marker("</tool_call>"), LINE)),
    lone("longcat", "LongCat-Flash", (Marker("<longcat_tool_call>"), LINE), (LINE, Marker("</longcat_tool_call>"))),
    array(
        "jamba",
        "Jamba 1.5, 1.6, 1.7",
        Marker("<tool_calls>"),
        Marker("</tool_calls>"),
        (NO_LINE, *json_call(), NO_LINE),
    ),
    ToolFormat("xlam", "xLAM 2", (json_call(),), bare=("[", "]"), separator=COMMA, text_after=False),
    array("granite3_1", "Granite 3.1, 3.2, 3.3", Marker("<tool_call>"), gap=SPACE),
    ToolFormat(
        "plamo3",
        "PLaMo 3",
        (
            (
                *("<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>", NAME),
                "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>",
                *(ARGUMENTS, "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>"),
            ),
        ),
        begin=("<|plamo:begin_tool_requests:plamo|>",),
        end=("<|plamo:end_tool_requests:plamo|>",),
    ),
    step3("step3", "Step3"),
    step3("step3_plain", "Step3, to readers whose values end at any <", excluded=("<",)),
    ToolFormat(
        "hy_v3",
        "Hunyuan 3",
        (
            (
                *(Marker("<tool_call>"), NAME, Marker("<tool_sep>"), NO_LINE),
                *(keys_and_values(), Marker("</tool_call>")),
            ),
        ),
        begin=(Marker("<tool_calls>"), NO_LINE),
        end=(NO_LINE, Marker("</tool_calls>")),
        separator=(NO_LINE,),
    ),
    ToolFormat(
        "hy_v4",
        "Hunyuan 4",
        ((Marker("<tool_call>"), NAME, keys_and_values(), Marker("</tool_call>")),),
        begin=(Marker("<tool_calls>"), NO_LINE),
        end=(NO_LINE, Marker("</tool_calls>")),
        separator=(NO_LINE,),
    ),
    ToolFormat(
        "pythonic",
        "Llama 3.2, ToolACE",
        ((NAME, "(", PYTHON, ")"),),
        bare=("[", "]"),
        separator=COMMA,
        text_after=False,
        names=IDENTIFIER,
    ),
    ToolFormat(
        "llama4",
        "Llama 4",
        ((NAME, "(", PYTHON, ")"),),
        begin=(Marker("<|python_start|>"), "["),
        end=("]", Marker("<|python_end|>")),
        bare=("[", "]"),
        separator=COMMA,
        text_after=False,
        names=IDENTIFIER,
    ),
    ToolFormat(
        "lfm2",
        "LFM2, LFM2.5",
        ((NAME, "(", PYTHON, ")"),),
        begin=(Marker("<|tool_call_start|>"), "["),
        end=("]", Marker("<|tool_call_end|>")),
        separator=COMMA,
        names=IDENTIFIER,
    ),
    ToolFormat(
        "olmo3",
        "Olmo 3",
        ((NAME, "(", PYTHON_WITH_JSON, ")"),),
        begin=(Marker("<function_calls>"), NO_LINE),
        end=(NO_LINE, Marker("</function_calls>")),
        separator=("\n",),
        names=IDENTIFIER,
    ),
    ToolFormat(
        "gemma4",
        "Gemma 4",
        ((Marker("<|tool_call>"), "call:", NAME, "{", gemma('<|"|>'), "}", Marker("<tool_call|>")),),
    ),
    ToolFormat(
        "functiongemma",
        "FunctionGemma",
        (
            (
                *(Marker("<start_function_call>"), "call:", NAME, "{", gemma("<escape>"), "}"),
                Marker("<end_function_call>"),
            ),
        ),
    ),
    ToolFormat(
        "minimax_m3",
        "MiniMax-M3",
        (
            (
                *(NAMESPACE, '<invoke name="', NAME, '">', MINIMAX_M3),
                *(NAMESPACE, "</invoke>"),
            ),
        ),
        begin=(NAMESPACE + "<tool_call>", LINE),
        end=(LINE, NAMESPACE + "</tool_call>"),
        separator=(LINE,),
    ),
    ToolFormat(
        "command_a_plus",
        "Command A+",
        (
            (
                *(NO_LINE, '<cofl:tool_call id="', CallId("[0-9]{1,6}"), '" name="', NAME, '">'),
                *(NO_LINE, COFL, "</cofl:tool_call>"),
            ),
        ),
        begin=("<cofl:tool_calls>",),
        end=(NO_LINE, "</cofl:tool_calls>"),
    ),
    ToolFormat(
        "harmony",
        "gpt-oss",
        tuple(
            (*header, *constrained, Marker("<|message|>"), ARGUMENTS)
            for channel in CHANNELS
            for header in (
                (Marker("<|channel|>"), f"{channel} to=functions.", NAME),
                (" to=functions.", NAME, Marker("<|channel|>"), channel),
            )
            for constrained in ((SPACE, Marker("<|constrain|>"), "json"), (Gap("(?: json)?", ""),))
        ),
        harmony=True,
    ),
]
FORMATS = {format.name: format for format in _TABLE}
ALIASES = {
    "qwen2_5": "hermes",
    "qwen3": "hermes",
    "smollm3": "hermes",
    "granite4": "hermes",
    "qwen3_5": "qwen3_coder",
    "gpt_oss": "harmony",
    "deepseek_r1": "deepseek_v3",
    "glm4_6": "glm4_5",
    "qwen3_6": "qwen3_coder",
    "step3p5": "qwen3_coder",
    "nemotron3": "qwen3_coder",
    "glm5": "glm4_7",
    "ling3": "glm4_7",
    "poolside": "glm4_7",
    "spark25": "glm4_7",
}
"""Other names of formats."""


SUFFIXED = ("hy_v3", "hy_v4")
"""Formats whose marks have a suffix in some checkpoints, which then follows the name: ``hy_v3:opensource``."""


def format_named(name: object) -> ToolFormat:
    """The format of this name.

    Raises:
        OptionsError: there is none (the nearest is named).
    """
    base, colon, suffix = name.partition(":") if isinstance(name, str) else ("", "", "")
    call_format = FORMATS.get(ALIASES.get(base, base))
    if call_format is not None and colon and base in SUFFIXED and re.fullmatch(r"[\w.\-]{1,64}", suffix):
        return _suffixed(call_format, suffix)
    if call_format is None or colon:
        raise OptionsError(
            f"there is no tool call format {name!r}; {near_or_known(name, [*FORMATS, *ALIASES])}",
            option="format",
            value=name,
        )
    return call_format


def _suffixed(form: ToolFormat, suffix: str) -> ToolFormat:
    """A format whose marks have a suffix."""

    def mark(text: str) -> str:
        return f"{text[:-1]}:{suffix}>"

    def change(pattern: Pattern) -> Pattern:
        return tuple(map(of_piece, pattern))

    def of_piece(piece: Piece) -> Piece:
        if isinstance(piece, Parameters):
            return replace(piece, string=change(piece.string), other=change(piece.other), closing=mark(piece.closing))
        return Marker(mark(piece.text)) if isinstance(piece, Marker) else piece

    calls = tuple(map(change, form.calls))
    return replace(form, name=f"{form.name}:{suffix}", calls=calls, begin=change(form.begin), end=change(form.end))
