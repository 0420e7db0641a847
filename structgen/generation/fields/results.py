"""How sure the model was of the values that it wrote."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from structgen.generation.fields.events import canonical, check_plain


@dataclass(frozen=True)
class ValueOption:
    """A value that might have been written.

    Attributes:
        value: plain JSON.
        prob: of the options, by the model's own distribution: summed over all spellings and tokenisations, divided by
            the sum of all options.
        least, most: bounds of it; what was not read lies between.
        local: the same by the masked distribution, the law of ``generate`` at temperature 1.
    """

    value: Any
    prob: float
    least: float
    most: float
    local: float


@dataclass(frozen=True)
class Belief:
    """What the model gave to each of several options, likeliest first.

    Attributes:
        options: all of them.
        kept: of the model's own mass there, what went to the options; the mask took the remaining.
        slack: how much of the mass was not read: bounds of the options are as wide. 1: nothing was decided by what was
            read, and all options have one probability.
    """

    options: tuple[ValueOption, ...]
    kept: float
    slack: float

    @classmethod
    def of(cls, shown: Any) -> Belief | None:
        """From what ``FieldBelief.as_json`` has of it; None: it is none."""
        try:
            options = tuple(ValueOption(**each) for each in shown["options"])
            numbers = [each.prob for each in options]
            belief = cls(options, float(shown["kept"]), float(shown["slack"]))
        except (TypeError, KeyError, ValueError, OverflowError):
            return None
        real = all(isinstance(each, (int, float)) and 0 <= each <= 1 for each in numbers)
        return belief if options and real and sum(numbers) > 0 else None

    @property
    def prob(self) -> float:
        """Of the likeliest option."""
        return self.options[0].prob

    @property
    def entropy(self) -> float:
        """Nats, of the probabilities of the options."""
        return -math.fsum(each.prob * math.log(each.prob) for each in self.options if each.prob > 0)

    @property
    def margin(self) -> float:
        """By how much the likeliest option is likelier than the next."""
        return self.options[0].prob - (self.options[1].prob if len(self.options) > 1 else 0.0)

    def option(self, value: Any) -> ValueOption | None:
        """The option of a plain JSON value; None: it is none. 1 and 1.0 are one value, 1 and True two.

        Raises:
            OptionsError: the value is no plain JSON.
        """
        check_plain(value, "the value")
        name = canonical(value)
        return next((each for each in self.options if canonical(each.value) == name), None)


@dataclass(frozen=True)
class WrittenText:
    """How likely a text was that has no few values, in the tokens in which it was written.

    Attributes:
        logprob: nats, masked; a lower bound of the text's in all tokenisations.
        model_logprob: nats, the model's own, unmasked.
        entropy: nats, sum of the entropies of the masked distributions at its tokens.
        weakest: text, byte offset in the output and masked probability of its least likely token.
        alternatives: up to five tokens that might have begun it, and their masked probabilities, likeliest first.
    """

    logprob: float
    model_logprob: float
    entropy: float
    weakest: tuple[str, int, float]
    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class FieldBelief:
    """A value of an output, with what the model gave to it.

    Attributes:
        pointer: JSON Pointer; "" is the whole output.
        written: the value that the output has, plain JSON.
        value: of values with few options; None: there are too many.
        type: of the JSON types that the value could have had; None: there was one.
        text: of values that are not few.
    """

    pointer: str
    written: Any
    value: Belief | None = None
    type: Belief | None = None
    text: WrittenText | None = None

    @property
    def prob(self) -> float | None:
        """Of the written value among its options; None where they are not few."""
        option = None if self.value is None else self.value.option(self.written)
        return None if option is None else option.prob

    def as_json(self) -> dict[str, Any]:
        """JSON values; what there is none of is left out."""
        shown = {name: value for name, value in asdict(self).items() if value is not None and name != "pointer"}
        return {**shown, "written": self.written, "prob": self.prob}


@dataclass(frozen=True)
class FieldResults(Mapping[str, FieldBelief]):
    """The fields of an output, by JSON Pointer, in the order of the text.

    Attributes:
        absent: pointers that were asked for and that the output does not have.
        left_out: fields with few options that were not read because there are more than ``Fields.fields``.
        calls, tokens: of the model, that reading took.
    """

    fields: Mapping[str, FieldBelief] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    left_out: int = 0
    calls: int = field(default=0, compare=False)
    tokens: int = field(default=0, compare=False)

    def __getitem__(self, pointer: str) -> FieldBelief:
        return self.fields[pointer]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def least(self) -> FieldBelief | None:
        """The field with few options whose written value is the least likely; None: there is none."""
        rated = [each for each in self.fields.values() if each.prob is not None]
        return min(rated, key=lambda each: each.prob or 0.0, default=None)

    def sure(self, prob: float) -> dict[str, Any]:
        """The values that are at least so likely, by pointer."""
        return {name: each.written for name, each in self.fields.items() if (each.prob or 0.0) >= prob}
