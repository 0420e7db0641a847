"""What chat templates write for past calls is what the grammar allows and the parser reads.

The fragments do with ``tool_calls`` what the published templates do, in few lines of our own.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from structgen.core.constraints.tools import tool_call
from structgen.core.tool_calls.calls import ToolCall
from structgen.core.tool_calls.formats import FORMATS
from tests.core.tool_calls.vocabularies import BYTES, accepts, chat_vocabulary

jinja2 = pytest.importorskip("jinja2")

EACH = "{% for call in calls %}{% set f = call.function %}"
JSON_CALL = '{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}'
VALUE = "{{ v if v is string else v | tojson }}"
TEMPLATES = {
    "hermes": EACH + "{% if not loop.first %}\n{% endif %}<tool_call>\n" + JSON_CALL + "\n</tool_call>{% endfor %}",
    "llama3": EACH + '{"name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}}'
    "{% if not loop.last %}; {% endif %}{% endfor %}",
    "qwen3_coder": EACH
    + "\n<tool_call>\n<function={{ f.name }}>\n{% for k, v in f.arguments | items %}<parameter={{ k }}>\n"
    + VALUE
    + "\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}",
    "mimo": EACH
    + "<tool_call><function={{ f.name }}>{% for k, v in f.arguments | items %}<parameter={{ k }}>"
    + VALUE
    + "</parameter>{% endfor %}</function></tool_call>{% endfor %}",
    "seed_oss": EACH
    + "\n<seed:tool_call>\n<function={{ f.name }}>\n{% for k, v in f.arguments | items %}<parameter={{ k }}>"
    + VALUE
    + "</parameter>\n{% endfor %}</function>\n</seed:tool_call>{% endfor %}",
    "minimax_m2": "\n<minimax:tool_call>\n"
    + EACH
    + '<invoke name="{{ f.name }}">\n{% for k, v in f.arguments | items %}'
    '<parameter name="{{ k }}">' + VALUE + "</parameter>\n{% endfor %}</invoke>\n{% endfor %}</minimax:tool_call>",
    "minimax_m1": "<tool_calls>\n" + EACH + JSON_CALL + "\n{% endfor %}</tool_calls>",
    "smollm2": "<tool_call>[" + EACH + JSON_CALL + "{% if not loop.last %}, {% endif %}{% endfor %}]</tool_call>",
    "hunyuan_a13b": "<tool_calls>["
    + EACH
    + JSON_CALL
    + "{% if not loop.last %}, {% endif %}{% endfor %}]</tool_calls>",
    "nemotron": "<TOOLCALL>[" + EACH + JSON_CALL + "{% if not loop.last %}, {% endif %}{% endfor %}]</TOOLCALL>",
    "granite3": "<|tool_call|>[" + EACH + JSON_CALL + "{% if not loop.last %}, {% endif %}{% endfor %}]",
    "granite_20b_fc": EACH + "<function_call> {{ {'name': f.name, 'arguments': f.arguments} | tojson }}{% endfor %}",
    "phi4_mini": "functools[" + EACH + JSON_CALL + "{% if not loop.last %}, {% endif %}{% endfor %}]",
    "apertus": "<|tools_prefix|>[" + EACH + '{"{{ f.name }}": {{ f.arguments | tojson }}}'
    "{% if not loop.last %}, {% endif %}{% endfor %}]<|tools_suffix|>",
    "mistral": "[TOOL_CALLS] [" + EACH + '{{ (f | tojson)[:-1] }}, "id": "{{ call.id }}"}'
    "{% if not loop.last %}, {% endif %}{% endfor %}]",
    "mistral_v11": EACH + "[TOOL_CALLS]{{ f.name }}[CALL_ID]{{ call.id }}[ARGS]{{ f.arguments | tojson }}{% endfor %}",
    "intern_s1": EACH
    + '<|action_start|> <|plugin|>\n{"name": "{{ f.name }}", "parameters": {{ f.arguments | tojson }}}'
    "<|action_end|>{% endfor %}",
    "internlm2": EACH + '<|action_start|><|plugin|>\n{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}'
    "<|action_end|>{% endfor %}",
    "deepseek_v3": "<｜tool▁calls▁begin｜>"
    + EACH
    + "{% if not loop.first %}\n{% endif %}<｜tool▁call▁begin｜>{{ call.type }}"
    "<｜tool▁sep｜>{{ f.name }}\n```json\n{{ f.arguments | tojson }}\n```<｜tool▁call▁end｜>{% endfor %}"
    "<｜tool▁calls▁end｜>",
    "deepseek_v3_1": "<｜tool▁calls▁begin｜>"
    + EACH
    + "<｜tool▁call▁begin｜>{{ f.name }}<｜tool▁sep｜>{{ f.arguments | tojson }}"
    "<｜tool▁call▁end｜>{% endfor %}<｜tool▁calls▁end｜>",
    "deepseek_v3_2": "\n\n<｜DSML｜function_calls>"
    + EACH
    + '\n<｜DSML｜invoke name="{{ f.name }}">\n{% for k, v in f.arguments'
    '| items %}{% if not loop.first %}\n{% endif %}<｜DSML｜parameter name="{{ k }}" '
    "string=\"{{ 'true' if v is string "
    "else 'false' }}\">"
    + VALUE
    + "</｜DSML｜parameter>{% endfor %}\n</｜DSML｜invoke>{% endfor %}\n</｜DSML｜function_calls>",
    "glm4_5": EACH
    + "\n<tool_call>{{ f.name }}\n{% for k, v in f.arguments | items %}<arg_key>{{ k }}</arg_key>\n<arg_value>"
    + VALUE
    + "</arg_value>\n{% endfor %}</tool_call>{% endfor %}",
    "glm4_7": EACH
    + "<tool_call>{{ f.name }}{% for k, v in f.arguments | items %}<arg_key>{{ k }}</arg_key><arg_value>"
    + VALUE
    + "</arg_value>{% endfor %}</tool_call>{% endfor %}",
    "kimi_k2": "<|tool_calls_section_begin|>" + EACH + "<|tool_call_begin|>{{ call.id }}<|tool_call_argument_begin|>"
    "{{ f.arguments | tojson }}<|tool_call_end|>{% endfor %}<|tool_calls_section_end|>",
    "cohere": "<|START_ACTION|>[\n" + EACH + '    {"tool_call_id": "{{ loop.index0 }}", "tool_name": "{{ f.name }}", '
    '"parameters": {{ f.arguments | tojson }}}{% if not loop.last %},{% endif %}\n{% endfor %}]<|END_ACTION|>',
    "harmony": EACH
    + "{% if not loop.first %}<|start|>assistant{% endif %} to=functions.{{ f.name }}<|channel|>commentary json"
    "<|message|>{{ f.arguments | tojson }}<|call|>{% endfor %}",
}
PYTHON = """{% macro py(v) %}{% if v is none %}None{% elif v is true %}True{% elif v is false %}False
{%- elif v is string %}{{ v | tojson }}{% elif v is mapping %}{ {%- for k, w in v | items %}{{ k | tojson
}}: {{ py(w) }}{% if not loop.last %}, {% endif %}{% endfor %}}{% elif v is iterable %}[{% for w in v %}{{ py(w) }}
{%- if not loop.last %}, {% endif %}{% endfor %}]{% else %}{{ v }}{% endif %}{% endmacro %}"""
PYTHON_CALL = (
    "{{ f.name }}({% for k, v in f.arguments | items %}{{ k }}={{ py(v) }}"
    "{% if not loop.last %}, {% endif %}{% endfor %})"
)
GEMMA = """{% macro gemma(v) %}{% if v is string %}MARK{{ v }}MARK{% elif v is mapping %}{ {%- for k, w in v | items %}
{{- k }}:{{ gemma(w) }}{% if not loop.last %},{% endif %}{% endfor %}}{% elif v is iterable %}[{% for w in v %}
{{- gemma(w) }}{% if not loop.last %},{% endif %}{% endfor %}]{% else %}{{ v | tojson }}{% endif %}{% endmacro %}"""
M3 = """{% macro m3(v) %}{% if v is mapping %}{% for k, w in v | items %}NS<{{ k }}>{{ m3(w) }}NS</{{ k }}>{% endfor %}
{%- elif v is string %}{{ v }}{% elif v is iterable %}{% for w in v %}NS<item>{{ m3(w) }}NS</item>{% endfor %}
{%- else %}{{ v | tojson }}{% endif %}{% endmacro %}"""
TEMPLATES |= {
    "pythonic": PYTHON + "[" + EACH + PYTHON_CALL + "{% if not loop.last %}, {% endif %}{% endfor %}]",
    "llama4": PYTHON
    + "<|python_start|>["
    + EACH
    + PYTHON_CALL
    + "{% if not loop.last %}, {% endif %}{% endfor %}]<|python_end|>",
    "lfm2": PYTHON
    + "<|tool_call_start|>["
    + EACH
    + PYTHON_CALL
    + "{% if not loop.last %}, {% endif %}{% endfor %}]<|tool_call_end|>",
    "olmo3": PYTHON.replace("None", "null").replace("True", "true").replace("False", "false")
    + "<function_calls>"
    + EACH
    + PYTHON_CALL
    + "{% if not loop.last %}\n{% endif %}{% endfor %}</function_calls>",
    "gemma4": GEMMA.replace("MARK", '<|"|>')
    + EACH
    + "<|tool_call>call:{{ f.name }}{{ gemma(f.arguments) }}<tool_call|>{% endfor %}",
    "functiongemma": GEMMA.replace("MARK", "<escape>")
    + EACH
    + "<start_function_call>call:{{ f.name }}{{ gemma(f.arguments) }}<end_function_call>{% endfor %}",
    "minimax_m3": (
        M3
        + "NS<tool_call>\n"
        + EACH
        + 'NS<invoke name="{{ f.name }}">{{ m3(f.arguments) }}NS</invoke>\n{% endfor %}NS</tool_call>'
    ).replace("NS", "]<]minimax[>["),
}
COFL = """{% macro cofl(v, name) %}<cofl:value{{ name }}{% if v is mapping %} type="dict">{% for k, w in v | items %}
{{- cofl(w, ' name="' ~ k ~ '"') }}{% endfor %}{% elif v is string %} type="raw">{{ v }}
{%- elif v is iterable %} type="list">{% for w in v %}{{ cofl(w, '') }}{% endfor %}
{%- else %} type="json">{{ v | tojson }}{% endif %}</cofl:value>{% endmacro %}"""
TEMPLATES["command_a_plus"] = (
    COFL
    + "<cofl:tool_calls>\n"
    + EACH
    + '<cofl:tool_call id="{{ loop.index0 }}" name="{{ f.name }}">\n{% for k, v in f.arguments | items %}'
    "{{ cofl(v, ' name=\"' ~ k ~ '\"') }}{% endfor %}</cofl:tool_call>\n{% endfor %}</cofl:tool_calls>"
)
DSML = TEMPLATES["deepseek_v3_2"]
HY = "{% for k, v in f.arguments | items %}<arg_key>{{ k }}</arg_key><arg_value>" + VALUE + "</arg_value>{% endfor %}"
TEMPLATES |= {
    "deepseek_v4": DSML.replace("function_calls", "tool_calls"),
    "deepseek_v4_1": DSML.replace("function_calls", " calls")
    .replace("｜parameter", "｜ parameter")
    .replace("｜invoke", "｜ invoke"),
    "exaone4": EACH + "{% if not loop.first %}\n{% endif %}<tool_call>" + JSON_CALL + "</tool_call>{% endfor %}",
    "ernie4_5": EACH + "\n<tool_call>\n" + JSON_CALL + "\n</tool_call>\n{% endfor %}",
    "longcat": EACH
    + "{% if not loop.first %}\n{% endif %}<longcat_tool_call>\n"
    + JSON_CALL
    + "\n</longcat_tool_call>{% endfor %}",
    "jamba": "<tool_calls>[\n" + EACH + JSON_CALL + "{% if not loop.last %},{% endif %}\n{% endfor %}]</tool_calls>",
    "xlam": "[" + EACH + JSON_CALL + "{% if not loop.last %}, {% endif %}{% endfor %}]",
    "granite3_1": "<tool_call> [" + EACH + JSON_CALL + "{% if not loop.last %}, {% endif %}{% endfor %}]",
    "plamo3": "<|plamo:begin_tool_requests:plamo|>"
    + EACH
    + "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>{{ f.name }}<|plamo:end_tool_name:plamo|>"
    "<|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>{{ f.arguments | tojson }}"
    "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>{% endfor %}"
    "<|plamo:end_tool_requests:plamo|>",
    "step3": "<｜tool_calls_begin｜>"
    + EACH
    + "{% if not loop.first %}\n{% endif %}<｜tool_call_begin｜>function<｜tool_sep｜>"
    '<steptml:invoke name="{{ f.name }}">{% for k, v in f.arguments | items %}<steptml:parameter name="{{ k }}">'
    + VALUE
    + "</steptml:parameter>{% endfor %}</steptml:invoke><｜tool_call_end｜>{% endfor %}<｜tool_calls_end｜>",
    "hy_v3": "<tool_calls>\n"
    + EACH
    + "<tool_call>{{ f.name }}<tool_sep>\n"
    + HY
    + "</tool_call>\n{% endfor %}</tool_calls>",
    "gigachat3_0": EACH + "<|message_sep|>\n\nfunction call<|role_sep|>\n" + JSON_CALL + "{% endfor %}",
    "gigachat3": EACH + "<|function_call|>" + JSON_CALL + "{% endfor %}",
    "gigachat3_5": DSML.replace("function_calls", "tool_calls").replace("DSML", "GCML"),
    "iquest_q1": EACH + "<iquest_tool_call>{{ f.name }}" + HY + "</iquest_tool_call>{% endfor %}",
    "dots": TEMPLATES["minimax_m2"].replace("minimax:tool_call", "dots_function_call"),
    "k2_horizon": "<ifm|tool_calls>\n"
    + EACH
    + "<ifm|tool_call>{{ f.name }}\n"
    + HY.replace("arg_", "ifm|arg_")
    + "</ifm|tool_call>\n{% endfor %}</ifm|tool_calls>",
    "kimi_k3": "<|close|>response<|sep|><|open|>tools<|sep|>"
    + EACH
    + '<|open|>call tool="{{ f.name }}" index="{{ loop.index }}"<|sep|>{% for k, v in f.arguments | items %}<|open|>'
    'argument key="{{ k }}" type="{{ KIND }}"<|sep|>'.replace(
        "{{ KIND }}",
        "{% if v is none %}null{% elif v is boolean %}boolean{% elif v is string %}string{% elif v is number %}number"
        "{% elif v is mapping %}object{% else %}array{% endif %}",
    )
    + VALUE
    + "<|close|>argument<|sep|>{% endfor %}<|close|>call<|sep|>{% endfor %}<|close|>tools<|sep|>",
    "hy_v4": "<tool_calls>" + EACH + "<tool_call>{{ f.name }}" + HY + "</tool_call>{% endfor %}</tool_calls>",
}
TEMPLATES["step3_plain"] = TEMPLATES["step3"]
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {"type": "string"},
                    "limit": {"type": "integer"},
                    "exact": {"type": "boolean"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "filter": {"type": "object", "properties": {"year": {"type": "number"}}},
                    "after": {"type": ["string", "null"]},
                },
                "required": ["query"],
            },
        },
    },
    {"type": "function", "function": {"name": "now"}},
]


def random_calls(rng: random.Random, name: str) -> list[dict[str, Any]]:
    """Calls as OpenAI's API has them, with ids as the format asks for."""
    values: dict[str, Any] = {
        "query": rng.choice(["cats & dogs", 'say "hi"\n<b>', "ünï <|x|> 🙂", "12", ""]),
        "limit": rng.randint(-3, 50),
        "exact": rng.random() < 0.5,
        "tags": rng.sample(["a", "</parameter>", "b c"], 2),
        "filter": {"year": 1999.5},
        "after": rng.choice([None, "2024-01-01", "nil"]),
    }
    if name == "step3_plain":
        values = json.loads(json.dumps(values).replace("<", "("))
    calls = []
    for number in range(rng.randint(1, 3)):
        arguments = {key: value for key, value in values.items() if key == "query" or rng.random() < 0.6}
        function = (
            {"name": "search", "arguments": arguments} if rng.random() < 0.8 else {"name": "now", "arguments": {}}
        )
        id_ = f"functions.{function['name']}:{number}" if name == "kimi_k2" else f"Call{number:05}"
        calls.append({"id": id_, "type": "function", "function": function})
    return calls


def test_each_format_has_a_template() -> None:
    assert set(TEMPLATES) == set(FORMATS) and len(TEMPLATES) >= 14


@pytest.mark.first_case
@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_round_trip(name: str) -> None:
    environment = jinja2.Environment(autoescape=False)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)  # as transformers has it
    template = environment.from_string(TEMPLATES[name])
    constraint = tool_call(name, TOOLS)
    vocabularies = [BYTES, chat_vocabulary(name)]
    for seed in range(8):
        rng = random.Random(seed)
        calls = random_calls(rng, name)
        text = template.render(calls=calls)
        vocabulary = vocabularies[seed % 2]
        assert accepts(constraint.compile(vocabulary), vocabulary, text, rng), text
        pieces = constraint.parse(text)
        expected = [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
        assert [(p.name, p.arguments) if isinstance(p, ToolCall) else p for p in pieces] == expected
        if name in ("mistral", "mistral_v11", "kimi_k2"):
            assert [p.id for p in pieces if isinstance(p, ToolCall)] == [call["id"] for call in calls]
