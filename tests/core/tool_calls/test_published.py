"""Calls as model cards, documentation and the prompts of chat templates show them, and what they lose by one change."""

from __future__ import annotations

import random
from typing import Any

import pytest

from structgen.core.constraints.tools import tool_call
from structgen.core.tool_calls.calls import ToolCall
from structgen.core.tool_calls.formats import FORMATS
from structgen.errors import GenerationError, OptionsError
from tests.core.tool_calls.random_tools import is_valid
from tests.core.tool_calls.vocabularies import BYTES, accepts, chat_vocabulary

TEXT = {"type": "string"}


def function(name: str, *required: str, **properties: Any) -> dict[str, Any]:
    """A function definition."""
    parameters = {"type": "object", "properties": properties, "required": list(required or properties)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


WEATHER = function(
    "get_current_weather", "location", location=TEXT, unit={"enum": ["celsius", "fahrenheit"]}, format=TEXT
)
# Format, where it is published, tools, text, calls.
PUBLISHED: list[tuple[str, str, list[dict[str, Any]], str, list[ToolCall]]] = [
    (
        "hermes",
        "Qwen documentation, function calling",
        [
            function("get_current_temperature", "location", location=TEXT, unit=TEXT),
            function("get_temperature_date", "location", "date", location=TEXT, date=TEXT, unit=TEXT),
        ],
        '<tool_call>\n{"name": "get_current_temperature", "arguments": {"location": "San Francisco, CA, USA"}}\n'
        '</tool_call>\n<tool_call>\n{"name": "get_temperature_date", "arguments": {"location": '
        '"San Francisco, CA, USA", "date": "2024-10-01"}}\n</tool_call>',
        [
            ToolCall("get_current_temperature", {"location": "San Francisco, CA, USA"}),
            ToolCall("get_temperature_date", {"location": "San Francisco, CA, USA", "date": "2024-10-01"}),
        ],
    ),
    (
        "llama3",
        "Llama 3.1 model card, JSON based tool calling",
        [function("trending_songs", n=TEXT, genre=TEXT)],
        '{"name": "trending_songs", "parameters": {"n": "10", "genre": "all"}}',
        [ToolCall("trending_songs", {"n": "10", "genre": "all"})],
    ),
    (
        "llama3",
        "Llama 3.1 model card, with the tag for environments",
        [function("get_current_conditions", location=TEXT, unit=TEXT)],
        '<|python_tag|>{"name": "get_current_conditions", "parameters": {"location": "San Francisco, CA", '
        '"unit": "Fahrenheit"}}',
        [ToolCall("get_current_conditions", {"location": "San Francisco, CA", "unit": "Fahrenheit"})],
    ),
    (
        "qwen3_coder",
        "prompt of Qwen3-Coder's chat template",
        [function("example_function_name", example_parameter_1=TEXT, example_parameter_2=TEXT)],
        "<tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n"
        "<parameter=example_parameter_2>\nThis is the value for the second parameter\nthat can span\nmultiple lines\n"
        "</parameter>\n</function>\n</tool_call>",
        [
            ToolCall(
                "example_function_name",
                {
                    "example_parameter_1": "value_1",
                    "example_parameter_2": "This is the value for the second parameter\nthat can span\nmultiple lines",
                },
            )
        ],
    ),
    (
        "seed_oss",
        "prompt of Seed-OSS's chat template",
        [function("example_function_name", example_parameter_1=TEXT, example_parameter_2=TEXT)],
        "<seed:tool_call>\n<function=example_function_name>\n<parameter=example_parameter_1>value_1</parameter>\n"
        "<parameter=example_parameter_2>This is the value for the second parameter\nthat can span\nmultiple lines"
        "</parameter>\n</function>\n</seed:tool_call>",
        [
            ToolCall(
                "example_function_name",
                {
                    "example_parameter_1": "value_1",
                    "example_parameter_2": "This is the value for the second parameter\nthat can span\nmultiple lines",
                },
            )
        ],
    ),
    (
        "minimax_m2",
        "MiniMax-M2 tool calling guide",
        [
            function(
                "search_web", query_tag={"type": "array", "items": TEXT}, query_list={"type": "array", "items": TEXT}
            )
        ],
        '<minimax:tool_call>\n<invoke name="search_web">\n<parameter name="query_tag">["technology", "events"]'
        '</parameter>\n<parameter name="query_list">["\\"OpenAI\\" \\"latest\\" \\"release\\""]</parameter>\n</invoke>'
        "\n"
        '<invoke name="search_web">\n<parameter name="query_tag">["technology"]</parameter>\n'
        '<parameter name="query_list">[]</parameter>\n</invoke>\n</minimax:tool_call>',
        [
            ToolCall(
                "search_web", {"query_tag": ["technology", "events"], "query_list": ['"OpenAI" "latest" "release"']}
            ),
            ToolCall("search_web", {"query_tag": ["technology"], "query_list": []}),
        ],
    ),
    (
        "mistral",
        "Mistral documentation and chat templates, with an id",
        [WEATHER],
        '[TOOL_CALLS] [{"name": "get_current_weather", "arguments": {"location": "Paris, FR", "format": "celsius"}, '
        '"id": "VvvODy9mT"}]',
        [ToolCall("get_current_weather", {"location": "Paris, FR", "format": "celsius"}, "VvvODy9mT")],
    ),
    (
        "mistral_v11",
        "Mistral Small 3.2 and Devstral chat templates",
        [WEATHER],
        'Let me look.[TOOL_CALLS]get_current_weather[CALL_ID]VvvODy9mT[ARGS]{"location": "Paris"}'
        '[TOOL_CALLS]get_current_weather[ARGS]{"location": "Nice"}',
        [
            ToolCall("get_current_weather", {"location": "Paris"}, "VvvODy9mT"),
            ToolCall("get_current_weather", {"location": "Nice"}),
        ],
    ),
    (
        "smollm2",
        "SmolLM2 model card",
        [function("get_random_number_between", min={"type": "integer"}, max={"type": "integer"})],
        '<tool_call>[{"name": "get_random_number_between", "arguments": {"min": 1, "max": 300}}]</tool_call>',
        [ToolCall("get_random_number_between", {"min": 1, "max": 300})],
    ),
    (
        "granite3",
        "Granite 3 model card",
        [function("get_stock_price", ticker=TEXT, date=TEXT)],
        '<|tool_call|>[{"name": "get_stock_price", "arguments": {"ticker": "IBM", "date": "2024-10-07"}}]',
        [ToolCall("get_stock_price", {"ticker": "IBM", "date": "2024-10-07"})],
    ),
    (
        "granite_20b_fc",
        "Granite-20B-FunctionCalling model card",
        [WEATHER],
        '<function_call> {"name": "get_current_weather", "arguments": {"location": "New York"}}',
        [ToolCall("get_current_weather", {"location": "New York"})],
    ),
    (
        "phi4_mini",
        "prompt of Phi-4-mini's chat template",
        [WEATHER],
        'functools[{"name": "get_current_weather", "arguments": {"location": "Paris"}}]',
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "internlm2",
        "InternLM2 chat format",
        [WEATHER],
        'I need the tool.<|action_start|><|plugin|>\n{"name": "get_current_weather", "parameters": {"location": '
        '"Shanghai"}}<|action_end|>',
        [ToolCall("get_current_weather", {"location": "Shanghai"})],
    ),
    (
        "intern_s1",
        "SGLang's detector of Intern-S1",
        [WEATHER],
        '<|action_start|> <|plugin|>\n{"name": "get_current_weather", "parameters": {"location": "Tokyo"}}'
        "<|action_end|>",
        [ToolCall("get_current_weather", {"location": "Tokyo"})],
    ),
    (
        "deepseek_v3",
        "prompt of DeepSeek-V3's chat template",
        [WEATHER],
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_current_weather\n```json\n"
        '{"location": "Paris"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>'
        "get_current_weather\n"
        '```json\n{"location": "Nice"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        [ToolCall("get_current_weather", {"location": "Paris"}), ToolCall("get_current_weather", {"location": "Nice"})],
    ),
    (
        "deepseek_v3_1",
        "DeepSeek-V3.1 model card, ToolCall",
        [WEATHER],
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_current_weather<｜tool▁sep｜>{"location": "Paris"}'
        "<｜tool▁call▁end｜><｜tool▁call▁begin｜>get_current_weather<｜tool▁sep｜>"
        '{"location": "Nice"}<｜tool▁call▁end｜>'
        "<｜tool▁calls▁end｜>",
        [ToolCall("get_current_weather", {"location": "Paris"}), ToolCall("get_current_weather", {"location": "Nice"})],
    ),
    (
        "deepseek_v3_2",
        "DeepSeek-V3.2's encoding",
        [function("get_weather", location=TEXT, days={"type": "integer"})],
        '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="location" '
        'string="true">'
        'Hangzhou</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        [ToolCall("get_weather", {"location": "Hangzhou", "days": 3})],
    ),
    (
        "glm4_5",
        "prompt of GLM-4.5's and GLM-4.6's chat templates",
        [function("get_weather", city=TEXT, days={"type": "integer"})],
        "\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Beijing</arg_value>\n<arg_key>days</arg_key>\n"
        "<arg_value>3</arg_value>\n</tool_call>",
        [ToolCall("get_weather", {"city": "Beijing", "days": 3})],
    ),
    (
        "glm4_7",
        "GLM-4.7's chat template",
        [function("get_weather", city=TEXT, days={"type": "integer"})],
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Beijing</arg_value><arg_key>days</arg_key>"
        "<arg_value>3</arg_value></tool_call>",
        [ToolCall("get_weather", {"city": "Beijing", "days": 3})],
    ),
    (
        "kimi_k2",
        "Kimi K2 tool calling guide",
        [function("get_weather", city=TEXT)],
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>"
        '{"city": "Beijing"}<|tool_call_end|><|tool_calls_section_end|>',
        [ToolCall("get_weather", {"city": "Beijing"}, "functions.get_weather:0")],
    ),
    (
        "cohere",
        "Command R7B model card",
        [function("query_daily_sales_report", day=TEXT), function("query_product_catalog", category=TEXT)],
        '<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "query_daily_sales_report", "parameters": '
        '{"day": "2023-09-29"}},\n    {"tool_call_id": "1", "tool_name": "query_product_catalog", "parameters": '
        '{"category": "Electronics"}}\n]<|END_ACTION|>',
        [
            ToolCall("query_daily_sales_report", {"day": "2023-09-29"}, "0"),
            ToolCall("query_product_catalog", {"category": "Electronics"}, "1"),
        ],
    ),
    (
        "harmony",
        "OpenAI's harmony cookbook",
        [WEATHER],
        "<|channel|>analysis<|message|>Need to use function get_current_weather.<|end|><|start|>assistant"
        '<|channel|>commentary to=functions.get_current_weather <|constrain|>json<|message|>{"location":'
        '"San Francisco"}<|call|>',
        [ToolCall("get_current_weather", {"location": "San Francisco"})],
    ),
    (
        "harmony",
        "the recipient before the channel, as gpt-oss writes it, too",
        [WEATHER],
        ' to=functions.get_current_weather<|channel|>commentary json<|message|>{"location": "Tokyo"}<|call|>',
        [ToolCall("get_current_weather", {"location": "Tokyo"})],
    ),
    (
        "harmony",
        "the channels and ends that vLLM's tag of gpt-oss takes",
        [WEATHER],
        '<|channel|>analysis to=functions.get_current_weather <|constrain|>json<|message|>{"location": "Rome"}<|end|>'
        "<|start|>assistant to=functions.get_current_weather<|channel|>final json<|message|>"
        '{"location": "Oslo"}<|call|>',
        [ToolCall("get_current_weather", {"location": "Rome"}), ToolCall("get_current_weather", {"location": "Oslo"})],
    ),
    (
        "hunyuan_a13b",
        "prompt of Hunyuan-A13B's chat template",
        [function("func_name1", argument1=TEXT, argument2=TEXT)],
        '<tool_calls>[{"name": "func_name1", "arguments": {"argument1": "value1", "argument2": "value2"}}]'
        "</tool_calls>",
        [ToolCall("func_name1", {"argument1": "value1", "argument2": "value2"})],
    ),
    (
        "nemotron",
        "Nemotron Nano v2's chat template",
        [WEATHER],
        '<TOOLCALL>[{"name": "get_current_weather", "arguments": {"location": "Paris"}}, '
        '{"name": "get_current_weather", "arguments": {"location": "Nice"}}]</TOOLCALL>',
        [ToolCall("get_current_weather", {"location": "Paris"}), ToolCall("get_current_weather", {"location": "Nice"})],
    ),
    (
        "apertus",
        "Apertus' chat template",
        [WEATHER],
        '<|tools_prefix|>[{"get_current_weather": {"location": "Paris"}}]<|tools_suffix|>',
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "minimax_m1",
        "MiniMax-M1's chat template",
        [WEATHER],
        '<tool_calls>\n{"name": "get_current_weather", "arguments": {"location": "Paris"}}\n'
        '{"name": "get_current_weather", "arguments": {"location": "Nice"}}\n</tool_calls>',
        [ToolCall("get_current_weather", {"location": "Paris"}), ToolCall("get_current_weather", {"location": "Nice"})],
    ),
    (
        "mimo",
        "MiMo-V2's chat template",
        [function("get_weather", city=TEXT, days={"type": "integer"})],
        "<tool_call><function=get_weather><parameter=city>Beijing</parameter><parameter=days>3</parameter></function>"
        "</tool_call>",
        [ToolCall("get_weather", {"city": "Beijing", "days": 3})],
    ),
    (
        "command_a_plus",
        "XGrammar's tag of Cohere's models",
        [function("search", query=TEXT, limit={"type": "integer"}, tags={"type": "array", "items": TEXT})],
        '<cofl:tool_calls><cofl:tool_call id="0" name="search"><cofl:value name="query" type="raw">a < b</cofl:value>'
        '<cofl:value name="limit" type="json">3</cofl:value><cofl:value name="tags" type="list">'
        '<cofl:value type="raw">x</cofl:value></cofl:value></cofl:tool_call></cofl:tool_calls>',
        [ToolCall("search", {"query": "a < b", "limit": 3, "tags": ["x"]}, "0")],
    ),
    (
        "pythonic",
        "Llama 3.2 model card, zero-shot function calling",
        [function("get_weather", city=TEXT, metric=TEXT), function("get_user_info", user_id={"type": "integer"})],
        "[get_weather(city='San Francisco', metric='celsius'), get_user_info(user_id=7890)]",
        [
            ToolCall("get_weather", {"city": "San Francisco", "metric": "celsius"}),
            ToolCall("get_user_info", {"user_id": 7890}),
        ],
    ),
    (
        "llama4",
        "Llama 4 model card, zero-shot function calling",
        [function("get_weather", city=TEXT, metric=TEXT)],
        '[get_weather(city="San Francisco", metric="celsius"), get_weather(city="Seattle", metric="celsius")]',
        [
            ToolCall("get_weather", {"city": "San Francisco", "metric": "celsius"}),
            ToolCall("get_weather", {"city": "Seattle", "metric": "celsius"}),
        ],
    ),
    (
        "lfm2",
        "LFM2 model card",
        [function("get_candidate_status", candidate_id=TEXT)],
        '<|tool_call_start|>[get_candidate_status(candidate_id="12345")]<|tool_call_end|>Checking the current status.',
        [ToolCall("get_candidate_status", {"candidate_id": "12345"})],
    ),
    (
        "olmo3",
        "Olmo 3's chat template",
        [function("get_current_weather", location=TEXT, exact={"type": "boolean"})],
        '<function_calls>get_current_weather(location="Paris", exact=true)\nget_current_weather(location="Nice", '
        "exact=null)</function_calls>".replace("null", "false"),
        [
            ToolCall("get_current_weather", {"location": "Paris", "exact": True}),
            ToolCall("get_current_weather", {"location": "Nice", "exact": False}),
        ],
    ),
    (
        "gemma4",
        "Gemma 4 documentation, function calling",
        [function("get_current_temperature", location=TEXT, days={"type": "integer"})],
        '<|tool_call>call:get_current_temperature{location:<|"|>London<|"|>,days:3}<tool_call|>',
        [ToolCall("get_current_temperature", {"location": "London", "days": 3})],
    ),
    (
        "functiongemma",
        "FunctionGemma formatting guide",
        [function("get_current_temperature", location=TEXT)],
        "<start_function_call>call:get_current_temperature{location:<escape>London<escape>}<end_function_call>",
        [ToolCall("get_current_temperature", {"location": "London"})],
    ),
    (
        "minimax_m3",
        "vLLM's parser of MiniMax-M3",
        [
            function(
                "create_order",
                user_id={"type": "integer"},
                items={"type": "array", "items": {"type": "object", "properties": {"sku": TEXT}}},
            )
        ],
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="create_order">]<]minimax[>[<user_id>42]<]minimax[>['
        "</user_id>]<]minimax[>[<items>]<]minimax[>[<item>]<]minimax[>[<sku>book-001]<]minimax[>[</sku>"
        "]<]minimax[>[</item>]<]minimax[>[</items>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
        [ToolCall("create_order", {"user_id": 42, "items": [{"sku": "book-001"}]})],
    ),
    (
        "deepseek_v4",
        "DeepSeek-V4's encoding",
        [WEATHER],
        '\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="get_current_weather">\n<｜DSML｜parameter name="'
        'location" string="true">Paris</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "deepseek_v4_1",
        "DeepSeek-V4.1's encoding",
        [WEATHER],
        '\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="get_current_weather">\n<｜DSML｜ parameter name="lo'
        'cation" string="true">Paris</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>',
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "exaone4",
        "EXAONE 4 model card",
        [WEATHER],
        '<tool_call>{"name": "get_current_weather", "arguments": {"location": "Paris"}}</tool_call>',
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "ernie4_5",
        "vLLM's parser of ERNIE 4.5",
        [WEATHER],
        '<tool_call>\n{"name": "get_current_weather", "arguments": {"location": "Paris"}}\n</tool_call>\n',
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "longcat",
        "LongCat-Flash's chat template",
        [WEATHER],
        '<longcat_tool_call>\n{"name": "get_current_weather", "arguments": {"location": "Paris"}}\n'
        "</longcat_tool_call>",
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "jamba",
        "Jamba 1.5's chat template",
        [WEATHER],
        '<tool_calls>[\n{"name": "get_current_weather", "arguments": {"location": "Paris"}}\n]</tool_calls>',
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "xlam",
        "xLAM 2 model card",
        [WEATHER],
        '[{"name": "get_current_weather", "arguments": {"location": "Paris"}}]',
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "granite3_1",
        "vLLM's parser of Granite 3.1",
        [WEATHER],
        '<tool_call> [{"name": "get_current_weather", "arguments": {"location": "Paris"}}]',
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "plamo3",
        "vLLM's parser of PLaMo 3",
        [WEATHER],
        "<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_na"
        "me:plamo|>get_current_weather<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:pla"
        'mo|><|plamo:constrain|>json<|plamo:msg|>{"location": "Paris"}<|plamo:end_tool_arguments:pl'
        "amo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>",
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "step3",
        "vLLM's parser of Step3",
        [WEATHER],
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_curre'
        'nt_weather"><steptml:parameter name="location">Paris</steptml:parameter></steptml:invoke><'
        "｜tool_call_end｜><｜tool_calls_end｜>",
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "step3_plain",
        "SGLang's detector of Step3",
        [WEATHER],
        '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_curre'
        'nt_weather"><steptml:parameter name="location">Paris</steptml:parameter></steptml:invoke><'
        "｜tool_call_end｜><｜tool_calls_end｜>",
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "hy_v3",
        "vLLM's parser of Hunyuan 3",
        [WEATHER],
        "<tool_calls><tool_call>get_current_weather<tool_sep><arg_key>location</arg_key><arg_value>"
        "Paris</arg_value></tool_call></tool_calls>",
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "hy_v4",
        "vLLM's parser of Hunyuan 4",
        [WEATHER],
        "<tool_calls><tool_call>get_current_weather<arg_key>location</arg_key><arg_value>Paris</arg"
        "_value></tool_call></tool_calls>",
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "kimi_k3",
        "vLLM's parser of Kimi K3",
        [function("python", code=TEXT, opts={"type": "object"})],
        '<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="python" index="1"<|sep|><|open|>argument '
        'key="code" type="string"<|sep|>print(1)<|close|>argument<|sep|><|open|>argument key="opts" '
        'type="object"<|sep|>{"a":1}<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>',
        [ToolCall("python", {"code": "print(1)", "opts": {"a": 1}}, "1")],
    ),
    (
        "gigachat3_0",
        "SGLang's detector of GigaChat 3",
        [WEATHER],
        'I look.<|message_sep|>\n\nfunction call<|role_sep|>\n{"name": "get_current_weather", "arguments": '
        '{"location": "Rome"}}',
        [ToolCall("get_current_weather", {"location": "Rome"})],
    ),
    (
        "gigachat3",
        "vLLM's parser of GigaChat 3",
        [WEATHER],
        '<|function_call|>{"name": "get_current_weather", "arguments": {"location": "Paris"}}',
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "gigachat3_5",
        "SGLang's detector of GigaChat 3.5",
        [WEATHER],
        '<｜GCML｜tool_calls>\n<｜GCML｜invoke name="get_current_weather">\n<｜GCML｜parameter name="location" '
        'string="true">Paris</｜GCML｜parameter>\n</｜GCML｜invoke>\n</｜GCML｜tool_calls>',
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "k2_horizon",
        "vLLM's parser of K2 Horizon",
        [WEATHER],
        "<ifm|tool_calls>\n<ifm|tool_call>get_current_weather\n<ifm|arg_key>location</ifm|arg_key>\n<ifm|arg_value>Paris"
        "</ifm|arg_value>\n</ifm|tool_call>\n</ifm|tool_calls>",
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "iquest_q1",
        "SGLang's detector of IQuest Q1",
        [WEATHER],
        "<iquest_tool_call>get_current_weather<arg_key>location</arg_key><arg_value>Paris</arg_value></iquest_tool_call>",
        [ToolCall("get_current_weather", {"location": "Paris"})],
    ),
    (
        "dots",
        "vLLM's parser of dots",
        [function("search", query=TEXT)],
        '<dots_function_call>\n<invoke name="search">\n<parameter name="query">weather in Shanghai</parameter>\n'
        "</invoke>\n</dots_function_call>",
        [ToolCall("search", {"query": "weather in Shanghai"})],
    ),
]
IDS = [f"{name}: {source}" for name, source, *_ in PUBLISHED]


def test_each_format_has_an_example() -> None:
    assert {name for name, *_ in PUBLISHED} == set(FORMATS)


@pytest.mark.parametrize(("name", "source", "tools", "text", "calls"), PUBLISHED, ids=IDS)
def test_examples(name: str, source: str, tools: list[Any], text: str, calls: list[ToolCall]) -> None:
    constraint = tool_call(name, tools)
    for vocabulary in (BYTES, chat_vocabulary(name)):
        assert accepts(constraint.compile(vocabulary), vocabulary, text, random.Random(0))
    assert [piece for piece in constraint.parse(text) if isinstance(piece, ToolCall)] == calls
    assert constraint.parse_partial(text) == constraint.parse(text)
    for end in range(len(text)):  # what is there of a call is there from its name on, and stays
        pieces = constraint.parse_partial(text[:end])
        begun = [piece for piece in pieces if isinstance(piece, ToolCall)]
        assert [call.name for call in begun] == [call.name for call in calls[: len(begun)]]


@pytest.mark.parametrize(("name", "source", "tools", "text", "calls"), PUBLISHED, ids=IDS)
def test_changed_examples(name: str, source: str, tools: list[Any], text: str, calls: list[ToolCall]) -> None:
    """No other tool is called, and what is still allowed of a text that differs in one character is read as valid."""
    constraint = tool_call(name, tools)
    grammar = constraint.compile(BYTES)
    before, after = text.rsplit(calls[-1].name, 1)
    wrong = f"{before}{calls[-1].name[:-1]}X{after}"
    matcher = grammar.matcher()
    assert not (matcher.accept_bytes(wrong.encode()) and matcher.is_accepting()), "an unknown tool"
    with pytest.raises(GenerationError):
        constraint.parse(wrong)
    rng = random.Random(1)
    refused = 0
    for _ in range(60):
        place = rng.randrange(len(text))
        changed = text[:place] + rng.choice(["", text[place] * 2, "x", "<", '"']) + text[place + 1 :]
        matcher = grammar.matcher()
        if matcher.accept_bytes(changed.encode()) and matcher.is_accepting():
            for call in constraint.parse(changed):
                if isinstance(call, ToolCall):
                    assert is_valid(call.arguments, next(t for t in tools if t["function"]["name"] == call.name))
        else:
            refused += 1
    assert refused > 5


def test_marks_with_a_suffix() -> None:
    """They are written, read and masked with it, and a format that has none takes none."""
    text = "<tool_calls><tool_call>search<arg_key>q</arg_key><arg_value>x</arg_value></tool_call></tool_calls>"
    suffixed = text.replace(">", ":a1>").replace("search:a1", "search").replace("q:a1", "q")
    constraint = tool_call("hy_v4:a1", [function("search", q=TEXT)], tool_choice="required")
    assert constraint.render([ToolCall("search", {"q": "x"})]) == suffixed
    assert constraint.parse(suffixed) == [ToolCall("search", {"q": "x"})]
    grammar = constraint.compile(BYTES)
    assert accepts(grammar, BYTES, suffixed, random.Random(0))
    matcher = grammar.matcher()
    assert not matcher.accept_bytes(text.encode())
    for name in ("hermes:a1", "hy_v4:", "hy_v4:a>"):
        with pytest.raises(OptionsError, match="no tool call format"):
            tool_call(name, [])
