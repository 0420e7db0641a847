"""Documents whose parts may be quoted: an index over all positions at which a quote may begin; the last are kept."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from structgen.core.bounded_cache import BoundedCache
from structgen.core.kernels.sorted import calls as k
from structgen.core.text_sets.borders import BOUNDARIES, Boundary, boundary_number, starts_and_borders
from structgen.core.text_sets.encoding import encoded
from structgen.core.text_sets.files import ArrayFile, content_digest, read_arrays, write_arrays
from structgen.core.text_sets.folding import FOLDS, Fold, Folded, checked_folds, folded
from structgen.core.text_sets.sorted_texts import MAX_TEXT, Bytes, Int32, Int64, SortedTexts
from structgen.errors import ConstraintError

DOCUMENTS = "documents"
_ARRAYS = {"text": "|u1", "starts": "<i4", "border": "|u1", "source": "|u1", "origin": "<i4"}
_FACTS = {"names": list, "ends": list, "boundary": int, "digest": str, "folds": list}
_NO_INTS = np.zeros(0, np.int32)
MAX_PLACES = 16
FEW_PLACES = 4
"""Places that are left, up to which what they go on with is worth a guess."""
DRAFTED = 160  # bytes of a guess


class QuotePlace(NamedTuple):
    """Where a quote stands: the document's name, and the code points from ``start`` to before ``end``."""

    document: str
    start: int
    end: int


class Quote(str):
    """A text that stands in some documents, word for word.

    Attributes:
        places: where; the first so many of them, in the order of documents and text.
        occurrences: in how many places.
    """

    __slots__ = ("occurrences", "places")
    places: tuple[QuotePlace, ...]
    occurrences: int

    def __new__(cls, text: str, places: Iterable[QuotePlace] = (), occurrences: int = 0) -> Quote:
        """A quote with its places."""
        quote = super().__new__(cls, text)
        quote.places, quote.occurrences = tuple(places), occurrences
        return quote

    @property
    def text(self) -> str:
        """The text."""
        return str(self)

    def __getnewargs__(self) -> tuple[str, tuple[QuotePlace, ...], int]:  # type: ignore[override]
        return str(self), self.places, self.occurrences


class Corpus(SortedTexts):
    """Documents, and an index over the places at which quotes may begin. Immutable; equal and hashed by content.

    Make one with `build` or `open`; `structgen.substring_of` is the constraint.

    Attributes:
        documents: their names.
        folds: the rules by which they were folded.
    """

    kind = k.QUOTES
    shortest: Int32 = _NO_INTS

    def __init__(
        self,
        arrays: Mapping[str, Any],
        names: Iterable[str],
        ends: Iterable[int],
        boundary: int,
        digest: str | None = None,
        folds: Iterable[Fold] = (),
    ) -> None:
        """Of arrays as they are, see `SortedTexts`; ``ends``: of each document the place behind its end byte."""
        self.text, self.starts, self.border = arrays["text"], arrays["starts"], arrays["border"]
        self.documents, self._ends, self.boundary = tuple(names), [0, *ends], boundary
        self.folds, self._source, self._origin = tuple(folds), arrays["source"], arrays["origin"].reshape(2, -1)
        self.longest = max(np.diff(self._ends).tolist(), default=0)
        about = [self.documents, self._ends, boundary, self.folds]
        self.digest = digest or content_digest(DOCUMENTS, about, self.text, self._source)

    @classmethod
    def build(
        cls, documents: str | Mapping[str, str], boundary: Boundary = "char", fold: Iterable[str] | bool = ()
    ) -> Corpus:
        """The index of some documents.

        Args:
            documents: texts by name, or one text, whose name is "".
            boundary: where quotes begin and end. "char": anywhere. "word": between runs of ``\\w``, of white space and
                of what is neither; the first is no white space. "line": with lines.
            fold: how the documents are folded before (`structgen.core.text_sets.folding`): what is written is a part of
                the folded text, and the value is the source's own text. True: by all rules.

        Raises:
            ConstraintError: no document, an empty one, something that is no text or has half of a surrogate pair, none
                of which a part can be quoted, or more than 2 GiB.
            OptionsError: another boundary or rule.
        """
        number, folds = boundary_number(boundary), checked_folds(fold)
        given = _checked_documents(documents)
        parts = [folded(text, folds) for text in given.values()] if folds else []
        named = dict(zip(given, (part.text for part in parts), strict=True)) if folds else given
        texts = [encoded(text, f"document {name!r}") for name, text in named.items()]
        lengths = np.cumsum([len(text) + 1 for text in texts], dtype=np.int64)
        if lengths[-1] > MAX_TEXT:
            raise ConstraintError(f"the documents have {int(lengths[-1]):,} bytes; at most {MAX_TEXT:,} are indexed")
        text = np.frombuffer(b"\xff".join([*texts, b""]), np.uint8)
        permitted, border = starts_and_borders(text, list(named.values()), number)
        order = k.suffix_array(text, k.END)
        starts = order[permitted[order]]
        if not len(starts):
            raise ConstraintError(f"nothing of the documents can be quoted by the {boundary}: they are blank")
        arrays = {"text": text, "starts": starts, "border": border, **_map_back(given, parts)}
        return cls(arrays, named, lengths.tolist(), number, folds=folds)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = False) -> Corpus:
        """An index that was saved; see `NameSet.open`.

        Raises:
            ConstraintError: it cannot be read, is no file of documents, of another version, truncated or damaged.
        """
        file = read_arrays(path, DOCUMENTS, _ARRAYS)
        wrong = _damage(file)
        if wrong:
            raise ConstraintError(f"{os.fspath(path)} is damaged: {wrong}")
        names, ends, boundary, digest, folds = (file.facts[name] for name in _FACTS)
        corpus = cls(file.arrays, names, ends, boundary, digest, folds)
        whole = content_digest(DOCUMENTS, None, *file.arrays.values())
        if verify and whole != file.digest:
            raise ConstraintError(f"{os.fspath(path)} is damaged: its content is not what its hash says")
        return corpus

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file, which takes the place of what is there when it is whole.

        Raises:
            OSError: it cannot be written.
        """
        facts = {
            "names": self.documents,
            "ends": self._ends[1:],
            "boundary": self.boundary,
            "digest": self.digest,
            "folds": self.folds,
        }
        arrays: dict[str, Any] = {"text": self.text, "starts": self.starts, "border": self.border}
        arrays |= {"source": self._source, "origin": self._origin.reshape(-1)}
        write_arrays(path, ArrayFile(DOCUMENTS, content_digest(DOCUMENTS, None, *arrays.values()), facts, arrays))

    def quote(self, text: str, max_places: int = MAX_PLACES) -> Quote:
        """A quote with its places; of a text that stands nowhere, none.

        Where documents were folded, so is a text that they do not have as it is, and the quote is that of its first
        place.
        """
        quote = self._quote(text, max_places)
        return self._quote(folded(text, self.folds).text, max_places) if self.folds and not quote.occurrences else quote

    def _quote(self, text: str, max_places: int) -> Quote:
        data = text.encode(errors="surrogatepass")
        first, end = self.interval(data)
        places = np.sort(self.starts[first:end].astype(np.int64))
        places = places[self._may_end(places + len(data))] if data else places[:0]
        listed = [self._place(offset, len(data)) for offset in places[: max(max_places, 1)].tolist()]
        if self.folds and listed:
            text = self._texts[listed[0].document][listed[0].start : listed[0].end]
        return Quote(text, listed[:max_places], len(places))

    def continuations(self, state: int) -> list[bytes]:
        """What the documents go on with in a state of which few places are left; else nothing."""
        first, depth = (state - k.START) >> k.DEPTH_BITS, (state - k.START) & k.DEPTH_MASK
        end = k.run(self._reader.address, k.INTERVAL, state, 0, 0)
        if depth == 0 or end - first > FEW_PLACES:
            return []
        offsets = [int(start) + depth for start in self.starts[first:end]]
        parts = [self.text[offset : offset + DRAFTED].tobytes().partition(b"\xff")[0] for offset in offsets]
        return list(dict.fromkeys(part for part in parts if part))

    def some_quotes(self, least: int, most: int | None) -> Iterator[str]:
        """Quotes of ``least`` to ``most`` code points, each once: of the first entries that have some, the shortest."""
        seen: set[str] = set()
        for start in self.starts:
            end = self._ends[bisect_right(self._ends, int(start))] - 1
            last = end if most is None else min(end, int(start) + 4 * most)
            part = self.text[start : min(last, int(start) + 4 * (least + k.STEP))].tobytes().decode(errors="ignore")
            offset = int(start) + len(part[: least - 1].encode())
            for count, character in enumerate(part[least - 1 : most], least):
                offset += len(character.encode())
                quote = part[:count]
                if quote not in seen and self._may_end(np.array([offset]))[0]:
                    seen.add(quote)
                    yield quote
            if most is None and offset < end and len(part) >= least:
                yield self.text[start:end].tobytes().decode(errors="replace")

    @property
    def boundary_name(self) -> Boundary:
        """Where quotes begin and end, as `build` takes it."""
        return BOUNDARIES[self.boundary]

    def texts(self) -> dict[str, str]:
        """The documents by name, as they were before they were folded."""
        return dict(self._texts)

    @cached_property
    def _texts(self) -> dict[str, str]:
        if self.folds:
            texts = self._source.tobytes()[:-1].split(b"\xff")
            return {name: text.decode(errors="replace") for name, text in zip(self.documents, texts, strict=True)}
        ends = self._ends
        return {
            name: self.text[begin : end - 1].tobytes().decode(errors="replace")
            for name, begin, end in zip(self.documents, ends, ends[1:], strict=False)
        }

    def without_bytes(self, missing: Iterable[int]) -> Corpus | None:
        """The index of the same documents, cut where a character has one of some bytes; None: nothing is left.

        Where they are cut no quote ends that would not end there otherwise, so its states must be looked at.
        """
        characters = np.cumsum((self.text & 0xC0) != 0x80) - 1
        gone = np.bincount(characters, np.isin(self.text, list(missing))) > 0
        text = np.where(gone[characters], np.uint8(k.END), self.text)
        permitted = np.zeros(len(text), np.bool_)
        permitted[self.starts] = True
        permitted &= text != k.END
        order = k.suffix_array(text, k.END)
        starts = order[permitted[order]]
        arrays = {"text": text, "starts": starts, "border": self.border, "source": self._source, "origin": self._origin}
        if not len(starts):
            return None
        return Corpus(arrays, self.documents, self._ends[1:], self.boundary, folds=self.folds)

    def __repr__(self) -> str:
        return f"Corpus({len(self.documents):,} documents, {len(self.text):,} bytes, digest={self.digest!r})"

    def _may_end(self, offsets: np.ndarray[Any, Any]) -> Any:
        """Whether a quote may end before these places."""
        if self.boundary == k.CHAR:
            return (self.text[offsets] & 0xC0) != 0x80
        return self.border[offsets >> 3] >> (offsets & 7) & 1 != 0

    def _place(self, offset: int, size: int) -> QuotePlace:
        number = bisect_right(self._ends, offset) - 1
        if self.folds:
            begin, end = self._origin[0, self._points(offset)], self._origin[1, self._points(offset + size) - 1]
            return QuotePlace(self.documents[number], int(begin), int(end))
        first = self._points(self._ends[number])
        return QuotePlace(self.documents[number], self._points(offset) - first, self._points(offset + size) - first)

    def _points(self, offset: int) -> int:
        """How many code points, and ends of documents, begin before a place."""
        step = offset // k.STEP
        part: Bytes = self.text[step * k.STEP : offset]
        return int(self.steps[0][step]) + int(((part & 0xC0) != 0x80).sum())

    @cached_property
    def steps(self) -> tuple[Int64, Int64, Int64]:  # type: ignore[override]
        """See `SortedTexts`."""
        heads = (self.text & 0xC0) != 0x80
        sums = np.add.reduceat(heads, np.arange(0, len(heads), k.STEP), dtype=np.int64)
        begins = np.arange(len(sums) + 1) * k.STEP
        over = _next_of(np.flatnonzero(self.text == k.END), begins, len(self.text))
        if self.boundary == k.CHAR:
            return np.concatenate([[0], np.cumsum(sums)]), begins, over
        filled = np.flatnonzero(self.border)  # bytes with the bit of some border
        borders = 8 * filled + np.log2(self.border[filled] & -self.border[filled]).astype(np.int64)
        return np.concatenate([[0], np.cumsum(sums)]), _next_of(borders, begins, len(self.text)), over


def _next_of(places: Int64, begins: Int64, end: int) -> Int64:
    """Of ascending places the first from each of some others on; ``end``: there is none."""
    following: Int64 = np.append(places, end)[np.searchsorted(places, begins)]
    return following


def _damage(file: ArrayFile) -> str | None:
    """What is wrong with the parts of a file, taken together."""
    facts, text, starts = file.facts, file.arrays["text"], file.arrays["starts"]
    if any(not isinstance(facts.get(name), kind) for name, kind in _FACTS.items()):
        return f"it says {facts!r:.200} of its documents"
    names, ends, boundary, folds = facts["names"], facts["ends"], facts["boundary"], facts["folds"]
    if not all(isinstance(name, str) for name in names) or not all(type(end) is int for end in ends):
        return "its documents have no names"
    last = [-1, *ends][-1]
    if len(names) != len(ends) or last != len(text) or last > MAX_TEXT or (np.diff([0, *ends]) <= 1).any():
        return "the documents do not fill their text"
    if not (text[np.array(ends) - 1] == k.END).all() or int((text == k.END).sum()) != len(ends):
        return "its documents do not end where they should"
    if not 0 <= boundary < len(BOUNDARIES) or not set(folds) <= set(FOLDS):
        return f"there is no boundary {boundary} or fold of {folds!r:.100}"
    if not len(starts) or int(starts.min()) < 0 or int(starts.max()) >= len(text):
        return "quotes begin outside of its text"
    if len(file.arrays["border"]) != (0 if boundary == k.CHAR else -(-len(text) // 8)):
        return "its borders do not fit its text"
    points = int(((text & 0xC0) != 0x80).sum())
    sources = int((file.arrays["source"] == k.END).sum())
    wrong = bool(folds) and (len(file.arrays["origin"]) != 2 * points or sources != len(ends))
    return "what it was folded from does not fit its text" if wrong else None


def _map_back(given: Mapping[str, str], parts: list[Folded]) -> dict[str, Any]:
    """The sources of folded documents, each with the byte FF behind it, and where in them the code points stand."""
    if not parts:
        return {"source": np.zeros(0, np.uint8), "origin": _NO_INTS}
    over = np.zeros((2, 1), np.int32)  # for the end of each document
    origin = np.concatenate([array for part in parts for array in (part.origin, over)], axis=1)
    source = b"\xff".join([*(text.encode() for text in given.values()), b""])
    return {"source": np.frombuffer(source, np.uint8), "origin": origin.reshape(-1)}


def _checked_documents(documents: Any) -> dict[str, str]:
    """The documents by name.

    Raises:
        ConstraintError: see `Corpus.build`.
    """
    named = {"": documents} if isinstance(documents, str) else documents
    if not isinstance(named, Mapping):
        raise ConstraintError(f"documents are a text, or texts by name, not {documents!r:.100}")
    if not named:
        raise ConstraintError("a corpus needs at least one document")
    for name, text in named.items():
        if not isinstance(name, str):
            raise ConstraintError(f"a document's name is a text, not {name!r:.100}")
        encoded(name, "a document's name")
        if text == "":
            raise ConstraintError(f"document {name!r} is empty; leave it out")
    return dict(named)


MAX_BYTES = 256 << 20
_BUILT: BoundedCache[Hashable, Corpus] = BoundedCache(MAX_BYTES, lambda corpus: 2 * corpus.memory_bytes)


def known_corpus(documents: Mapping[str, str], boundary: Boundary = "char", fold: Iterable[str] | bool = ()) -> Corpus:
    """The index of some documents, built if it is not there. Errors as `Corpus.build`."""
    try:
        key = boundary, checked_folds(fold), *documents.items()
        built = _BUILT.get(key)
    except TypeError:  # no texts, which the builder says
        return Corpus.build(documents, boundary, fold)
    return built or _BUILT.put(key, Corpus.build(documents, boundary, fold))


def remember(corpus: Corpus) -> None:
    """Let `known_corpus` give this index of its documents."""
    _BUILT.put((corpus.boundary_name, corpus.folds, *corpus.texts().items()), corpus)
