"""The fields of one output: which there are, what the model gave to each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from structgen.core.engines.protocols import Grammar, Matcher
from structgen.core.json_spans import ValueSpan, matches, value_spans
from structgen.errors import GenerationError
from structgen.generation.decoding.drawing import AllowedProbs
from structgen.generation.fields.asking import Fields
from structgen.generation.fields.events import Decider, canonical, named_value, reply_event, type_event, value_event
from structgen.generation.fields.layout import Layout
from structgen.generation.fields.options import few_events
from structgen.generation.fields.reading import PathReader
from structgen.generation.fields.results import Belief, FieldBelief, FieldResults, ValueOption, WrittenText
from structgen.generation.fields.walk import EventWalk, Path
from structgen.generation.sampling import allowed_token_ids, masked_log_probs, to_numpy

Spell = Callable[[bytes], Sequence[int]]
ALTERNATIVES = 5  # first tokens of a text that are kept
MAX_TYPES = 64  # more bytes than JSON values begin with


@dataclass(frozen=True)
class Restart:
    """A better value for a field.

    Attributes:
        length: tokens of the output that stay.
        path, log_probs: tokens that come after them, and their masked log-probabilities (nats).
        offset: where the field begins, in bytes.
    """

    length: int
    path: Path
    log_probs: tuple[float, ...]
    offset: int


@dataclass
class _Started:
    """A field that is being read.

    Attributes:
        span: where its value stands.
        length: tokens of the output before it.
        gap: bytes between these and where it begins.
        path: the tokens in which it was written, up to the one that decides it.
        walk, types: of its value, and of its type; None: not few, or one only.
        logits: after the prefix and each beginning of ``path``, where its text is read.
        events: a text of each of its few values.
    """

    span: ValueSpan
    length: int
    gap: bytes
    path: Path
    matcher: Matcher
    decide: Decider
    walk: EventWalk | None = None
    types: EventWalk | None = None
    logits: dict[Path, Any] | None = None
    events: Mapping[str, bytes] | None = None

    @property
    def walks(self) -> list[EventWalk]:
        """What is being summed."""
        return [walk for walk in (self.walk, self.types) if walk is not None]


class FieldMeasure:
    """Reads the fields of a finished output.

    Args:
        grammar: what the output was masked by.
        layout: where JSON is in the output.
        tokens: of the output.
        asked: which fields, how closely.
        spell: the tokens in which the tokenizer writes a text.
        after: fields that begin at this byte offset or before it are left out.
        allowed_probs: see ``Output``: what need not be read again.

    Raises:
        GenerationError: the tokens are not of the constraint.
    """

    def __init__(
        self,
        grammar: Grammar,
        layout: Layout,
        tokens: Sequence[int],
        asked: Fields,
        spell: Spell,
        after: int = -1,
        allowed_probs: Mapping[int, AllowedProbs] = MappingProxyType({}),
    ) -> None:
        self._allowed_probs = allowed_probs
        self._grammar, self._tokens, self._asked, self._spell = grammar, list(tokens), asked, spell
        self._vocabulary = grammar.vocabulary
        texts = [self._vocabulary.tokens[token] for token in tokens]
        self._data, self._ends = b"".join(texts), list(accumulate(map(len, texts)))
        self._is_json = layout.is_json
        start = layout.start_of(self._data)
        spans = value_spans(self._data, start) if self._is_json else [ValueSpan("", 0, 0, len(self._data))]
        wanted = asked.pointers
        if wanted is None:
            spans = [span for span in spans if self._data[span.begin : span.begin + 1] not in (b"{", b"[")]
        else:
            spans = [span for span in spans if any(matches(each, span.pointer) for each in wanted)]
        self._absent = tuple(each for each in wanted or () if not any(matches(each, span.pointer) for span in spans))
        self._left_out = 0
        spans = [span for span in spans if span.start > after]
        self._fields = self._started(spans)

    def run(self, reader: PathReader) -> FieldResults:
        """Read what the sums need, all fields together, and say what came of it."""
        with reader:
            while asked := self._questions():
                answers = reader.read(asked)
                for each in self._fields:
                    self._give(each, answers.get(each.length, {}))
            fields = {each.span.pointer: self._field(each) for each in self._fields}
            return FieldResults(fields, self._absent, self._left_out, reader.calls, reader.tokens)

    def restart(self, by: Literal["value", "belief"]) -> Restart | None:
        """After ``run``: where the output would go on otherwise if the first value were written that has not the
        highest probability, masked ("value") or the model's own ("belief"); None: all have it."""
        for each in self._fields:
            if each.walk is None:
                continue
            sums = each.walk.finish()
            rated = {event: sums.local.get(event, 0.0) + sums.sure.get(event, 0.0) for event in sums.best}
            if by == "belief" and math.fsum(sums.mass.values()):
                rated = {event: sums.mass.get(event, 0.0) for event in sums.best}
            best = max(rated, key=rated.__getitem__)
            written = each.decide(self._data[each.span.begin : each.span.end], True)
            if best != written and rated[best] > rated.get(written or "", 0.0):
                _, path, steps = sums.best[best]
                return Restart(each.length, path, steps[: len(path)], each.span.start)
        return None

    # --- which fields ---

    def _started(self, spans: Iterable[ValueSpan]) -> list[_Started]:
        fields = list[_Started]()
        matcher, taken = self._grammar.matcher(), 0
        for span in spans:
            length = sum(end <= span.start for end in self._ends)
            for token in self._tokens[taken:length]:
                if not matcher.accept_token(token):
                    raise GenerationError(
                        f"Token {token} of the output is not allowed by the constraint; fields are of whole outputs."
                    )
            taken = max(taken, length)
            each = self._start(span, length, matcher.copy())
            if each is None:
                continue
            if len(fields) == self._asked.fields:
                self._left_out += 1
            else:
                fields.append(each)
        return fields

    def _start(self, span: ValueSpan, length: int, matcher: Matcher) -> _Started | None:
        """What is to be read of a field; None: it is not few-valued, and was not named."""
        decide: Decider = value_event if self._is_json else reply_event
        gap = self._data[self._ends[length - 1] if length else 0 : span.start]
        after = matcher.copy()
        if gap and not after.accept_bytes(gap):
            raise GenerationError(f"The output is not of the constraint: {self._data[: span.start]!r:.200}")
        events = few_events(after, decide, self._asked.most)
        few = events is not None and len(events) > 1
        named = self._asked.pointers is not None
        if not few and not named:
            return None
        path = self._written(span, length, gap, decide)
        each = _Started(span, length, gap, path, matcher, decide, events=events if few else None)
        seeds = dict.fromkeys(self._undecided(path, gap, decide))
        if few and events is not None:
            lead = self._data[span.start : span.begin]
            for event, text in events.items():
                spelled = lead + event.encode() if self._is_json else text
                seeds.update(dict.fromkeys(self._undecided(self._spell(gap + spelled), gap, decide)))
            each.walk = self._walk(each, decide, seeds)
        else:
            each.logits = {}
            kinds = few_events(after, type_event, MAX_TYPES) if self._is_json else None
            if kinds is not None and len(kinds) > 1:
                each.types = self._walk(each, type_event, ())
        return each

    def _walk(self, each: _Started, decide: Decider, seeds: Iterable[Path]) -> EventWalk:
        asked = self._asked
        return EventWalk(
            each.matcher.copy(), decide, gap=each.gap, seeds=seeds, written_probs=self._written_probs(each),
            eps=asked.eps, most_tokens=asked.model_tokens,
        )  # fmt: skip

    def _written_probs(self, each: _Started) -> dict[Path, AllowedProbs]:
        """What the model gave to what was allowed after the beginnings of a value's tokens, when it was written.

        Within the gap that is not enough: what goes through it need not be allowed.
        """
        written, size = dict[Path, AllowedProbs](), 0
        for count in range(len(each.path)):
            probs = self._allowed_probs.get(each.length + count)
            if probs is not None and size >= len(each.gap):
                written[each.path[:count]] = probs
            size += len(self._vocabulary.tokens[each.path[count]])
        return written

    def _written(self, span: ValueSpan, length: int, gap: bytes, decide: Decider) -> Path:
        """The tokens in which a value was written, up to the one that decides it."""
        path, data = list[int](), b""
        for token in self._tokens[length:]:
            path.append(token)
            data += self._vocabulary.tokens[token]
            if len(data) > len(gap) and decide(data[len(gap) :], False) is not None:
                break
        return tuple(path)

    def _undecided(self, spelled: Sequence[int], gap: bytes, decide: Decider) -> list[Path]:
        """The beginnings of a path that decide nothing yet, but for the empty one."""
        paths, data = list[Path](), b""
        for count, token in enumerate(spelled, start=1):
            data += self._vocabulary.tokens[token]
            if len(data) > len(gap) and decide(data[len(gap) :], False) is not None:
                break
            paths.append(tuple(spelled[:count]))
        return paths

    # --- reading ---

    def _questions(self) -> dict[int, list[Path]]:
        asked: dict[int, dict[Path, None]] = {}
        for each in self._fields:
            wanted = [path for walk in each.walks for path in walk.ask()]
            if each.logits is not None and not each.logits:
                wanted += [(), *_beginnings(each.path)]
            if wanted:
                asked.setdefault(each.length, {}).update(dict.fromkeys(wanted))
        self._wanted = {length: list(paths) for length, paths in asked.items()}
        return self._wanted

    def _give(self, each: _Started, answers: Mapping[Path, Any]) -> None:
        if answers:
            for walk in each.walks:
                walk.answer(dict(answers))
            if each.logits is not None:
                each.logits.update(answers)

    # --- what came of it ---

    def _field(self, each: _Started) -> FieldBelief:
        text = self._data[each.span.begin : each.span.end]
        event = each.decide(text, True)
        written = None if event is None else named_value(event)
        value = None if each.walk is None else belief_of(each.walk, each.events or ())
        types = None if each.types is None else belief_of(each.types, (), names=True)
        if value is not None:
            types = _types_of(value)
        return FieldBelief(each.span.pointer, written, value, types, None if value is not None else self._text(each))

    def _text(self, each: _Started) -> WrittenText:
        """How likely a value's own tokens were."""
        assert each.logits is not None
        vocabulary, matcher = self._vocabulary, each.matcher
        mask = np.zeros((1, (vocabulary.size + 31) // 32), np.int32)
        masked = model = entropy = 0.0
        weakest, alternatives = ("", each.span.begin, 1.0), tuple[tuple[str, float], ...]()
        offset = self._ends[each.length - 1] if each.length else 0
        is_string = self._data[each.span.begin : each.span.begin + 1] == b'"'
        for count, token in enumerate(each.path):
            row = to_numpy(each.logits[each.path[:count]])[: vocabulary.size]
            matcher.fill_next_token_bitmask(mask, 0)
            allowed = allowed_token_ids(mask[0], vocabulary.size)
            log_probs = masked_log_probs(row, allowed)
            log_prob = float(log_probs[np.searchsorted(allowed, token)])
            masked, model = masked + log_prob, model + float(masked_log_probs(row, None)[token])
            probs = np.exp(log_probs)
            entropy -= float((probs[probs > 0] * log_probs[probs > 0]).sum())
            shown = vocabulary.tokens[token].decode(errors="replace")
            if math.exp(log_prob) < weakest[2]:
                weakest = (shown, offset, math.exp(log_prob))
            offset += len(vocabulary.tokens[token])
            if not alternatives and offset > each.span.begin + is_string:
                alternatives = _likeliest(vocabulary.tokens, allowed, probs)
            matcher.accept_token(token)
        return WrittenText(masked, model, entropy, weakest, alternatives)


def belief_of(walk: EventWalk, events: Iterable[str], *, names: bool = False) -> Belief:
    """What a walk has summed, as probabilities with bounds.

    Args:
        walk: at its end.
        events: those that there are, those without any mass among them.
        names: whether events are names rather than JSON values.
    """
    remaining, unsure = walk.remaining, walk.unsure
    sums = walk.finish()
    total = math.fsum(sums.mass.values())
    local_total = math.fsum((*sums.local.values(), *sums.sure.values(), unsure)) or 1.0
    options, names_of = [], {**dict.fromkeys(events), **sums.mass, **sums.sure}
    for event in names_of:
        mass, open_mass = sums.mass.get(event, 0.0), walk.can_become(event)
        local = (sums.local.get(event, 0.0) + sums.sure.get(event, 0.0)) / local_total
        options.append(
            ValueOption(
                event if names else named_value(event),
                mass / total if total else 1 / len(names_of),  # nothing was decided: the bounds say so
                mass / (total + remaining) if total + remaining else 0.0,
                min(1.0, (mass + open_mass) / (total + open_mass)) if total + open_mass else 1.0,
                local,
            )
        )
    options.sort(key=lambda each: -each.prob)
    kept = min(1.0, total / sums.gap) if sums.gap else 0.0
    return Belief(tuple(options), kept, remaining / (total + remaining) if total + remaining else 1.0)


def _types_of(value: Belief) -> Belief | None:
    """The types of options, summed; None: there is one."""
    sums: dict[str, list[float]] = {}
    for each in value.options:
        name = type_event(_text_of(each.value)) or ""
        so_far = sums.setdefault(name, [0.0] * 4)
        for index, number in enumerate((each.prob, each.least, each.most, each.local)):
            so_far[index] += number
    options = [
        ValueOption(name, prob, least, min(1.0, most), local) for name, (prob, least, most, local) in sums.items()
    ]
    options.sort(key=lambda each: -each.prob)
    return Belief(tuple(options), value.kept, value.slack) if len(options) > 1 else None


def _text_of(value: Any) -> bytes:
    return canonical(value).encode()


def _likeliest(
    tokens: Sequence[bytes], allowed: npt.NDArray[np.int64], probs: npt.NDArray[np.float64]
) -> tuple[tuple[str, float], ...]:
    order = np.argsort(-probs, kind="stable")[:ALTERNATIVES]
    return tuple((tokens[int(allowed[each])].decode(errors="replace"), float(probs[each])) for each in order)


def _beginnings(path: Path) -> list[Path]:
    """The proper beginnings of a path that are not empty."""
    return [path[:count] for count in range(1, len(path))]
