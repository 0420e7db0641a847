"""OpenAI's client, and the model classes of agent frameworks, over a generator of this process.

Each is the framework's own class for OpenAI's API with a transport that stays in the process: structured output, tools
and streams are those of the server, in the framework's own words.
"""

from __future__ import annotations

import importlib
from typing import Any

from structgen.errors import ModelError
from structgen.server.in_process.server import InProcessServer
from structgen.server.in_process.transports import BASE_URL, async_http_client, http_client

_COMMON: dict[str, Any] = {"base_url": BASE_URL, "api_key": "in-process", "max_retries": 0}


def openai_client(generator: Any = None, **settings: Any) -> Any:
    """An ``openai.OpenAI`` over a generator; ``model="structgen"`` is its model.

    Args:
        generator, **settings: as `InProcessServer` takes them, or such a server.

    Raises:
        ModelError: a package is missing, or the model cannot be loaded.
    """
    openai = _package("openai", "openai")
    return openai.OpenAI(http_client=http_client(_server(generator, settings), _http_library(openai)), **_COMMON)


def async_openai_client(generator: Any = None, **settings: Any) -> Any:
    """An ``openai.AsyncOpenAI`` over a generator, see `openai_client`."""
    openai = _package("openai", "openai")
    client = async_http_client(_server(generator, settings), _http_library(openai))
    return openai.AsyncOpenAI(http_client=client, **_COMMON)


def pydantic_ai_model(generator: Any = None, **settings: Any) -> Any:
    """A model for pydantic-ai: ``Agent(pydantic_ai_model(generator), output_type=...)``.

    Arguments as `openai_client`.
    """
    models = _package("pydantic_ai.models.openai", "pydantic-ai-slim[openai]")
    providers = _package("pydantic_ai.providers.openai", "pydantic-ai-slim[openai]")
    server = _server(generator, settings)
    provider = providers.OpenAIProvider(openai_client=async_openai_client(server))
    return models.OpenAIChatModel(server.model_name, provider=provider)


def langchain_model(generator: Any = None, **settings: Any) -> Any:
    """A chat model for LangChain: ``langchain_model(generator).with_structured_output(...)``, ``bind_tools(...)``.

    Arguments as `openai_client`.
    """
    package = _package("langchain_openai", "langchain-openai")
    library = _http_library(_package("openai", "openai"))
    server = _server(generator, settings)
    return package.ChatOpenAI(
        model=server.model_name,
        http_client=http_client(server, library),
        http_async_client=async_http_client(server, library),
        **_COMMON,
    )


def smolagents_model(generator: Any = None, **settings: Any) -> Any:
    """A model for smolagents: ``CodeAgent(tools=[], model=smolagents_model(generator))``.

    Arguments as `openai_client`.
    """
    package = _package("smolagents", "smolagents[openai]")
    library = _http_library(_package("openai", "openai"))
    server = _server(generator, settings)
    return package.OpenAIModel(
        server.model_name,
        api_base=BASE_URL,
        api_key=_COMMON["api_key"],
        client_kwargs={"http_client": http_client(server, library), "max_retries": 0},
    )


def _server(generator: Any, settings: dict[str, Any]) -> InProcessServer:
    if isinstance(generator, InProcessServer):
        if settings:
            raise ModelError(f"Settings belong to the InProcessServer, which is made already: {', '.join(settings)}.")
        return generator
    return InProcessServer(generator, **settings)


def _http_library(openai: Any) -> Any:
    """The library of HTTP clients that OpenAI's is made of: httpx up to 2, httpx2 from 3 on."""
    for base in openai.DefaultHttpxClient.__mro__:
        name = base.__module__.partition(".")[0]
        if name.startswith("httpx"):
            return importlib.import_module(name)
    raise ModelError(f"openai {openai.__version__} is made of an HTTP library that structgen does not know.")


def _package(module: str, distribution: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ModelError(f"{module} needs {error.name}: pip install '{distribution}'") from error
