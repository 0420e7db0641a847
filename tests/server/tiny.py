"""A tokenizer, a model and events of a few lines, for tests of the server without weights and without HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.stats import GenerationStats
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.server.sequences import SequenceEnd, SequenceEvent, TokenChoice

EOS = 256
VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=EOS)


class ByteTokenizer:
    """A token a byte. The chat template is code below; its text only says what it takes."""

    eos_token_id = EOS

    def __init__(self, chat_template: str | None = "{{ messages }}") -> None:
        self.chat_template = chat_template
        self.fields: dict[str, Any] = {}

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return list(text.encode())

    def apply_chat_template(
        self, messages: list[dict[str, Any]], tokenize: bool = True, add_generation_prompt: bool = False, **fields: Any
    ) -> str:
        self.fields = {"messages": messages, **fields}
        if any(message["content"] == "refuse me" for message in messages):
            raise ValueError("no such message")
        lines = [f"<{message['role']}>{message['content']}\n" for message in messages]
        return "".join(lines) + "<assistant>" + fields.get("ending", "")


class SlowModel(TinyModel):
    """A tiny model whose every forward takes some time, waits until it may, or fails."""

    seconds = 0.0
    error: BaseException | None = None
    may_read: threading.Event | None = None

    def read_after(self, texts: Any) -> Any:
        if self.may_read is not None:
            self.may_read.wait(60)
        if self.error is not None:
            raise self.error
        time.sleep(self.seconds)
        return super().read_after(texts)


def generator(
    seconds: float = 0.0, template: str | None = "{{ messages }}", draft: Any = None, **options: Any
) -> Generator:
    """A generator over a tiny model."""
    model = SlowModel(VOCABULARY.size, **options)
    model.seconds = seconds
    return Generator(model, ByteTokenizer(template), vocabulary=VOCABULARY, draft=draft)


def events_of(text: str, cuts: Sequence[int] = (), finish: Any = "stop") -> list[SequenceEvent]:
    """The events of an output of single bytes whose text is shown up to each cut, and then whole."""
    choices = [TokenChoice(byte, -0.5, ((byte, -0.5), (0, -1.0))) for byte in text.encode()]
    events, told = [], 0
    for cut in sorted(cuts):
        count = len(text[:cut].encode())
        events.append(SequenceEvent(text[:cut], tuple(choices[told:count])))
        told = count
    end = SequenceEnd(finish, -0.5 * len(choices), tuple(choice.token_id for choice in choices), GenerationStats())
    return [*events, SequenceEvent(text, tuple(choices[told:]), end)]


def merged(events: Sequence[SequenceEvent]) -> SequenceEvent:
    """All events as one."""
    found = events[0]
    for event in events[1:]:
        found = event.after(found)
    return found
