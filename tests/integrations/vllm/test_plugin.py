"""How the plugin comes in: found by vLLM, idempotent, for vLLM's interface only; what it refuses, and how."""

from __future__ import annotations

from typing import Any

import pytest

vllm = pytest.importorskip("vllm", reason="vLLM is not here; `make test-engines` fetches it")

import msgspec
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1 import structured_output
from vllm.v1.structured_output import backend_types
from vllm.v1.structured_output.backend_types import StructuredOutputBackend, StructuredOutputGrammar

from structgen.errors import IntegrationError, OptionsError
from structgen.integrations.vllm import backend, plugin
from tests.integrations.engine_world import tokenizer
from tests.integrations.vllm.world import Engine


@pytest.mark.usefixtures("registered")
def test_vllm_loads_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = SamplingParams._validate_structured_outputs, structured_output.StructuredOutputManager.grammar_init
    plugin.register()
    again = SamplingParams._validate_structured_outputs, structured_output.StructuredOutputManager.grammar_init
    assert first == again and all(hasattr(method, "structgen_original") for method in first)
    engine = Engine(monkeypatch)
    request = engine.ask("regex", "[ab]+")
    assert isinstance(engine.manager.backend, backend.VllmBackend)
    assert engine.manager.backend_name == "structgen"
    assert isinstance(engine.grammar(request), backend.VllmGrammar)


def test_without_the_switch_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "0", "yes"):
        monkeypatch.setenv("STRUCTGEN_VLLM", value)
        plugin.register()
        assert not hasattr(SamplingParams._validate_structured_outputs, "structgen_original")


def test_signatures_are_vllms() -> None:
    """By inspect, of every method that vLLM declares."""
    import inspect

    for ours, theirs in (
        (backend.VllmBackend, StructuredOutputBackend),
        (backend.VllmGrammar, StructuredOutputGrammar),
    ):
        assert issubclass(ours, theirs) and not getattr(ours, "__abstractmethods__", ())
        for name in theirs.__abstractmethods__:
            wanted, own = inspect.signature(getattr(theirs, name)), inspect.signature(getattr(ours, name))
            assert list(own.parameters) == list(wanted.parameters), name
            for parameter in wanted.parameters.values():
                assert own.parameters[parameter.name].default == parameter.default
    assert backend.check_interface() == ""
    assert {option.name.lower() for option in backend_types.StructuredOutputOptions} == set(plugin.KINDS)


def test_another_interface_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRUCTGEN_VLLM", "1")
    with monkeypatch.context() as patch:
        patch.setattr(SamplingParams, "_validate_structured_outputs", lambda self, other: None)
        with pytest.raises(IntegrationError, match=r"made for vLLM 0\.33; vLLM 0\.33\.0 has another interface .*other"):
            plugin.register()
    with monkeypatch.context() as patch:
        patch.delattr(structured_output.StructuredOutputManager, "grammar_init")
        with pytest.raises(IntegrationError, match="grammar_init takes None"):
            plugin.register()

    def fill_bitmask(self: Any, mask: Any) -> None: ...

    with monkeypatch.context() as patch:
        patch.setattr(StructuredOutputGrammar, "fill_bitmask", fill_bitmask)
        assert "fill_bitmask takes" in backend.check_interface()
    assert not hasattr(SamplingParams._validate_structured_outputs, "structgen_original")


REFUSED = [
    ("json", {"type": "object", "properties": {"a/b": {"type": "intger"}}}, "/properties/a~1b/type"),
    ("json", {"$ref": "#/$defs/none"}, "/$ref|\\$ref"),
    ("json", {"type": "integer", "minimum": 3, "maximum": 2}, "no JSON value|No value|satisf"),
    ("json", "{'a': 1}", "no JSON"),
    ("json", "/etc/passwd", "a schema is an object"),
    ("regex", "(ab", "offset"),
    ("regex", "a(?=b)c", "no text|empty|match"),
    ("choice", [], "at least one"),
    ("grammar", "  ", "rule|grammar|empty"),
    ("grammar", 'root ::= "a" missing', "missing"),
    ("grammar", 'start: "a" missing', "missing"),
    ("structural_tag", "[]", "structural_tag"),
    ("structural_tag", '{"type": "structural_tag", "structures": [], "triggers": []}', "structures"),
    ("json_object", False, "must be True"),
]


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("kind, value, message", REFUSED, ids=str)
def test_what_is_wrong_is_told_before_the_engine_sees_it(
    kind: str, value: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(monkeypatch)
    params = SamplingParams(structured_outputs=StructuredOutputsParams(**{kind: value}))
    with pytest.raises(VLLMValidationError, match=message) as caught:
        params._validate_structured_outputs(
            engine.config.model_config, engine.config.structured_outputs_config, tokenizer()
        )
    assert caught.value.parameter is not None and caught.value.parameter.startswith("structured_outputs")


@pytest.mark.usefixtures("registered")
def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """JSON's spelling is for all requests, by the environment; requests that ask for another are refused by name."""
    engine = Engine(monkeypatch)
    schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}
    loose = tokenizer().encode('{"a": 1, "b": 2}')
    assert engine.grammar(engine.ask("json", schema)).accept_tokens("r", loose)
    with pytest.raises(VLLMValidationError, match="STRUCTGEN_VLLM_JSON") as caught:
        engine.ask("json", schema, disable_any_whitespace=True)
    assert caught.value.parameter == "structured_outputs.disable_any_whitespace"
    with pytest.raises(VLLMValidationError, match="whitespace_pattern"):
        engine.ask("json", schema, whitespace_pattern=" ?")
    monkeypatch.setenv("STRUCTGEN_VLLM_JSON", '{"whitespace": "compact", "additional_members": "closed"}')
    tight = engine.grammar(engine.ask("json", schema, disable_any_whitespace=True, disable_additional_properties=True))
    assert not tight.accept_tokens("r", loose)
    assert tight.accept_tokens("r", tokenizer().encode('{"a":1}'))
    for wrong in ("{", '{"whitespce": 1}', "[]"):
        monkeypatch.setenv("STRUCTGEN_VLLM_JSON", wrong)
        with pytest.raises(OptionsError):
            plugin.register()


@pytest.mark.usefixtures("registered")
def test_another_backend_named_by_the_operator_is_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine(monkeypatch, backend="xgrammar")
    request = engine.ask("regex", "[ab]+")
    assert request.sampling_params is not None and request.sampling_params.structured_outputs is not None
    assert request.sampling_params.structured_outputs._backend == "xgrammar"
    assert type(engine.manager.backend).__name__ == "XgrammarBackend"
    assert "'xgrammar'; that is what is used" in caplog.text


@pytest.mark.usefixtures("registered")
def test_requests_without_constraints_and_without_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(monkeypatch)
    config = engine.config
    SamplingParams()._validate_structured_outputs(config.model_config, config.structured_outputs_config, tokenizer())
    params = SamplingParams(structured_outputs=StructuredOutputsParams(regex="a"))
    with pytest.raises(VLLMValidationError, match="requires a tokenizer"):
        params._validate_structured_outputs(config.model_config, config.structured_outputs_config, None)


@pytest.mark.usefixtures("registered")
def test_the_choice_of_backend_travels_to_the_engine_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests go there through msgspec; parameters may be used again."""
    engine = Engine(monkeypatch)
    params = SamplingParams(structured_outputs=StructuredOutputsParams(choice=["a", "b"]))
    for _ in range(2):
        params._validate_structured_outputs(
            engine.config.model_config, engine.config.structured_outputs_config, tokenizer()
        )
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(params), type=SamplingParams)
    assert sent.structured_outputs is not None and sent.structured_outputs._backend == "structgen"


@pytest.mark.usefixtures("registered")
def test_a_tokenizer_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(monkeypatch)

    class Odd:
        eos_token_id = 0

    params = SamplingParams(structured_outputs=StructuredOutputsParams(regex="a"))
    with pytest.raises(VLLMValidationError, match=r"Odd|tokenizer"):
        params._validate_structured_outputs(
            engine.config.model_config,
            engine.config.structured_outputs_config,
            Odd(),
        )
