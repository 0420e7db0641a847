"""A tokenizer that several threads use by turns, so that a long text holds up nobody for all of its time."""

from __future__ import annotations

import threading
from typing import Any


class InTurn:
    """A tokenizer whose texts are encoded, and ids decoded, one at a time, those first that came first: tokenizers are
    not for several threads at once. All else of it is as it is.

    Args:
        tokenizer: to be used in this way alone.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._turns = _Turns()

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._tokenizer, name)
        return self._in_turn(attribute) if name == "decode" else attribute

    def _in_turn(self, decode: Any) -> Any:
        def decode_in_turn(*arguments: Any, **options: Any) -> Any:
            with self._turns:
                return decode(*arguments, **options)

        return decode_in_turn

    def encode(self, *arguments: Any, **options: Any) -> list[int]:
        """As the tokenizer's."""
        with self._turns:
            return list(self._tokenizer.encode(*arguments, **options))


class _Turns:
    """A lock that is given in the order in which it was asked for."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._given = self._over = 0

    def __enter__(self) -> None:
        with self._changed:
            turn, self._given = self._given, self._given + 1
            self._changed.wait_for(lambda: self._over == turn)

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._over += 1
            self._changed.notify_all()
