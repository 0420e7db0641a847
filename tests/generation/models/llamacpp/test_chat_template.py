"""Chat templates: rendered as transformers renders them."""

from __future__ import annotations

from typing import Any

import pytest

from structgen.errors import GenerationError, TokenizerError
from structgen.generation.decoding.prompts import prompt_token_ids
from structgen.generation.models.llamacpp.chat_template import ChatTemplate
from tests.generation.models.llamacpp.conftest import Loaded

MESSAGES = [
    {"role": "system", "content": "Be <brief> & 'exact'."},
    {"role": "user", "content": "Grüße, 日本 <b>"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Go on."},
]
TOOLS = [{"type": "function", "function": {"name": "f", "description": "é <x>", "parameters": {"type": "object"}}}]
CHATML = "{% for m in messages %}{{ '<s>' + m['role'] }}\n{{ m.content }}{% endfor %}"
TEMPLATES = [
    CHATML + "{% if add_generation_prompt %}{{ '<s>assistant' }}{% endif %}",
    "{% for m in messages %}\n  {%- if m.role == 'user' %}{% continue %}{% endif %}\n {{ m.content }}\n{% endfor %}",
    "{% for m in messages %}{{ loop.index }}{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}",
    "{{ bos_token }}{% if tools %}{{ tools | tojson }}{{ tools | tojson(indent=2) }}{% endif %}{{ eos_token }}",
    "{% if tools is not none %}{{ tools[0].function.name }}{% else %}none{% endif %}{{ documents is none }}",
    "{% for m in messages %}{% generation %}{{ m.content | trim }}{% endgeneration %}{% endfor %}",
    "{{ strftime_now('%Y') }}{% set ns = namespace(n=0) %}{% for m in [1] %}{% set ns.n = 1 %}{% endfor %}{{ ns.n }}",
    "   {% set x = 1 %}\n   {{ messages[-1].content[::-1] }}{{ extra }}\n",
    "{{ messages[0].content | tojson }}{{ messages | length }}{{ 'a' in 'b' }}{{ messages[1]['content'].split()[0] }}",
]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("tools", [None, TOOLS])
@pytest.mark.parametrize("add", [False, True])
def test_texts_are_those_of_transformers(template: str, tools: Any, add: bool) -> None:
    pytest.importorskip("transformers", reason="it is the oracle")
    from transformers.utils.chat_template_utils import render_jinja_template

    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    options: dict[str, Any] = {**tokens, "extra": "!", "add_generation_prompt": add}
    expected: Any = render_jinja_template(conversations=[MESSAGES], tools=tools, chat_template=template, **options)
    own = ChatTemplate(template, tokens).render(MESSAGES, tools=tools, add_generation_prompt=add, extra="!")
    assert own == (expected[0][0] if isinstance(expected, tuple) else expected[0])


def test_the_built_in_models_prompts_are_those_of_transformers(built_in: Loaded) -> None:
    for package in ("transformers", "gguf", "accelerate", "torch"):
        pytest.importorskip(package, reason="transformers is the oracle")
    from structgen.generation.loading import load_tokenizer

    other = load_tokenizer(backend="transformers")
    for prompt in ("Name three colours.", MESSAGES[:2], MESSAGES[1:]):
        assert prompt_token_ids(built_in[1], prompt, "As JSON.") == prompt_token_ids(other, prompt, "As JSON.")
    ids = built_in[1].apply_chat_template(MESSAGES, add_generation_prompt=True)
    assert ids == other.apply_chat_template(MESSAGES, add_generation_prompt=True, return_dict=False)


def test_what_a_template_refuses_is_said(tiny: Loaded) -> None:
    template = ChatTemplate("{{ raise_exception('roles must alternate') }}", {})
    with pytest.raises(Exception, match="roles must alternate"):
        template.render(MESSAGES)
    with pytest.raises(Exception, match=r"unsafe|access"):
        ChatTemplate("{{ messages.__class__.__mro__ }}", {}).render(MESSAGES)
    with pytest.raises(TokenizerError, match=r"chat template cannot be read \(line 2\)"):
        ChatTemplate("\n{% for %}", {})
    with pytest.raises(TokenizerError, match="has no chat template"):
        tiny[1].apply_chat_template(MESSAGES)
    with pytest.raises(GenerationError, match="no chat template; give the prompt as one string"):
        prompt_token_ids(tiny[1], MESSAGES)
