"""Drafts values out of the prompt: after a key, what stands after its name there ("city: Paris", "name is Ada")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.speculative.drafter import Proposal, Source, Written
from structgen.generation.speculative.forced import CanonicalTokens
from structgen.generation.speculative.tree import Node

NAME = "copy"
LENGTH = 48  # bytes of a value
TAIL_BYTES = 96  # of the output, in which the key is looked for
MAX_VALUES = 3
BEGUN = 0.8  # the chance that a value goes on as it stands there
FIRST = (0.4, 0.2, 0.1)  # that one begins, by its rank
# A key, its colon, and perhaps the quote that the value begins with.
_KEY = re.compile(rb'"([^"\\]{1,64})"\s*:\s*"?$')
_WORDS = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[\x80-\xff]+")
# Between a name and its value. A quote and a colon come in schemas, whose members have no values.
_BETWEEN = rb"(?!\w)(?:\"?:\s?\"|:\s*|\s*=\s*|\s+(?:is|was|are)\s+)(?![{\[\"\s])"


class CopyDrafter:
    """Proposes what stands in the prompt after the name of the key that the output stands after."""

    name = NAME

    def __init__(self, canonical: CanonicalTokens, vocabulary: Vocabulary) -> None:
        self._canonical, self._vocabulary = canonical, vocabulary

    def start(self, prompt: Sequence[int], output: Written) -> Source:
        """See ``Drafter.start``."""
        text = b"".join(self._vocabulary.tokens[token] or b"" for token in prompt if token < self._vocabulary.size)
        return _CopySource(self._canonical, self._vocabulary, text, output)


class _CopySource(Source):
    name = NAME

    def __init__(self, canonical: CanonicalTokens, vocabulary: Vocabulary, prompt: bytes, output: Written) -> None:
        self._canonical, self._vocabulary, self._prompt, self._output = canonical, vocabulary, prompt, output
        self._written = b""
        self._values: dict[bytes, list[bytes]] = {}  # in the prompt, by key
        self._begun: dict[Node, list[tuple[int, tuple[int, ...]]]] = {}  # ranks and what remains of values, by nodes

    def prepare(self, root: Node, depth: int) -> None:
        """See ``Source``."""
        self._begun = {root: self._begun_in(self._output.data[-TAIL_BYTES - LENGTH :])}
        self._written = self._output.data[-TAIL_BYTES:]

    def propose(self, node: Node) -> list[Proposal]:
        """See ``Source``."""
        above = self._begun.get(node.parent, []) if node.parent is not None else self._begun[node]
        if node.parent is not None:
            above = [(rank, tokens[1:]) for rank, tokens in above if len(tokens) > 1 and tokens[0] == node.token]
        begun = bool(above)
        if not above and self._vocabulary.tokens[node.token][-1:] in (b'"', b":", b" "):
            above = self._starting(node)
        self._begun[node] = above
        return [
            Proposal(tokens[0], (NAME, int(begun), rank), BEGUN if begun else FIRST[rank])
            for rank, tokens in {tokens[0]: (rank, tokens) for rank, tokens in reversed(above)}.values()
        ]

    def _starting(self, node: Node) -> list[tuple[int, tuple[int, ...]]]:
        """Values that may begin after a node."""
        path = b"".join(self._vocabulary.tokens[token] for token in node.path())
        match = _KEY.search((self._written + path)[-TAIL_BYTES:])
        return self._spelled(self._of_key(match[1]), b"") if match else []

    def _begun_in(self, written: bytes) -> list[tuple[int, tuple[int, ...]]]:
        """What is left of values that the output stands in."""
        opened = re.search(rb'"([^"\\]{1,64})"\s*:\s*"([^"]{1,%d})$' % LENGTH, written)
        return self._spelled(self._of_key(opened[1]), opened[2]) if opened else []

    def _spelled(self, values: Sequence[bytes], begun: bytes) -> list[tuple[int, tuple[int, ...]]]:
        remaining = [value[len(begun) :] for value in values if value.startswith(begun) and value != begun]
        spelled = [(rank, self._canonical.spell(text)) for rank, text in enumerate(remaining)]
        return [(rank, tokens) for rank, tokens in spelled if tokens]

    def _of_key(self, key: bytes) -> list[bytes]:
        values = self._values.get(key)
        if values is None:
            values = self._values[key] = list(islice(dict.fromkeys(self._find(key)), MAX_VALUES))
        return values

    def _find(self, key: bytes) -> Iterator[bytes]:
        """Texts after the name in the prompt, the last first: to the end of the line or sentence, or a quote."""
        words = _WORDS.findall(key)
        if not words:
            return
        name = rb"[\s_-]?".join(map(re.escape, words))
        expression = re.compile(rb"(?<!\w)" + name + _BETWEEN + rb'([^"\n]{1,%d})' % LENGTH, re.IGNORECASE)
        for match in reversed(list(expression.finditer(self._prompt))):
            yield re.split(rb'[",;\n]|\. |\.$', match[1])[0].rstrip()
