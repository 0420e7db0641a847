"""How the plugin comes in: found by vLLM, idempotent, for vLLM's interface only; what it refuses, and how."""

from __future__ import annotations

import json
import os
import pkgutil
import subprocess
import sys
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
from structgen.integrations.engine_hooks import parameters_of
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
    assert plugin.class_misfit() == ""
    for kind, methods in ((backend.VllmGrammar, plugin.GRAMMAR_METHODS), (backend.VllmBackend, plugin.BACKEND_METHODS)):
        assert methods.keys() == kind.__mro__[1].__abstractmethods__
        assert all(parameters_of(getattr(kind, name)) == parameters for name, parameters in methods.items())
    assert not [differs for _, _, differs, _ in plugin.fits() if differs]
    assert {option.name.lower() for option in backend_types.StructuredOutputOptions} == set(plugin.KINDS)


def test_another_interface_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRUCTGEN_VLLM", "1")
    with monkeypatch.context() as patch:
        patch.setattr(SamplingParams, "_validate_structured_outputs", lambda self, other: None)
        with pytest.raises(IntegrationError, match=r"made for vLLM 0\.33; vLLM 0\.33\.0 has another interface .*other"):
            plugin.register()
    with monkeypatch.context() as patch:
        patch.delattr(structured_output.StructuredOutputManager, "grammar_init")
        with pytest.raises(IntegrationError, match="grammar_init is not there"):
            plugin.register()

    def fill_bitmask(self: Any, mask: Any) -> None: ...

    with monkeypatch.context() as patch:
        patch.setattr(StructuredOutputGrammar, "fill_bitmask", fill_bitmask)
        assert "fill_bitmask takes" in plugin.class_misfit()
    assert not hasattr(SamplingParams._validate_structured_outputs, "structgen_original")


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("number", range(len(plugin.EXTRAS)))
def test_each_extra_may_be_absent_alone(
    number: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A method that takes something else is left as it is, named in one line; the others are wrapped."""
    missing = plugin.EXTRAS[number]
    owner = pkgutil.resolve_name(missing.owner)
    original = getattr(owner, missing.method)

    def other(self: Any, *args: Any, **more: Any) -> Any:
        return original(self, *args, **more)

    monkeypatch.setattr(owner, missing.method, other)
    engine = Engine(monkeypatch)
    engine.ask("regex", "[ab]+")
    lines = [record.getMessage() for record in caplog.records if record.name == "structgen.vllm"]
    assert len(lines) == 1 and lines[0].startswith(f"structgen goes without {missing.gives}: {missing.name} takes")
    for hook in plugin.EXTRAS:
        method = pkgutil.resolve_name(hook.target)
        assert hasattr(method, "structgen_original") == (hook is not missing)
    assert engine.masks({}).shape == (1, 10)


IMPORTS = """
import gc, json, sys, time
import vllm.v1.structured_output, vllm.v1.core.sched.scheduler, vllm.v1.worker.worker_base
before = set(sys.modules)
gc.collect(); gc.disable()
start = time.process_time()
from structgen.integrations.vllm.plugin import register
register()
from structgen.integrations.vllm.drafts import Nothing
print(json.dumps([time.process_time() - start, sorted(set(sys.modules) - before)]))
"""


def test_a_worker_imports_no_engine() -> None:
    """The plugin looks at names: 0.05 s (of the processor), neither numba nor llvmlite nor kernels."""
    environment = {**os.environ, "STRUCTGEN_VLLM": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    runs = []
    for _ in range(2):  # the first compiles
        done = subprocess.run(
            [sys.executable, "-c", IMPORTS], env=environment, capture_output=True, text=True, check=True
        )
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    seconds, modules = runs[1]
    assert seconds <= 0.05
    assert all(name.partition(".")[0] not in ("numba", "llvmlite") for name in modules)
    assert all(not name.startswith(("structgen.core", "structgen.generation")) for name in modules), modules


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
