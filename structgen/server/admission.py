"""Who may ask, how much, how often: keys, rates, sizes of bodies."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Mapping
from typing import Any

from structgen.core.bounded_cache import BoundedCache
from structgen.server.errors import RequestError, overloaded
from structgen.server.settings import ServingSettings
from structgen.server.sse import ClientGone, Receive

KEPT_RATES = 10_000
BODIES_AT_ONCE = 64
"""How many of the largest bodies may lie in memory that were not sent to their end yet."""


class Admission:
    """Checks requests before they are read.

    Attributes:
        is_draining: whether new work is turned away.
    """

    def __init__(self, settings: ServingSettings) -> None:
        self._settings = settings
        self._rates: BoundedCache[str, tuple[float, float]] = BoundedCache(KEPT_RATES)  # requests left, when
        self._arriving = 0  # bytes of bodies that are not here to their end
        self.is_draining = False

    def check(self, headers: Mapping[str, str], address: str) -> str:
        """The key of a request, "" where none is needed.

        Raises:
            RequestError: it is turned away.
        """
        key = self.check_key(headers)
        if self.is_draining:
            raise RequestError(
                "The server is shutting down.",
                status=503, type="server_error", code="draining", retry_after=1, retry=True,
            )  # fmt: skip
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":  # what a form or a script of another site can send without asking
            raise RequestError(
                f"The content type is {kind or 'missing'!s}; expected application/json.",
                status=415, code="unsupported_media_type",
            )  # fmt: skip
        self._count(key or address)
        return key

    def check_key(self, headers: Mapping[str, str]) -> str:
        """The key of a request, "" where none is needed. Raise RequestError where it is wrong."""
        keys = self._settings.api_keys
        if not keys:
            return ""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        given = given.strip()
        matches = [hmac.compare_digest(given.encode(), key.encode()) for key in keys]  # all: takes as long for each
        if scheme.lower() != "bearer" or not any(matches):
            what = "No API key was given" if not given else "The API key is not known"
            raise RequestError(
                f"{what}; send it as 'Authorization: Bearer KEY'.",
                status=401, type="authentication_error", code="invalid_api_key",
            )  # fmt: skip
        return given

    def check_host(self, headers: Mapping[str, str]) -> None:
        """Raise RequestError where another host is asked for."""
        host = headers.get("host", "").lower()
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if self._settings.hosts and name not in self._settings.hosts:
            raise RequestError(
                f"The host {name[:200]!r} is not served here; see --allowed-host.", status=403, code="host_not_allowed"
            )

    def _count(self, who: str) -> None:
        rate = self._settings.requests_per_minute
        if rate is None:
            return
        now = time.monotonic()
        left, since = self._rates.get(who) or (float(rate), now)
        left = min(float(rate), left + (now - since) * rate / 60)
        self._rates.replace(who, (left - 1 if left >= 1 else left, now))
        if left < 1:
            raise overloaded(f"More than {rate} requests a minute.", (1 - left) * 60 / rate, "rate_limit_exceeded")

    async def body(self, headers: Mapping[str, str], receive: Receive) -> bytes:
        """The body of a request.

        Raises:
            RequestError: it is too large, comes too slowly, or too many others are coming. ClientGone: the client is.
        """
        most = self._settings.max_body
        announced = headers.get("content-length", "")
        if announced.isdecimal() and (len(announced) > 20 or int(announced) > most):
            raise _too_large(most)
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                return await self._read(receive, most)
        except TimeoutError:
            raise RequestError(
                f"The request was not sent within {self._settings.body_seconds:g} seconds.", status=408, code="timeout"
            ) from None

    async def _read(self, receive: Receive, most: int) -> bytes:
        body = bytearray()
        try:
            while True:
                message: Any = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone("the client went away before it had sent the request")
                body += message.get("body", b"")
                self._arriving += len(message.get("body", b""))
                if len(body) > most:
                    raise _too_large(most)
                if not message.get("more_body", False):
                    return bytes(body)
                if self._arriving > BODIES_AT_ONCE * most:
                    raise overloaded("Too many large requests are being sent at once.", 1.0, "too_many_bodies")
        finally:
            self._arriving -= len(body)


def _too_large(most: int) -> RequestError:
    return RequestError(f"The request has more than {most:,} bytes.", status=413, code="request_too_large")
