"""One answer on its way: what it waits for, how it is encoded, and how an error in it is."""

from __future__ import annotations

from typing import Any, NamedTuple

from structgen.server.endpoints import AnswerWriter, Surface
from structgen.server.openai_types import CommonFields
from structgen.server.records import RequestRecord


class Caller(NamedTuple):
    """Who sent a request.

    Attributes:
        key: the API key; "": none is asked for.
        address: of the connection; "": not known.
    """

    key: str
    address: str

    @property
    def share(self) -> str:
        """Whose share of what callers take turns at it uses: the key's, else the address's."""
        return self.key or self.address


class Answering:
    """The answer to one request.

    Attributes:
        surface: where it is asked.
        record: what is noted of it.
        asked, caller, arrived: the request, who sent it, when.
        is_long: whether it has much text.
        waits_for: what keeps the first event of its stream.
        writer: what writes it; None: the request is still being read or compiled.
        has_headers: whether those were sent before it was known what they could have said.
        has_begun: whether an event was sent.
    """

    def __init__(
        self,
        surface: Surface,
        record: RequestRecord,
        asked: CommonFields,
        caller: Caller,
        arrived: float,
        *,
        is_long: bool,
    ) -> None:
        self.surface, self.record = surface, record
        self.asked, self.caller, self.arrived, self.is_long = asked, caller, arrived, is_long
        self.waits_for = "reading the request"
        self.writer: AnswerWriter | None = None
        self.has_headers = self.has_begun = False

    def encoded(self, chunk: dict[str, Any]) -> bytes:
        """An event of the stream. The first has the report, and warnings for which there was no header any more."""
        if not self.has_begun:
            self.has_begun = True
            said = self.record.metadata(warns=self.has_headers)
            chunk = {**chunk, "structgen": {**chunk.get("structgen", {}), **said}} if said else chunk
        return self.surface.encoded(chunk)

    def failure(self, error: BaseException) -> bytes:
        """The event for an error in the stream."""
        return self.surface.failure(self.writer, self.record.refused(error))
