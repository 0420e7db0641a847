"""What is said of names and values of other libraries leads to what does the same here, and never away from it."""

from __future__ import annotations

import importlib.util
from typing import Any

import jsonschema
import pytest

from structgen import Generator, OptionsError
from structgen.errors import GenerationError, GrammarError, ModelError
from structgen.generation.decoding.prompts import as_messages, prompt_token_ids
from structgen.generation.loading import choose_backend
from structgen.generation.models.tiny import TinyModel
from structgen.generation.options import OPTION_NAMES
from structgen.options import near_name
from tests.server.tiny import VOCABULARY, ByteTokenizer, generator


def said(call: Any, kind: type[Exception] = OptionsError) -> str:
    with pytest.raises(kind) as found:
        call()
    return str(found.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("response_model", "second argument"), ("response_format", "second argument"), ("grammar", "second argument"),
        ("max_tokens", "max_new_tokens"), ("temprature", "temperature"), ("maxNewTokens", "max_new_tokens"),
        ("num_return_sequences", "batch"), ("zzz", "there are temperature"), ("penalty_alpha", "there are temperature"),
    ],
)  # fmt: skip
def test_options_of_a_call(name: str, hint: str) -> None:
    options: dict[str, Any] = {name: 1}
    message = said(lambda: generator().generate("Hi", **options))
    assert hint in message and "presence_penalty'?" not in message


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("max_model_len", "use n_ctx"), ("n_threads", "threads=..."), ("torch_dtype", "use dtype"),
        ("ngl", "use n_gpu_layers"), ("lora", "use lora_path"), ("chat_format", "use chat_template"),
        ("temperature", "an option of generate"), ("determinstic", "'deterministic'"),
        ("zzz", "there are model"),
    ],
)  # fmt: skip
def test_options_of_a_generator(name: str, hint: str) -> None:
    options: dict[str, Any] = {name: 1}
    assert hint in said(lambda: Generator(**options))


def test_near_names_are_near() -> None:
    known = [*OPTION_NAMES, "max_rows"]
    assert near_name("max_row", known) == "max_rows" and near_name("top-p", known) == "top_p"
    for far in ("response_model", "guided_json", "json", "beam", "x"):
        assert near_name(far, known) is None


def test_content_in_parts() -> None:
    parts = [{"type": "text", "text": "Who is"}, {"type": "text", "text": "Ada?"}]
    assert as_messages([{"role": "user", "content": parts}]) == [{"role": "user", "content": "Who is\nAda?"}]
    tokenizer = ByteTokenizer()
    assert prompt_token_ids(tokenizer, [{"role": "user", "content": parts}], "JSON") == prompt_token_ids(
        tokenizer, [{"role": "user", "content": "Who is\nAda?"}], "JSON"
    )
    for part in (
        {"type": "image_url", "image_url": {"url": "x"}},
        "text",
        {"type": "text"},
        {"type": "text", "text": 1},
    ):
        with pytest.raises(GenerationError, match="images and other parts are not read"):
            as_messages([{"role": "user", "content": [part]}])
    assert said(
        lambda: as_messages([{"role": "user", "content": [{"type": "text", "text": "\ud800"}]}]), GenerationError
    )


def test_a_gguf_file_on_an_accelerator_without_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    message = said(lambda: choose_backend("model.gguf", device="cuda"), ModelError)
    assert "device='cuda'" in message and "leave device='cuda' out" in message and "torch is not installed" in message
    assert choose_backend("model.gguf", device="cpu") == "llamacpp" or find("cyllama") is None


def test_fields_of_llama_cpp() -> None:
    """They are taken: what is written is of the grammar, and of the schema."""
    from structgen.server.chat import chat_work
    from structgen.server.completions import completion_work
    from structgen.server.errors import RequestError
    from structgen.server.openai_types import ChatRequest, CompletionRequest
    from structgen.server.reading import read_request
    from structgen.server.settings import ServingSettings

    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    hi = {"messages": [{"role": "user", "content": "Hi"}]}

    def matcher(work: Any) -> Any:
        return work.constraint.constraint.compile(VOCABULARY).matcher()

    def chat(**fields: Any) -> Any:
        return chat_work(read_request(ChatRequest, {**hi, **fields}), ByteTokenizer(), VOCABULARY, ServingSettings())

    made = [chat(grammar='root ::= "yes" | "no"')]
    completion = read_request(CompletionRequest, {"prompt": "Hi", "grammar": 'root ::= "yes" | "no"'})
    made.append(completion_work(completion, ByteTokenizer(), VOCABULARY, ServingSettings()))
    for work in made:
        assert matcher(work).accept_bytes(b"yes") and not matcher(work).accept_bytes(b"maybe")
    found = matcher(chat(response_format={"type": "json_object", "schema": schema}))
    assert found.accept_bytes(b'{"a": 1}') and not found.copy().accept_bytes(b"1")
    jsonschema.validate({"a": 1}, schema)
    assert not matcher(chat(response_format={"type": "json_object", "schema": schema})).accept_bytes(b'{"a": "')
    assert "is not defined" in said(lambda: matcher(chat(grammar="root ::= undefined_rule")), GrammarError)
    both = {"grammar": 'root ::= "a"', "structured_outputs": {"regex": "a"}}
    assert "exclude each other" in said(lambda: chat(**both), RequestError)
    for field, hint in (
        ({"response_model": 1}, "use response_format"), ({"schema": schema}, "use response_format"),
        ({"response_format": {"type": "json_schema", "schema": schema}}, "response_format.json_schema"),
        ({"response_format": {"type": "json_object", "grammar": "x"}}, "structured_outputs.grammar"),
    ):  # fmt: skip
        assert hint in said(lambda fields=field: chat(**fields), RequestError)


def test_a_subclass_has_options_of_its_own() -> None:
    class Mine(Generator):
        def __init__(self, model: Any, tokenizer: Any, colour: str) -> None:
            super().__init__(model, tokenizer, vocabulary=VOCABULARY)
            self.colour = colour

    assert Mine(TinyModel(VOCABULARY.size), ByteTokenizer(), colour="red").colour == "red"
